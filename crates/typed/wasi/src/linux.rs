//! Linux's numbers, for hosts that are Linux or a library of it. They are those of x86-64.

use crate::host::{Open, Time};
use crate::types::{Advice, Clock, Errno, FdFlags, FileType, Signal};

const SECOND: u64 = 1_000_000_000;

/// Errors in the order of Linux's numbers, from 1 on.
const ERRORS: [Option<Errno>; 133] = {
    let mut errors = [None; 133];
    let mut n = 0;
    while n < NUMBERS.len() {
        let (number, error) = NUMBERS[n];
        errors[number] = Some(error);
        n += 1;
    }
    errors
};

#[rustfmt::skip]
const NUMBERS: [(usize, Errno); 76] = [
    (1, Errno::Perm), (2, Errno::Noent), (3, Errno::Srch), (4, Errno::Intr), (5, Errno::Io),
    (6, Errno::Nxio), (7, Errno::TooBig), (8, Errno::Noexec), (9, Errno::Badf),
    (10, Errno::Child), (11, Errno::Again), (12, Errno::Nomem), (13, Errno::Acces),
    (14, Errno::Fault), (16, Errno::Busy), (17, Errno::Exist), (18, Errno::Xdev),
    (19, Errno::Nodev), (20, Errno::Notdir), (21, Errno::Isdir), (22, Errno::Inval),
    (23, Errno::Nfile), (24, Errno::Mfile), (25, Errno::Notty), (26, Errno::Txtbsy),
    (27, Errno::Fbig), (28, Errno::Nospc), (29, Errno::Spipe), (30, Errno::Rofs),
    (31, Errno::Mlink), (32, Errno::Pipe), (33, Errno::Dom), (34, Errno::Range),
    (35, Errno::Deadlk), (36, Errno::Nametoolong), (37, Errno::Nolck), (38, Errno::Nosys),
    (39, Errno::Notempty), (40, Errno::Loop), (42, Errno::Nomsg), (43, Errno::Idrm),
    (67, Errno::Nolink), (71, Errno::Proto), (72, Errno::Multihop), (74, Errno::Badmsg),
    (75, Errno::Overflow), (84, Errno::Ilseq), (88, Errno::Notsock), (89, Errno::Destaddrreq),
    (90, Errno::Msgsize), (91, Errno::Prototype), (92, Errno::Noprotoopt),
    (93, Errno::Protonosupport), (95, Errno::Notsup), (97, Errno::Afnosupport),
    (98, Errno::Addrinuse), (99, Errno::Addrnotavail), (100, Errno::Netdown),
    (101, Errno::Netunreach), (102, Errno::Netreset), (103, Errno::Connaborted),
    (104, Errno::Connreset), (105, Errno::Nobufs), (106, Errno::Isconn), (107, Errno::Notconn),
    (110, Errno::Timedout), (111, Errno::Connrefused), (113, Errno::Hostunreach),
    (114, Errno::Already), (115, Errno::Inprogress), (116, Errno::Stale), (122, Errno::Dquot),
    (125, Errno::Canceled), (130, Errno::Ownerdead), (131, Errno::Notrecoverable),
    (132, Errno::Perm), // ERFKILL has no counterpart.
];

impl Errno {
    /// The error for a number of Linux's. Those without a counterpart are [`Errno::Io`].
    pub fn from_linux(number: i32) -> Errno {
        let error = usize::try_from(number).ok().and_then(|n| ERRORS.get(n).copied());
        error.flatten().unwrap_or(Errno::Io)
    }
}

impl Signal {
    /// Linux's number of the signal.
    pub const fn to_linux(self) -> i32 {
        match self {
            Signal::Hup => 1,
            Signal::Int => 2,
            Signal::Quit => 3,
            Signal::Ill => 4,
            Signal::Trap => 5,
            Signal::Abrt => 6,
            Signal::Bus => 7,
            Signal::Fpe => 8,
            Signal::Kill => 9,
            Signal::Usr1 => 10,
            Signal::Segv => 11,
            Signal::Usr2 => 12,
            Signal::Pipe => 13,
            Signal::Alrm => 14,
            Signal::Term => 15,
            Signal::Chld => 17,
            Signal::Cont => 18,
            Signal::Stop => 19,
            Signal::Tstp => 20,
            Signal::Ttin => 21,
            Signal::Ttou => 22,
            Signal::Urg => 23,
            Signal::Xcpu => 24,
            Signal::Xfsz => 25,
            Signal::Vtalrm => 26,
            Signal::Prof => 27,
            Signal::Winch => 28,
            Signal::Poll => 29,
            Signal::Pwr => 30,
            Signal::Sys => 31,
        }
    }
}

