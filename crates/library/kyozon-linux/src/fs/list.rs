//! What is printed about files.

use super::failure::failed;
use super::walk::{c_string, is_folder, Folder};
use crate::cli::Kind;
use anyhow::{Context, Result};
use liblinux::calls::{Calls, CWD};
use std::ffi::CStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn out(bytes: &[u8]) -> Result<()> {
    io::stdout().lock().write_all(bytes).context("standard output")
}

fn kind(mode: u32) -> char {
    match mode & libc::S_IFMT {
        libc::S_IFREG => '-',
        libc::S_IFDIR => 'd',
        libc::S_IFLNK => 'l',
        libc::S_IFCHR => 'c',
        libc::S_IFBLK => 'b',
        libc::S_IFIFO => 'p',
        libc::S_IFSOCK => 's',
        _ => '?',
    }
}

/// Type and rights, as ls prints them.
fn rights(mode: u32) -> String {
    let mut text = String::from(kind(mode));
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// A time in UTC, by the proleptic Gregorian calendar.
fn time(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March have the leap day at their end.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + carry;
    format!(
        "{year:04}-{month:02}-{date:02} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn line(stat: &libc::stat) -> String {
    format!(
        "{} {:>3} {:>5} {:>5} {:>12} {} ",
        rights(stat.st_mode),
        stat.st_nlink,
        stat.st_uid,
        stat.st_gid,
        stat.st_size,
        time(stat.st_mtime)
    )
}

fn entry(folder: &Folder<'_>, name: &CStr, long: bool) -> Result<()> {
    let mut text = Vec::new();
    if long {
        let stat = folder.stat(name)?;
        text.extend_from_slice(line(&stat).as_bytes());
        text.extend_from_slice(name.to_bytes());
        if stat.st_mode & libc::S_IFMT == libc::S_IFLNK {
            let target = folder
                .calls
                .read_link_at(folder.fd, name)
                .map_err(failed("read", &folder.join(name)))?;
            text.extend_from_slice(b" -> ");
            text.extend_from_slice(&target);
        }
    } else {
        text.extend_from_slice(name.to_bytes());
    }
    text.push(b'\n');
    out(&text)
}

/// The entries of a folder, or the file itself.
pub fn folder(calls: &dyn Calls, path: &Path, long: bool) -> Result<()> {
    let stat = calls.stat(path).map_err(failed("read", path))?;
    if !is_folder(&stat) {
        let folder = Folder::open(calls, path.parent().unwrap_or(Path::new(".")))?;
        return entry(&folder, &c_string(path.file_name().unwrap_or_default())?, long);
    }
    let folder = Folder::open(calls, path)?;
    folder.entries()?.iter().try_for_each(|e| entry(&folder, &e.name, long))
}

/// Everything about a file, one value a line.
pub fn stat(calls: &dyn Calls, path: &Path) -> Result<()> {
    let stat = calls.stat_at(CWD, &c_string(path.as_os_str())?, libc::AT_SYMLINK_NOFOLLOW);
    let stat = stat.map_err(failed("read", path))?;
    let lines = [
        format!("rights {} {:04o}", rights(stat.st_mode), stat.st_mode & 0o7777),
        format!("links {}", stat.st_nlink),
        format!("owner {} group {}", stat.st_uid, stat.st_gid),
        format!("bytes {} on-disk {}", stat.st_size, stat.st_blocks.saturating_mul(512)),
        format!("inode {}", stat.st_ino),
        format!("accessed {}", time(stat.st_atime)),
        format!("modified {}", time(stat.st_mtime)),
        format!("changed {}", time(stat.st_ctime)),
    ];
    out((lines.join("\n") + "\n").as_bytes())
}

/// Size of a file system.
pub fn size(calls: &dyn Calls, path: &Path) -> Result<()> {
    let file = calls.open(path, libc::O_RDONLY, 0).map_err(failed("open", path))?;
    let stat = calls.stat_fs(file).map_err(failed("read", path))?;
    calls.close(file).map_err(failed("close", path))?;
    let block = stat.f_bsize as u64;
    // What an image says need not make sense.
    let used = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(block);
    let text = format!(
        "bytes {} used {used} available {}\nfiles {} used {}\n",
        stat.f_blocks.saturating_mul(block),
        stat.f_bavail.saturating_mul(block),
        stat.f_files,
        stat.f_files.saturating_sub(stat.f_ffree)
    );
    out(text.as_bytes())
}

/// The paths of everything in a folder that matches.
pub fn find(
    calls: &dyn Calls,
    path: &Path,
    shown: &Path,
    name: Option<&glob::Pattern>,
    only: Option<Kind>,
) -> Result<()> {
    descend(&Folder::open(calls, path)?, shown, name, only)
}

fn descend(
    folder: &Folder<'_>,
    shown: &Path,
    name: Option<&glob::Pattern>,
    only: Option<Kind>,
) -> Result<()> {
    for entry in folder.entries()? {
        let stat = folder.stat(&entry.name)?;
        let path = shown.join(std::ffi::OsStr::from_bytes(entry.name.to_bytes()));
        let wanted = only.is_none_or(|kind| {
            stat.st_mode & libc::S_IFMT
                == match kind {
                    Kind::F => libc::S_IFREG,
                    Kind::D => libc::S_IFDIR,
                    Kind::L => libc::S_IFLNK,
                }
        });
        if wanted && name.is_none_or(|pattern| pattern.matches(&entry.name.to_string_lossy())) {
            out(&[path.as_os_str().as_bytes(), b"\n"].concat())?;
        }
        if is_folder(&stat) {
            descend(&folder.enter(&entry.name)?, &path, name, only)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_known_days() {
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(time(-1), "1969-12-31 23:59:59");
        assert_eq!(time(4_102_444_800), "2100-01-01 00:00:00");
    }

    #[test]
    fn rights_with_special_bits() {
        assert_eq!(rights(libc::S_IFREG | 0o4755), "-rwsr-xr-x");
        assert_eq!(rights(libc::S_IFDIR | 0o1777), "drwxrwxrwt");
        assert_eq!(rights(libc::S_IFREG | 0o2640), "-rw-r-S---");
    }
}
