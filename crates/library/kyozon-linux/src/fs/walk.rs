//! Folders by descriptors. Names come from images and may be hostile: each is looked up in its folder, never through a
//! path, and links are not followed.

mod levels;

pub use levels::{Level, Levels};

use super::failure::failed;
use crate::interrupt;
use anyhow::{anyhow, ensure, Result};
use liblinux::calls::{Calls, Entry, Fd, CWD};
use liblinux::host::Host;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// A string for the kernel.
pub fn c_string(name: &OsStr) -> Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| anyhow!("a name contains a zero byte"))
}

/// An open folder of a kernel. It is closed when dropped.
pub struct Folder<'a> {
    /// The kernel.
    pub calls: &'a dyn Calls,
    /// Its descriptor.
    pub fd: Fd,
    /// Its path, for messages.
    pub path: PathBuf,
    /// Device and inode, if it is closed for a while.
    suspended: Option<(u64, u64)>,
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        if self.suspended.is_none() {
            // A folder that was only read has nothing to lose.
            let _ = self.calls.close(self.fd);
        }
    }
}

const OPEN: i32 = libc::O_RDONLY | libc::O_DIRECTORY;

impl<'a> Folder<'a> {
    /// Opens a folder that the user named. Links in its path are followed.
    pub fn open(calls: &'a dyn Calls, path: &Path) -> Result<Self> {
        let name = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let fd = calls
            .open_at(CWD, &c_string(name.as_os_str())?, OPEN, 0)
            .map_err(failed("open", name))?;
        Ok(Self { calls, fd, path: path.into(), suspended: None })
    }

    /// The path of an entry, for messages.
    pub fn join(&self, name: &CStr) -> PathBuf {
        if name == c"." {
            return self.path.clone();
        }
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }

    /// Opens a folder in this one. It must not be a link.
    pub fn enter(&self, name: &CStr) -> Result<Self> {
        let path = self.join(name);
        let fd = self
            .calls
            .open_at(self.fd, name, OPEN | libc::O_NOFOLLOW, 0)
            .map_err(failed("open", &path))?;
        Ok(Self { calls: self.calls, fd, path, suspended: None })
    }

    /// Opens the folder that an entry is, or to which it leads.
    pub fn follow(&self, name: &CStr) -> Result<Self> {
        let path = self.join(name);
        let fd = self.calls.open_at(self.fd, name, OPEN, 0).map_err(failed("open", &path))?;
        Ok(Self { calls: self.calls, fd, path, suspended: None })
    }

    /// Whether the folder is the host's.
    pub fn is_host(&self) -> bool {
        ptr::addr_eq(self.calls, ptr::from_ref(HOST))
    }

    /// The same folder, under another descriptor.
    pub fn again(&self) -> Result<Self> {
        let fd = self.calls.open_at(self.fd, c".", OPEN, 0).map_err(failed("open", &self.path))?;
        Ok(Self { calls: self.calls, fd, path: self.path.clone(), suspended: None })
    }

    fn identity(&self) -> Result<(u64, u64)> {
        self.stat(c".").map(|stat| (stat.st_dev, stat.st_ino))
    }

    /// Closes the folder until [`resume`](Folder::resume). Until then it must not be used.
    fn suspend(&mut self) -> Result<()> {
        self.suspended = Some(self.identity()?);
        // Paths of all folders above each other would take a lot of memory.
        self.path = PathBuf::new();
        // A folder that was only read has nothing to lose.
        let _ = self.calls.close(self.fd);
        Ok(())
    }

    /// Opens a suspended folder again: the one that `inside` is in.
    fn resume(&mut self, inside: &Self) -> Result<()> {
        let Some(identity) = self.suspended else { return Ok(()) };
        let path = inside.path.parent().unwrap_or(Path::new("/")).to_owned();
        let fd = self.calls.open_at(inside.fd, c"..", OPEN, 0).map_err(failed("open", &path))?;
        (self.fd, self.path, self.suspended) = (fd, path, None);
        // Others may have moved the folder; what is above it now is none of the command's.
        ensure!(self.identity()? == identity, "{} was moved meanwhile", self.path.display());
        Ok(())
    }

