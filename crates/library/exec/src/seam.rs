//! The seam: programs of Kyozon's C library (`crates/library/libc`) call the dispatcher by a function call. Their
//! auxiliary vector leads them to it; other programs ignore the entry.
//!
//! The way is shorter than that of the gate: a function of C may change the vector registers, so nobody saves them, and
//! neither SIGSYS nor a rewritten instruction is involved. What the host executes, it executes from `native`, on the
//! caller's stack.
//!
//! Signals follow the rules of `kyozon/seam.h`. A signal whose handler lacks `SA_RESTART` must end a wait that is
//! about to begin, from the call's first instruction on: [`signal`] does so before the dispatcher, and [`interrupted`]
//! when the signal was deferred in it.
//!
//! Invariant: between `call` and `native`, the program's stack begins with the caller's return address while the
//! selector is `PROGRAM`.

use crate::calls::{Call, Outcome};
use crate::host;
use crate::state::State;
use kyozon_libc::seam::{waits, Seam};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a call that Linux does not have: `unmap_exit` of the seam.
pub const UNMAP_EXIT: i64 = 511;

/// The handler of [`UNMAP_EXIT`].
pub(crate) const CALLS: &[(i64, Call)] = &[(UNMAP_EXIT, unmap_exit)];

/// Signals whose handlers have `SA_RESTART`, a bit for each. Signal handlers read it.
static RESTART: AtomicU64 = AtomicU64::new(0);

// In seam.s.
kyozon_libc::seam!(FUNCTIONS: kyozon_exec_seam_call, kyozon_exec_seam_start_thread, kyozon_exec_seam_unmap_exit);

static SEAM: Seam = FUNCTIONS;

extern "C" {
    fn kyozon_exec_seam_again();
    fn kyozon_exec_seam_dispatched();
    fn kyozon_exec_seam_leave_start();
    fn kyozon_exec_seam_leave_end();
    fn kyozon_exec_seam_native();
    fn kyozon_exec_seam_return();
    fn kyozon_exec_seam_interrupted();
    fn kyozon_exec_seam_unmapped();
}

fn at(label: unsafe extern "C" fn()) -> u64 {
    label as *const () as u64
}

/// The structure for the auxiliary vector.
pub fn address() -> u64 {
    &raw const SEAM as u64
}

/// Notes whether the handler of `signal` has `SA_RESTART`.
pub fn set_restart(signal: u64, restart: bool) {
    let bit = host::bit(signal as i32);
    if restart {
        RESTART.fetch_or(bit, Ordering::Release);
    } else {
        RESTART.fetch_and(!bit, Ordering::Release);
    }
}

/// A signal is about to be delivered to a thread that leaves the dispatcher. Returns whether its call came through the
/// seam. The call starts again if it was interrupted and `restart` and `restarts` agree, or if it has not been made and
/// the signal does not end it.
pub fn interrupted(state: &State, restart: bool, restarts: impl Fn() -> bool) -> bool {
    let registers = state.registers.get();
    let number = state.number.get();
    let made = registers.rip == at(kyozon_exec_seam_return);
    if !made && registers.rip != at(kyozon_exec_seam_native) {
        return false;
    }
    let again = if made {
        registers.rax as i64 == -i64::from(libc::EINTR) && restart && restarts()
    } else {
        restart || !waits(number as i64)
    };
    state.change(|registers| {
        if again {
            registers.rax = number;
            registers.rip = at(kyozon_exec_seam_again);
        } else if !made {
            registers.rax = -i64::from(libc::EINTR) as u64;
            registers.rip = at(kyozon_exec_seam_return);
        }
    });
    true
}

/// A signal for the program has come between the first and the last instruction of the seam. The FS base is the
/// program's: TLS must not be used.
///
/// # Safety
///
/// The context is that of a signal handler.
pub unsafe extern "C" fn signal(signal: i32, _: *const c_void, context: *mut libc::ucontext_t) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    if RESTART.load(Ordering::Acquire) & host::bit(signal) != 0 {
        return;
    }
    let register = |index: c_int| registers[index as usize] as u64;
    let rip = register(libc::REG_RIP);
    let call = kyozon_exec_seam_call as *const () as u64;
    let native = at(kyozon_exec_seam_native);
    let about_to_start = (call..=at(kyozon_exec_seam_dispatched)).contains(&rip)
        || rip == native
        || (rip == at(kyozon_exec_seam_leave_end) && register(libc::REG_RCX) == native);
    // The first instruction copies the number.
    let number = register(if rip == call { libc::REG_RDI } else { libc::REG_RAX });
    if about_to_start && waits(number as i64) {
        registers[libc::REG_RIP as usize] = at(kyozon_exec_seam_interrupted) as i64;
    }
}

/// Where our code continues after a signal that was deferred at `rip`.
pub fn after_deferral(rip: u64) -> u64 {
    let start = at(kyozon_exec_seam_leave_start);
    if (start..at(kyozon_exec_seam_leave_end)).contains(&rip) {
        start
    } else {
        rip
    }
}

/// Unmaps the memory with the thread's stack, which is not in use here, and ends the thread.
fn unmap_exit(state: &State, a: [u64; 6]) -> Outcome {
    if state.registers.get().rip != at(kyozon_exec_seam_unmapped) {
        return Outcome::Done(-i64::from(libc::ENOSYS));
    }
    host::call(libc::SYS_munmap, &[a[0], a[1]]);
    // The status, if it is the last thread.
    state.change(|registers| registers.rdi = 0);
    Outcome::Leave
}
