//! Dispositions of signals.
//!
//! The kernel delivers signals to the program, with two differences. It needs a place to which handlers return. And a
//! signal that comes just before a system call must make that call return `-EINTR`: the kernel would run the handler
//! and then wait.

use crate::machine;
use kyozon_libc::seam::waits;
use std::ffi::{c_int, c_long};
use std::io;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The kernel's `struct sigaction` (asm/signal.h).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Flag of the kernel: there is a restorer.
const SA_RESTORER: u64 = 0x0400_0000;
/// Signals are 1 to 64.
const SIGNALS: usize = 65;

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::ucontext_t);

/// The program's handlers of those signals for which the kernel has [`on_signal`].
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

/// Gives up what Rust's runtime has set.
pub fn reset() -> Result<(), String> {
    for signal in [libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: No code relies on the handlers of these signals.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(format!("cannot reset signal {signal}: {}", io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// `rt_sigaction` as the program calls it; the arguments are those of `kyozon_seam.call`.
///
/// # Safety
///
/// `new` and `old` are null, or valid for reading and for writing.
pub unsafe extern "C" fn set_action(
    number: c_long,
    signal: c_long,
    new: *const Action,
    old: *mut Action,
    mask_bytes: c_long,
) -> c_long {
    let Some(own) = usize::try_from(signal).ok().and_then(|signal| HANDLERS.get(signal)) else {
        return -c_long::from(libc::EINVAL);
    };
    let interposed = on_signal as *const () as usize;
    let previous = own.load(SeqCst);
    // SAFETY: By the caller.
    let wanted = unsafe { new.as_ref() }.map(|new| {
        let mut action =
            Action { flags: new.flags | SA_RESTORER, restorer: machine::restorer(), ..*new };
        let restarts = new.flags & libc::SA_RESTART as u64 != 0;
        if !restarts && new.handler != libc::SIG_DFL && new.handler != libc::SIG_IGN {
            own.store(new.handler, SeqCst);
            action.handler = interposed;
        }
        action
    });
    let mut replaced = Action::default();
    let wanted = wanted.as_ref().map_or(null_mut(), |action| &raw const *action as *mut Action);
    let (wanted, found) = (wanted as c_long, &raw mut replaced as c_long);
    // SAFETY: Both actions live until the call returns.
    let result =
        unsafe { machine::kyozon_host_plain_call(number, signal, wanted, found, mask_bytes, 0, 0) };
    if result != 0 {
        own.store(previous, SeqCst);
    } else if !old.is_null() {
        if replaced.handler == interposed {
            replaced.handler = previous;
        }
        // SAFETY: By the caller.
        unsafe { old.write(replaced) };
    }
    result
}

/// The handler of every signal whose handler lacks `SA_RESTART`.
unsafe extern "C" fn on_signal(
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) {
    // SAFETY: The kernel passes the context to every handler, and nothing else refers to it.
    let state = unsafe { &mut *context };
    if machine::call_about_to_start(state).is_some_and(waits) {
        machine::interrupt_call(state);
    }
    if let Some(own) = HANDLERS.get(signal as usize) {
        // SAFETY: The program has set this handler, and the kernel has been told so afterwards.
        unsafe { transmute::<usize, Handler>(own.load(SeqCst))(signal, info, context) };
    }
}
