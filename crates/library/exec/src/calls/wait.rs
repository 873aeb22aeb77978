//! Waiting for descriptors of both kernels: poll and select.
//!
//! A set of one kernel goes to that kernel. For a mixed set, both are asked without waiting; if neither has anything,
//! the [bridge](crate::bridge) waits in the library while the program thread waits in the host.

use super::Outcome::{Done, Native};
use super::{error, Call, Outcome};
use crate::bridge::Bridge;
use crate::state::State;
use crate::{descriptors, host, library};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_poll, poll),
    (libc::SYS_ppoll, ppoll),
    (libc::SYS_select, select),
    (libc::SYS_pselect6, pselect),
];

pub(super) const NOW: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
/// Maximum number of entries: as many as there are descriptors.
const MAX_ENTRIES: u64 = descriptors::MAX as u64;

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

pub(super) fn address<T>(value: Option<&T>) -> u64 {
    value.map_or(0, |value| &raw const *value as u64)
}

/// When a call that may take `time` ends.
pub(super) fn deadline(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

pub(super) fn remaining(deadline: Option<Instant>) -> Option<libc::timespec> {
    deadline.map(|end| timespec(end.saturating_duration_since(Instant::now())))
}

/// The entries that are the library's, or the host's. The others are kept out by a negative number.
fn side(entries: &[libc::pollfd], inner: bool) -> Vec<libc::pollfd> {
    let select = |&entry: &libc::pollfd| {
        let found = if entry.fd < 0 { None } else { descriptors::get(entry.fd as u64) };
        let fd = match (found, inner) {
            (Some(fd), true) => fd as i32,
            (None, false) => entry.fd,
            _ => -1,
        };
        libc::pollfd { fd, revents: 0, ..entry }
    };
    entries.iter().map(select).collect()
}

fn ask_library(state: &State, set: &mut [libc::pollfd], time: Option<libc::timespec>) -> i64 {
    let time = address(time.as_ref());
    let arguments = [set.as_mut_ptr() as u64, set.len() as u64, time, 0, 8, 0];
    library::program_call(state, libc::SYS_ppoll, arguments)
}

fn ask_host(set: &mut [libc::pollfd]) -> i64 {
    let time = NOW;
    let arguments = [set.as_mut_ptr() as u64, set.len() as u64, &raw const time as u64, 0, 8];
    host::call(libc::SYS_ppoll, &arguments)
}

pub(super) fn bridge(state: &State) -> Option<&Bridge> {
    if state.bridge.get().is_none() {
        let _ = state.bridge.set(Bridge::new()?);
    }
    state.bridge.get()
}

/// poll(2) over entries of both kernels.
fn wait(state: &State, entries: &mut [libc::pollfd], time: Option<Duration>) -> i64 {
    let end = deadline(time);
    let mut inner = side(entries, true);
    let mut hosts = side(entries, false);
    let only_library = hosts.iter().all(|entry| entry.fd < 0);
    loop {
        let first = if only_library { remaining(end) } else { Some(NOW) };
        let in_library = ask_library(state, &mut inner, first);
        if in_library < 0 {
            return in_library;
        }
        let in_host = if only_library { 0 } else { ask_host(&mut hosts) };
        if in_host < 0 {
            return in_host;
        }
        let expired = end.is_some_and(|end| Instant::now() >= end);
        if in_library + in_host > 0 || expired {
            for ((entry, inner), host) in entries.iter_mut().zip(&inner).zip(&hosts) {
                entry.revents = inner.revents | host.revents;
            }
            return in_library + in_host;
        }
        if only_library {
            continue;
        }
        let Some(bridge) = bridge(state) else { return -i64::from(libc::ENOMEM) };
        let result = bridge.wait(state, hosts.clone(), inner.clone(), remaining(end));
        if result < 0 {
            return result;
        }
    }
}

fn poll_entries(state: &State, a: [u64; 6], time: Option<Duration>) -> Outcome {
    let count = (a[1] & 0xffff_ffff).min(MAX_ENTRIES) as usize;
    let mut entries = vec![libc::pollfd { fd: -1, events: 0, revents: 0 }; count];
    // SAFETY: plain integers; nothing else refers to them.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(
            entries.as_mut_ptr().cast::<u8>(),
            count * size_of::<libc::pollfd>(),
        )
    };
    if host::read(a[0], bytes) != Ok(bytes.len()) {
        return Native;
    }
    if !entries.iter().any(|entry| entry.fd >= 0 && descriptors::get(entry.fd as u64).is_some()) {
        return Native;
    }
    let result = wait(state, &mut entries, time);
    if result >= 0 {
        for (i, entry) in entries.iter().enumerate() {
            let at = a[0] + (i * size_of::<libc::pollfd>()) as u64;
            let _ = host::write_value(at, *entry);
        }
    }
    Done(result)
}

pub(super) fn milliseconds(value: u64) -> Option<Duration> {
    u64::try_from(value as i32).ok().map(Duration::from_millis)
}

/// The duration at an address, or none for ever. `unit` is how many nanoseconds its second word counts.
pub(super) fn duration(address: u64, unit: u64) -> Result<Option<Duration>, i64> {
    if address == 0 {
        return Ok(None);
    }
    let [seconds, fraction]: [i64; 2] = host::read_value(address)?;
    if seconds < 0 || !(0..(1_000_000_000 / unit) as i64).contains(&fraction) {
        return Err(-i64::from(libc::EINVAL));
    }
    Ok(Some(Duration::new(seconds as u64, fraction as u32 * unit as u32)))
}

