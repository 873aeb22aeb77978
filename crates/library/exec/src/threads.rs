//! Threads of programs. Each is a thread of our runtime, which has TLS and a stack of its own, so that the dispatcher
//! is ordinary code. It enters the program with the registers that clone(2) asks for.

use crate::state::{Registers, State};
use crate::{direction, gate, host, trap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;

/// Threads that are in the program.
static LIVE: AtomicU32 = AtomicU32::new(1);

/// What clone(2) and clone3(2) ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clone {
    /// `CLONE_` flags, without the signal.
    pub flags: u64,
    /// The signal that the parent of a process gets.
    pub exit_signal: u64,
    /// The new stack, or 0 to continue on a copy of the old one.
    pub stack: u64,
    /// Where the parent wants the id.
    pub parent_tid: u64,
    /// Where the child wants the id.
    pub child_tid: u64,
    /// The new FS base.
    pub tls: u64,
}

impl Clone {
    /// Whether `flag` is set.
    pub fn has(&self, flag: i32) -> bool {
        self.flags & flag as u32 as u64 != 0
    }

    /// The child's registers and FS base.
    pub fn child(&self, state: &State) -> (Registers, u64) {
        let mut registers = state.registers.get();
        registers.rax = 0;
        if self.stack != 0 {
            registers.rsp = self.stack;
        }
        let fs = if self.has(libc::CLONE_SETTLS) { self.tls } else { state.program_fs.get() };
        (registers, fs)
    }
}

/// A record on its way to its thread.
struct Parcel(Box<State>);
// SAFETY: the sender does not use the record any more; it has no task yet.
unsafe impl Send for Parcel {}

/// A new thread in the program of `state`. Returns its id.
pub fn spawn(state: &State, clone: Clone) -> i64 {
    let (registers, fs) = clone.child(state);
    let child = State::new(state.program.clone(), registers, fs);
    // SAFETY: the parent is in the dispatcher, the child is not yet anywhere.
    unsafe { *child.vectors.get() = *state.vectors.get() };
    let parcel = Parcel(child);
    let (send, receive) = sync_channel(1);
    let mask = host::set_mask(!host::NEVER_BLOCKED);
    LIVE.fetch_add(1, Ordering::Relaxed);
    // It inherits the name of this one.
    let thread = std::thread::Builder::new().spawn(move || {
        let parcel = parcel;
        let state = parcel.0;
        let tid = host::call(libc::SYS_gettid, &[]);
        if clone.has(libc::CLONE_PARENT_SETTID) {
            let _ = host::write_value(clone.parent_tid, tid as i32);
        }
        if clone.has(libc::CLONE_CHILD_SETTID) {
            let _ = host::write_value(clone.child_tid, tid as i32);
        }
        if clone.has(libc::CLONE_CHILD_CLEARTID) {
            state.clear_tid.set(clone.child_tid);
        }
        let armed = prepare(&state);
        let _ = send.send(if armed { tid } else { -i64::from(libc::EAGAIN) });
        if armed {
            // SAFETY: the registers are those that the program asked for.
            unsafe { gate::enter(&state, mask) };
        }
        left(&state);
    });
    host::set_mask(mask);
    match thread {
        Ok(_) => receive.recv().unwrap_or(-i64::from(libc::EAGAIN)),
        Err(_) => {
            LIVE.fetch_sub(1, Ordering::Relaxed);
            -i64::from(libc::EAGAIN)
        }
    }
}

/// Makes the calling thread a program's: its system calls will be dispatched, and it has no signal stack of ours.
pub fn prepare(state: &State) -> bool {
    state.tid.set(host::call(libc::SYS_gettid, &[]) as i32);
    let none =
        libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    host::call(libc::SYS_sigaltstack, &[&raw const none as u64, 0]);
    trap::arm(state).is_ok()
}

/// The calling thread has left the program.
fn left(state: &State) {
    trap::disarm();
    let address = state.clear_tid.get();
    if address != 0 && host::write_value(address, 0u32).is_ok() {
        // As the kernel does at a thread's end.
        host::call(libc::SYS_futex, &[address, libc::FUTEX_WAKE as u64, 1, 0, 0, 0]);
    }
    if LIVE.fetch_sub(1, Ordering::AcqRel) == 1 {
        let status = state.registers.get().rdi;
        crate::process::exit(status);
    }
}

/// Runs the program's first thread, which is the process's.
pub fn run_first(state: &State, mask: u64) -> ! {
    direction::set_first(state);
    // SAFETY: the loader made the registers.
    unsafe { gate::enter(state, mask) };
    left(state);
    loop {
        host::call(libc::SYS_pause, &[]);
    }
}

/// Runs `state` on a new thread, beside the first program.
pub fn run_beside(state: Box<State>, mask: u64) -> std::io::Result<()> {
    crate::beside::set(&state);
    let parcel = Parcel(state);
    LIVE.fetch_add(1, Ordering::Relaxed);
    let run = move || {
        let parcel = parcel;
        let state = parcel.0;
        if prepare(&state) {
            // SAFETY: the loader made the registers.
            unsafe { gate::enter(&state, mask) };
        }
        left(&state);
    };
    std::thread::Builder::new().name("program".into()).spawn(run).map(drop)
}

/// A forked process has one thread.
pub fn forked() {
    LIVE.store(1, Ordering::Relaxed);
}
