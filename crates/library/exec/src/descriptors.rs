//! Descriptors. Their numbers are the host's: a descriptor of the library has a placeholder in the host's table, an
//! `O_PATH` file with which the host's calls fail, so that numbers never collide. The placeholder also keeps the
//! close-on-exec flag.

use crate::{host, library, reserve};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU8, Ordering};
use std::sync::OnceLock;

/// Numbers below this can belong to the library.
pub const MAX: usize = 1 << 16;
/// Descriptors of ours are among this many numbers from [`PRIVATE`] on. The others are the program's.
pub const PRIVATE_COUNT: u64 = 256;

/// The library's number plus 1, or 0 for the host's descriptors, or [`LEFT`].
static LIBRARY: [AtomicI32; MAX] = [const { AtomicI32::new(0) }; MAX];
/// Whether a placeholder has the flag close-on-exec: [`NO`], [`YES`], or not known, because the program changed it.
static CLOSE_ON_EXEC: [AtomicU8; MAX] = [const { AtomicU8::new(NO) }; MAX];
/// In a forked process: a descriptor of the library, which stayed with its parent.
const LEFT: i32 = -1;
const NO: u8 = 0;
const YES: u8 = 1;
const UNKNOWN: u8 = 2;
/// How many are the library's.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The file that placeholders duplicate.
static PLACEHOLDER: OnceLock<u64> = OnceLock::new();
/// The first number of our own descriptors. The program must not close them.
static PRIVATE: OnceLock<u64> = OnceLock::new();
/// Which of those numbers are ours. Before the program starts, [`UNKNOWN`] marks what was inherited.
static OURS: [AtomicU8; PRIVATE_COUNT as usize] =
    [const { AtomicU8::new(NO) }; PRIVATE_COUNT as usize];

/// The limit of open files below which there is no room for descriptors of ours.
pub const LEAST_LIMIT: u64 = PRIVATE_COUNT + 32;

/// The limit of open files.
pub fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// Low numbers that are occupied for a while.
pub struct Low(Vec<u64>);

/// Makes what the process opens from now on private: it gets high numbers. [`release_low`] ends this.
pub fn occupy_low() -> Low {
    let base = limit().clamp(2 * PRIVATE_COUNT, 4096) - PRIVATE_COUNT;
    for (_, ours) in (base..).zip(&OURS).filter(|&(fd, _)| open(fd)) {
        ours.store(UNKNOWN, Ordering::Relaxed);
    }
    let path = c"/".as_ptr() as u64;
    let cwd = libc::AT_FDCWD as u64;
    let flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    let first = host::call(libc::SYS_openat, &[cwd, path, flags, 0]) as u64;
    let dup = |least| {
        let command = libc::F_DUPFD_CLOEXEC as u64;
        host::call(libc::SYS_fcntl, &[first, command, least])
    };
    PLACEHOLDER.get_or_init(|| dup(base) as u64);
    PRIVATE.get_or_init(|| base);
    let low = |fd: &i64| (0..base as i64).contains(fd);
    let occupied = std::iter::repeat_with(|| dup(0)).take_while(low).map(|fd| fd as u64);
    Low(std::iter::once(first).chain(occupied).collect())
}

/// Frees the low numbers for the program, and those of the high ones that are not ours. Numbers among them that the
/// process inherited stay open.
pub fn release_low(Low(occupied): Low) {
    let base = *PRIVATE.get().expect("occupy_low was called");
    for run in occupied.chunk_by(|&fd, &next| fd + 1 == next) {
        host::call(libc::SYS_close_range, &[run[0], run[run.len() - 1], 0]);
    }
    for (fd, ours) in (base..).zip(&OURS) {
        let inherited = ours.load(Ordering::Relaxed) == UNKNOWN;
        ours.store(if open(fd) && !inherited { YES } else { NO }, Ordering::Relaxed);
    }
}

fn open(fd: u64) -> bool {
    host::call(libc::SYS_fcntl, &[fd, libc::F_GETFD as u64]) >= 0
}

/// The mark of a number that may be ours.
fn mark(fd: u64) -> Option<&'static AtomicU8> {
    OURS.get(usize::try_from((fd & 0xffff_ffff).checked_sub(*PRIVATE.get()?)?).ok()?)
}

/// Whether the number is one of our own descriptors.
pub fn private(fd: u64) -> bool {
    mark(fd).is_some_and(|ours| ours.load(Ordering::Relaxed) != NO)
}

/// Closes a descriptor of ours that [`move_up`] made.
pub fn close_private(fd: u64) {
    if let Some(ours) = mark(fd) {
        ours.store(NO, Ordering::Relaxed);
    }
    host::call(libc::SYS_close, &[fd]);
}

/// The library's number of a descriptor, or nothing if it is the host's. System calls use the low half of a register.
#[inline]
pub fn get(fd: u64) -> Option<u64> {
    let place = LIBRARY.get(fd as u32 as usize)?;
    let value = place.load(Ordering::Acquire);
    (value > 0).then(|| value as u64 - 1)
}

/// Whether the process has a descriptor of the library; with `inherited`, one that a new program would inherit.
pub fn any(inherited: bool) -> bool {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let kept = |fd: u64| {
        let flags = host::call(libc::SYS_fcntl, &[fd, libc::F_GETFD as u64]);
        flags & i64::from(libc::FD_CLOEXEC) == 0
    };
    (0..MAX as u64).any(|fd| get(fd).is_some() && (!inherited || kept(fd)))
}

