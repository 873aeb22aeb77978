//! What is printed about files.

use super::attributes::extended;
use super::failure::failed;
use super::output;
use super::walk::{c_string, is_folder, Folder, Level, Levels};
use crate::cli::Kind;
use crate::interrupt;
use anyhow::Result;
use liblinux::calls::{Calls, CWD};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

fn is_device(stat: &libc::stat) -> bool {
    matches!(stat.st_mode & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK)
}

/// A device's numbers.
fn device(stat: &libc::stat) -> String {
    format!("{}, {}", libc::major(stat.st_rdev), libc::minor(stat.st_rdev))
}

fn line(stat: &libc::stat) -> String {
    let size = if is_device(stat) { device(stat) } else { stat.st_size.to_string() };
    format!(
        "{} {:>3} {:>5} {:>5} {:>12} {} ",
        rights(stat.st_mode),
        stat.st_nlink,
        stat.st_uid,
        stat.st_gid,
        size,
        time(stat.st_mtime)
    )
}

fn type_word(stat: &libc::stat) -> &'static str {
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => "file",
        libc::S_IFDIR => "folder",
        libc::S_IFLNK => "link",
        libc::S_IFCHR => "character-device",
        libc::S_IFBLK => "block-device",
        libc::S_IFIFO => "pipe",
        libc::S_IFSOCK => "socket",
        _ => "unknown",
    }
}

fn entry(folder: &Folder<'_>, name: &CStr, long: bool) -> Result<()> {
    let mut text = Vec::new();
    if long {
        let stat = folder.stat(name)?;
        text.extend_from_slice(line(&stat).as_bytes());
        text.extend_from_slice(&output::name(name.to_bytes()));
        if stat.st_mode & libc::S_IFMT == libc::S_IFLNK {
            let target = folder
                .calls
                .read_link_at(folder.fd, name)
                .map_err(failed("read", &folder.join(name)))?;
            text.extend_from_slice(b" -> ");
            text.extend_from_slice(&output::name(&target));
        }
    } else {
        text.extend_from_slice(&output::name(name.to_bytes()));
    }
    text.push(b'\n');
    output::write(&text)
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
    let (folder, name) = match path.file_name() {
        Some(name) => {
            let above = path.parent().unwrap_or(Path::new("/"));
            (Folder::open(calls, above)?, c_string(name)?)
        }
        None => (Folder::open(calls, path)?, c".".into()),
    };
    let stat = folder.stat(&name)?;
    let at = |seconds, nanoseconds: i64| format!("{}.{nanoseconds:09}", time(seconds));
    let mut lines = vec![
        format!("rights {} {:04o}", rights(stat.st_mode), stat.st_mode & 0o7777),
        format!("type {}", type_word(&stat)),
        format!("links {}", stat.st_nlink),
        format!("owner {} group {}", stat.st_uid, stat.st_gid),
        format!("bytes {} on-disk {}", stat.st_size, stat.st_blocks.saturating_mul(512)),
        format!("inode {}", stat.st_ino),
        format!("accessed {}", at(stat.st_atime, stat.st_atime_nsec)),
        format!("modified {}", at(stat.st_mtime, stat.st_mtime_nsec)),
        format!("changed {}", at(stat.st_ctime, stat.st_ctime_nsec)),
    ];
    let born = calls.stat_birth_at(folder.fd, &name, libc::AT_SYMLINK_NOFOLLOW);
    if let Some(born) = born.map_err(failed("read", path))? {
        lines.push(format!("born {}", at(born.tv_sec, born.tv_nsec)));
    }
    if is_device(&stat) {
        lines.push(format!("device {}", device(&stat)));
    }
    output::write((lines.join("\n") + "\n").as_bytes())?;
    if stat.st_mode & libc::S_IFMT == libc::S_IFLNK {
        let target = calls.read_link_at(folder.fd, &name);
        let target = output::name(&target.map_err(failed("read", path))?);
        output::write(&[b"target ", &target[..], b"\n"].concat())?;
    }
    for (attribute, value) in extended(&folder, &name)? {
        let attribute = output::name(attribute.to_bytes());
        let bytes = format!(" bytes {}\n", value.len());
        output::write(&[b"attribute ", &attribute[..], bytes.as_bytes()].concat())?;
    }
    Ok(())
}

