//! Signals: see [`crate::signals`].

use super::Outcome::{Done, Native};
use super::{error, Call, Outcome};
use crate::state::State;
use crate::{host, signals};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_rt_sigaction, rt_sigaction),
    (libc::SYS_rt_sigprocmask, rt_sigprocmask),
    (libc::SYS_sigaltstack, sigaltstack),
];

/// linux/signal.h: the stack is not used again before the handler returns. A handler of ours that interrupts the
/// dispatcher must not overwrite the frame of the program's handler that made the call.
const SS_AUTODISARM: i32 = i32::MIN;

fn rt_sigaction(_: &State, a: [u64; 6]) -> Outcome {
    Done(signals::sigaction(a[0], a[1], a[2], a[3]).unwrap_or_else(|error| error))
}

/// Without the signals that must not be blocked.
fn rt_sigprocmask(_: &State, a: [u64; 6]) -> Outcome {
    if a[1] == 0 || a[3] != 8 || a[0] as i32 == libc::SIG_UNBLOCK {
        return Native;
    }
    let mask: u64 = match host::read_value(a[1]) {
        Ok(mask) => mask,
        Err(error) => return Done(error),
    };
    if mask & host::NEVER_BLOCKED == 0 {
        return Native;
    }
    let mask = mask & !host::NEVER_BLOCKED;
    // If a signal is pending, the mask is that of the deferral: the call is not made, and starts again.
    Done(host::wait(libc::SYS_rt_sigprocmask, &[a[0], &raw const mask as u64, a[2], 8]))
}

fn sigaltstack(state: &State, a: [u64; 6]) -> Outcome {
    let mut now = state.alternate.get();
    let start = now.ss_sp as u64;
    let stack = state.registers.get().rsp;
    let inside = now.ss_flags & libc::SS_DISABLE == 0
        && (start..=start + now.ss_size as u64).contains(&stack);
    if inside {
        now.ss_flags |= libc::SS_ONSTACK;
    }
    if a[0] != 0 {
        if inside {
            return error(libc::EPERM);
        }
        let new: libc::stack_t = match host::read_value(a[0]) {
            Ok(new) => new,
            Err(error) => return Done(error),
        };
        let mut hosts = new;
        if hosts.ss_flags & libc::SS_DISABLE == 0 {
            hosts.ss_flags |= SS_AUTODISARM;
        }
        let result = host::call(libc::SYS_sigaltstack, &[&raw const hosts as u64, 0]);
        if result != 0 {
            return Done(result);
        }
        state.alternate.set(new);
    }
    if a[1] != 0 {
        if let Err(error) = host::write_value(a[1], now) {
            return Done(error);
        }
    }
    Done(0)
}

/// Sends the signal that comes with an error, as the host does. `a` are the call's arguments.
pub(super) fn failed(state: &State, a: [u64; 6], error: i64) {
    let signal = match -error as i32 {
        libc::EPIPE if breaks(state, a) => libc::SIGPIPE,
        libc::EFBIG if super::limits::exceeded(state) => libc::SIGXFSZ,
        _ => return,
    };
    let pid = host::call(libc::SYS_getpid, &[]) as u64;
    host::call(libc::SYS_tgkill, &[pid, state.tid.get() as u64, signal as u64]);
}

/// Whether EPIPE means that a connection is broken, and the program wants to be killed for it.
fn breaks(state: &State, a: [u64; 6]) -> bool {
    let flags = match state.number.get() as i64 {
        libc::SYS_write | libc::SYS_writev | libc::SYS_sendfile | libc::SYS_splice => 0,
        libc::SYS_sendto | libc::SYS_sendmmsg => a[3],
        libc::SYS_sendmsg => a[2],
        _ => return false,
    };
    flags & libc::MSG_NOSIGNAL as u64 == 0
}
