//! The host: one or two system calls for each operation.

use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};

use kyozon_typed_wasi::host::{Direction, DirectoryEntry, Host, Open, Ready, Status, Time};
use kyozon_typed_wasi::types::{
    Advice, Clock, FdFlags, FileType, ReceiveFlags, ShutdownFlags, Whence,
};
use kyozon_typed_wasi::{Buffer, Errno};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::retry_on_intr;
use rustix::net::{Shutdown, SocketFlags};

use crate::convert::{self, error};

/// Bytes for directory entries: some hundred of them.
const ENTRIES: usize = 8192;

/// The host for programs in this process.
#[derive(Debug)]
pub struct Process {
    /// Whether the program is to end, so that it waits no longer.
    ends: fn() -> bool,
    /// Room for the buffers of a call.
    vectors: Vec<libc::iovec>,
}

/// The result of a system call that counts bytes.
fn count(result: isize) -> Result<u32, Errno> {
    match u32::try_from(result) {
        Ok(bytes) => Ok(bytes),
        Err(_) => {
            let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            Err(Errno::from_linux(number))
        }
    }
}

impl Default for Process {
    fn default() -> Process {
        Process::new()
    }
}

impl Process {
    /// A host.
    pub fn new() -> Process {
        Process::ending(|| false)
    }

    /// A host whose program waits no longer after a signal to the process if `ends` then says that it is to end.
    pub fn ending(ends: fn() -> bool) -> Process {
        Process { ends, vectors: Vec::new() }
    }

    /// Makes the vectors those of these buffers.
    fn set_vectors(&mut self, memory: &mut [u8], buffers: &[Buffer]) -> Result<(), Errno> {
        let (start, size) = (memory.as_mut_ptr(), memory.len());
        self.vectors.clear();
        for buffer in buffers {
            let (at, iov_len) = (buffer.at as usize, buffer.bytes as usize);
            if at + iov_len > size {
                return Err(Errno::Fault);
            }
            self.vectors.push(libc::iovec { iov_base: start.wrapping_add(at).cast(), iov_len });
        }
        Ok(())
    }

    /// A message of these buffers.
    fn message(&mut self, memory: &mut [u8], buffers: &[Buffer]) -> Result<libc::msghdr, Errno> {
        self.set_vectors(memory, buffers)?;
        // SAFETY: zeros are a msghdr without name, buffers and control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len();
        Ok(message)
    }
}

impl Host for Process {
    type Handle = OwnedFd;
    type Memory = [u8];

    fn open_directory(&mut self, at: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(at, name, flags, Mode::empty()).map_err(error)
    }

