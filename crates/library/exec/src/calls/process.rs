//! Threads, processes, and what the process's owner must not get from the host: heap, FS base, the program's name.

use super::Outcome::{Done, Leave, Native};
use super::{error, files, owned, Call, Outcome};
use crate::state::State;
use crate::threads::{self, Clone};
use crate::{beside, execve, host, library, process, trap};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_brk, brk),
    (libc::SYS_arch_prctl, arch_prctl),
    (libc::SYS_set_tid_address, set_tid_address),
    (libc::SYS_clone, clone),
    (libc::SYS_clone3, clone3),
    (libc::SYS_fork, fork),
    (libc::SYS_vfork, vfork),
    (libc::SYS_execve, execve),
    (libc::SYS_ptrace, ptrace),
    (libc::SYS_execveat, execveat),
    (libc::SYS_exit, exit),
    (libc::SYS_exit_group, exit_group),
];

/// asm/prctl.h.
const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const ARCH_GET_GS: u64 = 0x1004;

fn brk(state: &State, a: [u64; 6]) -> Outcome {
    Done(state.program.brk(a[0]) as i64)
}

fn arch_prctl(state: &State, a: [u64; 6]) -> Outcome {
    match a[0] {
        ARCH_SET_FS => {
            state.program_fs.set(a[1]);
            Done(0)
        }
        ARCH_GET_FS => {
            Done(host::write_value(a[1], state.program_fs.get()).map_or_else(|e| e, |()| 0))
        }
        // The GS base is ours.
        ARCH_SET_GS | ARCH_GET_GS => error(libc::EPERM),
        _ => Native,
    }
}

fn set_tid_address(state: &State, a: [u64; 6]) -> Outcome {
    state.clear_tid.set(a[0]);
    Done(i64::from(state.tid.get()))
}

fn start(state: &State, clone: Clone) -> Outcome {
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    if clone.has(namespaces) {
        return error(libc::EPERM);
    }
    if clone.has(libc::CLONE_THREAD) {
        return Done(threads::spawn(state, clone));
    }
    match process::fork(state, clone) {
        // The child's registers are set.
        0 => Done(0),
        result => Done(result),
    }
}

fn clone(state: &State, a: [u64; 6]) -> Outcome {
    const SIGNAL: u64 = 0xff;
    let clone = Clone {
        flags: a[0] & !SIGNAL,
        exit_signal: a[0] & SIGNAL,
        stack: a[1],
        parent_tid: a[2],
        child_tid: a[3],
        tls: a[4],
    };
    start(state, clone)
}

/// The first members of struct clone_args, linux/sched.h.
#[repr(C)]
#[derive(std::clone::Clone, Copy)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_bytes: u64,
    tls: u64,
}

fn clone3(state: &State, a: [u64; 6]) -> Outcome {
    let arguments: CloneArguments = match host::read_value(a[0]) {
        Ok(arguments) if a[1] >= size_of::<CloneArguments>() as u64 => arguments,
        Ok(_) => return error(libc::EINVAL),
        Err(error) => return Done(error),
    };
    if arguments.flags & libc::CLONE_PIDFD as u64 != 0 {
        return error(libc::ENOSYS);
    }
    let stack = if arguments.stack == 0 { 0 } else { arguments.stack + arguments.stack_bytes };
    let clone = Clone {
        flags: arguments.flags,
        exit_signal: arguments.exit_signal,
        stack,
        parent_tid: arguments.parent_tid,
        child_tid: arguments.child_tid,
        tls: arguments.tls,
    };
    start(state, clone)
}

fn fork(state: &State, _: [u64; 6]) -> Outcome {
    start(state, Clone { exit_signal: libc::SIGCHLD as u64, ..Clone::default() })
}

fn vfork(state: &State, _: [u64; 6]) -> Outcome {
    let flags = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
    start(state, Clone { flags, exit_signal: libc::SIGCHLD as u64, ..Clone::default() })
}

fn execve(state: &State, a: [u64; 6]) -> Outcome {
    execute(state, u64::from(files::CWD), a[0], a[1], a[2])
}

fn execveat(state: &State, a: [u64; 6]) -> Outcome {
    execute(state, a[0], a[1], a[2], a[3])
}

fn execute(state: &State, folder: u64, path: u64, argv: u64, envp: u64) -> Outcome {
    match files::host_path(state, folder, path) {
        Ok(path) => match execve::execute(state, &path, argv, envp) {
            Some(result) => Done(result),
            // The host would execute our command.
            None if *path == *state.program.path => {
                Done(host::call(libc::SYS_execve, &[path.as_ptr() as u64, argv, envp]))
            }
            None => Native,
        },
        Err(error) => Done(error),
    }
}

/// A child that will be traced becomes the host's alone: a debugger starts its programs so. SIGSYS would stop it while
/// its parent, in vfork(2), waits for its execve(2).
fn ptrace(_: &State, mut a: [u64; 6]) -> Outcome {
    if a[0] == u64::from(libc::PTRACE_TRACEME) {
        if library::present() {
            return error(libc::EPERM);
        }
        trap::trace();
    } else if owned::process_id(a[1]) != a[1] {
        a[1] = owned::process_id(a[1]);
        return Done(host::call(libc::SYS_ptrace, &a));
    }
    Native
}

fn exit(_: &State, _: [u64; 6]) -> Outcome {
    Leave
}

fn exit_group(state: &State, a: [u64; 6]) -> Outcome {
    if beside::has(state) {
        return Leave;
    }
    process::exit(a[0])
}
