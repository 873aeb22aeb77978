//! Requests of the host, in the form that the crate `fuser` gives them.

use super::attributes::attributes;
use super::file::MOST;
use super::inode::Change;
use super::names::{Found, New};
use super::server::{Server, TTL};
use super::worker::{Caller, Worker};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileAttr, FileHandle, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use liblinux::calls::Result;
use liblinux::Errno;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// What the host is asked for, as far as it has it.
const WANTED: [InitFlags; 6] = [
    // Rights that new files do not get are the kernel's matter: a folder may say otherwise.
    InitFlags::FUSE_DONT_MASK,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_CACHE_SYMLINKS,
    // Without it, the host asks for an attribute before each write.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
];

/// The server, as a file system of the host.
pub struct Protocol(pub Arc<Server>);

fn caller(request: &Request) -> Caller {
    Caller { user: request.uid(), group: request.gid() }
}

type Served<T> = std::result::Result<T, fuser::Errno>;

impl Protocol {
    fn serve<T>(&self, work: impl FnOnce(&Server, &Worker) -> Result<T>) -> Served<T> {
        self.0.serve(|worker| work(&self.0, worker))
    }

    /// Serves a request whose answer is a node.
    fn entry(&self, reply: ReplyEntry, work: impl FnOnce(&Server, &Worker) -> Result<Found>) {
        match self.serve(|server, worker| known(server, work(server, worker)?)) {
            Ok((attributes, generation)) => reply.entry(&TTL, &attributes, generation),
            Err(error) => reply.error(error),
        }
    }

