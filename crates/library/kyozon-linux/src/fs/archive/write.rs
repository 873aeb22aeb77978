//! Writes an archive: ustar headers, and records of pax for what they have no place for.

use crate::fs::attributes::extended;
use crate::fs::failure::{failed, warn};
use crate::fs::walk::{is_folder, Folder, Level, Levels, Open};
use crate::interrupt;
use anyhow::{bail, ensure, Context, Result};
use liblinux::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Pieces of data of a sparse file beyond which it is written whole.
const MAX_PIECES: usize = 1 << 16;
/// Bytes of a block of an archive.
const BLOCK: usize = 512;

/// Writes the contents of a folder.
pub fn write(folder: &Folder<'_>, out: impl Write) -> Result<()> {
    let mut archive = Archive { builder: Builder::new(out), links: HashMap::new() };
    archive.contents(folder)?;
    archive.builder.into_inner().and_then(|mut out| out.flush()).context("the archive")
}

struct Archive<W: Write> {
    builder: Builder<W>,
    /// The first name of each file with several.
    links: HashMap<u64, PathBuf>,
}

/// A header with records that go before it.
struct Described {
    header: Header,
    records: Vec<(String, Vec<u8>)>,
}

impl Described {
    fn record(&mut self, key: &str, value: impl Into<Vec<u8>>) {
        self.records.push((key.into(), value.into()));
    }

    fn name(&mut self, name: &Path) {
        if self.header.set_path(name).is_err() {
            // A reader that knows no pax gets the start of it.
            let bytes = name.as_os_str().as_bytes();
            let bytes = &bytes[..bytes.len().min(100)];
            self.header.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
            self.record("path", name.as_os_str().as_bytes());
        }
    }

    fn link(&mut self, target: &[u8]) {
        if target.len() > 100 || self.header.set_link_name_literal(target).is_err() {
            self.record("linkpath", target);
        }
    }
}

fn describe(stat: &libc::stat) -> Described {
    let mut header = Header::new_ustar();
    header.set_mode(stat.st_mode & 0o7777);
    header.set_uid(stat.st_uid.into());
    header.set_gid(stat.st_gid.into());
    header.set_mtime(stat.st_mtime.max(0) as u64);
    header.set_size(0);
    let mut described = Described { header, records: Vec::new() };
    if stat.st_mtime < 0 || stat.st_mtime_nsec != 0 {
        described.record("mtime", time(stat.st_mtime, stat.st_mtime_nsec));
    }
    described
}

/// Seconds with a fraction, as a decimal number.
fn time(seconds: i64, nanoseconds: i64) -> String {
    match (seconds < 0, nanoseconds) {
        (_, 0) => seconds.to_string(),
        (false, _) => format!("{seconds}.{nanoseconds:09}"),
        (true, _) => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - nanoseconds),
    }
}

impl<W: Write> Archive<W> {
    fn contents(&mut self, folder: &Folder<'_>) -> Result<()> {
        let mut inside = PathBuf::new();
        let mut levels = Levels::empty();
        levels.enter(folder.again()?, None, ())?;
        loop {
            let Some((Level { folder, .. }, entry)) = levels.next_entry() else {
                inside.pop();
                match levels.leave()? {
                    Some(_) => continue,
                    None => return Ok(()),
                }
            };
            inside.push(OsStr::from_bytes(entry.name.to_bytes()));
            if self.entry(folder, &entry.name, &inside)? {
                let next = folder.enter(&entry.name)?;
                levels.enter(next, None, ())?;
            } else {
                inside.pop();
            }
        }
    }