/// A number of bytes, for people if `human`.
fn bytes(number: u64, human: bool) -> String {
    let unit = number.max(1).ilog2() / 10;
    if !human || unit == 0 {
        return number.to_string();
    }
    format!(
        "{:.1}{}",
        number as f64 / f64::from(1 << 10).powi(unit as i32),
        b"-KMGTPE"[unit as usize] as char
    )
}

/// Size of a file system.
pub fn size(calls: &dyn Calls, path: &Path, human: bool) -> Result<()> {
    let file = calls.open(path, libc::O_RDONLY, 0).map_err(failed("open", path))?;
    let stat = calls.stat_fs(file).map_err(failed("read", path))?;
    calls.close(file).map_err(failed("close", path))?;
    let block = stat.f_bsize as u64;
    // What an image says need not make sense.
    let used = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(block);
    let text = format!(
        "bytes {} used {} available {}\nfiles {} used {}\n",
        bytes(stat.f_blocks.saturating_mul(block), human),
        bytes(used, human),
        bytes(stat.f_bavail.saturating_mul(block), human),
        stat.f_files,
        stat.f_files.saturating_sub(stat.f_ffree)
    );
    output::write(text.as_bytes())
}

/// What `find` prints.
pub struct Wanted {
    /// Names.
    pub name: Option<glob::Pattern>,
    /// Types.
    pub kind: Option<Kind>,
    /// Paths end with a zero byte, which no name contains.
    pub zero: bool,
}

impl Wanted {
    /// Prints a path if its name and type match. The type is a `DT_` constant.
    fn show(&self, path: &Path, name: &CStr, kind: u8) -> Result<()> {
        let typed = self.kind.is_none_or(|wanted| kind == wanted.number());
        let named =
            self.name.as_ref().is_none_or(|pattern| pattern.matches(&name.to_string_lossy()));
        if !typed || !named {
            return Ok(());
        }
        let path = path.as_os_str().as_bytes();
        if self.zero {
            return output::write(&[path, b"\0"].concat());
        }
        output::write(&[&output::name(path)[..], b"\n"].concat())
    }
}

/// The `DT_` constant of a status.
fn number(stat: &libc::stat) -> u8 {
    (stat.st_mode >> 12 & 0o17) as u8
}

/// The paths of everything in a folder that matches; of anything else, its own.
pub fn find(calls: &dyn Calls, path: &Path, wanted: &Wanted) -> Result<()> {
    let stat = calls.stat_at(CWD, &c_string(path.as_os_str())?, libc::AT_SYMLINK_NOFOLLOW);
    let stat = stat.map_err(failed("read", path))?;
    if !is_folder(&stat) && !path.as_os_str().as_bytes().ends_with(b"/") {
        let name = c_string(path.file_name().unwrap_or_default())?;
        return wanted.show(path, &name, number(&stat));
    }
    let mut path = path.to_owned();
    let mut levels = Levels::empty();
    levels.enter(Folder::open(calls, &path)?, None, ())?;
    loop {
        interrupt::check()?;
        let Some((Level { folder, .. }, entry)) = levels.next_entry() else {
            path.pop();
            match levels.leave()? {
                Some(_) => continue,
                None => return Ok(()),
            }
        };
        // A status costs a search of the folder on file systems without an index, such as vfat.
        let kind = match entry.kind {
            libc::DT_UNKNOWN => number(&folder.stat(&entry.name)?),
            kind => kind,
        };
        path.push(OsStr::from_bytes(entry.name.to_bytes()));
        wanted.show(&path, &entry.name, kind)?;
        if kind == libc::DT_DIR {
            let inside = folder.enter(&entry.name)?;
            levels.enter(inside, None, ())?;
        } else {
            path.pop();
        }
    }
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
    fn bytes_for_people() {
        assert_eq!(bytes(1023, true), "1023");
        assert_eq!(bytes(1536, true), "1.5K");
        assert_eq!(bytes(3 << 30, true), "3.0G");
        assert_eq!(bytes(u64::MAX, true), "16.0E");
        assert_eq!(bytes(1536, false), "1536");
        assert_eq!(bytes(0, true), "0");
    }

    #[test]
    fn rights_with_special_bits() {
        assert_eq!(rights(libc::S_IFREG | 0o4755), "-rwsr-xr-x");
        assert_eq!(rights(libc::S_IFDIR | 0o1777), "drwxrwxrwt");
        assert_eq!(rights(libc::S_IFREG | 0o2640), "-rw-r-S---");
    }
}
