//! Clocks, and sleeping.

use crate::errno::*;
use crate::{signals, Answer};
use core::sync::atomic::{AtomicU64, Ordering};
use kyozon_unikernel::{clock, sleep};

const SECOND: u64 = 1_000_000_000;
const REALTIME: u64 = 0;
const REALTIME_COARSE: u64 = 5;
/// `CLOCK_MONOTONIC`, `CLOCK_MONOTONIC_RAW`, `CLOCK_MONOTONIC_COARSE`, `CLOCK_BOOTTIME`.
const MONOTONIC: [u64; 4] = [1, 4, 6, 7];
/// `CLOCK_PROCESS_CPUTIME_ID` and `CLOCK_THREAD_CPUTIME_ID`: the time since the start stands for them.
const CPU: [u64; 2] = [2, 3];
const ABSOLUTE: u64 = 1;

/// Nanoseconds from the group's clock to the host's time of day, and when the host was asked, by the former.
static DIFFERENCE: AtomicU64 = AtomicU64::new(0);
static ASKED: AtomicU64 = AtomicU64::new(0);

/// The time of day, from the host at most once a second.
pub fn of_day() -> u64 {
    let now = clock::now();
    if ASKED.load(Ordering::Relaxed) == 0
        || now.wrapping_sub(ASKED.load(Ordering::Relaxed)) > SECOND
    {
        DIFFERENCE.store(clock::time_of_day().wrapping_sub(clock::now()), Ordering::Relaxed);
        ASKED.store(now.max(1), Ordering::Relaxed);
    }
    clock::now().wrapping_add(DIFFERENCE.load(Ordering::Relaxed))
}

fn read(which: u64) -> Option<u64> {
    match which {
        REALTIME | REALTIME_COARSE => Some(of_day()),
        _ if MONOTONIC.contains(&which) || CPU.contains(&which) => Some(clock::now()),
        _ => None,
    }
}

/// The seconds and nanoseconds (or microseconds) of a structure of two words.
///
/// # Safety
///
/// The address is one of two readable words.
unsafe fn pair(address: u64) -> [i64; 2] {
    // SAFETY: the caller's promise.
    unsafe { (address as *const [i64; 2]).read_unaligned() }
}

/// # Safety
///
/// The address is 0, or one of two writable words.
unsafe fn put(address: u64, pair: [i64; 2]) {
    if address != 0 {
        // SAFETY: the caller's promise.
        unsafe { (address as *mut [i64; 2]).write_unaligned(pair) };
    }
}

/// Nanoseconds of a `timespec`.
fn nanoseconds([seconds, rest]: [i64; 2]) -> Result<u64, Answer> {
    if seconds < 0 || !(0..SECOND as i64).contains(&rest) {
        return Err(EINVAL);
    }
    Ok((seconds as u64).saturating_mul(SECOND).saturating_add(rest as u64))
}

fn timespec(ns: u64) -> [i64; 2] {
    [(ns / SECOND) as i64, (ns % SECOND) as i64]
}

/// The deadline after the time in a `timespec`; none without one.
///
/// # Safety
///
/// The address is 0, or that of a `timespec`.
pub unsafe fn after(address: u64) -> Result<Option<u64>, Answer> {
    if address == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let ns = nanoseconds(unsafe { pair(address) })?;
    Ok(Some(clock::now().saturating_add(ns)))
}

/// The deadline at the time in a `timespec`, of the time of day or of the monotonic clock; none without one.
///
/// # Safety
///
/// The address is 0, or that of a `timespec`.
pub unsafe fn at(address: u64, of_the_day: bool) -> Result<Option<u64>, Answer> {
    if address == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let ns = nanoseconds(unsafe { pair(address) })?;
    if !of_the_day {
        return Ok(Some(ns));
    }
    Ok(Some(clock::now().saturating_add(ns.saturating_sub(of_day()))))
}

/// `clock_gettime`.
///
/// # Safety
///
/// The address is that of a `timespec`.
pub unsafe fn get(which: u64, to: u64) -> Answer {
    let Some(now) = read(which) else { return EINVAL };
    // SAFETY: the caller's promise.
    unsafe { put(to, timespec(now)) };
    0
}

/// `clock_getres`.
///
/// # Safety
///
/// The address is 0, or that of a `timespec`.
pub unsafe fn resolution(which: u64, to: u64) -> Answer {
    if read(which).is_none() {
        return EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe { put(to, [0, 1]) };
    0
}

/// `gettimeofday`.
///
/// # Safety
///
/// The address is 0, or that of a `timeval`.
pub unsafe fn get_of_day(to: u64) -> Answer {
    let [seconds, ns] = timespec(of_day());
    // SAFETY: the caller's promise.
    unsafe { put(to, [seconds, ns / 1000]) };
    0
}

/// `clock_nanosleep`, and `nanosleep` with the monotonic clock.
///
/// # Safety
///
/// `time` is that of a `timespec`; `rest` is one, too, or 0.
pub unsafe fn sleep(which: u64, flags: u64, time: u64, rest: u64) -> Answer {
    if read(which).is_none() || CPU.contains(&which) {
        return EINVAL;
    }
    let of_the_day = which == REALTIME;
    // SAFETY: the caller's promise.
    let deadline = unsafe {
        if flags & ABSOLUTE != 0 {
            at(time, of_the_day)
        } else {
            after(time)
        }
    };
    let end = match deadline {
        Ok(Some(end)) => end,
        Ok(None) => return EFAULT,
        Err(error) => return error,
    };
    let answer = until(Some(end));
    if answer == EINTR && flags & ABSOLUTE == 0 {
        // SAFETY: the caller's promise.
        unsafe { put(rest, timespec(end.saturating_sub(clock::now()))) };
    }
    answer
}

/// Sleeps until the deadline: 0, or until a signal comes: [`EINTR`].
pub fn until(deadline: Option<u64>) -> Answer {
    loop {
        if signals::interrupt().is_some() {
            return EINTR;
        }
        if deadline.is_some_and(|end| clock::now() >= end) {
            return 0;
        }
        sleep::park(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked_and_never_overflow() {
        assert_eq!(nanoseconds([2, 5]), Ok(2 * SECOND + 5));
        for bad in [[-1, 0], [0, -1], [0, SECOND as i64]] {
            assert_eq!(nanoseconds(bad), Err(EINVAL));
        }
        assert_eq!(nanoseconds([i64::MAX, 0]), Ok(u64::MAX));
        assert_eq!(timespec(3 * SECOND + 7), [3, 7]);
    }
}