    /// Serves a request that has no answer but an error.
    fn done(&self, reply: ReplyEmpty, work: impl FnOnce(&Server, &Worker) -> Result<()>) {
        match self.serve(work) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn extended(
        &self,
        room: u32,
        reply: ReplyXattr,
        work: impl FnOnce(&Server, &Worker) -> Result<(usize, Vec<u8>)>,
    ) {
        match self.serve(work) {
            Ok((bytes, _)) if room == 0 => reply.size(bytes as u32),
            Ok((_, value)) => reply.data(&value),
            Err(error) => reply.error(error),
        }
    }

    fn opened(&self, reply: ReplyOpen, how: FopenFlags, opened: Served<u64>) {
        match opened {
            Ok(file) => reply.opened(FileHandle(file), how),
            Err(error) => reply.error(error),
        }
    }

    fn attributes(&self, node: INodeNo, reply: ReplyAttr, status: Served<libc::stat>) {
        let found = status.and_then(|status| {
            attributes(node.0, &status).map_err(|Errno(number)| fuser::Errno::from_i32(number))
        });
        match found {
            Ok(found) => reply.attr(&TTL, &found),
            Err(error) => reply.error(error),
        }
    }
}

/// What the host learns about a node that it now knows.
fn known(server: &Server, (node, status): Found) -> Result<(FileAttr, Generation)> {
    // An answer with an error is no lookup.
    let found = attributes(node.id, &status).inspect_err(|_| server.nodes.forget(node.id, 1));
    Ok((found?, Generation(node.generation)))
}

impl Filesystem for Protocol {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in WANTED {
            // An older host does without.
            let _ = config.add_capabilities(flag);
        }
        if self.0.shared {
            let _ = config.add_capabilities(InitFlags::FUSE_POSIX_ACL);
        }
        let _ = config.set_max_write(MOST);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, |server, worker| server.look_up(worker, parent.0, name));
    }

    fn forget(&self, _: &Request, node: INodeNo, lookups: u64) {
        self.0.nodes.forget(node.0, lookups);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let status = self.serve(|server, worker| server.status(worker, node.0));
        self.attributes(node, reply, status);
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        file: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let file = file.map(|file| file.0);
        let change = Change { mode, user, group, size, accessed, modified, file };
        let status =
            self.serve(|server, worker| server.change(worker, caller(request), node.0, change));
        self.attributes(node, reply, status);
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        match self.serve(|server, worker| server.read_link(worker, node.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        mask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let new = New { caller: caller(request), mode, mask };
        self.entry(reply, |server, worker| server.make_node(worker, parent.0, name, new, device));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        mask: u32,
        reply: ReplyEntry,
    ) {
        let new = New { caller: caller(request), mode, mask };
        self.entry(reply, |server, worker| server.make_folder(worker, parent.0, name, new));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |server, worker| server.unlink(worker, parent.0, name, 0));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |server, worker| {
            server.unlink(worker, parent.0, name, libc::AT_REMOVEDIR)
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let caller = caller(request);
        self.entry(reply, |server, worker| {
            server.make_link(worker, parent.0, name, caller, target.as_os_str())
        });
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: INodeNo,
        new: &OsStr,
        how: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.done(reply, |server, worker| {
            server.rename(worker, (parent.0, name), (target.0, new), how.bits())
        });
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, |server, worker| server.link(worker, node.0, parent.0, name));
    }

    fn open(&self, _: &Request, node: INodeNo, how: OpenFlags, reply: ReplyOpen) {
        let opened = self.serve(|server, worker| server.open_file(worker, node.0, how.0));
        // Nothing but this mount changes the file: what the host has of it stays right.
        self.opened(reply, FopenFlags::FOPEN_KEEP_CACHE, opened);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut reply = Some(reply);
        let read = self.serve(|server, worker| {
            let bytes = server.read(worker, file.0, offset, bytes)?;
            if let Some(reply) = reply.take() {
                reply.data(&worker.buffer.borrow()[..bytes]);
            }
            Ok(())
        });
        if let (Err(error), Some(reply)) = (read, reply) {
            reply.error(error);
        }
    }

    fn write(
        &self,
        request: &Request,
        node: INodeNo,
        file: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.serve(|server, worker| {
            let bytes = server.write(worker, file.0, offset, data)?;
            if how.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                let inode = server.inode(worker, node.0)?;
                server.strip(worker, inode.fd, caller(request))?;
            }
            Ok(bytes)
        });
        match written {
            Ok(bytes) => reply.written(bytes as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, file: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.done(reply, |server, worker| server.flush(worker, file.0));
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.done(reply, |server, _| {
            server.handles.remove(file.0);
            Ok(())
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, file: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.done(reply, |server, worker| server.sync(worker, file.0, only_data));
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let opened = self.serve(|server, worker| server.open_folder(worker, node.0));
        self.opened(reply, FopenFlags::empty(), opened);
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.serve(|server, worker| server.list(worker, file.0, offset, &mut reply)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        match self.serve(|server, worker| server.list_all(worker, file.0, offset, &mut reply)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.done(reply, |server, _| {
            server.handles.remove(file.0);
            Ok(())
        });
    }

    fn fsyncdir(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        only_data: bool,
        reply: ReplyEmpty,
    ) {
        self.done(reply, |server, worker| server.sync(worker, file.0, only_data));
    }

    fn statfs(&self, _: &Request, node: INodeNo, reply: ReplyStatfs) {
        match self.serve(|server, worker| server.size(worker, node.0)) {
            Ok(size) => reply.statfs(
                size.f_blocks,
                size.f_bfree,
                size.f_bavail,
                size.f_files,
                size.f_ffree,
                size.f_bsize as u32,
                size.f_namelen as u32,
                size.f_frsize as u32,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        how: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        self.done(reply, |server, worker| server.set_extended(worker, node.0, name, value, how));
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        self.extended(room, reply, |server, worker| {
            server.get_extended(worker, node.0, name, room)
        });
    }

    fn listxattr(&self, _: &Request, node: INodeNo, room: u32, reply: ReplyXattr) {
        self.extended(room, reply, |server, worker| server.list_extended(worker, node.0, room));
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |server, worker| server.remove_extended(worker, node.0, name));
    }

    fn access(&self, _: &Request, node: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.done(reply, |server, worker| server.access(worker, node.0, mask.bits()));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        mask: u32,
        how: i32,
        reply: ReplyCreate,
    ) {
        let new = New { caller: caller(request), mode, mask };
        let created = self.serve(|server, worker| {
            let (found, file) = server.create(worker, parent.0, name, new, how)?;
            let found = known(server, found).inspect_err(|_| server.handles.remove(file))?;
            Ok((found, file))
        });
        match created {
            Ok(((attributes, generation), file)) => {
                let (file, how) = (FileHandle(file), FopenFlags::FOPEN_KEEP_CACHE);
                reply.created(&TTL, &attributes, generation, file, how);
            }
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        request: &Request,
        node: INodeNo,
        file: FileHandle,
        offset: u64,
        bytes: u64,
        how: i32,
        reply: ReplyEmpty,
    ) {
        self.done(reply, |server, worker| {
            server.allocate(worker, file.0, how, offset, bytes)?;
            let inode = server.inode(worker, node.0)?;
            server.strip(worker, inode.fd, caller(request))
        });
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.serve(|server, worker| server.seek(worker, file.0, offset, whence)) {
            Ok(found) => reply.offset(found),
            Err(error) => reply.error(error),
        }
    }

    fn copy_file_range(
        &self,
        request: &Request,
        _: INodeNo,
        from: FileHandle,
        at: u64,
        node: INodeNo,
        to: FileHandle,
        target: u64,
        bytes: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let copied = self.serve(|server, worker| {
            let copied = server.copy(worker, (from.0, at), (to.0, target), bytes)?;
            let inode = server.inode(worker, node.0)?;
            server.strip(worker, inode.fd, caller(request))?;
            Ok(copied)
        });
        match copied {
            Ok(copied) => reply.written(copied),
            Err(error) => reply.error(error),
        }
    }
}