    fn open(&mut self, at: &OwnedFd, name: &[u8], how: Open) -> Result<OwnedFd, Errno> {
        let mode = if how.create { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        let flags = convert::open(how);
        // Without this flag, a named pipe makes its opener wait for the other side, perhaps for ever.
        let handle = rustix::fs::openat(at, name, flags | OFlags::NONBLOCK, mode).map_err(error)?;
        if !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&handle, flags).map_err(error)?;
        }
        Ok(handle)
    }

    fn status_at(&mut self, at: &OwnedFd, name: &[u8]) -> Result<Status, Errno> {
        let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.map(|stat| convert::status(&stat)).map_err(error)
    }

    fn set_times_at(
        &mut self,
        at: &OwnedFd,
        name: &[u8],
        accessed: Time,
        modified: Time,
    ) -> Result<(), Errno> {
        if accessed == Time::Keep && modified == Time::Keep {
            // Linux does not even look the name up.
            return self.status_at(at, name).map(|_| ());
        }
        let times = convert::timestamps(accessed, modified);
        rustix::fs::utimensat(at, name, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(error)
    }

    fn read_link(&mut self, at: &OwnedFd, name: &[u8], into: &mut [u8]) -> Result<usize, Errno> {
        rustix::fs::readlinkat_raw(at, name, into).map_err(error)
    }

    fn create_directory(&mut self, at: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o777)).map_err(error)
    }

    fn create_symlink(&mut self, target: &[u8], at: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::symlinkat(target, at, name).map_err(error)
    }

    fn create_link(
        &mut self,
        from: &OwnedFd,
        old: &[u8],
        to: &OwnedFd,
        new: &[u8],
    ) -> Result<(), Errno> {
        rustix::fs::linkat(from, old, to, new, AtFlags::empty()).map_err(error)
    }

    fn rename(
        &mut self,
        from: &OwnedFd,
        old: &[u8],
        to: &OwnedFd,
        new: &[u8],
    ) -> Result<(), Errno> {
        rustix::fs::renameat(from, old, to, new).map_err(error)
    }

    fn remove_file(&mut self, at: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::unlinkat(at, name, AtFlags::empty()).map_err(error)
    }

    fn remove_directory(&mut self, at: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR).map_err(error)
    }

    fn read_directory(
        &mut self,
        directory: &OwnedFd,
        cookie: u64,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        rustix::fs::seek(directory, SeekFrom::Start(cookie)).map_err(error)?;
        let mut room = [MaybeUninit::uninit(); ENTRIES];
        let mut entries = RawDir::new(directory, &mut room);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(error)?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                // Some file systems do not keep the type in the directory. Meanwhile the file may have gone.
                rustix::fs::FileType::Unknown => self
                    .status_at(directory, name.to_bytes())
                    .map_or(FileType::Unknown, |status| status.kind),
                kind => convert::file_type(kind),
            };
            let (next, inode) = (entry.next_entry_cookie(), entry.ino());
            if !each(DirectoryEntry { next, inode, kind, name: name.to_bytes() }) {
                break;
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        handle: &OwnedFd,
        memory: &mut [u8],
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno> {
        self.set_vectors(memory, buffers)?;
        let (fd, vectors) = (handle.as_raw_fd(), self.vectors.as_ptr());
        let length = self.vectors.len() as libc::c_int;
        count(match offset {
            None => {
                // SAFETY: the vectors lie within the program's memory, which the kernel may write to.
                unsafe { libc::readv(fd, vectors, length) }
            }
            Some(offset) => {
                // SAFETY: as above.
                unsafe { libc::preadv(fd, vectors, length, offset as i64) }
            }
        })
    }

    fn write(
        &mut self,
        handle: &OwnedFd,
        memory: &mut [u8],
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno> {
        self.set_vectors(memory, buffers)?;
        let (fd, vectors) = (handle.as_raw_fd(), self.vectors.as_ptr());
        let length = self.vectors.len() as libc::c_int;
        count(match offset {
            None => {
                // SAFETY: the vectors lie within the program's memory.
                unsafe { libc::writev(fd, vectors, length) }
            }
            Some(offset) => {
                // SAFETY: as above.
                unsafe { libc::pwritev(fd, vectors, length, offset as i64) }
            }
        })
    }

    fn seek(&mut self, handle: &OwnedFd, distance: i64, whence: Whence) -> Result<u64, Errno> {
        let position = match whence {
            Whence::Set => SeekFrom::Start(u64::try_from(distance).map_err(|_| Errno::Inval)?),
            Whence::Cur => SeekFrom::Current(distance),
            Whence::End => SeekFrom::End(distance),
        };
        rustix::fs::seek(handle, position).map_err(error)
    }

    fn sync(&mut self, handle: &OwnedFd, data_only: bool) -> Result<(), Errno> {
        if data_only {
            rustix::fs::fdatasync(handle).map_err(error)
        } else {
            rustix::fs::fsync(handle).map_err(error)
        }
    }

    fn advise(
        &mut self,
        handle: &OwnedFd,
        offset: u64,
        bytes: u64,
        advice: Advice,
    ) -> Result<(), Errno> {
        let advice = convert::advice(advice);
        rustix::fs::fadvise(handle, offset, NonZeroU64::new(bytes), advice).map_err(error)
    }

    fn allocate(&mut self, handle: &OwnedFd, offset: u64, bytes: u64) -> Result<(), Errno> {
        rustix::fs::fallocate(handle, FallocateFlags::empty(), offset, bytes).map_err(error)
    }

    fn set_size(&mut self, handle: &OwnedFd, size: u64) -> Result<(), Errno> {
        rustix::fs::ftruncate(handle, size).map_err(error)
    }

    fn status(&mut self, handle: &OwnedFd) -> Result<Status, Errno> {
        let stat = rustix::fs::fstat(handle).map_err(error)?;
        let mut status = convert::status(&stat);
        if status.kind == FileType::SocketStream {
            let kind = rustix::net::sockopt::socket_type(handle).map_err(error)?;
            if kind == rustix::net::SocketType::DGRAM {
                status.kind = FileType::SocketDgram;
            }
        }
        Ok(status)
    }

    fn set_times(&mut self, handle: &OwnedFd, accessed: Time, modified: Time) -> Result<(), Errno> {
        rustix::fs::futimens(handle, &convert::timestamps(accessed, modified)).map_err(error)
    }

    fn set_flags(&mut self, handle: &OwnedFd, flags: FdFlags) -> Result<(), Errno> {
        let changeable = OFlags::APPEND | OFlags::NONBLOCK;
        let old = rustix::fs::fcntl_getfl(handle).map_err(error)?;
        let new = (old - changeable) | (convert::to_oflags(flags) & changeable);
        rustix::fs::fcntl_setfl(handle, new).map_err(error)
    }

    fn close(&mut self, handle: OwnedFd) -> Result<(), Errno> {
        use std::os::fd::IntoRawFd;
        // SAFETY: the descriptor is the handle's own, and nobody has it any more.
        let result = unsafe { libc::close(handle.into_raw_fd()) };
        count(result as isize).map(|_| ())
    }

    fn accept(&mut self, handle: &OwnedFd, flags: FdFlags) -> Result<OwnedFd, Errno> {
        let mut socket_flags = SocketFlags::CLOEXEC;
        if flags.contains(FdFlags::NONBLOCK) {
            socket_flags |= SocketFlags::NONBLOCK;
        }
        rustix::net::accept_with(handle, socket_flags).map_err(error)
    }

    fn receive(
        &mut self,
        handle: &OwnedFd,
        memory: &mut [u8],
        buffers: &[Buffer],
        flags: ReceiveFlags,
    ) -> Result<(u32, bool), Errno> {
        let mut message = self.message(memory, buffers)?;
        let mut linux_flags = 0;
        for (flag, linux) in
            [(ReceiveFlags::PEEK, libc::MSG_PEEK), (ReceiveFlags::WAITALL, libc::MSG_WAITALL)]
        {
            if flags.contains(flag) {
                linux_flags |= linux;
            }
        }
        // SAFETY: the message's buffers lie within the program's memory, which the kernel may write to.
        let result = unsafe { libc::recvmsg(handle.as_raw_fd(), &mut message, linux_flags) };
        Ok((count(result)?, message.msg_flags & libc::MSG_TRUNC != 0))
    }

    fn send(
        &mut self,
        handle: &OwnedFd,
        memory: &mut [u8],
        buffers: &[Buffer],
    ) -> Result<u32, Errno> {
        let message = self.message(memory, buffers)?;
        // SAFETY: the message's buffers lie within the program's memory.
        count(unsafe { libc::sendmsg(handle.as_raw_fd(), &message, libc::MSG_NOSIGNAL) })
    }

    fn shutdown(&mut self, handle: &OwnedFd, how: ShutdownFlags) -> Result<(), Errno> {
        let how = match (how.contains(ShutdownFlags::RD), how.contains(ShutdownFlags::WR)) {
            (true, true) => Shutdown::Both,
            (true, false) => Shutdown::Read,
            (false, _) => Shutdown::Write,
        };
        rustix::net::shutdown(handle, how).map_err(error)
    }

    fn ready(&mut self, handle: &OwnedFd, direction: Direction) -> Result<Option<Ready>, Errno> {
        let mut fds = [PollFd::new(handle, events(direction))];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        retry_on_intr(|| poll(&mut fds, Some(&now))).map_err(error)?;
        let events = fds[0].revents();
        if events.is_empty() {
            return Ok(None);
        }
        let hangup = events.intersects(PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR);
        let bytes = match direction {
            // Linux does not tell how much.
            Direction::Write => 1,
            Direction::Read => readable(handle).unwrap_or(1),
        };
        Ok(Some(Ready { bytes, hangup }))
    }

    fn wait(
        &mut self,
        handles: &mut dyn Iterator<Item = (&OwnedFd, Direction)>,
        timeout: Option<u64>,
    ) -> Result<(), Errno> {
        let mut fds: Vec<PollFd<'_>> =
            handles.map(|(handle, direction)| PollFd::new(handle, events(direction))).collect();
        let timeout = timeout.map(|time| convert::to_timespec(Time::At(time)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => Ok(()),
            // The process handled a signal, which is no event of the program's unless it is to end.
            Err(rustix::io::Errno::INTR) if !(self.ends)() => Ok(()),
            Err(number) => Err(error(number)),
        }
    }

    fn clock_resolution(&mut self, clock: Clock) -> Result<u64, Errno> {
        let resolution = rustix::time::clock_getres(convert::clock(clock));
        Ok(convert::from_timespec(resolution).max(1))
    }

    fn clock_time(&mut self, clock: Clock) -> Result<u64, Errno> {
        Ok(convert::from_timespec(rustix::time::clock_gettime(convert::clock(clock))))
    }

    fn random(&mut self, mut into: &mut [u8]) -> Result<(), Errno> {
        while !into.is_empty() {
            let flags = rustix::rand::GetRandomFlags::empty();
            let bytes = rustix::rand::getrandom(&mut *into, flags).map_err(error)?;
            into = &mut into[bytes..];
        }
        Ok(())
    }

    fn yield_now(&mut self) -> Result<(), Errno> {
        rustix::thread::sched_yield();
        Ok(())
    }
}

fn events(direction: Direction) -> PollFlags {
    match direction {
        Direction::Read => PollFlags::IN | PollFlags::RDHUP,
        Direction::Write => PollFlags::OUT,
    }
}

/// Bytes that can be read, if the kernel tells.
fn readable(handle: &OwnedFd) -> Option<u64> {
    let stat = rustix::fs::fstat(handle).ok()?;
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::RegularFile => {
            let offset = rustix::fs::tell(handle).ok()?;
            Some(stat.st_size.unsigned_abs().saturating_sub(offset))
        }
        _ => rustix::io::ioctl_fionread(handle).ok(),
    }
}
