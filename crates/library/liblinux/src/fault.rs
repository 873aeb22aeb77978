//! Bad addresses. The kernel reads and writes the memory that a system call names. If that faults, the kernel says
//! where the code at the faulting instruction continues, and the call returns EFAULT.
//!
//! The handlers of SIGSEGV and SIGBUS are the process's. They are installed with the first kernel; a fault that is no
//! kernel's goes to the handler that was there before.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Maximum number of kernels in one process.
pub const MAX_KERNELS: usize = 64;

/// Says where a fault at an instruction continues, or 0.
pub type Fixup = extern "sysv64" fn(u64) -> u64;

/// A kernel's code and its function. A handler reads it at any time: `fixup` is 0 while the range changes.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    fixup: AtomicUsize,
}

static SLOTS: [Slot; MAX_KERNELS] = [const {
    Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), fixup: AtomicUsize::new(0) }
}; MAX_KERNELS];
/// Marks a slot that is being filled.
const CLAIMED: usize = 1;

/// The actions that were there before, of SIGSEGV and SIGBUS.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// A kernel's place among those whose faults are handled.
pub struct Registration(usize);

impl Registration {
    /// Handles faults of a kernel whose image is at `range`.
    pub fn new(range: Range<usize>, fixup: Fixup) -> io::Result<Self> {
        install()?;
        let free = |slot: &Slot| {
            slot.fixup.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let Some(index) = SLOTS.iter().position(free) else {
            return Err(io::Error::other(format!(
                "this process has {MAX_KERNELS} kernels already: halt one"
            )));
        };
        SLOTS[index].start.store(range.start, Ordering::Relaxed);
        SLOTS[index].end.store(range.end, Ordering::Relaxed);
        SLOTS[index].fixup.store(fixup as usize, Ordering::Release);
        Ok(Self(index))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        SLOTS[self.0].end.store(0, Ordering::Relaxed);
        SLOTS[self.0].fixup.store(0, Ordering::Release);
    }
}

/// Where a fault at `ip` continues.
fn fixup(ip: usize) -> Option<u64> {
    let found = SLOTS.iter().find_map(|slot| {
        let fixup = slot.fixup.load(Ordering::Acquire);
        let range = slot.start.load(Ordering::Relaxed)..slot.end.load(Ordering::Relaxed);
        (fixup > CLAIMED && range.contains(&ip)).then_some(fixup)
    })?;
    // SAFETY: the word was stored from a Fixup, and its kernel lives: the fault is in its code.
    let fixup = unsafe { std::mem::transmute::<usize, Fixup>(found) };
    Some(fixup(ip as u64)).filter(|&ip| ip != 0)
}

fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let install = || {
        let mut before = [MaybeUninit::<libc::sigaction>::uninit(); 2];
        for (signal, before) in [libc::SIGSEGV, libc::SIGBUS].into_iter().zip(&mut before) {
            // SAFETY: only reads the present action.
            if unsafe { libc::sigaction(signal, ptr::null(), before.as_mut_ptr()) } != 0 {
                return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
            }
        }
        // SAFETY: both calls succeeded.
        BEFORE.get_or_init(|| before.map(|action| unsafe { action.assume_init() }));
        // SAFETY: a structure of integers; all zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: the handler calls only what may be called from one.
            if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
                return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
            }
        }
        Ok(())
    };
    INSTALLED.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let ucontext = context.cast::<libc::ucontext_t>();
    // SAFETY: the system passes the interrupted thread's context.
    let ip = unsafe { &mut (*ucontext).uc_mcontext.gregs[libc::REG_RIP as usize] };
    if let Some(next) = fixup(*ip as usize) {
        *ip = next as i64;
        return;
    }
    let before =
        &BEFORE.get().expect("set before the handler")[usize::from(signal == libc::SIGBUS)];
    match before.sa_sigaction {
        // The instruction runs again, and the signal does what it would have done.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores an action that was valid; sigaction may be called in a handler.
            unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: with SA_SIGINFO the action is a function of this type.
            unsafe { std::mem::transmute::<usize, Handler>(handler)(signal, info, context) }
        }
        handler => {
            // SAFETY: without SA_SIGINFO the action is a function of this type.
            unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal) }
        }
    }
}
