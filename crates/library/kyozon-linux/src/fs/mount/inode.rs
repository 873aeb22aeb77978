//! Requests about inodes: status, rights, owners, times, length, extended attributes.

use super::attributes::timespec;
use super::file::flags;
use super::server::Server;
use super::worker::{path, Caller, Worker};
use fuser::TimeOrNow;
use liblinux::calls::inodes::Inodes;
use liblinux::calls::{Fd, Result, CWD};
use liblinux::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Bytes of the longest value, or list of names, of extended attributes (`XATTR_SIZE_MAX`).
const MOST_EXTENDED: u32 = 1 << 16;

/// What changes about an inode.
#[derive(Default)]
pub struct Change {
    /// Rights.
    pub mode: Option<u32>,
    /// Owner.
    pub user: Option<u32>,
    /// Group.
    pub group: Option<u32>,
    /// Length.
    pub size: Option<u64>,
    /// Time of the last access.
    pub accessed: Option<TimeOrNow>,
    /// Time of the last change of contents.
    pub modified: Option<TimeOrNow>,
    /// An open file of the inode.
    pub file: Option<u64>,
}

fn time(time: Option<TimeOrNow>) -> libc::timespec {
    match time {
        Some(TimeOrNow::SpecificTime(time)) => timespec(time),
        Some(TimeOrNow::Now) => libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW },
        None => libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT },
    }
}

fn attribute(name: &OsStr) -> Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| Errno(libc::EINVAL))
}

/// Rights without those that a change of contents by an ordinary user takes away; none if it takes nothing away.
pub fn stripped(status: &libc::stat) -> Option<u32> {
    let mode = status.st_mode & 0o7777;
    let runs_as_group = libc::S_ISGID | libc::S_IXGRP;
    let mut left = mode & !libc::S_ISUID;
    if mode & runs_as_group == runs_as_group {
        left &= !libc::S_ISGID;
    }
    (status.st_mode & libc::S_IFMT == libc::S_IFREG && left != mode).then_some(left)
}

impl Server {
    /// getattr
    pub fn status(&self, worker: &Worker, node: u64) -> Result<libc::stat> {
        worker.calls.status(self.inode(worker, node)?.fd)
    }

    /// setattr
    pub fn change(
        &self,
        worker: &Worker,
        caller: Caller,
        node: u64,
        to: Change,
    ) -> Result<libc::stat> {
        let inode = self.inode(worker, node)?;
        if let Some(size) = to.size {
            self.truncate(worker, inode.fd, to.file, size)?;
            self.strip(worker, inode.fd, caller)?;
        }
        if to.user.is_some() || to.group.is_some() {
            worker.calls.set_owner(inode.fd, to.user, to.group)?;
        }
        // Behind the owner: a new one takes away set-user-id bits.
        if let Some(mode) = to.mode {
            worker.calls.chmod_at(CWD, &path(inode.fd), mode & 0o7777)?;
        }
        if to.accessed.is_some() || to.modified.is_some() {
            worker.calls.set_times(inode.fd, &[time(to.accessed), time(to.modified)])?;
        }
        worker.calls.status(inode.fd)
    }

    fn truncate(&self, worker: &Worker, inode: Fd, file: Option<u64>, size: u64) -> Result<()> {
        if let Some(file) = file {
            return worker.calls.truncate(self.handles.get(file)?.fd(), size);
        }
        let fd = worker.open_again(inode, flags(libc::O_WRONLY) | libc::O_NONBLOCK)?;
        let done = worker.calls.truncate(fd, size);
        let closed = worker.calls.close(fd);
        done.and(closed)
    }

    /// Takes away set-user-id bits when an ordinary user changes contents. The kernel does not: its task may keep them.
    pub fn strip(&self, worker: &Worker, inode: Fd, caller: Caller) -> Result<()> {
        if caller.user == 0 {
            return Ok(());
        }
        match stripped(&worker.calls.status(inode)?) {
            Some(mode) => worker.calls.chmod_at(CWD, &path(inode), mode),
            None => Ok(()),
        }
    }

    /// access, for hosts that do not check rights: everything but running a file that nobody may run
    pub fn access(&self, worker: &Worker, node: u64, mask: i32) -> Result<()> {
        let status = self.status(worker, node)?;
        let folder = status.st_mode & libc::S_IFMT == libc::S_IFDIR;
        if mask & libc::X_OK != 0 && !folder && status.st_mode & 0o111 == 0 {
            return Err(Errno(libc::EACCES));
        }
        Ok(())
    }

    /// statfs
    pub fn size(&self, worker: &Worker, node: u64) -> Result<libc::statfs> {
        worker.calls.stat_fs(self.inode(worker, node)?.fd)
    }

    /// A value or names of extended attributes: with no room, their length only.
    fn extended(
        &self,
        worker: &Worker,
        node: u64,
        room: u32,
        get: impl FnOnce(&CStr, &mut [u8]) -> Result<usize>,
    ) -> Result<(usize, Vec<u8>)> {
        let inode = self.inode(worker, node)?;
        let mut buffer = vec![0; room.min(MOST_EXTENDED) as usize];
        let bytes = get(&path(inode.fd), &mut buffer)?;
        buffer.truncate(bytes);
        Ok((bytes.min(MOST_EXTENDED as usize), buffer))
    }

    /// getxattr
    pub fn get_extended(
        &self,
        worker: &Worker,
        node: u64,
        name: &OsStr,
        room: u32,
    ) -> Result<(usize, Vec<u8>)> {
        let name = attribute(name)?;
        self.extended(worker, node, room, |path, to| worker.calls.extended(path, &name, to))
    }

    /// listxattr
    pub fn list_extended(&self, worker: &Worker, node: u64, room: u32) -> Result<(usize, Vec<u8>)> {
        self.extended(worker, node, room, |path, to| worker.calls.extended_names(path, to))
    }

    /// setxattr
    pub fn set_extended(
        &self,
        worker: &Worker,
        node: u64,
        name: &OsStr,
        value: &[u8],
        how: i32,
    ) -> Result<()> {
        let inode = self.inode(worker, node)?;
        worker.calls.set_extended(&path(inode.fd), &attribute(name)?, value, how)
    }

    /// removexattr
    pub fn remove_extended(&self, worker: &Worker, node: u64, name: &OsStr) -> Result<()> {
        let inode = self.inode(worker, node)?;
        worker.calls.remove_extended(&path(inode.fd), &attribute(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_change_lose_set_user_id_bits() {
        // SAFETY: a structure of integers; all zeros are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        for (mode, left) in
            [(0o644, None), (0o4755, Some(0o755)), (0o2755, Some(0o755)), (0o2745, None)]
        {
            status.st_mode = libc::S_IFREG | mode;
            assert_eq!(stripped(&status), left, "{mode:o}");
        }
        status.st_mode = libc::S_IFDIR | 0o2755;
        assert_eq!(stripped(&status), None);
    }
}
