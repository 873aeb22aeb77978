//! Folders by descriptors. Names come from images and may be hostile: each is looked up in its folder, never through a
//! path, and links are not followed.

use anyhow::{anyhow, ensure, Result};
use liblinux::calls::{Calls, Entry, Fd, CWD};
use liblinux::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folders within folders that a command follows.
pub const MAX_DEPTH: usize = 1000;

/// Makes an error of a failed call: what failed, on which file, and why.
pub fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(Errno) -> anyhow::Error + 'a {
    move |errno| anyhow!("cannot {what} {}: {}", path.display(), explain(errno))
}

/// What an error number means.
pub fn explain(errno: Errno) -> String {
    let text = io::Error::from_raw_os_error(errno.0).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

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
    depth: usize,
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        // A folder that was only read has nothing to lose.
        let _ = self.calls.close(self.fd);
    }
}

const OPEN: i32 = libc::O_RDONLY | libc::O_DIRECTORY;

impl<'a> Folder<'a> {
    /// Opens a folder that the user named. Links in its path are followed.
    pub fn open(calls: &'a dyn Calls, path: &Path) -> Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let fd = calls
            .open_at(CWD, &c_string(path.as_os_str())?, OPEN, 0)
            .map_err(failed("open", path))?;
        Ok(Self { calls, fd, path: path.into(), depth: 0 })
    }

    /// The path of an entry, for messages.
    pub fn join(&self, name: &CStr) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }

    /// Opens a folder in this one. It must not be a link.
    pub fn enter(&self, name: &CStr) -> Result<Self> {
        let path = self.join(name);
        ensure!(self.depth < MAX_DEPTH, "{}: more than {MAX_DEPTH} folders deep", path.display());
        let fd = self
            .calls
            .open_at(self.fd, name, OPEN | libc::O_NOFOLLOW, 0)
            .map_err(failed("open", &path))?;
        Ok(Self { calls: self.calls, fd, path, depth: self.depth + 1 })
    }

    /// The same folder, under another descriptor.
    pub fn again(&self) -> Result<Self> {
        let fd = self.calls.open_at(self.fd, c".", OPEN, 0).map_err(failed("open", &self.path))?;
        Ok(Self { calls: self.calls, fd, path: self.path.clone(), depth: self.depth })
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

    /// An entry's own status; a link's, not its target's.
    pub fn stat(&self, name: &CStr) -> Result<libc::stat> {
        let stat = self.calls.stat_at(self.fd, name, libc::AT_SYMLINK_NOFOLLOW);
        stat.map_err(failed("read", &self.join(name)))
    }
}

/// Whether a status is that of a folder.
pub fn is_folder(stat: &libc::stat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFDIR
}

/// Removes an entry, with everything in it if `recursive`.
pub fn remove(folder: &Folder<'_>, name: &CStr, recursive: bool) -> Result<()> {
    let path = folder.join(name);
    let mut how = 0;
    if is_folder(&folder.stat(name)?) {
        ensure!(recursive, "{} is a folder: use -r", path.display());
        let inside = folder.enter(name)?;
        inside.entries()?.iter().try_for_each(|entry| remove(&inside, &entry.name, true))?;
        how = libc::AT_REMOVEDIR;
    }
    folder.calls.unlink_at(folder.fd, name, how).map_err(failed("remove", &path))
}
