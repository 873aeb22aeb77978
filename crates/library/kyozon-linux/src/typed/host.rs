//! A host of WASI whose files are a kernel's that is reached by [`Calls`]. Standard input, output and error, clocks and
//! random numbers are the process's.

use kyozon_typed_runner::is_due;
use kyozon_typed_wasi::host::{Direction, DirectoryEntry, Open, Ready, Status, Time};
use kyozon_typed_wasi::linux::nanoseconds;
use kyozon_typed_wasi::types::{
    Advice, Clock, FdFlags, FileType, ReceiveFlags, ShutdownFlags, Whence,
};
use kyozon_typed_wasi::{Buffer, Errno, Host};
use kyozon_typed_wasi_host::Process;
use liblinux::calls::inodes::{Inodes, Positioned};
use liblinux::calls::{Arg, Calls, Fd, Result as Called};
use std::ffi::CString;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::OwnedFd;
use std::ptr;
use Arg::{In, InOut, Number, Out};

/// Bytes for directory entries: some hundred of them.
const ENTRIES: usize = 8192;
/// How long a program that also waits for a kernel's file waits for others, in nanoseconds, until the file is looked at
/// again. Regular files are always ready.
const LOOK: u64 = 10_000_000;

/// A file of a kernel. It is closed when dropped.
pub struct File<'a> {
    calls: &'a dyn Calls,
    fd: Fd,
}

impl<'a> File<'a> {
    /// The file that an open descriptor of a kernel stands for. Nobody else closes it.
    pub fn new(calls: &'a dyn Calls, fd: Fd) -> Self {
        Self { calls, fd }
    }

    /// fcntl(2).
    fn control(&self, what: i32, argument: u32) -> Called<u32> {
        let arguments =
            &mut [Number(self.fd.0 as u64), Number(what as u64), Number(argument.into())];
        self.calls.call(libc::SYS_fcntl, arguments).map(|flags| flags as u32)
    }

    /// Whether a call would not wait, and how many bytes can be read from a regular file.
    fn ready(&self, direction: Direction) -> Called<Option<Ready>> {
        let events = match direction {
            Direction::Read => libc::POLLIN | libc::POLLRDHUP,
            Direction::Write => libc::POLLOUT,
        };
        // A struct pollfd: the descriptor, the events to look for, and those that happened.
        let mut poll = [0; 8];
        poll[..4].copy_from_slice(&self.fd.0.to_ne_bytes());
        poll[4..6].copy_from_slice(&events.to_ne_bytes());
        self.calls.call(libc::SYS_poll, &mut [InOut(&mut poll), Number(1), Number(0)])?;
        let events = i16::from_ne_bytes([poll[6], poll[7]]);
        if events == 0 {
            return Ok(None);
        }
        let hangup = events & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0;
        let stat = Inodes::status(self.calls, self.fd)?;
        let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        let bytes = match direction {
            Direction::Read if regular => {
                let offset = self.calls.seek(self.fd, 0, libc::SEEK_CUR)?;
                stat.st_size.unsigned_abs().saturating_sub(offset)
            }
            // Linux does not tell, or it has to be asked in another way.
            _ => 1,
        };
        Ok(Some(Ready { bytes, hangup }))
    }

    /// Reads or writes parts of the program's memory, until one of them is not done whole. `one` does one, at a
    /// distance from where the call starts.
    fn each(
        memory: &mut [u8],
        buffers: &[Buffer],
        one: &mut dyn FnMut(&mut [u8], u64) -> Called<usize>,
    ) -> Result<u32, Errno> {
        let mut total = 0u32;
        for Buffer { at, bytes } in buffers {
            // As Linux, which counts less than this in one call.
            if total.checked_add(*bytes).is_none() {
                break;
            }
            let (at, length) = (*at as usize, *bytes as usize);
            let part = memory.get_mut(at..at + length).ok_or(Errno::Fault)?;
            let done = match one(part, total.into()) {
                Ok(done) => done.min(length) as u32,
                // What was done counts.
                Err(_) if total > 0 => break,
                Err(number) => return Err(error(number)),
            };
            total += done;
            if done < *bytes {
                break;
            }
        }
        Ok(total)
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        // As when a process ends: who wants to know closes it.
        let _ = self.calls.close(self.fd);
    }
}

/// What a descriptor of the program stands for.
pub enum Handle<'a> {
    /// A descriptor of this process.
    Process(OwnedFd),
    /// A file or directory of a kernel.
    File(File<'a>),
}

/// A file or directory, where sockets and pipes of the process cannot be.
fn file<'h, 'a>(handle: &'h Handle<'a>) -> Result<&'h File<'a>, Errno> {
    match handle {
        Handle::File(file) => Ok(file),
        Handle::Process(_) => Err(Errno::Notdir),
    }
}

