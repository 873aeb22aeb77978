//! Calls that move to the library on request (`--library`): those of a process's credentials, and those of
//! communication between processes. Both are the host's otherwise, because other processes and the host's signals know
//! the host's numbers only.

use super::descriptor::installed;
use super::Outcome::{Done, Native};
use super::{error, Call, Outcome, PLAIN, ROUTES};
use crate::state::State;
use crate::{descriptors, host, library};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// credentials(7): the ids of the process, of its user and of its groups.
    pub credentials: bool,
    /// Pipes, eventfds and local sockets.
    pub ipc: bool,
}

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_getpid, plain),
    (libc::SYS_getuid, plain),
    (libc::SYS_geteuid, plain),
    (libc::SYS_getgid, plain),
    (libc::SYS_getegid, plain),
    (libc::SYS_getresuid, plain),
    (libc::SYS_getresgid, plain),
    (libc::SYS_getgroups, plain),
    (libc::SYS_kill, named),
    (libc::SYS_tkill, named),
    (libc::SYS_tgkill, named),
    (libc::SYS_rt_sigqueueinfo, named),
    (libc::SYS_rt_tgsigqueueinfo, named),
    (libc::SYS_pidfd_open, named),
    (libc::SYS_getpgid, named),
    (libc::SYS_setpgid, named),
    (libc::SYS_getsid, named),
    (libc::SYS_sched_setaffinity, named),
    (libc::SYS_sched_getaffinity, named),
    (libc::SYS_sched_setscheduler, named),
    (libc::SYS_sched_getscheduler, named),
    (libc::SYS_sched_setparam, named),
    (libc::SYS_sched_getparam, named),
    (libc::SYS_sched_setattr, named),
    (libc::SYS_sched_getattr, named),
    (libc::SYS_sched_rr_get_interval, named),
    (libc::SYS_process_vm_readv, named),
    (libc::SYS_process_vm_writev, named),
    (libc::SYS_migrate_pages, named),
    (libc::SYS_move_pages, named),
    (libc::SYS_kcmp, named),
    (libc::SYS_get_robust_list, named),
    (libc::SYS_perf_event_open, named),
    (libc::SYS_getpriority, named),
    (libc::SYS_setpriority, named),
    (libc::SYS_ioprio_get, named),
    (libc::SYS_ioprio_set, named),
    (libc::SYS_pipe, pipe),
    (libc::SYS_pipe2, pipe),
    (libc::SYS_eventfd, eventfd),
    (libc::SYS_eventfd2, eventfd),
    (libc::SYS_socketpair, socketpair),
];

const IPC: [i64; 5] =
    [libc::SYS_pipe, libc::SYS_pipe2, libc::SYS_eventfd, libc::SYS_eventfd2, libc::SYS_socketpair];

/// The library's id of the process.
const INIT: u64 = 1;

/// The host's id of the process with the library, if the program knows it by that id.
static PROCESS: AtomicU64 = AtomicU64::new(0);

static LOCAL_SOCKETS: AtomicBool = AtomicBool::new(false);

/// Whether local sockets are the library's.
pub(super) fn local_sockets() -> bool {
    LOCAL_SOCKETS.load(Ordering::Relaxed)
}

/// Sets the routes of calls that do not move to the host, and of others that need no dispatcher to the library.
pub(super) fn route(owned: Owned) {
    LOCAL_SOCKETS.store(owned.ipc, Ordering::Relaxed);
    if owned.credentials {
        PROCESS.store(host::call(libc::SYS_getpid, &[]) as u64, Ordering::Relaxed);
    }
    for &(number, call) in CALLS {
        let moves = if IPC.contains(&number) { owned.ipc } else { owned.credentials };
        let route = &ROUTES[number as usize];
        if !moves {
            route.store(super::HOST, Ordering::Relaxed);
        } else if std::ptr::fn_addr_eq(call, plain as Call) {
            route.store(PLAIN, Ordering::Relaxed);
        }
    }
}

/// A call of the library. Forked processes have the host's ids.
fn plain(state: &State, a: [u64; 6]) -> Outcome {
    if library::present() && ROUTES[state.number.get() as usize].load(Ordering::Relaxed) == PLAIN {
        return Done(super::inner(state, a));
    }
    Native
}

