//! Linux's values as the interface's, and back, in the types of rustix.

use kyozon_typed_wasi::host::{Open, Status, Time};
use kyozon_typed_wasi::linux::nanoseconds;
use kyozon_typed_wasi::types::{Advice, Clock, FdFlags, FileType};
use kyozon_typed_wasi::Errno;
use rustix::fs::{OFlags, Stat, Timespec, Timestamps};
use rustix::time::ClockId;

pub fn error(error: rustix::io::Errno) -> Errno {
    Errno::from_linux(error.raw_os_error())
}

pub fn from_timespec(time: Timespec) -> u64 {
    nanoseconds(time.tv_sec, time.tv_nsec.unsigned_abs())
}

pub fn to_timespec(time: Time) -> Timespec {
    let [tv_sec, tv_nsec] = time.to_linux();
    Timespec { tv_sec, tv_nsec }
}

pub fn timestamps(accessed: Time, modified: Time) -> Timestamps {
    Timestamps { last_access: to_timespec(accessed), last_modification: to_timespec(modified) }
}

/// The type of a file. A socket's is only known of an open one.
pub fn file_type(kind: rustix::fs::FileType) -> FileType {
    FileType::from_linux_mode(kind.as_raw_mode())
}

pub fn status(stat: &Stat) -> Status {
    Status {
        device: stat.st_dev,
        inode: stat.st_ino,
        kind: FileType::from_linux_mode(stat.st_mode),
        links: stat.st_nlink,
        size: stat.st_size.unsigned_abs(),
        accessed: nanoseconds(stat.st_atime, stat.st_atime_nsec),
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}

pub fn to_oflags(flags: FdFlags) -> OFlags {
    OFlags::from_bits_retain(flags.to_linux())
}

pub fn from_oflags(flags: OFlags) -> FdFlags {
    FdFlags::from_linux(flags.bits())
}

pub fn open(how: Open) -> OFlags {
    OFlags::from_bits_retain(how.to_linux()) | OFlags::CLOEXEC
}

pub fn advice(advice: Advice) -> rustix::fs::Advice {
    match advice {
        Advice::Normal => rustix::fs::Advice::Normal,
        Advice::Sequential => rustix::fs::Advice::Sequential,
        Advice::Random => rustix::fs::Advice::Random,
        Advice::Willneed => rustix::fs::Advice::WillNeed,
        Advice::Dontneed => rustix::fs::Advice::DontNeed,
        Advice::Noreuse => rustix::fs::Advice::NoReuse,
    }
}

pub fn clock(clock: Clock) -> ClockId {
    match clock {
        Clock::Realtime => ClockId::Realtime,
        Clock::Monotonic => ClockId::Monotonic,
        Clock::ProcessCpu => ClockId::ProcessCPUTime,
        Clock::ThreadCpu => ClockId::ThreadCPUTime,
    }
}