/// Two directories that a name may go from and to.
fn pair<'h, 'a>(
    from: &'h Handle<'a>,
    to: &'h Handle<'a>,
) -> Result<(&'h File<'a>, &'h File<'a>), Errno> {
    let (from, to) = (file(from)?, file(to)?);
    if ptr::addr_eq(from.calls, to.calls) {
        Ok((from, to))
    } else {
        Err(Errno::Xdev)
    }
}

fn error(errno: liblinux::Errno) -> Errno {
    Errno::from_linux(errno.0)
}

fn name(bytes: &[u8]) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::Inval)
}

fn status(stat: &libc::stat) -> Status {
    let time = |seconds, ns: i64| nanoseconds(seconds, ns.unsigned_abs());
    Status {
        device: stat.st_dev,
        inode: stat.st_ino,
        kind: FileType::from_linux_mode(stat.st_mode),
        links: stat.st_nlink,
        size: stat.st_size.unsigned_abs(),
        accessed: time(stat.st_atime, stat.st_atime_nsec),
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
        changed: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}

fn times(accessed: Time, modified: Time) -> [libc::timespec; 2] {
    [accessed, modified].map(|time| {
        let [tv_sec, tv_nsec] = time.to_linux();
        libc::timespec { tv_sec, tv_nsec }
    })
}

const NOFOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;

/// The host.
pub struct Files<'a> {
    process: Process,
    _handles: PhantomData<Handle<'a>>,
}

impl<'a> Files<'a> {
    /// A host for a program that the runner runs.
    pub fn new() -> Self {
        Self { process: Process::ending(is_due), _handles: PhantomData }
    }

    /// Opens a name in a directory.
    fn open_in(at: &Handle<'a>, bytes: &[u8], flags: i32, mode: u32) -> Result<File<'a>, Errno> {
        let at = file(at)?;
        let fd = at.calls.open_at(at.fd, &name(bytes)?, flags, mode).map_err(error)?;
        Ok(File { calls: at.calls, fd })
    }
}

impl<'a> Host for Files<'a> {
    type Handle = Handle<'a>;
    type Memory = [u8];

    fn open_directory(&mut self, at: &Handle<'a>, name: &[u8]) -> Result<Handle<'a>, Errno> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        Self::open_in(at, name, flags, 0).map(Handle::File)
    }

