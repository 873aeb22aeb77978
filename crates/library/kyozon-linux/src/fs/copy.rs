//! Files and folders from one kernel to another.

use super::walk::{explain, failed, is_folder, remove, Folder};
use anyhow::{bail, ensure, Result};
use liblinux::calls::{Calls, Fd};
use liblinux::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that one read takes.
const CHUNK: usize = 1 << 20;

/// What a copy keeps.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// Folders are copied with everything in them.
    pub recursive: bool,
    /// Also owners, extended attributes, hard links, device nodes and the set-user-id bits.
    pub archive: bool,
}

/// Copies, and counts what it copied.
pub struct Copier<'a> {
    keep: Keep,
    /// Where the first name of a file with several was copied: by device and inode.
    links: HashMap<(u64, u64), (Folder<'a>, CString)>,
    buffer: Vec<u8>,
    files: u64,
    bytes: u64,
    /// What could not be kept, each named once.
    lost: Vec<&'static str>,
    shown: Instant,
    terminal: bool,
}

impl<'a> Copier<'a> {
    /// A copier that has copied nothing.
    pub fn new(keep: Keep) -> Self {
        Self {
            keep,
            links: HashMap::new(),
            buffer: vec![0; CHUNK],
            files: 0,
            bytes: 0,
            lost: Vec::new(),
            shown: Instant::now(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Everything in a folder.
    pub fn contents(&mut self, from: &Folder<'_>, to: &Folder<'a>) -> Result<()> {
        from.entries()?.iter().try_for_each(|entry| self.entry(from, &entry.name, to, &entry.name))
    }

    /// One entry, under a new name.
    pub fn entry(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
    ) -> Result<()> {
        let stat = from.stat(name)?;
        let path = from.join(name);
        if is_folder(&stat) {
            ensure!(self.keep.recursive, "{} is a folder: use -r", path.display());
            self.folder(from, name, to, new, &stat)?;
        } else {
            self.file(from, name, to, new, &stat)?;
        }
        self.files += 1;
        self.show();
        Ok(())
    }

    fn folder(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
        stat: &libc::stat,
    ) -> Result<()> {
        match to.calls.mkdir_at(to.fd, new, 0o700) {
            Err(error) if error.0 != libc::EEXIST => {
                return Err(failed("make", &to.join(new))(error))
            }
            _ => (),
        }
        let target = to.enter(new)?;
        self.contents(&from.enter(name)?, &target)?;
        self.attributes(from, name, to, new, stat)
    }

    fn file(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
        stat: &libc::stat,
    ) -> Result<()> {
        let target = to.join(new);
        let exists = to.calls.stat_at(to.fd, new, libc::AT_SYMLINK_NOFOLLOW);
        if exists.is_ok_and(|stat| !is_folder(&stat)) {
            remove(to, new, false)?;
        }
        let several = self.keep.archive && stat.st_nlink > 1;
        if several {
            if let Some((folder, first)) = self.links.get(&(stat.st_dev, stat.st_ino)) {
                return to
                    .calls
                    .link_at(folder.fd, first, to.fd, new)
                    .map_err(failed("link", &target));
            }
        }
        let make = |kind, device| {
            to.calls.mknod_at(to.fd, new, kind, device).map_err(failed("make", &target))
        };
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFREG => self.data(from, name, to, new, stat)?,
            libc::S_IFLNK => {
                let link = from
                    .calls
                    .read_link_at(from.fd, name)
                    .map_err(failed("read", &from.join(name)))?;
                let link = CString::new(link)?;
                to.calls.symlink_at(&link, to.fd, new).map_err(failed("make", &target))?;
            }
            kind @ (libc::S_IFIFO | libc::S_IFSOCK) => make(kind | 0o600, 0)?,
            kind @ (libc::S_IFCHR | libc::S_IFBLK) if self.keep.archive => {
                make(kind | 0o600, stat.st_rdev)?
            }
            _ => bail!("{} is a device: use -a to copy the node", from.join(name).display()),
        }
        if several {
            // The folder stays open: the link may be asked for much later.
            self.links.insert((stat.st_dev, stat.st_ino), (to.again()?, new.into()));
        }
        self.attributes(from, name, to, new, stat)
    }

    /// The bytes of a regular file. Holes stay holes.
    fn data(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
        stat: &libc::stat,
    ) -> Result<()> {
        let (source, target) = (from.join(name), to.join(new));
        let how = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let input = from.calls.open_at(from.fd, name, how, 0).map_err(failed("open", &source))?;
        let how = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let output = to.calls.open_at(to.fd, new, how, 0o600).map_err(failed("make", &target))?;
        let copied =
            self.stream(from.calls, input, &source, to.calls, output, &target, stat.st_size as u64);
        // Some file systems report a full disk when the file is closed.
        let closed = to.calls.close(output).map_err(failed("write", &target));
        from.calls.close(input).map_err(failed("read", &source))?;
        copied.and(closed)
    }

    #[allow(clippy::too_many_arguments)]
    fn stream(
        &mut self,
        from: &dyn Calls,
        input: Fd,
        source: &Path,
        to: &dyn Calls,
        output: Fd,
        target: &Path,
        size: u64,
    ) -> Result<()> {
        let mut at = 0;
        while at < size {
            // A file system that knows no holes has one piece of data.
            let start = match from.seek(input, at as i64, libc::SEEK_DATA) {
                Ok(start) if (at..=size).contains(&start) => start,
                Ok(_) => bail!("{} became shorter while it was copied", source.display()),
                Err(Errno(libc::ENXIO)) => break,
                Err(_) => at,
            };
            let end =
                from.seek(input, start as i64, libc::SEEK_HOLE).unwrap_or(size).clamp(start, size);
            ensure!(end > at || start == size, "{}: a hole without an end", source.display());
            at = start;
            while at < end {
                let want = (end - at).min(CHUNK as u64) as usize;
                let bytes = from
                    .pread(input, &mut self.buffer[..want], at)
                    .map_err(failed("read", source))?;
                if bytes == 0 {
                    break;
                }
                let mut done = 0;
                while done < bytes {
                    let buffer = &self.buffer[done..bytes];
                    let wrote = to
                        .pwrite(output, buffer, at + done as u64)
                        .map_err(failed("write", target))?;
                    ensure!(wrote > 0, "cannot write {}", target.display());
                    done += wrote;
                }
                at += bytes as u64;
                self.bytes += bytes as u64;
                self.show();
            }
            if at < end {
                bail!("{} became shorter while it was copied", source.display());
            }
        }
        to.truncate(output, size).map_err(failed("write", target))
    }

    /// Owner, rights, times and extended attributes, in the order in which they do not undo each other.
    fn attributes(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
        stat: &libc::stat,
    ) -> Result<()> {
        let path = to.join(new);
        let link = stat.st_mode & libc::S_IFMT == libc::S_IFLNK;
        let mut rights = stat.st_mode & 0o777;
        if self.keep.archive {
            match to.calls.chown_at(to.fd, new, stat.st_uid, stat.st_gid) {
                Ok(()) => rights = stat.st_mode & 0o7777,
                Err(Errno(libc::EPERM)) => self.lose("owners"),
                Err(error) => return Err(failed("set the owner of", &path)(error)),
            }
            if matches!(stat.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR) {
                self.extended(from, name, to, new)?;
            }
        }
        if !link {
            to.calls.chmod_at(to.fd, new, rights).map_err(failed("set the rights of", &path))?;
        }
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        let times =
            [time(stat.st_atime, stat.st_atime_nsec), time(stat.st_mtime, stat.st_mtime_nsec)];
        to.calls.set_times_at(to.fd, new, &times).map_err(failed("set the times of", &path))
    }

    /// Extended attributes of files and folders. Those of other types belong to the kernel that made them.
    fn extended(
        &mut self,
        from: &Folder<'_>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
    ) -> Result<()> {
        let how = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let (source, target) = (from.join(name), to.join(new));
        let input = from.calls.open_at(from.fd, name, how, 0).map_err(failed("open", &source))?;
        let output = to.calls.open_at(to.fd, new, how, 0).map_err(failed("open", &target))?;
        let copied = self.extended_of(from.calls, input, &source, to.calls, output, &target);
        from.calls.close(input).map_err(failed("close", &source))?;
        to.calls.close(output).map_err(failed("close", &target))?;
        copied
    }

    fn extended_of(
        &mut self,
        from: &dyn Calls,
        input: Fd,
        source: &Path,
        to: &dyn Calls,
        output: Fd,
        target: &Path,
    ) -> Result<()> {
        let names = match from.attributes(input) {
            Err(Errno(libc::EOPNOTSUPP)) => return Ok(()),
            names => names.map_err(failed("read the attributes of", source))?,
        };
        for attribute in names {
            let value = from
                .attribute(input, &attribute)
                .map_err(failed("read an attribute of", source))?;
            match to.set_attribute(output, &attribute, &value) {
                Err(Errno(libc::EPERM | libc::EOPNOTSUPP)) => self.lose("extended attributes"),
                set => set.map_err(failed("set an attribute of", target))?,
            }
        }
        Ok(())
    }

    fn lose(&mut self, what: &'static str) {
        if !self.lost.contains(&what) {
            self.lost.push(what);
        }
    }

    /// A line about progress on a terminal, a few times a second.
    fn show(&mut self) {
        if self.terminal && self.shown.elapsed() > Duration::from_millis(200) {
            self.shown = Instant::now();
            eprint!("\r{} files, {} MiB ", self.files, self.bytes >> 20);
            // Nobody misses a line of progress.
            let _ = std::io::stderr().flush();
        }
    }

    /// Names what could not be kept.
    pub fn finish(self) {
        if self.terminal {
            eprintln!("\r{} files, {} MiB", self.files, self.bytes >> 20);
        }
        for what in self.lost {
            eprintln!("kyozon: warning: {what} were not kept: {}", explain(Errno(libc::EPERM)));
        }
    }
}
