//! Faults of programs, as signals.

use std::cell::{Cell, UnsafeCell};
use std::io;
use std::ptr::{addr_of_mut, null, null_mut, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::Duration;

use crate::enter::{leave, Run};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned this from its entry.
    Returned(u64),
    /// The access at this offset of the text found no memory in the region.
    Fault(u32),
    /// A vector operand at this offset is not aligned.
    Alignment(u32),
    /// A division at this offset has no result.
    Division(u32),
    /// It executed ud2 at this offset.
    Trap(u32),
    /// The time was over.
    TimeOut,
    /// A function of the host ended it.
    Left,
}

/// What the handler saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signal {
    pub number: i32,
    pub code: i32,
    pub address: u64,
    pub instruction: u64,
}

/// The run that is under way, and the text it may be interrupted in. One thread at a time runs a program.
pub(crate) static RUN: AtomicPtr<Run> = AtomicPtr::new(null_mut());
/// The thread that runs it.
static THREAD: AtomicI32 = AtomicI32::new(0);
static TEXT: AtomicUsize = AtomicUsize::new(0);
static TEXT_END: AtomicUsize = AtomicUsize::new(0);

struct Seen(UnsafeCell<Signal>);
// SAFETY: written by the handler on the thread that runs a program, read by that thread after the run.
unsafe impl Sync for Seen {}
static SEEN: Seen =
    Seen(UnsafeCell::new(Signal { number: 0, code: 0, address: 0, instruction: 0 }));

/// The signals that a program can cause, and the one that ends its time.
const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGALRM];

/// Installs the handler, once in a process, and a stack for it, once in each thread: the program's may be the reason.
pub(crate) fn install() -> io::Result<()> {
    /// None, or the error's number.
    static HANDLERS: OnceLock<Option<i32>> = OnceLock::new();
    thread_local!(static READY: Cell<bool> = const { Cell::new(false) });
    let failed = HANDLERS
        .get_or_init(|| install_handlers().err().map(|error| error.raw_os_error().unwrap_or(0)));
    if let Some(number) = failed {
        return Err(io::Error::from_raw_os_error(*number));
    }
    if READY.get() {
        return Ok(());
    }
    let memory: &'static mut [u8] = Box::leak(vec![0; 1 << 16].into_boxed_slice());
    let stack =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    // SAFETY: the memory is never freed.
    if unsafe { libc::sigaltstack(&stack, null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    READY.set(true);
    Ok(())
}

fn install_handlers() -> io::Result<()> {
    for signal in SIGNALS {
        // SAFETY: all zeros is a valid sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler is async-signal-safe: it uses atomics and the signal frame.
        if unsafe { libc::sigaction(signal, &action, null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether the run is to end when the function of the host returns.
static DUE: AtomicBool = AtomicBool::new(false);

/// Whether the time was over while a function of the host runs: it should return.
pub fn is_due() -> bool {
    DUE.load(Ordering::Relaxed)
}

/// Announces a run in this text. The signal mask is as it is outside.
pub(crate) fn begin(run: *mut Run, text: *const u8, bytes: usize) {
    TEXT.store(text as usize, Ordering::Relaxed);
    TEXT_END.store(text as usize + bytes, Ordering::Relaxed);
    // SAFETY: no conditions.
    THREAD.store(unsafe { libc::gettid() }, Ordering::Relaxed);
    DUE.store(false, Ordering::Relaxed);
    RUN.store(run, Ordering::Release);
}

/// The run is over: what the handler saw, if it ended the run.
pub(crate) fn end() -> Signal {
    RUN.store(null_mut(), Ordering::Release);
    // SAFETY: the handler ran on this thread, and no program runs now.
    unsafe { *SEEN.0.get() }
}

extern "C" fn handler(number: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let run = RUN.load(Ordering::Acquire);
    // SAFETY: the kernel passes a valid frame.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let instruction = registers[libc::REG_RIP as usize] as u64;
    let text = TEXT.load(Ordering::Relaxed) as u64..TEXT_END.load(Ordering::Relaxed) as u64;
    if run.is_null() || !text.contains(&instruction) {
        if number == libc::SIGALRM {
            // The timer interrupts any thread. A function of the host is the last one of the run.
            let thread = THREAD.load(Ordering::Relaxed);
            // SAFETY: the calls may be made in a signal handler.
            match unsafe { libc::gettid() } == thread {
                true => {
                    DUE.store(true, Ordering::Relaxed);
                    // In case it is just about to wait.
                    stop();
                }
                // SAFETY: as above.
                false if !run.is_null() => unsafe {
                    libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGALRM);
                },
                false => {}
            }
            return;
        }
        // Not a program's: as without a handler, when the instruction is repeated.
        // SAFETY: the default action is valid.
        unsafe { libc::signal(number, libc::SIG_DFL) };
        return;
    }
    // SAFETY: only this thread, in this handler, writes it while a program runs; info is the kernel's.
    unsafe {
        *SEEN.0.get() = Signal {
            number,
            code: (*info).si_code,
            address: (*info).si_addr() as u64,
            instruction,
        };
    }
    registers[libc::REG_RIP as usize] = leave as *const () as i64;
    registers[libc::REG_RDI as usize] = run as i64;
}

/// Ends the run that is under way, if there is one, as if its time were over: in a function of the host, when that
/// returns. It may be called in a signal handler.
pub fn stop() {
    if !RUN.load(Ordering::Acquire).is_null() {
        set_timer(1000);
    }
}

/// Calls `run`, which executes a program outside of this process's text, and makes [`is_due`] true after `limit`, if
/// that is not zero. From then on a signal interrupts this thread again and again, so that it waits for nothing.
///
/// # Errors
///
/// Signals cannot be handled.
pub fn timed<R>(limit: Duration, run: impl FnOnce() -> R) -> io::Result<R> {
    install()?;
    // No instruction is in an empty text, so the handler does not look at the run.
    begin(NonNull::dangling().as_ptr(), null(), 0);
    set_timer(limit.as_micros() as i64);
    let result = run();
    set_timer(0);
    end();
    Ok(result)
}

/// A timer that interrupts the program again and again until it is stopped.
pub(crate) fn set_timer(microseconds: i64) {
    let time =
        libc::timeval { tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000 };
    let mut timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the timer's values are valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, addr_of_mut!(timer), null_mut()) };
}