    fn open(&mut self, at: &Handle<'a>, name: &[u8], how: Open) -> Result<Handle<'a>, Errno> {
        let flags = how.to_linux();
        // Without this flag, a named pipe makes its opener wait for the other side, perhaps for ever.
        let waits_not = libc::O_NONBLOCK as u32;
        let file = Self::open_in(at, name, (flags | waits_not) as i32, 0o666)?;
        if flags & waits_not == 0 {
            file.control(libc::F_SETFL, flags).map_err(error)?;
        }
        Ok(Handle::File(file))
    }

    fn status_at(&mut self, at: &Handle<'a>, bytes: &[u8]) -> Result<Status, Errno> {
        let at = file(at)?;
        let stat = at.calls.stat_at(at.fd, &name(bytes)?, NOFOLLOW);
        stat.map(|stat| status(&stat)).map_err(error)
    }

    fn set_times_at(
        &mut self,
        at: &Handle<'a>,
        bytes: &[u8],
        accessed: Time,
        modified: Time,
    ) -> Result<(), Errno> {
        if accessed == Time::Keep && modified == Time::Keep {
            // Linux does not even look the name up.
            return self.status_at(at, bytes).map(drop);
        }
        let at = file(at)?;
        at.calls.set_times_at(at.fd, &name(bytes)?, &times(accessed, modified)).map_err(error)
    }

    fn read_link(
        &mut self,
        at: &Handle<'a>,
        bytes: &[u8],
        into: &mut [u8],
    ) -> Result<usize, Errno> {
        let (at, size) = (file(at)?, Number(into.len() as u64));
        let name = name(bytes)?;
        let arguments =
            &mut [Number(at.fd.0 as u64), In(name.to_bytes_with_nul()), Out(into), size];
        at.calls.call(libc::SYS_readlinkat, arguments).map(|n| n as usize).map_err(error)
    }

    fn create_directory(&mut self, at: &Handle<'a>, bytes: &[u8]) -> Result<(), Errno> {
        let at = file(at)?;
        at.calls.mkdir_at(at.fd, &name(bytes)?, 0o777).map_err(error)
    }

    fn create_symlink(
        &mut self,
        target: &[u8],
        at: &Handle<'a>,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let at = file(at)?;
        at.calls.symlink_at(&name(target)?, at.fd, &name(bytes)?).map_err(error)
    }

    fn create_link(
        &mut self,
        from: &Handle<'a>,
        old: &[u8],
        to: &Handle<'a>,
        new: &[u8],
    ) -> Result<(), Errno> {
        let (from, to) = pair(from, to)?;
        from.calls.link_at(from.fd, &name(old)?, to.fd, &name(new)?).map_err(error)
    }

    fn rename(
        &mut self,
        from: &Handle<'a>,
        old: &[u8],
        to: &Handle<'a>,
        new: &[u8],
    ) -> Result<(), Errno> {
        let (from, to) = pair(from, to)?;
        from.calls.rename_at(from.fd, &name(old)?, to.fd, &name(new)?, 0).map_err(error)
    }

    fn remove_file(&mut self, at: &Handle<'a>, bytes: &[u8]) -> Result<(), Errno> {
        let at = file(at)?;
        at.calls.unlink_at(at.fd, &name(bytes)?, 0).map_err(error)
    }

    fn remove_directory(&mut self, at: &Handle<'a>, bytes: &[u8]) -> Result<(), Errno> {
        let at = file(at)?;
        at.calls.unlink_at(at.fd, &name(bytes)?, libc::AT_REMOVEDIR).map_err(error)
    }

    fn read_directory(
        &mut self,
        directory: &Handle<'a>,
        cookie: u64,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let File { calls, fd } = file(directory)?;
        calls.seek(*fd, cookie as i64, libc::SEEK_SET).map_err(error)?;
        let mut room = [0; ENTRIES];
        loop {
            let entries = calls.some_entries(*fd, &mut room).map_err(error)?;
            if entries.is_empty() {
                return Ok(());
            }
            for Positioned { entry, next } in entries {
                let name = entry.name.to_bytes();
                let kind = match entry.kind {
                    // Some file systems do not keep the type in the directory. Meanwhile the file may have gone.
                    libc::DT_UNKNOWN => self
                        .status_at(directory, name)
                        .map_or(FileType::Unknown, |status| status.kind),
                    kind => FileType::from_linux_entry(kind),
                };
                if !each(DirectoryEntry { next, inode: entry.inode, kind, name }) {
                    return Ok(());
                }
            }
        }
    }

    fn read(
        &mut self,
        handle: &Handle<'a>,
        memory: &mut [u8],
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno> {
        match handle {
            Handle::Process(fd) => self.process.read(fd, memory, buffers, offset),
            Handle::File(File { calls, fd }) => {
                File::each(memory, buffers, &mut |part, distance| match offset {
                    None => calls.read(*fd, part),
                    Some(offset) => calls.pread(*fd, part, offset + distance),
                })
            }
        }
    }

    fn write(
        &mut self,
        handle: &Handle<'a>,
        memory: &mut [u8],
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno> {
        match handle {
            Handle::Process(fd) => self.process.write(fd, memory, buffers, offset),
            Handle::File(File { calls, fd }) => {
                File::each(memory, buffers, &mut |part, distance| match offset {
                    None => calls.write(*fd, part),
                    Some(offset) => calls.pwrite(*fd, part, offset + distance),
                })
            }
        }
    }

    fn seek(&mut self, handle: &Handle<'a>, distance: i64, whence: Whence) -> Result<u64, Errno> {
        let from = match whence {
            Whence::Set => libc::SEEK_SET,
            Whence::Cur => libc::SEEK_CUR,
            Whence::End => libc::SEEK_END,
        };
        match handle {
            Handle::Process(fd) => self.process.seek(fd, distance, whence),
            Handle::File(File { calls, fd }) => calls.seek(*fd, distance, from).map_err(error),
        }
    }

    fn sync(&mut self, handle: &Handle<'a>, data_only: bool) -> Result<(), Errno> {
        match handle {
            Handle::Process(fd) => self.process.sync(fd, data_only),
            Handle::File(File { calls, fd }) if data_only => calls.sync_data(*fd).map_err(error),
            Handle::File(File { calls, fd }) => calls.fsync(*fd).map_err(error),
        }
    }

    fn advise(
        &mut self,
        handle: &Handle<'a>,
        offset: u64,
        bytes: u64,
        advice: Advice,
    ) -> Result<(), Errno> {
        match handle {
            Handle::Process(fd) => self.process.advise(fd, offset, bytes, advice),
            Handle::File(File { calls, fd }) => {
                let numbers = [fd.0 as u64, offset, bytes, advice.to_linux().into()];
                calls.call(libc::SYS_fadvise64, &mut numbers.map(Number)).map(drop).map_err(error)
            }
        }
    }

    fn allocate(&mut self, handle: &Handle<'a>, offset: u64, bytes: u64) -> Result<(), Errno> {
        match handle {
            Handle::Process(fd) => self.process.allocate(fd, offset, bytes),
            Handle::File(File { calls, fd }) => {
                calls.allocate(*fd, 0, offset, bytes).map_err(error)
            }
        }
    }

    fn set_size(&mut self, handle: &Handle<'a>, size: u64) -> Result<(), Errno> {
        match handle {
            Handle::Process(fd) => self.process.set_size(fd, size),
            Handle::File(File { calls, fd }) => calls.truncate(*fd, size).map_err(error),
        }
    }

    fn status(&mut self, handle: &Handle<'a>) -> Result<Status, Errno> {
        match handle {
            Handle::Process(fd) => self.process.status(fd),
            Handle::File(File { calls, fd }) => {
                Inodes::status(*calls, *fd).map(|stat| status(&stat)).map_err(error)
            }
        }
    }

    fn set_times(
        &mut self,
        handle: &Handle<'a>,
        accessed: Time,
        modified: Time,
    ) -> Result<(), Errno> {
        match handle {
            Handle::Process(fd) => self.process.set_times(fd, accessed, modified),
            Handle::File(File { calls, fd }) => {
                Inodes::set_times(*calls, *fd, &times(accessed, modified)).map_err(error)
            }
        }
    }

    fn set_flags(&mut self, handle: &Handle<'a>, flags: FdFlags) -> Result<(), Errno> {
        let file = match handle {
            Handle::Process(fd) => return self.process.set_flags(fd, flags),
            Handle::File(file) => file,
        };
        let changeable = FdFlags::APPEND.or(FdFlags::NONBLOCK).to_linux();
        let old = file.control(libc::F_GETFL, 0).map_err(error)?;
        let new = (old & !changeable) | (flags.to_linux() & changeable);
        file.control(libc::F_SETFL, new).map(drop).map_err(error)
    }

    fn close(&mut self, handle: Handle<'a>) -> Result<(), Errno> {
        match handle {
            Handle::Process(fd) => self.process.close(fd),
            Handle::File(file) => {
                let File { calls, fd } = file;
                mem::forget(file);
                calls.close(fd).map_err(error)
            }
        }
    }

    fn accept(&mut self, handle: &Handle<'a>, flags: FdFlags) -> Result<Handle<'a>, Errno> {
        self.process.accept(socket(handle)?, flags).map(Handle::Process)
    }

    fn receive(
        &mut self,
        handle: &Handle<'a>,
        memory: &mut [u8],
        buffers: &[Buffer],
        flags: ReceiveFlags,
    ) -> Result<(u32, bool), Errno> {
        self.process.receive(socket(handle)?, memory, buffers, flags)
    }

    fn send(
        &mut self,
        handle: &Handle<'a>,
        memory: &mut [u8],
        buffers: &[Buffer],
    ) -> Result<u32, Errno> {
        self.process.send(socket(handle)?, memory, buffers)
    }

    fn shutdown(&mut self, handle: &Handle<'a>, how: ShutdownFlags) -> Result<(), Errno> {
        self.process.shutdown(socket(handle)?, how)
    }

    fn ready(&mut self, handle: &Handle<'a>, direction: Direction) -> Result<Option<Ready>, Errno> {
        match handle {
            Handle::Process(fd) => self.process.ready(fd, direction),
            Handle::File(file) => file.ready(direction).map_err(error),
        }
    }

    fn wait(
        &mut self,
        handles: &mut dyn Iterator<Item = (&Handle<'a>, Direction)>,
        timeout: Option<u64>,
    ) -> Result<(), Errno> {
        let mut others = false;
        let of_process = handles.filter_map(|(handle, direction)| match handle {
            Handle::Process(fd) => Some((fd, direction)),
            Handle::File(_) => {
                others = true;
                None
            }
        });
        let of_process: Vec<_> = of_process.collect();
        let timeout = match others {
            true => Some(timeout.map_or(LOOK, |timeout| timeout.min(LOOK))),
            false => timeout,
        };
        self.process.wait(&mut of_process.into_iter(), timeout)
    }

    fn clock_resolution(&mut self, clock: Clock) -> Result<u64, Errno> {
        self.process.clock_resolution(clock)
    }

    fn clock_time(&mut self, clock: Clock) -> Result<u64, Errno> {
        self.process.clock_time(clock)
    }

    fn random(&mut self, into: &mut [u8]) -> Result<(), Errno> {
        self.process.random(into)
    }

    fn yield_now(&mut self) -> Result<(), Errno> {
        self.process.yield_now()
    }
}

/// A socket: always one of the process.
fn socket<'h>(handle: &'h Handle<'_>) -> Result<&'h OwnedFd, Errno> {
    match handle {
        Handle::Process(fd) => Ok(fd),
        Handle::File(_) => Err(Errno::Notsock),
    }
}