/// `O_SYNC` contains `O_DSYNC` and is also `O_RSYNC`, so they come first.
const FLAGS: [(FdFlags, u32); 5] = [
    (FdFlags::SYNC, 0o4_010_000),
    (FdFlags::RSYNC, 0o4_010_000),
    (FdFlags::DSYNC, 0o10_000),
    (FdFlags::APPEND, 0o2_000),
    (FdFlags::NONBLOCK, 0o4_000),
];

impl FdFlags {
    /// The `O_` flags of open(2) and fcntl(2).
    pub fn to_linux(self) -> u32 {
        let set = FLAGS.iter().filter(|(flag, _)| self.contains(*flag));
        set.fold(0, |all, (_, linux)| all | linux)
    }

    /// The flags among `O_` flags.
    pub fn from_linux(mut linux: u32) -> FdFlags {
        let mut all = FdFlags(0);
        for (flag, bits) in FLAGS {
            if linux & bits == bits {
                all = all.or(flag);
                linux &= !bits;
            }
        }
        all
    }
}

impl Open {
    /// The `O_` flags of open(2): a symbolic link is not followed, and a terminal does not become the process's.
    pub fn to_linux(self) -> u32 {
        const NOCTTY: u32 = 0o400;
        const NOFOLLOW: u32 = 0o400_000;
        let access = match (self.read, self.write) {
            (true, true) => 2,
            (false, true) => 1,
            (_, false) => 0,
        };
        let flags = [
            (self.create, 0o100),
            (self.create && self.exclusive, 0o200),
            (self.truncate, 0o1_000),
            (self.directory, 0o200_000),
        ];
        let set = flags.iter().filter(|(condition, _)| *condition);
        set.fold(access | NOCTTY | NOFOLLOW | self.flags.to_linux(), |all, (_, flag)| all | flag)
    }
}

impl FileType {
    /// The type in the mode of stat(2). A socket's is only known of an open one.
    pub fn from_linux_mode(mode: u32) -> FileType {
        FileType::from_linux_entry((mode >> 12 & 15) as u8)
    }

    /// The type in an entry of a directory, getdents64(2).
    pub fn from_linux_entry(kind: u8) -> FileType {
        match kind {
            2 => FileType::CharacterDevice,
            4 => FileType::Directory,
            6 => FileType::BlockDevice,
            8 => FileType::RegularFile,
            10 => FileType::SymbolicLink,
            12 => FileType::SocketStream,
            _ => FileType::Unknown,
        }
    }
}

impl Advice {
    /// The `POSIX_FADV_` number of posix_fadvise(2).
    pub const fn to_linux(self) -> u32 {
        match self {
            Advice::Normal => 0,
            Advice::Random => 1,
            Advice::Sequential => 2,
            Advice::Willneed => 3,
            Advice::Dontneed => 4,
            Advice::Noreuse => 5,
        }
    }
}

impl Clock {
    /// The number of clock_gettime(2).
    pub const fn to_linux(self) -> u32 {
        match self {
            Clock::Realtime => 0,
            Clock::Monotonic => 1,
            Clock::ProcessCpu => 2,
            Clock::ThreadCpu => 3,
        }
    }
}

impl Time {
    /// Seconds and nanoseconds of a timespec for utimensat(2).
    pub const fn to_linux(self) -> [i64; 2] {
        match self {
            Time::Keep => [0, 0x3fff_fffe],
            Time::Now => [0, 0x3fff_ffff],
            Time::At(time) => [(time / SECOND) as i64, (time % SECOND) as i64],
        }
    }
}

/// Nanoseconds of a timespec. What lies before 1970 or beyond 64 bits becomes the nearest that is told.
pub fn nanoseconds(seconds: i64, nanoseconds: u64) -> u64 {
    match u64::try_from(seconds) {
        Ok(seconds) => seconds.saturating_mul(SECOND).saturating_add(nanoseconds),
        Err(_) => 0,
    }
}
