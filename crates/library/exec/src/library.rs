//! The library's kernel: one for the process. Program threads get a task with their first call.

use crate::state::State;
use crate::{credentials, host, interrupt};
use liblinux::process::Around;
use liblinux::{Error, Instance, Thread};
use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

static INSTANCE: OnceLock<Instance> = OnceLock::new();
/// Set in a forked process: the library's other threads are not in it.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Makes `instance` the process's.
pub fn set(instance: Instance) {
    assert!(INSTANCE.set(instance).is_ok(), "one kernel for the process");
}

/// Whether the library serves this process: it does, unless the process was forked.
pub fn present() -> bool {
    !LEFT.load(Ordering::Relaxed)
}

/// This process was forked: the library stays with its parent.
pub fn leave() {
    LEFT.store(true, Ordering::Relaxed);
}

/// A task for the calling thread, which is no program's.
pub fn attach() -> Result<Thread, Error> {
    INSTANCE.get().expect("set before any thread starts").attach()
}

/// A system call of the library on a task of its own, for set-up.
pub fn call(number: i64, arguments: &[u64]) -> i64 {
    let mut six = [0; 6];
    six[..arguments.len()].copy_from_slice(arguments);
    match attach() {
        // SAFETY: callers pass addresses of their own structures.
        Ok(thread) => unsafe { thread.syscall(number, six) },
        Err(_) => -i64::from(libc::EAGAIN),
    }
}

/// Around calls of the kernel to its host: ordinary code needs our FS base.
pub const AROUND: Around = Around { enter, leave: leave_host };

/// No FS base.
const UNCHANGED: u64 = u64::MAX;

fn enter() -> u64 {
    let Some(state) = State::current() else { return UNCHANGED };
    let (before, ours): (u64, u64);
    // SAFETY: reads a register; the base of our code belongs to this thread.
    unsafe {
        asm!("rdfsbase {}", out(reg) before, options(nomem, nostack, preserves_flags));
        ours = state.host_fs.get();
        if before == ours {
            return UNCHANGED;
        }
        asm!("wrfsbase {}", in(reg) ours, options(nostack, preserves_flags));
    }
    before
}

fn leave_host(before: u64) {
    if before != UNCHANGED {
        // SAFETY: the base from before.
        unsafe { asm!("wrfsbase {}", in(reg) before, options(nostack, preserves_flags)) };
    }
}

fn task(state: &State) -> Option<&Thread> {
    if !present() {
        return None;
    }
    if let Some(task) = state.task.get() {
        return Some(task);
    }
    let task = attach().ok()?;
    // SAFETY: gettid takes no address.
    let tid = unsafe { task.syscall(libc::SYS_gettid, [0; 6]) };
    credentials::adopt(&|number, a| short_call(&task, number, a)).ok()?;
    state.library_tid.store(tid as u32, Ordering::Relaxed);
    Some(state.task.get_or_init(|| task))
}

fn short_call(task: &Thread, number: i64, a: [u64; 3]) -> i64 {
    // SAFETY: callers pass addresses of their own structures.
    unsafe { task.syscall(number, [a[0], a[1], a[2], 0, 0, 0]) }
}

/// The credentials of the calling thread have changed in the host.
pub fn follow_credentials(state: &State) -> Result<(), i64> {
    match state.task.get() {
        Some(task) if present() => credentials::follow(&|number, a| short_call(task, number, a)),
        // A task that is made later adopts them.
        _ => Ok(()),
    }
}

/// A system call of the library for the program's thread. A signal for the program ends it: with
/// `-EINTR`, or with [`NOT_MADE`](host::NOT_MADE).
pub fn program_call(state: &State, number: i64, arguments: [u64; 6]) -> i64 {
    let Some(task) = task(state) else { return -i64::from(libc::EBADF) };
    task_call(state, task, number, arguments)
}

/// The same for a thread that may have the program's FS base: nothing if it needs a task first.
#[inline]
pub fn direct_call(state: &State, number: i64, arguments: [u64; 6]) -> Option<i64> {
    if !present() {
        return None;
    }
    Some(task_call(state, state.task.get()?, number, arguments))
}

/// No TLS is used here: calls of the kernel to its host are surrounded by [`enter`] and [`leave_host`].
#[inline]
fn task_call(state: &State, task: &Thread, number: i64, arguments: [u64; 6]) -> i64 {
    state.library.store(1, Ordering::Release);
    let result = if state.pending.load(Ordering::Acquire) == 1 {
        host::NOT_MADE
    } else {
        // SAFETY: the program's addresses; bad ones give EFAULT.
        unsafe { task.syscall(number, arguments) }
    };
    state.library.store(0, Ordering::Release);
    if state.pending.load(Ordering::Acquire) == 1 {
        interrupt::settle(state);
        // SAFETY: getppid takes no address. It clears the library's signal.
        unsafe { task.syscall(libc::SYS_getppid, [0; 6]) };
    }
    result
}

/// A system call of the library on the program thread's task that is ours: signals do not end it.
pub fn own_call(state: &State, number: i64, arguments: &[u64]) -> i64 {
    let mut six = [0; 6];
    six[..arguments.len()].copy_from_slice(arguments);
    match task(state) {
        // SAFETY: callers pass addresses of their own structures, or the program's.
        Some(task) => unsafe { task.syscall(number, six) },
        None => -i64::from(libc::EBADF),
    }
}
