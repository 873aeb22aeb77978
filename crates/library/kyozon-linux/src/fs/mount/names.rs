//! Requests about names in folders. A name is one component: nothing here follows a path or a link.

use super::nodes::Node;
use super::server::Server;
use super::worker::{path, Caller, Worker};
use liblinux::calls::inodes::Inodes;
use liblinux::calls::{Fd, Result, CWD};
use liblinux::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// How an inode is opened that is only named.
const NAMED: i32 = libc::O_PATH | libc::O_NOFOLLOW;

/// A node and its inode's status.
pub type Found = (Arc<Node>, libc::stat);

/// Whether a name is that of an entry, and not a way to another folder.
pub fn valid(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/')
}

/// A name that the host passed.
fn name(name: &OsStr) -> Result<CString> {
    let name = name.as_bytes();
    if !valid(name) {
        return Err(Errno(libc::EINVAL));
    }
    CString::new(name).map_err(|_| Errno(libc::EINVAL))
}

/// Who makes something new, and the rights that it does not get.
#[derive(Clone, Copy)]
pub struct New {
    /// To whom it belongs.
    pub caller: Caller,
    /// Rights, with a type for mknod.
    pub mode: u32,
    /// Rights that it lacks, unless its folder says otherwise.
    pub mask: u32,
}

impl Server {
    /// The inode of a name in an open folder.
    pub fn find(&self, worker: &Worker, folder: Fd, name: &CStr) -> Result<Found> {
        let fd = worker.calls.open_at(folder, name, NAMED, 0)?;
        self.found(worker, fd)
    }

    /// The node of an inode that was just opened.
    fn found(&self, worker: &Worker, fd: Fd) -> Result<Found> {
        let calls = &*worker.calls;
        let status = calls.status(fd).inspect_err(|_| {
            // The error is another one.
            let _ = calls.close(fd);
        })?;
        Ok((self.nodes.enter(calls, fd, &status)?, status))
    }

    /// lookup
    pub fn look_up(&self, worker: &Worker, parent: u64, text: &OsStr) -> Result<Found> {
        let folder = self.inode(worker, parent)?;
        self.find(worker, folder.fd, &name(text)?)
    }

    /// Makes something in a folder, and finds it.
    fn make(
        &self,
        worker: &Worker,
        parent: u64,
        text: &OsStr,
        new: New,
        make: impl FnOnce(Fd, &CStr) -> Result<()>,
    ) -> Result<Found> {
        let folder = self.inode(worker, parent)?;
        let name = name(text)?;
        worker.act_as(new.caller, new.mask)?;
        make(folder.fd, &name)?;
        self.find(worker, folder.fd, &name)
    }

    /// Without the set-group-id bit if that would give an ordinary user the rights of a folder's group.
    fn rights(&self, worker: &Worker, folder: Fd, new: New) -> Result<u32> {
        let runs_as_group = libc::S_ISGID | libc::S_IXGRP;
        if new.caller.user == 0 || new.mode & runs_as_group != runs_as_group {
            return Ok(new.mode);
        }
        let status = worker.calls.status(folder)?;
        let inherits = status.st_mode & libc::S_ISGID != 0 && status.st_gid != new.caller.group;
        Ok(if inherits { new.mode & !libc::S_ISGID } else { new.mode })
    }

    /// mknod
    pub fn make_node(
        &self,
        worker: &Worker,
        parent: u64,
        text: &OsStr,
        new: New,
        device: u32,
    ) -> Result<Found> {
        self.make(worker, parent, text, new, |folder, name| {
            let mode = self.rights(worker, folder, new)?;
            worker.calls.mknod_at(folder, name, mode, u64::from(device))
        })
    }

    /// mkdir
    pub fn make_folder(
        &self,
        worker: &Worker,
        parent: u64,
        text: &OsStr,
        new: New,
    ) -> Result<Found> {
        self.make(worker, parent, text, new, |folder, name| {
            worker.calls.mkdir_at(folder, name, new.mode)
        })
    }

    /// symlink
    pub fn make_link(
        &self,
        worker: &Worker,
        parent: u64,
        text: &OsStr,
        caller: Caller,
        target: &OsStr,
    ) -> Result<Found> {
        let target = CString::new(target.as_bytes()).map_err(|_| Errno(libc::EINVAL))?;
        let new = New { caller, mode: 0o777, mask: 0 };
        self.make(worker, parent, text, new, |folder, name| {
            worker.calls.symlink_at(&target, folder, name)
        })
    }

    /// create: makes a file and opens it. Returns also its handle.
    pub fn create(
        &self,
        worker: &Worker,
        parent: u64,
        text: &OsStr,
        new: New,
        how: i32,
    ) -> Result<(Found, u64)> {
        let calls = &*worker.calls;
        let folder = self.inode(worker, parent)?;
        let name = name(text)?;
        worker.act_as(new.caller, new.mask)?;
        // If the name is a pipe by now, opening it must not wait.
        let how =
            super::file::flags(how) | how & libc::O_EXCL | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mode = self.rights(worker, folder.fd, new)?;
        let fd = calls.open_at(folder.fd, &name, how | libc::O_CREAT, mode)?;
        let found =
            calls.open_at(CWD, &path(fd), libc::O_PATH, 0).and_then(|fd| self.found(worker, fd));
        let found = found.inspect_err(|_| {
            // The same.
            let _ = calls.close(fd);
        })?;
        Ok((found, self.handles.add(fd)))
    }

    /// link
    pub fn link(&self, worker: &Worker, node: u64, parent: u64, text: &OsStr) -> Result<Found> {
        let inode = self.inode(worker, node)?;
        let folder = self.inode(worker, parent)?;
        let name = name(text)?;
        worker.calls.link(inode.fd, folder.fd, &name)?;
        self.find(worker, folder.fd, &name)
    }

    /// unlink, and rmdir with `AT_REMOVEDIR`
    pub fn unlink(&self, worker: &Worker, parent: u64, text: &OsStr, how: i32) -> Result<()> {
        let folder = self.inode(worker, parent)?;
        worker.calls.unlink_at(folder.fd, &name(text)?, how)
    }

    /// rename
    pub fn rename(
        &self,
        worker: &Worker,
        (parent, old): (u64, &OsStr),
        (target, new): (u64, &OsStr),
        how: u32,
    ) -> Result<()> {
        let from = self.inode(worker, parent)?;
        let to = self.inode(worker, target)?;
        worker.calls.rename_at(from.fd, &name(old)?, to.fd, &name(new)?, how)
    }

    /// readlink
    pub fn read_link(&self, worker: &Worker, node: u64) -> Result<Vec<u8>> {
        let inode = self.inode(worker, node)?;
        let mut target = worker.calls.read_link_at(inode.fd, c"")?;
        // The host adds a zero.
        target.truncate(libc::PATH_MAX as usize - 1);
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        for bad in ["", ".", "..", "a/b", "/", "../x", "a\0b"] {
            assert!(name(OsStr::new(bad)).is_err(), "{bad:?}");
        }
        assert_eq!(name(OsStr::new("...")), Ok(c"...".into()));
    }
}