    /// What is in it, sorted by name.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = self.calls.entries(self.fd).map_err(failed("read", &self.path))?;
        for entry in &entries {
            let name = entry.name.to_bytes();
            ensure!(
                !name.is_empty() && !name.contains(&b'/'),
                "{}: a name with a slash",
                self.path.display()
            );
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Whether an entry is a folder. File systems that know the types of entries need not read them for that.
    pub fn has_folder(&self, entry: &Entry) -> Result<bool> {
        match entry.kind {
            libc::DT_UNKNOWN => self.stat(&entry.name).map(|stat| is_folder(&stat)),
            kind => Ok(kind == libc::DT_DIR),
        }
    }

    /// An entry's own status; a link's, not its target's.
    pub fn stat(&self, name: &CStr) -> Result<libc::stat> {
        let stat = self.calls.stat_at(self.fd, name, libc::AT_SYMLINK_NOFOLLOW);
        stat.map_err(failed("read", &self.join(name)))
    }

    /// The status of the file that an entry is, or to which it leads.
    pub fn stat_target(&self, name: &CStr) -> Result<libc::stat> {
        self.calls.stat_at(self.fd, name, 0).map_err(failed("read", &self.join(name)))
    }
}

/// The host's calls. There is one value, so that its folders can be told from an image's.
pub static HOST: &Host = &Host;

/// An open file of a kernel. It is closed when dropped.
pub struct Open<'x> {
    /// The kernel.
    pub calls: &'x dyn Calls,
    /// Its descriptor.
    pub fd: Fd,
    /// Its path, for messages.
    pub path: PathBuf,
    closed: bool,
}

impl<'x> Open<'x> {
    /// Opens an entry of a folder. `what` says in an error what failed.
    pub fn new(folder: &Folder<'x>, name: &CStr, how: i32, what: &str) -> Result<Self> {
        let path = folder.join(name);
        let fd = folder.calls.open_at(folder.fd, name, how, 0o600).map_err(failed(what, &path))?;
        Ok(Self { calls: folder.calls, fd, path, closed: false })
    }

    /// Makes a new file in a folder.
    pub fn create(folder: &Folder<'x>, name: &CStr) -> Result<Self> {
        let how = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        Self::new(folder, name, how, "make")
    }

    /// Writes all bytes from `at` on.
    pub fn write_at(&self, mut bytes: &[u8], mut at: u64) -> Result<()> {
        while !bytes.is_empty() {
            let wrote = self.calls.pwrite(self.fd, bytes, at);
            let wrote = wrote.map_err(failed("write", &self.path))?;
            ensure!(wrote > 0, "cannot write {}", self.path.display());
            (bytes, at) = (&bytes[wrote..], at + wrote as u64);
        }
        Ok(())
    }

    /// Closes it now, and reports what the kernel says.
    pub fn close(mut self, what: &str) -> Result<()> {
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

/// Writes back the file system that a folder is in, and reports earlier failures of that.
pub fn sync(folder: &Folder<'_>) -> Result<()> {
    folder.calls.sync_fs(folder.fd).map_err(failed("write", &folder.path))
}

/// Whether a status is that of a folder.
pub fn is_folder(stat: &libc::stat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFDIR
}

fn unlink(folder: &Folder<'_>, name: &CStr, how: i32) -> Result<()> {
    interrupt::check()?;
    folder.calls.unlink_at(folder.fd, name, how).map_err(failed("remove", &folder.join(name)))
}

/// Removes an entry, with everything in it if `recursive`.
pub fn remove(folder: &Folder<'_>, name: &CStr, recursive: bool) -> Result<()> {
    if !is_folder(&folder.stat(name)?) {
        return unlink(folder, name, 0);
    }
    ensure!(recursive, "{} is a folder: use -r", folder.join(name).display());
    let mut levels = Levels::empty();
    levels.enter(folder.enter(name)?, None, CString::from(name))?;
    loop {
        if let Some((Level { folder, .. }, entry)) = levels.next_entry() {
            if folder.has_folder(&entry)? {
                let inside = folder.enter(&entry.name)?;
                levels.enter(inside, None, entry.name)?;
            } else {
                unlink(folder, &entry.name, 0)?;
            }
            continue;
        }
        let Some(left) = levels.leave()? else { return Ok(()) };
        let above = levels.last().map_or(folder, |level| &level.folder);
        unlink(above, &left.note, libc::AT_REMOVEDIR)?;
    }
}
