//! epoll. A descriptor is the host's. If a library descriptor is added, it gets a counterpart in the library, and
//! programs wait for both.

use super::wait::{address, bridge, deadline, duration, masked, milliseconds, remaining, NOW};
use super::Outcome::{Done, Native};
use super::{error, Call, Outcome};
use crate::state::State;
use crate::{descriptors, host, library};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_epoll_ctl, epoll_ctl),
    (libc::SYS_epoll_wait, epoll_wait),
    (libc::SYS_epoll_pwait, epoll_wait),
    (libc::SYS_epoll_pwait2, epoll_pwait2),
];

/// The library's counterpart of an epoll descriptor plus 1, and how many members are the host's.
struct Epoll {
    inner: AtomicI32,
    hosts: AtomicU32,
}

static EPOLLS: [Epoll; descriptors::MAX] =
    [const { Epoll { inner: AtomicI32::new(0), hosts: AtomicU32::new(0) } }; descriptors::MAX];

fn counterpart(fd: u64) -> Option<(&'static Epoll, Option<u64>)> {
    let epoll = EPOLLS.get(fd as u32 as usize)?;
    let inner = epoll.inner.load(Ordering::Acquire);
    Some((epoll, (inner > 0).then(|| inner as u64 - 1)))
}

/// The descriptors from `first` to `last` are closed: so are their counterparts.
pub(super) fn forget_epolls(state: &State, first: u64, last: u64) {
    let range = first as u32 as usize..=(last as u32 as usize).min(descriptors::MAX - 1);
    for epoll in EPOLLS.get(range).into_iter().flatten() {
        if epoll.hosts.load(Ordering::Relaxed) > 0 {
            epoll.hosts.store(0, Ordering::Relaxed);
        }
        if epoll.inner.load(Ordering::Relaxed) > 0 {
            let inner = epoll.inner.swap(0, Ordering::AcqRel);
            library::own_call(state, libc::SYS_close, &[inner as u64 - 1]);
        }
    }
}

fn epoll_ctl(state: &State, a: [u64; 6]) -> Outcome {
    let Some((epoll, inner)) = counterpart(a[0]) else { return Native };
    let Some(fd) = descriptors::get(a[2]) else {
        let result = host::call(libc::SYS_epoll_ctl, &a[..4]);
        if result == 0 {
            match a[1] as i32 {
                libc::EPOLL_CTL_ADD => drop(epoll.hosts.fetch_add(1, Ordering::Relaxed)),
                libc::EPOLL_CTL_DEL => drop(epoll.hosts.fetch_sub(1, Ordering::Relaxed)),
                _ => (),
            }
        }
        return Done(result);
    };
    let inner = match inner {
        Some(inner) => inner,
        None => {
            let new = library::own_call(state, libc::SYS_epoll_create1, &[0]);
            if new < 0 {
                return Done(new);
            }
            epoll.inner.store(new as i32 + 1, Ordering::Release);
            new as u64
        }
    };
    Done(library::program_call(state, libc::SYS_epoll_ctl, [inner, a[1], fd, a[3], 0, 0]))
}

fn epoll_events(state: &State, a: [u64; 6], time: Option<Duration>) -> Outcome {
    /// struct epoll_event is packed on x86-64.
    const EVENT: u64 = 12;
    let Some((epoll, Some(inner))) = counterpart(a[0]) else { return Native };
    if a[2] as i32 <= 0 {
        return error(libc::EINVAL);
    }
    let end = deadline(time);
    let max = a[2] & 0xffff_ffff;
    let mixed = epoll.hosts.load(Ordering::Relaxed) > 0;
    loop {
        let time = if mixed { Some(NOW) } else { remaining(end) };
        let arguments = [inner, a[1], max, address(time.as_ref()), 0, 8];
        let found = library::program_call(state, libc::SYS_epoll_pwait2, arguments);
        if found < 0 || !mixed {
            return Done(found);
        }
        let rest = max - found as u64;
        let found = found
            + match rest {
                0 => 0,
                rest => {
                    let at = a[1] + EVENT * found as u64;
                    host::call(libc::SYS_epoll_wait, &[a[0], at, rest, 0]).max(0)
                }
            };
        if found > 0 || end.is_some_and(|end| Instant::now() >= end) {
            return Done(found);
        }
        let Some(bridge) = bridge(state) else { return error(libc::ENOMEM) };
        let entry = |fd: u64| libc::pollfd { fd: fd as i32, events: libc::POLLIN, revents: 0 };
        let result = bridge.wait(state, vec![entry(a[0])], vec![entry(inner)], remaining(end));
        if result < 0 {
            return Done(result);
        }
    }
}

fn epoll_wait(state: &State, a: [u64; 6]) -> Outcome {
    let mask = if state.number.get() as i64 == libc::SYS_epoll_pwait { a[4] } else { 0 };
    match counterpart(a[0]) {
        Some((_, Some(_))) => masked(mask, || epoll_events(state, a, milliseconds(a[3]))),
        _ => Native,
    }
}

fn epoll_pwait2(state: &State, a: [u64; 6]) -> Outcome {
    match (counterpart(a[0]), duration(a[3], 1)) {
        (Some((_, Some(_))), Ok(time)) => masked(a[4], || epoll_events(state, a, time)),
        (Some((_, Some(_))), Err(error)) => Done(error),
        _ => Native,
    }
}