/// Gives the library's descriptor `inner` a number, which is at least `least`.
pub fn install(inner: i64, close_on_exec: bool, least: u64) -> i64 {
    if inner < 0 {
        return inner;
    }
    if least == 0 {
        if let Some(fd) = reserve::take(close_on_exec) {
            map(fd, inner, close_on_exec);
            return fd as i64;
        }
    }
    reserve::release();
    let command = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD } as u64;
    let placeholder = *PLACEHOLDER.get().expect("occupy_low was called");
    let before = reserve::before();
    let fd = host::call(libc::SYS_fcntl, &[placeholder, command, least]);
    if fd >= MAX as i64 {
        host::call(libc::SYS_close, &[fd as u64]);
        return -i64::from(libc::EMFILE);
    }
    if fd >= 0 {
        map(fd as u64, inner, close_on_exec);
        if least == 0 {
            reserve::found(before, fd as u64);
        }
    }
    fd
}

/// Gives the library's descriptor `inner` the number `fd`, which is free or the host's. The host closes what it had.
pub fn install_at(inner: i64, fd: u64, close_on_exec: bool) -> i64 {
    if fd >= MAX as u64 {
        return -i64::from(libc::EBADF);
    }
    let placeholder = *PLACEHOLDER.get().expect("occupy_low was called");
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 } as u64;
    let result = host::call(libc::SYS_dup3, &[placeholder, fd, flags]);
    if result >= 0 {
        map(fd, inner, close_on_exec);
    }
    result
}

fn map(fd: u64, inner: i64, close_on_exec: bool) {
    CLOSE_ON_EXEC[fd as usize].store(u8::from(close_on_exec), Ordering::Relaxed);
    LIBRARY[fd as usize].store(inner as i32 + 1, Ordering::Release);
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// Whether the placeholder has the flag close-on-exec, if that is known.
pub fn close_on_exec(fd: u64) -> Option<bool> {
    match CLOSE_ON_EXEC.get(fd as u32 as usize)?.load(Ordering::Relaxed) {
        UNKNOWN => None,
        flag => Some(flag == YES),
    }
}

/// The program changes the flags of descriptors from `first` to `last`.
pub fn flags_change(first: u64, last: u64) {
    let range = first as u32 as usize..=(last as u32 as usize).min(MAX - 1);
    for flag in CLOSE_ON_EXEC.get(range).into_iter().flatten() {
        flag.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// Forgets that `fd` is the library's, and returns its number there. The placeholder stays.
pub fn forget(fd: u64) -> Option<u64> {
    let place = LIBRARY.get(fd as u32 as usize)?;
    let value = place.swap(0, Ordering::AcqRel);
    (value > 0).then(|| {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        value as u64 - 1
    })
}

/// Forgets all: this process was forked.
pub fn clear() {
    library::leave();
    if !any_at_all() {
        return;
    }
    (0..MAX as u64).for_each(|fd| {
        if forget(fd).is_some() {
            host::call(libc::SYS_close, &[fd]);
            LIBRARY[fd as usize].store(LEFT, Ordering::Release);
        }
    });
}

/// Whether the number was a descriptor of the library before this process was forked.
pub fn left(fd: u64) -> bool {
    LIBRARY.get(fd as u32 as usize).is_some_and(|place| place.load(Ordering::Relaxed) == LEFT)
}

/// Closes all: another program replaces this one.
pub fn close_all(state: &crate::state::State) {
    for fd in within(0, MAX as u64) {
        if let Some(inner) = forget(fd) {
            library::own_call(state, libc::SYS_close, &[inner]);
        }
    }
}

/// The numbers from `first` to `last` that are the library's.
pub fn within(first: u64, last: u64) -> impl Iterator<Item = u64> {
    let last = last.min(MAX as u64 - 1);
    (first..=last).filter(|&fd| COUNT.load(Ordering::Relaxed) > 0 && get(fd).is_some())
}

/// Moves a descriptor of ours to a private number.
pub fn move_up(fd: i64) -> Option<u64> {
    if fd < 0 {
        return None;
    }
    let base = *PRIVATE.get()?;
    let high = host::call(libc::SYS_fcntl, &[fd as u64, libc::F_DUPFD_CLOEXEC as u64, base]);
    host::call(libc::SYS_close, &[fd as u64]);
    if high < 0 {
        return None;
    }
    if let Some(ours) = mark(high as u64) {
        ours.store(YES, Ordering::Relaxed);
    }
    Some(high as u64)
}

/// close_range(2) of the host, without our own descriptors.
pub fn host_close_range(first: u64, last: u64, flags: u64) -> i64 {
    let (first, last) = (first & 0xffff_ffff, last & 0xffff_ffff);
    let base = *PRIVATE.get().expect("occupy_low was called");
    let end = base + PRIVATE_COUNT;
    if first > last {
        return -i64::from(libc::EINVAL);
    }
    let mut result = 0;
    if first < base {
        result = host::call(libc::SYS_close_range, &[first, last.min(base - 1), flags]);
    }
    for fd in (first.max(base)..=last.min(end - 1)).filter(|&fd| !private(fd)) {
        if result == 0 {
            result = host::call(libc::SYS_close_range, &[fd, fd, flags]);
        }
    }
    if result == 0 && last >= end {
        result = host::call(libc::SYS_close_range, &[first.max(end), last, flags]);
    }
    result
}

/// Whether any descriptor is the library's, without looking at each.
pub fn any_at_all() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}
