//! Signals: the host delivers them; the program's handlers run in the program.
//!
//! The host's handler of every signal that the program handles is [`kyozon_exec_signal`]. In the program, it continues
//! at the program's handler, on the frame that the kernel made. In our code, a handler of the program would find a
//! foreign FS base, and could call the library in the middle of a call. So the signal is deferred: it is noted, all
//! others are blocked, and the way out of the gate queues it again and returns to the program's mask.
//!
//! A call of the library that waits must end, or the signal would wait too: the interrupter, a thread of ours, sends
//! the library's task a signal of the library, so that the call returns `-EINTR`.

use crate::direction::UNBLOCKABLE;
use crate::host::{self, NEVER_BLOCKED};
use crate::state::{State, PROGRAM};
use crate::{gate, interrupt, trap};
use std::arch::global_asm;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

/// The kernel's struct sigaction.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Action {
    /// `SIG_DFL`, `SIG_IGN` or a function.
    pub handler: u64,
    /// `SA_` flags.
    pub flags: u64,
    /// What a handler returns to.
    pub restorer: u64,
    /// Signals that are blocked meanwhile.
    pub mask: u64,
}

const SIGNALS: usize = 65;
/// asm-generic/siginfo.h: a single step.
const TRAP_TRACE: i32 = 2;
const SA_RESTORER: u64 = 0x0400_0000;

/// The program's handlers, by signal. Signal handlers read them.
static HANDLERS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];
/// The program's actions.
static ACTIONS: Mutex<[Action; SIGNALS]> =
    Mutex::new([Action { handler: 0, flags: 0, restorer: 0, mask: 0 }; SIGNALS]);
/// Signals whose handlers run once more (`SA_RESETHAND`), by number: 64 is bit 0.
static ONCE: AtomicU64 = AtomicU64::new(0);
/// Functions that repair faults of the library, for SIGSEGV and SIGBUS.
static REPAIRS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

global_asm!(
    ".text",
    ".globl kyozon_exec_signal",
    "kyozon_exec_signal:",
    "cmpb ${program}, %gs:{selector}",
    "jne {defer}",
    // The code in rsi's siginfo_t, if it is an encoded one.
    "mov {code}(%rsi), %eax",
    "sub ${encoded}, %eax",
    "neg %eax",
    "cmp ${most}, %eax",
    "ja 5f",
    "mov %eax, {code}(%rsi)",
    "5:",
    "mov {first}(%rip), %eax",
    "cmp %eax, %gs:{tid}",
    "jne 3f",
    "4:",
    "cmpb $0, %gs:{remask}",
    "jne 1f",
    "2:",
    // A call through the seam may be about to start.
    "mov {rip}(%rdx), %rax",
    "lea kyozon_exec_seam_call(%rip), %rcx",
    "cmp %rcx, %rax",
    "jb 6f",
    "lea kyozon_exec_seam_end(%rip), %rcx",
    "cmp %rcx, %rax",
    "jae 6f",
    "push %rdi",
    "push %rsi",
    "push %rdx",
    "call {seam}",
    "pop %rdx",
    "pop %rsi",
    "pop %rdi",
    "6:",
    "mov {once}(%rip), %rax",
    "bt %rdi, %rax",
    "jc {run_once}",
    "lea {handlers}(%rip), %rax",
    "jmp *(%rax,%rdi,8)",
    // rdx: the context.
    "1:",
    "movb $0, %gs:{remask}",
    "mov %gs:{masked}, %rax",
    "mov %rax, {mask}(%rdx)",
    "jmp 2b",
    // Another thread than the first. The stack is as at any call.
    "3:",
    "push %rdi",
    "push %rsi",
    "push %rdx",
    "call {send_on}",
    "pop %rdx",
    "pop %rsi",
    "pop %rdi",
    "test %al, %al",
    "je 4b",
    "ret",
    program = const PROGRAM,
    selector = const offset_of!(State, selector),
    remask = const offset_of!(State, remask),
    masked = const offset_of!(State, masked),
    tid = const offset_of!(State, tid),
    code = const offset_of!(libc::siginfo_t, si_code),
    encoded = const crate::direction::ENCODED,
    most = const crate::direction::MOST,
    first = sym crate::direction::FIRST,
    send_on = sym crate::direction::send_on,
    mask = const offset_of!(libc::ucontext_t, uc_sigmask),
    handlers = sym HANDLERS,
    defer = sym defer,
    once = sym ONCE,
    run_once = sym run_once,
    seam = sym crate::seam::signal,
    rip = const offset_of!(libc::ucontext_t, uc_mcontext) + 8 * libc::REG_RIP as usize,
    options(att_syntax)
);

