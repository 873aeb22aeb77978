//! A tar archive of a folder, on standard output.

use super::failure::failed;
use super::walk::Folder;
use anyhow::{Context, Result};
use liblinux::calls::{Calls, Fd};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// A file of a kernel that is read from its start.
struct Reader<'a>(&'a dyn Calls, Fd);

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(self.1, buffer).map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }
}

/// Writes the archive.
pub fn write(calls: &dyn Calls, path: &Path) -> Result<()> {
    let mut archive = Archive { builder: Builder::new(io::stdout().lock()), links: HashMap::new() };
    archive.contents(&Folder::open(calls, path)?, Path::new(""))?;
    archive.builder.into_inner().and_then(|mut out| out.flush()).context("standard output")
}

struct Archive<W: Write> {
    builder: Builder<W>,
    /// The first name of each file with several.
    links: HashMap<u64, PathBuf>,
}

impl<W: Write> Archive<W> {
    fn contents(&mut self, folder: &Folder<'_>, inside: &Path) -> Result<()> {
        for entry in folder.entries()? {
            let name = inside.join(OsStr::from_bytes(entry.name.to_bytes()));
            self.entry(folder, &entry.name, &name)
                .with_context(|| folder.join(&entry.name).display().to_string())?;
        }
        Ok(())
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, inside: &Path) -> Result<()> {
        let stat = folder.stat(name)?;
        let mut header = Header::new_gnu();
        header.set_mode(stat.st_mode & 0o7777);
        header.set_uid(stat.st_uid.into());
        header.set_gid(stat.st_gid.into());
        header.set_mtime(stat.st_mtime.max(0) as u64);
        header.set_size(0);
        let kind = stat.st_mode & libc::S_IFMT;
        if kind != libc::S_IFDIR && stat.st_nlink > 1 {
            if let Some(first) = self.links.get(&stat.st_ino) {
                header.set_entry_type(EntryType::Link);
                return Ok(self.builder.append_link(&mut header, inside, first)?);
            }
            self.links.insert(stat.st_ino, inside.into());
        }
        match kind {
            libc::S_IFDIR => {
                header.set_entry_type(EntryType::Directory);
                self.builder.append_data(&mut header, inside, io::empty())?;
                self.contents(&folder.enter(name)?, inside)?;
            }
            libc::S_IFREG => {
                let path = folder.join(name);
                let how = libc::O_RDONLY | libc::O_NOFOLLOW;
                let file =
                    folder.calls.open_at(folder.fd, name, how, 0).map_err(failed("open", &path))?;
                header.set_entry_type(EntryType::Regular);
                header.set_size(stat.st_size as u64);
                let data = Reader(folder.calls, file).take(stat.st_size as u64);
                let written = self.builder.append_data(&mut header, inside, data);
                folder.calls.close(file).map_err(failed("close", &path))?;
                written?;
            }
            libc::S_IFLNK => {
                let target = folder
                    .calls
                    .read_link_at(folder.fd, name)
                    .map_err(failed("read", &folder.join(name)))?;
                header.set_entry_type(EntryType::Symlink);
                self.builder.append_link(&mut header, inside, OsStr::from_bytes(&target))?;
            }
            libc::S_IFCHR | libc::S_IFBLK => {
                let block = kind == libc::S_IFBLK;
                header.set_entry_type(if block { EntryType::Block } else { EntryType::Char });
                header.set_device_major(libc::major(stat.st_rdev))?;
                header.set_device_minor(libc::minor(stat.st_rdev))?;
                self.builder.append_data(&mut header, inside, io::empty())?;
            }
            libc::S_IFIFO => {
                header.set_entry_type(EntryType::Fifo);
                self.builder.append_data(&mut header, inside, io::empty())?;
            }
            // Archives have no sockets.
            _ => (),
        }
        Ok(())
    }
}
