//! Syscall user dispatch: the host's kernel raises SIGSYS for a system call of the program. The handler lets the thread
//! continue at the gate, as if the program had jumped there.
//!
//! See Documentation/admin-guide/syscall-user-dispatch.rst of Linux.

use crate::state::State;
use crate::{gate, host};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// prctl(2), linux/prctl.h.
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
const PR_SYS_DISPATCH_OFF: u64 = 0;
const PR_SYS_DISPATCH_ON: u64 = 1;
/// siginfo_t's si_code for syscall user dispatch.
const SYS_USER_DISPATCH: i32 = 2;

/// Dispatches the calling thread's system calls while the selector of `state` is `PROGRAM`. Neither a new thread nor a
/// forked process inherits this.
pub fn arm(state: &State) -> io::Result<()> {
    let range = gate::range();
    let result = host::call(
        libc::SYS_prctl,
        &[
            PR_SET_SYSCALL_USER_DISPATCH,
            PR_SYS_DISPATCH_ON,
            range.start,
            range.end - range.start,
            state.selector.as_ptr() as u64,
        ],
    );
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-result as i32))
    }
}

/// This process is traced: SIGSYS would stop it for its tracer, which expects signals of the program only.
static TRACED: AtomicBool = AtomicBool::new(false);

/// The calling process, which has one thread and no library, lets its parent trace it.
pub fn trace() {
    TRACED.store(true, Ordering::Relaxed);
    disarm();
}

/// Whether system calls are no longer dispatched, for the sake of a tracer.
pub fn traced() -> bool {
    TRACED.load(Ordering::Relaxed)
}

/// Ends it, before the selector's memory is freed: the host kills a thread whose selector has another value.
pub fn disarm() {
    host::call(libc::SYS_prctl, &[PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0]);
}

/// The handler of SIGSYS. FS base, stack and TLS are the program's.
///
/// # Safety
///
/// The kernel calls it.
pub unsafe extern "C" fn reflect(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a siginfo_t.
    let code = unsafe { (*info).si_code };
    let (Some(state), SYS_USER_DISPATCH) = (State::current(), code) else {
        // SAFETY: this is the handler.
        unsafe { crate::signals::sent(signal, info, context) };
        return;
    };
    // SAFETY: the kernel passes the interrupted thread's context.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = &mut context.uc_mcontext.gregs;
    let rip = registers[libc::REG_RIP as usize];
    if rip as u64 == gate::bounced() {
        resume(state, context);
    } else if registers[libc::REG_RAX as usize] == libc::SYS_rt_sigreturn {
        registers[libc::REG_RIP as usize] = gate::sigreturn() as i64;
    } else {
        registers[libc::REG_RCX as usize] = rip;
        registers[libc::REG_RIP as usize] = gate::trapped() as i64;
    }
}

/// Lets the thread continue in the program with the mask from before a deferred signal, which then arrives.
fn resume(state: &State, context: &mut libc::ucontext_t) {
    let from = state.registers.get();
    let registers = &mut context.uc_mcontext.gregs;
    let preserved =
        [libc::REG_RBX, libc::REG_RBP, libc::REG_R12, libc::REG_R13, libc::REG_R14, libc::REG_R15];
    for (register, value) in preserved.into_iter().zip(from.preserved) {
        registers[register as usize] = value as i64;
    }
    for (register, value) in [
        (libc::REG_RAX, from.rax),
        (libc::REG_RDI, from.rdi),
        (libc::REG_RSI, from.rsi),
        (libc::REG_RDX, from.rdx),
        (libc::REG_R10, from.r10),
        (libc::REG_R8, from.r8),
        (libc::REG_R9, from.r9),
        (libc::REG_RSP, from.rsp),
        (libc::REG_RIP, from.rip),
    ] {
        registers[register as usize] = value as i64;
    }
    // SAFETY: only this thread reads and writes the member, and a second signal cannot be deferred before this returns.
    let (signal, mask) = unsafe { ((*state.deferred.get()).signal, (*state.deferred.get()).mask) };
    // The handler returns to the mask from before the call: so it must be the first, and below it no other.
    let mask = match state.remask.load(Ordering::Relaxed) {
        1 => !(host::bit(signal) | host::NEVER_BLOCKED),
        _ => mask,
    };
    // SAFETY: the kernel's mask has 64 bits, at the start of the field.
    unsafe { (&raw mut context.uc_sigmask).cast::<u64>().write(mask) };
    state.deferring.store(0, Ordering::Release);
}