extern "C" {
    fn kyozon_exec_signal();
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs the handlers of SIGSYS and of faults. The library has booted.
pub fn install() {
    for (signal, repair) in [libc::SIGSEGV, libc::SIGBUS].into_iter().zip(&REPAIRS) {
        let mut before = Action::default();
        let action = Action {
            handler: fault as *const () as u64,
            flags: (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | SA_RESTORER,
            restorer: gate::restorer(),
            mask: 0,
        };
        set(signal, Some(&action), Some(&mut before));
        repair.store(before.handler, Ordering::Release);
    }
    let action = Action {
        handler: trap::reflect as *const () as u64,
        flags: (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | SA_RESTORER,
        restorer: gate::restorer(),
        mask: 0,
    };
    set(libc::SIGSYS, Some(&action), None);
    // Rust's runtime ignores it; programs expect the default.
    set(libc::SIGPIPE, Some(&Action::default()), None);
}

const fn once_bit(signal: i32) -> u64 {
    1 << (signal as u32 % 64)
}

/// The program's action, as it is now.
fn present(signal: usize, action: Action) -> Action {
    let once = action.flags & libc::SA_RESETHAND as u32 as u64 != 0;
    if once && action.handler > 1 && ONCE.load(Ordering::Acquire) & once_bit(signal as i32) == 0 {
        return Action { handler: 0, ..action };
    }
    action
}

/// A handler that runs once. TLS must not be used: this runs in the program.
extern "C" fn run_once(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    ONCE.fetch_and(!once_bit(signal), Ordering::AcqRel);
    let default = Action::default();
    let arguments = [signal as u64, &raw const default as u64, 0, 8, 0, 0];
    // SAFETY: the structure is valid. The gate's system calls are the host's, also in the program.
    unsafe { gate::host_call(libc::SYS_rt_sigaction, arguments) };
    let handler = HANDLERS[signal as usize].load(Ordering::Acquire);
    // SAFETY: the program's handler.
    unsafe { std::mem::transmute::<u64, Handler>(handler)(signal, info, context) };
}

fn set(signal: i32, new: Option<&Action>, old: Option<&mut Action>) -> i64 {
    let new = new.map_or(0, |action| &raw const *action as u64);
    let old = old.map_or(0, |action| &raw mut *action as u64);
    host::call(libc::SYS_rt_sigaction, &[signal as u64, new, old, 8])
}

/// rt_sigaction(2) of the program.
pub fn sigaction(signal: u64, new: u64, old: u64, bytes: u64) -> Result<i64, i64> {
    if !(1..SIGNALS as u64).contains(&signal) || bytes != 8 {
        return Err(-i64::from(libc::EINVAL));
    }
    let ours = [libc::SIGSEGV, libc::SIGBUS, libc::SIGSYS].contains(&(signal as i32));
    let mut actions = ACTIONS.lock().expect("no panic while locked");
    let before = &mut actions[signal as usize];
    if !ours && present(signal as usize, *before).handler <= 1 {
        // Inherited, or set to be ignored by the host.
        set(signal as i32, None, Some(before));
    }
    let previous = present(signal as usize, *before);
    if new != 0 {
        let action: Action = host::read_value(new)?;
        let once = action.handler > 1 && action.flags & libc::SA_RESETHAND as u32 as u64 != 0;
        if once {
            ONCE.fetch_or(once_bit(signal as i32), Ordering::AcqRel);
        } else {
            ONCE.fetch_and(!once_bit(signal as i32), Ordering::AcqRel);
        }
        if !ours {
            let mut hosts = action;
            hosts.mask &= !NEVER_BLOCKED;
            if action.handler > 1 {
                hosts.handler = kyozon_exec_signal as *const () as u64;
                hosts.restorer = gate::restorer();
                hosts.flags &= !(libc::SA_RESETHAND as u32 as u64);
                hosts.flags |= libc::SA_SIGINFO as u64 | SA_RESTORER;
            }
            // The handler must be known before the first signal.
            if action.handler > 1 {
                HANDLERS[signal as usize].store(action.handler, Ordering::Release);
                crate::seam::set_restart(signal, action.flags & libc::SA_RESTART as u64 != 0);
            }
            let result = set(signal as i32, Some(&hosts), None);
            if result != 0 {
                return Err(result);
            }
        } else {
            HANDLERS[signal as usize].store(action.handler, Ordering::Release);
        }
        *before = action;
    }
    if old != 0 {
        host::write_value(old, previous)?;
    }
    Ok(0)
}

/// Notes a signal that interrupted our code. TLS must not be used: the FS base may be either side's.
extern "C" fn defer(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(state) = State::current() else { return };
    // The program's trap flag: its single steps do not go into a call, as they do not go into the host's kernel.
    // SAFETY: the kernel passes a siginfo_t.
    if signal == libc::SIGTRAP && unsafe { (*info).si_code } == TRAP_TRACE {
        return;
    }
    // SAFETY: the kernel passes the interrupted thread's context.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let rip = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    *rip = gate::after_deferral(*rip as u64) as i64;
    let mask = (&raw mut context.uc_sigmask).cast::<u64>();
    if state.pending.load(Ordering::Acquire) == 1 {
        // SAFETY: as the kernel passed it; the kernel's mask has 64 bits.
        unsafe { defer_second(state, signal, &*info, &mut *mask) };
        return;
    }
    // SAFETY: only this thread uses the member, and no other signal comes until the way out has read it. The kernel's
    // mask has 64 bits.
    unsafe {
        let deferred = &mut *state.deferred.get();
        deferred.signal = signal;
        deferred.info = *info;
        deferred.mask = *mask;
        *mask = !NEVER_BLOCKED;
    }
    state.deferring.store(1, Ordering::Release);
    state.pending.store(1, Ordering::Release);
    if state.library.load(Ordering::Acquire) == 1 {
        interrupt::request(state);
    }
}

/// A signal that came together with the deferred one: the kernel made both frames at once, and this one is the outer.
/// It waits in the host.
fn defer_second(state: &State, signal: i32, info: &libc::siginfo_t, mask: &mut u64) {
    let all = !NEVER_BLOCKED;
    if *mask | UNBLOCKABLE == all {
        // One of those that are never blocked came later. It cannot wait.
        return;
    }
    let how = libc::SIG_BLOCK as u64;
    host::call(libc::SYS_rt_sigprocmask, &[how, &raw const all as u64, 0, 8]);
    // SAFETY: only this thread uses the member, and no signal comes meanwhile.
    unsafe { (*state.deferred.get()).mask = *mask };
    *mask = all;
    if host::bit(signal) & NEVER_BLOCKED == 0 {
        queue(state, signal, *info);
    }
}

/// Sends a signal to the calling thread once more.
fn queue(state: &State, signal: i32, mut info: libc::siginfo_t) {
    info.si_code = crate::direction::encode(info.si_code);
    let pid = host::call(libc::SYS_getpid, &[]) as u64;
    let arguments = [pid, state.tid.get() as u64, signal as u64, &raw const info as u64];
    host::call(libc::SYS_rt_tgsigqueueinfo, &arguments);
}

/// Called by the gate on its way out: queues the deferred signal again. All signals are blocked until the program
/// continues.
pub extern "C" fn deliver(state: &State) {
    // SAFETY: only this thread uses the member.
    let (signal, info) = unsafe { ((*state.deferred.get()).signal, (*state.deferred.get()).info) };
    // One that is never blocked would come at once, and be deferred again. Nothing faults until the program continues.
    // SIGSYS is the way to the program.
    let block = host::bit(signal) & NEVER_BLOCKED & !host::bit(libc::SIGSYS);
    let how = libc::SIG_BLOCK as u64;
    host::call(libc::SYS_rt_sigprocmask, &[how, &raw const block as u64, 0, 8]);
    queue(state, signal, info);
    let restart = {
        let actions = ACTIONS.lock().expect("no panic while locked");
        actions[signal as usize].flags & libc::SA_RESTART as u64 != 0
    };
    let native = state.native.swap(0, Ordering::Relaxed) == 1;
    crate::calls::interrupted(state, native, restart);
    state.pending.store(0, Ordering::Release);
}

/// The program's handler of a signal that this module handles for it. One with `SA_RESETHAND` runs once.
fn take_handler(signal: i32) -> u64 {
    let handler = HANDLERS[signal as usize].load(Ordering::Acquire);
    if ONCE.fetch_and(!once_bit(signal), Ordering::AcqRel) & once_bit(signal) != 0 {
        HANDLERS[signal as usize].store(0, Ordering::Release);
    }
    handler
}

/// SIGSEGV, SIGBUS or SIGSYS that a process has sent: no instruction will raise it again.
///
/// # Safety
///
/// A signal handler passes on what it got.
pub unsafe fn sent(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let state = State::current();
    let ours = state.is_none_or(|state| state.selector.load(Ordering::Relaxed) != PROGRAM);
    match HANDLERS[signal as usize].load(Ordering::Acquire) {
        0 => {
            if let Some(state) = state {
                state.selector.store(crate::state::OURS, Ordering::Relaxed);
            }
            set(signal, Some(&Action::default()), None);
            let pid = host::call(libc::SYS_getpid, &[]) as u64;
            let tid = host::call(libc::SYS_gettid, &[]) as u64;
            host::call(libc::SYS_tgkill, &[pid, tid, signal as u64]);
        }
        handler if handler == libc::SIG_IGN as u64 => (),
        _ if !ours => {
            let handler = take_handler(signal);
            // SAFETY: the kernel passes a siginfo_t; the program's handler has this type.
            unsafe {
                (*info).si_code = crate::direction::decode((*info).si_code);
                std::mem::transmute::<u64, Handler>(handler)(signal, info, context);
            }
        }
        _ => match state {
            // One signal waits at a time; SIGSYS is the way to the program, and cannot.
            Some(state) => {
                if state.pending.load(Ordering::Acquire) == 0 && signal != libc::SIGSYS {
                    defer(signal, info, context);
                }
            }
            // A thread of ours.
            // SAFETY: the kernel passes a siginfo_t.
            None => unsafe { crate::direction::pass_on(signal, info) },
        },
    }
}

/// The handler of SIGSEGV and SIGBUS: the program's faults are the program's, ours may be the library's.
extern "C" fn fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the interrupted thread's context.
    let rip = unsafe {
        &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize]
    };
    if let Some(next) = gate::after_fault(*rip as u64) {
        *rip = next as i64;
        return;
    }
    // SAFETY: the kernel passes a siginfo_t.
    if unsafe { (*info).si_code } <= libc::SI_USER {
        // SAFETY: this is the handler.
        unsafe { sent(signal, info, context) };
        return;
    }
    let programs =
        State::current().filter(|state| state.selector.load(Ordering::Relaxed) == PROGRAM);
    let handler = match programs {
        Some(_) => take_handler(signal),
        None => REPAIRS[usize::from(signal == libc::SIGBUS)].load(Ordering::Acquire),
    };
    if handler > 1 {
        // SAFETY: the program's handler, or liblinux's, which has this type.
        unsafe { std::mem::transmute::<u64, Handler>(handler)(signal, info, context) };
        return;
    }
    if let Some(state) = programs {
        // The instruction runs again, and the signal has its default action.
        state.selector.store(crate::state::OURS, Ordering::Relaxed);
    }
    set(signal, Some(&Action::default()), None);
}
