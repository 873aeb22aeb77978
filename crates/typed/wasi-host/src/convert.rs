//! Linux's values as the interface's, and back.

use kyozon_typed_wasi::host::{Open, Status, Time};
use kyozon_typed_wasi::types::{Advice, Clock, FdFlags, FileType};
use kyozon_typed_wasi::Errno;
use rustix::fs::{OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::time::ClockId;

const SECOND: u64 = 1_000_000_000;

pub fn error(error: rustix::io::Errno) -> Errno {
    Errno::from_linux(error.raw_os_error())
}

/// Nanoseconds; what lies before 1970 or beyond 64 bits becomes the nearest that is told.
fn nanoseconds(seconds: i64, nanoseconds: u64) -> u64 {
    match u64::try_from(seconds) {
        Ok(seconds) => seconds.saturating_mul(SECOND).saturating_add(nanoseconds),
        Err(_) => 0,
    }
}

pub fn from_timespec(time: Timespec) -> u64 {
    nanoseconds(time.tv_sec, time.tv_nsec.unsigned_abs())
}

pub fn to_timespec(time: u64) -> Timespec {
    Timespec { tv_sec: (time / SECOND) as i64, tv_nsec: (time % SECOND) as i64 }
}

pub fn timestamps(accessed: Time, modified: Time) -> Timestamps {
    let convert = |time| match time {
        Time::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Time::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Time::At(time) => to_timespec(time),
    };
    Timestamps { last_access: convert(accessed), last_modification: convert(modified) }
}

/// The type of a file. A socket's is only known of an open one.
pub fn file_type(kind: rustix::fs::FileType) -> FileType {
    match kind {
        rustix::fs::FileType::RegularFile => FileType::RegularFile,
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::SymbolicLink,
        rustix::fs::FileType::CharacterDevice => FileType::CharacterDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        rustix::fs::FileType::Socket => FileType::SocketStream,
        rustix::fs::FileType::Fifo | rustix::fs::FileType::Unknown => FileType::Unknown,
    }
}

pub fn status(stat: &Stat) -> Status {
    Status {
        device: stat.st_dev,
        inode: stat.st_ino,
        kind: file_type(rustix::fs::FileType::from_raw_mode(stat.st_mode)),
        links: stat.st_nlink,
        size: stat.st_size.unsigned_abs(),
        accessed: nanoseconds(stat.st_atime, stat.st_atime_nsec),
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}

const FLAGS: [(FdFlags, OFlags); 5] = [
    // SYNC and RSYNC are the same to Linux and contain DSYNC, so they come first.
    (FdFlags::SYNC, OFlags::SYNC),
    (FdFlags::RSYNC, OFlags::RSYNC),
    (FdFlags::DSYNC, OFlags::DSYNC),
    (FdFlags::APPEND, OFlags::APPEND),
    (FdFlags::NONBLOCK, OFlags::NONBLOCK),
];

pub fn to_oflags(flags: FdFlags) -> OFlags {
    let set = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
    set.fold(OFlags::empty(), |all, (_, flag)| all | *flag)
}

pub fn from_oflags(mut flags: OFlags) -> FdFlags {
    let mut all = FdFlags(0);
    for (flag, linux) in FLAGS {
        if flags.contains(linux) {
            all = all.or(flag);
            flags -= linux;
        }
    }
    all
}

pub fn open(how: Open) -> OFlags {
    let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | to_oflags(how.flags);
    flags |= match (how.read, how.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    for (condition, flag) in [
        (how.create, OFlags::CREATE),
        (how.exclusive && how.create, OFlags::EXCL),
        (how.truncate, OFlags::TRUNC),
        (how.directory, OFlags::DIRECTORY),
    ] {
        if condition {
            flags |= flag;
        }
    }
    flags
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
