//! An archive into a folder. Names come from the archive and may be hostile: each is looked up folder by folder, and
//! links are not followed.

use super::headers::{Entry, Headers};
use crate::fs::attributes::{Attributes, Lost, Owner};
use crate::fs::failure::{failed, warn};
use crate::fs::progress::Progress;
use crate::fs::walk::{is_folder, remove, Folder, Open};
use crate::interrupt;
use anyhow::{bail, ensure, Context, Result};
use liblinux::Errno;
use std::ffi::CString;
use std::io::Read;
use tar::EntryType;

/// Bytes that one read takes.
const CHUNK: u64 = 1 << 20;

/// Puts an archive's entries into a folder.
pub fn read(to: &Folder<'_>, from: impl Read) -> Result<()> {
    let mut extraction = Extraction {
        to,
        headers: Headers::new(from),
        folders: Vec::new(),
        lost: Lost::default(),
        progress: Progress::start(),
    };
    let done = extraction.all();
    // What is there is complete, also if the archive is not.
    let folders = extraction.finish_folders();
    let lost = extraction.lost.end();
    done.and(folders).and(lost)
}

struct Extraction<'a, R: Read> {
    to: &'a Folder<'a>,
    headers: Headers<R>,
    /// Folders get their attributes at the end, because what is put into them changes their times.
    folders: Vec<(Vec<CString>, Attributes)>,
    lost: Lost,
    progress: Progress,
}

/// The names that lead to an entry from the folder that gets the archive.
fn names(path: &[u8]) -> Result<Vec<CString>> {
    let shown = String::from_utf8_lossy(path);
    ensure!(!path.starts_with(b"/"), "{shown}: the archive has an absolute path");
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names
        .map(|name| {
            ensure!(name != b"..", "{shown}: the archive has a path that leads out of its folder");
            CString::new(name).with_context(|| format!("{shown}: a name contains a zero byte"))
        })
        .collect()
}

/// The folder that names lead to from another one. Those that are missing are made.
fn enter<'a>(to: &Folder<'a>, names: &[CString]) -> Result<Folder<'a>> {
    let mut folder = to.again()?;
    for name in names {
        match folder.calls.mkdir_at(folder.fd, name, 0o755) {
            Err(error) if error.0 != libc::EEXIST => {
                return Err(failed("make", &folder.join(name))(error));
            }
            _ => (),
        }
        let link = folder.stat(name)?.st_mode & libc::S_IFMT == libc::S_IFLNK;
        let path = folder.join(name);
        ensure!(!link, "{} is a link: nothing is put through it", path.display());
        folder = folder.enter(name)?;
    }
    Ok(folder)
}