/// The host's id of the process that the program names by `id`. It knows the process with the library by its id there,
/// and so do forked processes; in the host, another one has that id.
pub(super) fn process_id(id: u64) -> u64 {
    match PROCESS.load(Ordering::Relaxed) {
        0 => id,
        process if id as u32 == INIT as u32 => process,
        _ => id,
    }
}

/// linux/ioprio.h.
const IOPRIO_WHO_PROCESS: u64 = 1;

/// A call of the host that names a process.
fn named(state: &State, mut a: [u64; 6]) -> Outcome {
    let number = state.number.get() as i64;
    let names: &[usize] = match number {
        libc::SYS_setpgid | libc::SYS_kcmp => &[0, 1],
        libc::SYS_perf_event_open => &[1],
        libc::SYS_getpriority | libc::SYS_setpriority if a[0] as u32 == libc::PRIO_PROCESS => &[1],
        libc::SYS_ioprio_get | libc::SYS_ioprio_set if a[0] as u32 as u64 == IOPRIO_WHO_PROCESS => {
            &[1]
        }
        libc::SYS_getpriority | libc::SYS_setpriority => &[],
        libc::SYS_ioprio_get | libc::SYS_ioprio_set => &[],
        _ => &[0],
    };
    let before = a;
    for &name in names {
        a[name] = process_id(a[name]);
    }
    if a == before {
        return Native;
    }
    Done(host::call(number, &a))
}

/// Two new descriptors of the library, which `call` makes, for the program's memory at `address`.
fn pair(state: &State, address: u64, flags: u64, call: impl FnOnce(u64) -> i64) -> Outcome {
    let mut inner = [0i32; 2];
    let result = call((&raw mut inner).cast::<i32>() as u64);
    if result != 0 {
        return Done(result);
    }
    let close_on_exec = flags & libc::O_CLOEXEC as u64 != 0;
    let mut numbers = [0i32; 2];
    for (i, fd) in inner.into_iter().enumerate() {
        let result = descriptors::install(fd.into(), close_on_exec, 0);
        numbers[i] = result as i32;
        if result < 0 {
            for &number in &numbers[..i] {
                super::descriptor::close(state, [number as u64, 0, 0, 0, 0, 0]);
            }
            for &fd in &inner[i..] {
                library::own_call(state, libc::SYS_close, &[fd as u64]);
            }
            return Done(result);
        }
    }
    match host::write_value(address, numbers) {
        Ok(()) => Done(0),
        Err(error) => {
            for number in numbers {
                super::descriptor::close(state, [number as u64, 0, 0, 0, 0, 0]);
            }
            Done(error)
        }
    }
}

/// Whether the call of the thread moves now.
fn moves(state: &State) -> bool {
    let route = &ROUTES[state.number.get() as usize];
    library::present() && route.load(Ordering::Relaxed) != super::HOST
}

fn pipe(state: &State, a: [u64; 6]) -> Outcome {
    if !moves(state) {
        return Native;
    }
    let flags = if state.number.get() as i64 == libc::SYS_pipe { 0 } else { a[1] };
    pair(state, a[0], flags, |inner| library::own_call(state, libc::SYS_pipe2, &[inner, flags]))
}

fn socketpair(state: &State, a: [u64; 6]) -> Outcome {
    if !moves(state) || a[0] as i32 != libc::AF_UNIX {
        return Native;
    }
    pair(state, a[3], a[1], |inner| {
        library::own_call(state, libc::SYS_socketpair, &[a[0], a[1], a[2], inner])
    })
}

fn eventfd(state: &State, a: [u64; 6]) -> Outcome {
    if !moves(state) {
        return Native;
    }
    let flags = if state.number.get() as i64 == libc::SYS_eventfd { 0 } else { a[1] };
    if flags & !((libc::EFD_CLOEXEC | libc::EFD_NONBLOCK | libc::EFD_SEMAPHORE) as u64) != 0 {
        return error(libc::EINVAL);
    }
    let fd = library::own_call(state, libc::SYS_eventfd2, &[a[0], flags]);
    let close_on_exec = flags & libc::EFD_CLOEXEC as u64 != 0;
    installed(state, fd, descriptors::install(fd, close_on_exec, 0))
}