/// Runs `wait` with the signal mask at `address`, if there is one. A signal that the mask lets through ends the call,
/// runs its handler with that mask, and then returns to the mask from before.
pub(super) fn masked(address: u64, wait: impl FnOnce() -> Outcome) -> Outcome {
    if address == 0 {
        return wait();
    }
    let (Some(state), Ok(mask)) = (State::current(), host::read_value::<u64>(address)) else {
        return error(libc::EFAULT);
    };
    let mut before = 0u64;
    // With a signal pending, all others are blocked and must stay so: then the call is not made.
    let set = |mask: u64, before: *mut u64| {
        let how = libc::SIG_SETMASK as u64;
        let arguments = [how, &raw const mask as u64, before as u64, 8];
        host::wait(libc::SYS_rt_sigprocmask, &arguments) == 0
    };
    if !set(mask & !host::NEVER_BLOCKED, &raw mut before) {
        return Done(host::NOT_MADE);
    }
    let outcome = wait();
    if set(before, std::ptr::null_mut()) && state.pending.load(Ordering::Acquire) == 0 {
        return outcome;
    }
    state.masked.set(before);
    state.remask.store(1, Ordering::Release);
    match outcome {
        Done(host::NOT_MADE) => error(libc::EINTR),
        outcome => outcome,
    }
}

fn poll(state: &State, a: [u64; 6]) -> Outcome {
    if !descriptors::any_at_all() {
        return Native;
    }
    poll_entries(state, a, milliseconds(a[2]))
}

fn ppoll(state: &State, a: [u64; 6]) -> Outcome {
    if !descriptors::any_at_all() {
        return Native;
    }
    match duration(a[2], 1) {
        Ok(time) if a[3] == 0 => poll_entries(state, a, time),
        Ok(time) => match poll_entries(state, [a[0], a[1], 0, 0, 0, 0], Some(Duration::ZERO)) {
            Native => Native,
            Done(0) => masked(a[3], || poll_entries(state, a, time)),
            outcome => outcome,
        },
        Err(error) => Done(error),
    }
}

/// Events of the three sets of select(2): linux/fs/select.c.
const EVENTS: [i16; 3] = [
    libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLRDNORM | libc::POLLRDBAND,
    libc::POLLOUT | libc::POLLERR | libc::POLLWRNORM | libc::POLLWRBAND,
    libc::POLLPRI,
];

/// The three sets of select(2), or none if all descriptors are the host's.
struct Sets {
    sets: [Vec<u64>; 3],
    entries: Vec<libc::pollfd>,
}

fn read_sets(a: [u64; 6]) -> Result<Option<Sets>, i64> {
    let count = (a[0] as u32).min(MAX_ENTRIES as u32) as usize;
    let words = count.div_ceil(64);
    let mut sets = [vec![0u64; words], vec![0u64; words], vec![0u64; words]];
    for (set, &address) in sets.iter_mut().zip(&a[1..4]) {
        for (i, word) in set.iter_mut().enumerate().filter(|_| address != 0) {
            *word = host::read_value(address + 8 * i as u64)?;
        }
    }
    let mut entries = Vec::new();
    for fd in 0..count {
        let mut events = 0;
        for (set, bits) in sets.iter().zip(EVENTS) {
            if has(set, fd) {
                events |= bits;
            }
        }
        if events != 0 {
            entries.push(libc::pollfd { fd: fd as i32, events, revents: 0 });
        }
    }
    let library = entries.iter().any(|entry| descriptors::get(entry.fd as u64).is_some());
    Ok(library.then_some(Sets { sets, entries }))
}

fn has(set: &[u64], fd: usize) -> bool {
    set[fd / 64] >> (fd % 64) & 1 == 1
}

fn select_sets(state: &State, a: [u64; 6], found: Sets, time: Option<Duration>) -> Outcome {
    let Sets { sets, mut entries } = found;
    let words = sets[0].len();
    let result = wait(state, &mut entries, time);
    if result < 0 {
        return Done(result);
    }
    if entries.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
        return error(libc::EBADF);
    }
    let mut bits = 0;
    let mut results = [vec![0u64; words], vec![0u64; words], vec![0u64; words]];
    for entry in &entries {
        let fd = entry.fd as usize;
        for i in 0..3 {
            if has(&sets[i], fd) && entry.revents & EVENTS[i] != 0 {
                results[i][fd / 64] |= 1 << (fd % 64);
                bits += 1;
            }
        }
    }
    for (set, &address) in results.iter().zip(&a[1..4]) {
        for (i, &word) in set.iter().enumerate().filter(|_| address != 0) {
            let _ = host::write_value(address + 8 * i as u64, word);
        }
    }
    Done(bits)
}

fn select(state: &State, a: [u64; 6]) -> Outcome {
    if !descriptors::any_at_all() {
        return Native;
    }
    match (duration(a[4], 1000), read_sets(a)) {
        (Ok(time), Ok(Some(sets))) => select_sets(state, a, sets, time),
        (Ok(_), Ok(None)) => Native,
        (Err(error), _) | (_, Err(error)) => Done(error),
    }
}

fn pselect(state: &State, a: [u64; 6]) -> Outcome {
    if !descriptors::any_at_all() {
        return Native;
    }
    // The sixth argument points to the address of the mask and its size.
    let mask = if a[5] == 0 { Ok(0) } else { host::read_value::<u64>(a[5]) };
    match (duration(a[4], 1), mask, read_sets(a)) {
        (Ok(time), Ok(mask), Ok(Some(sets))) => masked(mask, || select_sets(state, a, sets, time)),
        (Ok(_), Ok(_), Ok(None)) => Native,
        (Err(error), ..) | (_, Err(error), _) | (_, _, Err(error)) => Done(error),
    }
}