    /// Appends an entry. Returns whether it is a folder, whose contents come next.
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, inside: &Path) -> Result<bool> {
        interrupt::check()?;
        let stat = folder.stat(name)?;
        let kind = stat.st_mode & libc::S_IFMT;
        let mut entry = describe(&stat);
        entry.name(inside);
        if !is_folder(&stat) && stat.st_nlink > 1 {
            if let Some(first) = self.links.get(&stat.st_ino) {
                entry.link(first.as_os_str().as_bytes());
                entry.header.set_entry_type(EntryType::Link);
                self.append(entry, io::empty())?;
                return Ok(false);
            }
            self.links.insert(stat.st_ino, inside.into());
        }
        for (attribute, value) in extended(folder, name)? {
            match attribute.to_str() {
                Ok(attribute) if !attribute.contains('=') => {
                    entry.record(&format!("SCHILY.xattr.{attribute}"), value);
                }
                _ => warn(&format!(
                    "{}: archives cannot have an attribute of such a name",
                    folder.join(name).display()
                )),
            }
        }
        match kind {
            libc::S_IFDIR => {
                entry.header.set_entry_type(EntryType::Directory);
                self.append(entry, io::empty())
            }
            libc::S_IFREG => self.file(folder, name, entry, stat.st_size as u64, inside),
            libc::S_IFLNK => {
                let target = folder.calls.read_link_at(folder.fd, name);
                entry.link(&target.map_err(failed("read", &folder.join(name)))?);
                entry.header.set_entry_type(EntryType::Symlink);
                self.append(entry, io::empty())
            }
            libc::S_IFCHR | libc::S_IFBLK => {
                let block = kind == libc::S_IFBLK;
                entry.header.set_entry_type(if block { EntryType::Block } else { EntryType::Char });
                entry.header.set_device_major(libc::major(stat.st_rdev))?;
                entry.header.set_device_minor(libc::minor(stat.st_rdev))?;
                self.append(entry, io::empty())
            }
            libc::S_IFIFO => {
                entry.header.set_entry_type(EntryType::Fifo);
                self.append(entry, io::empty())
            }
            _ => {
                let path = folder.join(name);
                warn(&format!("{}: archives have no sockets", path.display()));
                Ok(())
            }
        }?;
        Ok(kind == libc::S_IFDIR)
    }

    fn append(&mut self, mut entry: Described, data: impl Read) -> Result<()> {
        let records = entry.records.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        self.builder.append_pax_extensions(records).context("the archive")?;
        entry.header.set_cksum();
        self.builder.append(&entry.header, data).map_err(|error| {
            // An error of the file, not of the archive.
            match error.get_ref().is_some_and(|inner| inner.is::<Short>()) {
                true => anyhow::anyhow!("{error}"),
                false => anyhow::Error::from(error).context("the archive"),
            }
        })
    }

    fn file(
        &mut self,
        folder: &Folder<'_>,
        name: &CStr,
        mut entry: Described,
        size: u64,
        inside: &Path,
    ) -> Result<()> {
        let how = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = Open::new(folder, name, how, "open")?;
        entry.header.set_entry_type(EntryType::Regular);
        let pieces = pieces(&file, size)?;
        let whole = pieces.len() > MAX_PIECES || pieces == [(0, size)] || size == 0;
        let (mut map, pieces) =
            if whole { (Vec::new(), vec![(0, size)]) } else { (map(&pieces, size), pieces) };
        let data: u64 = pieces.iter().map(|(_, bytes)| bytes).sum();
        if !whole {
            entry.record("GNU.sparse.major", "1");
            entry.record("GNU.sparse.minor", "0");
            entry.record("GNU.sparse.name", inside.as_os_str().as_bytes());
            entry.record("GNU.sparse.realsize", size.to_string());
            map.resize(map.len().next_multiple_of(BLOCK), 0);
        }
        entry.header.set_size(map.len() as u64 + data);
        let reader = Reader { file: &file, pieces: &pieces, at: 0 };
        self.append(entry, map.as_slice().chain(reader))?;
        file.close("close")
    }
}

/// The pieces of data of a file: where each starts, and its bytes.
fn pieces(file: &Open<'_>, size: u64) -> Result<Vec<(u64, u64)>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < size && pieces.len() <= MAX_PIECES {
        let start = match file.calls.seek(file.fd, at as i64, libc::SEEK_DATA) {
            Ok(start) if (at..=size).contains(&start) => start,
            Ok(_) => bail!("{} became shorter while it was read", file.path.display()),
            Err(Errno(libc::ENXIO)) => break,
            Err(_) => at,
        };
        let end = file.calls.seek(file.fd, start as i64, libc::SEEK_HOLE).unwrap_or(size);
        let end = end.clamp(start, size);
        ensure!(end > at || start == size, "{}: a hole without an end", file.path.display());
        pieces.push((start, end - start));
        at = end;
    }
    Ok(pieces)
}

/// The map of a sparse file, version 1.0 of GNU: decimal numbers on lines, with the file's end as last piece.
fn map(pieces: &[(u64, u64)], size: u64) -> Vec<u8> {
    let mut all = pieces.to_vec();
    all.retain(|(_, bytes)| *bytes > 0);
    if all.last().is_none_or(|(start, bytes)| start + bytes < size) {
        all.push((size, 0));
    }
    let mut text = format!("{}\n", all.len());
    for (start, bytes) in all {
        text += &format!("{start}\n{bytes}\n");
    }
    text.into_bytes()
}

/// The file's error, which is not one of the archive.
#[derive(Debug)]
struct Short(String);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Short {}

/// Reads the pieces of a file. A file that is shorter than it said is an error: the header has been written.
struct Reader<'a> {
    file: &'a Open<'a>,
    pieces: &'a [(u64, u64)],
    /// Bytes of the first piece that were read.
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if interrupt::received() {
            return Err(io::Error::other(Short("interrupted".into())));
        }
        let Some(&(start, bytes)) = self.pieces.first() else { return Ok(0) };
        if self.at == bytes {
            (self.pieces, self.at) = (&self.pieces[1..], 0);
            return self.read(buffer);
        }
        let want = buffer.len().min((bytes - self.at) as usize);
        let path = &self.file.path;
        let got =
            self.file.calls.pread(self.file.fd, &mut buffer[..want], start + self.at).map_err(
                |errno| io::Error::other(Short(failed("read", path)(errno).to_string())),
            )?;
        if got == 0 && want > 0 {
            let text = format!("{} became shorter while it was read", path.display());
            return Err(io::Error::other(Short(text)));
        }
        self.at += got as u64;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_have_their_sign_before_the_fraction() {
        assert_eq!(time(5, 0), "5");
        assert_eq!(time(5, 250_000_000), "5.250000000");
        assert_eq!(time(-1, 0), "-1");
        assert_eq!(time(-1, 750_000_000), "-0.250000000");
        assert_eq!(time(-3, 500_000_000), "-2.500000000");
    }

    #[test]
    fn a_map_ends_with_the_size() {
        assert_eq!(map(&[(0, 512), (4096, 10)], 4106), b"2\n0\n512\n4096\n10\n");
        assert_eq!(map(&[(0, 512)], 4096), b"2\n0\n512\n4096\n0\n");
        assert_eq!(map(&[], 4096), b"1\n4096\n0\n");
    }
}
