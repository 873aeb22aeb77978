//! Files and folders from one kernel to another.

use super::walk::{explain, failed, is_folder, remove, Folder};
use anyhow::{bail, ensure, Result};
use liblinux::calls::{Calls, Fd};
use liblinux::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::ptr;
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

/// How a file is opened for reading: not through a link, and without waiting for a pipe's writer.
const READ: i32 = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// An entry, and where its copy goes.
struct Job<'x, 'a> {
    from: &'x Folder<'x>,
    name: &'x CStr,
    to: &'x Folder<'a>,
    new: &'x CStr,
    /// The entry's own status.
    stat: libc::stat,
}

impl Job<'_, '_> {
    fn source(&self) -> PathBuf {
        self.from.join(self.name)
    }

    fn target(&self) -> PathBuf {
        self.to.join(self.new)
    }
}

/// An open file of a kernel. It is closed when dropped.
struct Open<'x> {
    calls: &'x dyn Calls,
    fd: Fd,
    path: PathBuf,
    closed: bool,
}

impl<'x> Open<'x> {
    /// Opens an entry of a folder. `what` says in an error what failed.
    fn new(folder: &'x Folder<'_>, name: &CStr, how: i32, what: &str) -> Result<Self> {
        let path = folder.join(name);
        let fd = folder.calls.open_at(folder.fd, name, how, 0o600).map_err(failed(what, &path))?;
        Ok(Self { calls: folder.calls, fd, path, closed: false })
    }