impl<R: Read> Extraction<'_, R> {
    fn all(&mut self) -> Result<()> {
        while let Some(entry) = self.headers.next_entry()? {
            interrupt::check()?;
            let names = names(&entry.path)?;
            match names.split_last() {
                Some((name, above)) => self.entry(&entry, above, name, &names)?,
                // The folder itself keeps its attributes.
                None if entry.kind == EntryType::Directory => (),
                None => bail!("the archive has a file without a name"),
            }
            self.progress.file();
        }
        self.headers.drain()
    }

    fn entry(
        &mut self,
        entry: &Entry,
        above: &[CString],
        name: &CString,
        names_of: &[CString],
    ) -> Result<()> {
        let kind = match entry.kind {
            EntryType::Regular | EntryType::Continuous => libc::S_IFREG,
            EntryType::Directory => libc::S_IFDIR,
            EntryType::Symlink => libc::S_IFLNK,
            EntryType::Char => libc::S_IFCHR,
            EntryType::Block => libc::S_IFBLK,
            EntryType::Fifo => libc::S_IFIFO,
            EntryType::Link => libc::S_IFREG,
            kind => {
                let shown = String::from_utf8_lossy(&entry.path).into_owned();
                let kind = char::from(kind.as_byte());
                warn(&format!("{shown}: entries of type {kind} are left out"));
                return Ok(());
            }
        };
        let attributes = self.attributes(entry, kind)?;
        let folder = enter(self.to, above)?;
        let path = folder.join(name);
        let there = folder.calls.stat_at(folder.fd, name, libc::AT_SYMLINK_NOFOLLOW).ok();
        if kind == libc::S_IFDIR && there.as_ref().is_some_and(is_folder) {
            self.folders.push((names_of.to_vec(), attributes));
            return Ok(());
        }
        let over = there.as_ref().is_some_and(is_folder);
        ensure!(!over, "{} is a folder, and in the archive it is none", path.display());
        if entry.kind == EntryType::Link {
            let target = names(&entry.link)?;
            let (first, leads) =
                target.split_last().context("the archive has a link to nothing")?;
            if target == names_of {
                return Ok(());
            }
            let at = enter(self.to, leads)?;
            at.stat(first)?;
            if there.is_some() {
                remove(&folder, name, false)?;
            }
            return folder
                .calls
                .link_at(at.fd, first, folder.fd, name)
                .map_err(failed("link", &path));
        }
        if there.is_some() {
            remove(&folder, name, false)?;
        }
        match kind {
            libc::S_IFREG => {
                let file = Open::create(&folder, name)?;
                data(&mut self.headers, entry, &file, &mut self.progress)
                    .with_context(|| format!("{} is incomplete", path.display()))?;
                file.close("write")?;
            }
            libc::S_IFDIR => {
                folder.calls.mkdir_at(folder.fd, name, 0o700).map_err(failed("make", &path))?;
                drop(folder);
                self.folders.push((names_of.to_vec(), attributes));
                return Ok(());
            }
            libc::S_IFLNK => {
                let target = CString::new(entry.link.clone())?;
                let made = folder.calls.symlink_at(&target, folder.fd, name);
                made.map_err(failed("make", &path))?;
            }
            kind => {
                let device = libc::makedev(entry.device.0, entry.device.1);
                let made = folder.calls.mknod_at(folder.fd, name, kind | 0o600, device);
                made.map_err(failed("make", &path))?;
            }
        }
        attributes.set(&folder, name, &mut self.lost)
    }

    fn attributes(&self, entry: &Entry, kind: u32) -> Result<Attributes> {
        let time = |(tv_sec, tv_nsec)| libc::timespec { tv_sec, tv_nsec };
        let extended = entry.extended.iter().map(|(key, value)| {
            let key = CString::new(key.clone()).context("an attribute's name has a zero byte")?;
            Ok((key, value.clone()))
        });
        Ok(Attributes {
            mode: kind | entry.mode,
            owner: Some(Owner { user: entry.owner.0, group: entry.owner.1 }),
            times: [time(entry.accessed.unwrap_or(entry.modified)), time(entry.modified)],
            extended: extended.collect::<Result<_>>()?,
        })
    }

    /// Gives folders their attributes, the innermost ones first.
    fn finish_folders(&mut self) -> Result<()> {
        let mut folders = std::mem::take(&mut self.folders);
        folders.sort_by_key(|(names, _)| std::cmp::Reverse(names.len()));
        let mut done = Ok(());
        for (names, attributes) in folders {
            let Some((name, above)) = names.split_last() else { continue };
            // A later entry may have replaced the folder.
            let set = enter(self.to, above).and_then(|folder| {
                match folder.calls.stat_at(folder.fd, name, libc::AT_SYMLINK_NOFOLLOW) {
                    Ok(stat) if is_folder(&stat) => attributes.set(&folder, name, &mut self.lost),
                    Ok(_) | Err(Errno(libc::ENOENT)) => Ok(()),
                    Err(errno) => Err(failed("read", &folder.join(name))(errno)),
                }
            });
            done = done.and(set);
        }
        done
    }
}

fn data<R: Read>(
    headers: &mut Headers<R>,
    entry: &Entry,
    file: &Open<'_>,
    progress: &mut Progress,
) -> Result<()> {
    let mut buffer = vec![0; CHUNK.min(entry.size) as usize];
    for &(start, bytes) in &entry.pieces {
        let mut done = 0;
        while done < bytes {
            let piece = (bytes - done).min(CHUNK) as usize;
            headers.data(&mut buffer[..piece])?;
            file.write_at(&buffer[..piece], start + done)?;
            done += piece as u64;
            progress.bytes(piece);
        }
    }
    let resized = file.calls.truncate(file.fd, entry.size);
    resized.map_err(failed("write", &file.path))
}