    /// Closes it now, and reports what the kernel says.
    fn close(mut self, what: &str) -> Result<()> {
        self.closed = true;
        self.calls.close(self.fd).map_err(failed(what, &self.path))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.closed {
            // A file that was only read has nothing to lose, and after an error another one counts.
            let _ = self.calls.close(self.fd);
        }
    }
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
        let job = Job { from, name, to, new, stat };
        if is_folder(&stat) {
            ensure!(self.keep.recursive, "{} is a folder: use -r", job.source().display());
            self.folder(&job)?;
        } else {
            self.file(&job)?;
        }
        self.files += 1;
        self.show();
        Ok(())
    }

    fn folder(&mut self, job: &Job<'_, 'a>) -> Result<()> {
        let Job { from, name, to, new, .. } = *job;
        match to.calls.mkdir_at(to.fd, new, 0o700) {
            Err(error) if error.0 != libc::EEXIST => {
                return Err(failed("make", &job.target())(error))
            }
            _ => (),
        }
        let target = to.enter(new)?;
        self.contents(&from.enter(name)?, &target)?;
        self.attributes(job)
    }

    fn file(&mut self, job: &Job<'_, 'a>) -> Result<()> {
        let Job { from, name, to, new, stat } = *job;
        let target = job.target();
        match to.calls.stat_at(to.fd, new, libc::AT_SYMLINK_NOFOLLOW) {
            Ok(there) if is_folder(&there) => (),
            Ok(there) => {
                // Replacing it would remove what is to be copied.
                let same = ptr::addr_eq(from.calls, to.calls)
                    && (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino);
                ensure!(
                    !same,
                    "{} and {} are the same file",
                    job.source().display(),
                    target.display()
                );
                remove(to, new, false)?;
            }
            Err(_) => (),
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
            libc::S_IFREG => self.data(job)?,
            libc::S_IFLNK => {
                let link = from
                    .calls
                    .read_link_at(from.fd, name)
                    .map_err(failed("read", &job.source()))?;
                let link = CString::new(link)?;
                to.calls.symlink_at(&link, to.fd, new).map_err(failed("make", &target))?;
            }
            kind @ (libc::S_IFIFO | libc::S_IFSOCK) => make(kind | 0o600, 0)?,
            kind @ (libc::S_IFCHR | libc::S_IFBLK) if self.keep.archive => {
                make(kind | 0o600, stat.st_rdev)?
            }
            _ => bail!("{} is a device: use -a to copy the node", job.source().display()),
        }
        if several {
            // The folder stays open: the link may be asked for much later.
            self.links.insert((stat.st_dev, stat.st_ino), (to.again()?, new.into()));
        }
        self.attributes(job)
    }

    /// The bytes of a regular file. Holes stay holes.
    fn data(&mut self, job: &Job<'_, 'a>) -> Result<()> {
        let Job { from, name, to, new, stat } = *job;
        let input = Open::new(from, name, READ, "open")?;
        let how = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let output = Open::new(to, new, how, "make")?;
        self.stream(&input, &output, stat.st_size as u64)?;
        // Some file systems report a full disk when the file is closed.
        output.close("write")
    }

    fn stream(&mut self, input: &Open<'_>, output: &Open<'_>, size: u64) -> Result<()> {
        let (from, to) = (input.calls, output.calls);
        let (source, target) = (input.path.as_path(), output.path.as_path());
        let mut at = 0;
        while at < size {
            // A file system that knows no holes has one piece of data.
            let start = match from.seek(input.fd, at as i64, libc::SEEK_DATA) {
                Ok(start) if (at..=size).contains(&start) => start,
                Ok(_) => bail!("{} became shorter while it was copied", source.display()),
                Err(Errno(libc::ENXIO)) => break,
                Err(_) => at,
            };
            let end = from
                .seek(input.fd, start as i64, libc::SEEK_HOLE)
                .unwrap_or(size)
                .clamp(start, size);
            ensure!(end > at || start == size, "{}: a hole without an end", source.display());
            at = start;
            while at < end {
                let want = (end - at).min(CHUNK as u64) as usize;
                let bytes = from
                    .pread(input.fd, &mut self.buffer[..want], at)
                    .map_err(failed("read", source))?;
                if bytes == 0 {
                    break;
                }
                let mut done = 0;
                while done < bytes {
                    let buffer = &self.buffer[done..bytes];
                    let wrote = to
                        .pwrite(output.fd, buffer, at + done as u64)
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
        to.truncate(output.fd, size).map_err(failed("write", target))
    }

    /// Owner, rights, times and extended attributes, in the order in which they do not undo each other.
    fn attributes(&mut self, job: &Job<'_, 'a>) -> Result<()> {
        let Job { to, new, stat, .. } = *job;
        let path = job.target();
        let kind = stat.st_mode & libc::S_IFMT;
        let mut rights = stat.st_mode & 0o777;
        if self.keep.archive {
            match to.calls.chown_at(to.fd, new, stat.st_uid, stat.st_gid) {
                Ok(()) => rights = stat.st_mode & 0o7777,
                Err(Errno(libc::EPERM)) => self.lose("owners"),
                Err(error) => return Err(failed("set the owner of", &path)(error)),
            }
            if matches!(kind, libc::S_IFREG | libc::S_IFDIR) {
                self.extended(job)?;
            }
        }
        if kind != libc::S_IFLNK {
            to.calls.chmod_at(to.fd, new, rights).map_err(failed("set the rights of", &path))?;
        }
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        let times =
            [time(stat.st_atime, stat.st_atime_nsec), time(stat.st_mtime, stat.st_mtime_nsec)];
        to.calls.set_times_at(to.fd, new, &times).map_err(failed("set the times of", &path))
    }

    /// Extended attributes of files and folders. Those of other types belong to the kernel that made them.
    fn extended(&mut self, job: &Job<'_, 'a>) -> Result<()> {
        let input = Open::new(job.from, job.name, READ, "open")?;
        let output = Open::new(job.to, job.new, READ, "open")?;
        let names = match input.calls.attributes(input.fd) {
            Err(Errno(libc::EOPNOTSUPP)) => return Ok(()),
            names => names.map_err(failed("read the attributes of", &input.path))?,
        };
        for attribute in names {
            let value = input.calls.attribute(input.fd, &attribute);
            let value = value.map_err(failed("read an attribute of", &input.path))?;
            match output.calls.set_attribute(output.fd, &attribute, &value) {
                Err(Errno(libc::EPERM | libc::EOPNOTSUPP)) => self.lose("extended attributes"),
                set => set.map_err(failed("set an attribute of", &output.path))?,
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
