//! Signals. They reach a thread in its calls: when one returns, and while one waits.

use crate::errno::*;
use crate::{threads, time, with, Answer};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kyozon_abi::unikernel::MAX_PEERS;
use kyozon_channel::border::Mutex;
use kyozon_channel::park::Peer;
use kyozon_unikernel::{clock, me, peer, sleep};

/// Number of signals, and the size of a set of them in bytes.
const SIGNALS: u32 = 64;
const SET_BYTES: u64 = 8;
const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;
const SA_RESTART: u64 = 0x1000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = 0x8000_0000;
const SIGKILL: u32 = 9;
const SIGSTOP: u32 = 19;
/// Signals that do nothing by default: CHLD, CONT, URG, WINCH, and those that stop a process, which nobody continues.
const HARMLESS: u64 = bit(17) | bit(18) | bit(23) | bit(28) | bit(20) | bit(21) | bit(22);
const SI_TKILL: i32 = -6;

const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// Linux's `struct sigaction`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Action {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

static ACTIONS: Mutex<[Action; SIGNALS as usize]> =
    Mutex::new([Action { handler: 0, flags: 0, restorer: 0, mask: 0 }; SIGNALS as usize]);

/// The pending signals of each thread, and the generation to which they were sent.
static PENDING: [AtomicU64; MAX_PEERS] = [const { AtomicU64::new(0) }; MAX_PEERS];
static SENT_TO: [AtomicU32; MAX_PEERS] = [const { AtomicU32::new(0) }; MAX_PEERS];
/// Held while these change together.
static SENDING: Mutex<()> = Mutex::new(());
/// The pending signals of the process, which any thread takes.
static OF_ALL: AtomicU64 = AtomicU64::new(0);

kyozon_unikernel::private! {
    /// The signals that this thread has blocked.
    static MASK: u64 = 0;
    /// The mask from before `rt_sigsuspend`, which comes back after the handler.
    static BEFORE: Option<u64> = None;
}

/// The calling thread begins, with this mask.
pub fn begin(mask: u64) {
    MASK.set(mask);
    accept(peer::own());
}

/// Makes the pending signals those of `thread`, not of an earlier one with its number.
fn accept(thread: Peer) {
    let number = usize::from(thread.number());
    with(&SENDING, |()| {
        if SENT_TO[number].swap(thread.generation(), Ordering::Relaxed) != thread.generation() {
            PENDING[number].store(0, Ordering::Relaxed);
        }
    });
}

/// The mask of the calling thread.
pub fn mask() -> u64 {
    MASK.get()
}

fn set_mask(mask: u64) {
    MASK.set(mask & !(bit(SIGKILL) | bit(SIGSTOP)));
}

fn pending() -> u64 {
    PENDING[me()].load(Ordering::Acquire) | OF_ALL.load(Ordering::Acquire)
}

/// Takes a pending signal; false if another thread was faster.
fn take(signal: u32) -> bool {
    let bit = bit(signal);
    PENDING[me()].fetch_and(!bit, Ordering::AcqRel) & bit != 0
        || OF_ALL.fetch_and(!bit, Ordering::AcqRel) & bit != 0
}

fn first_of(set: u64) -> Option<u32> {
    (set != 0).then(|| set.trailing_zeros() + 1)
}

fn action(signal: u32) -> Action {
    with(&ACTIONS, |actions| actions[signal as usize - 1])
}

impl Action {
    fn ignores(&self, signal: u32) -> bool {
        self.handler == IGNORE || self.handler == DEFAULT && HARMLESS & bit(signal) != 0
    }
}

/// What a call that waits answers because of a signal: [`EINTR`], or [`RESTART`]; `None` if there is none.
pub fn interrupt() -> Option<Answer> {
    loop {
        let signal = first_of(pending() & !mask())?;
        let action = action(signal);
        if !action.ignores(signal) {
            return Some(if action.flags & SA_RESTART != 0 { RESTART } else { EINTR });
        }
        take(signal);
    }
}

/// A call of the program, on its stack.
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    /// The call's number.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Its answer.
    pub answer: Answer,
    spare: u64,
}

/// What a handler gets, on the program's stack below the [`Frame`]. `entry` reads the first four.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Delivery {
    signal: u64,
    about: *const About,
    context: *const Context,
    handler: u64,
    info: About,
    state: Context,
}

/// Linux's `siginfo_t`.
#[derive(Debug)]
#[repr(C)]
struct About {
    signal: i32,
    error: i32,
    code: i32,
    pad: i32,
    process: i32,
    user: u32,
    rest: [u64; 13],
}

/// Linux's `ucontext_t`. Registers are zero: a signal comes in a call, whose registers have no meaning.
#[derive(Debug)]
#[repr(C)]
struct Context {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    registers: [u64; 23],
    floating: u64,
    reserved: [u64; 8],
    mask: u64,
    rest: [u64; 83],
}

/// Has a handler run, if a signal is there that has one: what `entry` calls next, or 0.
///
/// # Safety
///
/// The frame is the caller's, and the program's stack below it is free.
pub unsafe fn deliver(frame: *mut Frame) -> usize {
    loop {
        let Some(signal) = first_of(pending() & !mask()) else { return 0 };
        if !take(signal) {
            continue;
        }
        let action = action(signal);
        if action.ignores(signal) {
            continue;
        }
        if action.handler == DEFAULT {
            peer::end_with_owner(128 + signal as u8);
        }
        if action.flags & SA_RESETHAND != 0 {
            with(&ACTIONS, |actions| actions[signal as usize - 1].handler = DEFAULT);
        }
        // SAFETY: the caller's frame.
        unsafe {
            if (*frame).answer == RESTART && action.flags & SA_RESTART == 0 {
                (*frame).answer = EINTR;
            }
        }
        let before = BEFORE.replace(None).unwrap_or(mask());
        let own = if action.flags & SA_NODEFER == 0 { bit(signal) } else { 0 };
        set_mask(mask() | action.mask | own);
        let at = (frame as usize - size_of::<Delivery>()) & !15;
        let delivery = at as *mut Delivery;
        // SAFETY: the stack below the frame is free. All fields may be zero.
        unsafe {
            delivery.write_bytes(0, 1);
            (*delivery).signal = signal.into();
            (*delivery).about = &raw const (*delivery).info;
            (*delivery).context = &raw const (*delivery).state;
            (*delivery).handler = action.handler;
            (*delivery).info.signal = signal as i32;
            (*delivery).info.code = SI_TKILL;
            (*delivery).info.process = threads::process_id();
            (*delivery).state.mask = before;
        }
        return at;
    }
}

/// A handler has returned: its mask counts from now on.
///
/// # Safety
///
/// The delivery is that of the handler.
pub unsafe fn returned(delivery: *const Delivery) {
    // SAFETY: the caller's promise.
    set_mask(unsafe { (*delivery).state.mask });
}

/// `rt_sigaction`.
///
/// # Safety
///
/// The addresses are 0, or those of actions.
pub unsafe fn set_action(signal: u64, new: u64, old: u64, bytes: u64) -> Answer {
    let valid = (1..=SIGNALS.into()).contains(&signal) && bytes == SET_BYTES;
    let fixed = signal == SIGKILL.into() || signal == SIGSTOP.into();
    if !valid || fixed && new != 0 {
        return EINVAL;
    }
    // SAFETY: the caller's promise.
    let new = (new != 0).then(|| unsafe { (new as *const Action).read_unaligned() });
    let before = with(&ACTIONS, |actions| {
        let action = &mut actions[signal as usize - 1];
        let before = *action;
        *action = new.unwrap_or(before);
        before
    });
    if old != 0 {
        // SAFETY: the caller's promise.
        unsafe { (old as *mut Action).write_unaligned(before) };
    }
    0
}

/// `rt_sigprocmask`.
///
/// # Safety
///
/// The addresses are 0, or those of sets.
pub unsafe fn change_mask(how: u64, set: u64, old: u64, bytes: u64) -> Answer {
    if bytes != SET_BYTES {
        return EINVAL;
    }
    let before = mask();
    if set != 0 {
        // SAFETY: the caller's promise.
        let set = unsafe { (set as *const u64).read_unaligned() };
        set_mask(match how {
            0 => before | set,
            1 => before & !set,
            2 => set,
            _ => return EINVAL,
        });
    }
    if old != 0 {
        // SAFETY: the caller's promise.
        unsafe { (old as *mut u64).write_unaligned(before) };
    }
    0
}

/// `rt_sigpending`.
///
/// # Safety
///
/// The address is that of a set.
pub unsafe fn get_pending(to: u64) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { (to as *mut u64).write_unaligned(pending() & mask()) };
    0
}

/// Sends a signal to a thread; 0 only looks whether it exists.
pub fn send_to_thread(thread: i32, signal: u64) -> Answer {
    if signal > SIGNALS.into() || thread <= 0 {
        return EINVAL;
    }
    let Some(thread) = threads::find(thread) else { return ESRCH };
    if signal != 0 {
        accept(thread);
        let number = usize::from(thread.number());
        PENDING[number].fetch_or(bit(signal as u32), Ordering::AcqRel);
        if number != me() {
            sleep::unpark(number);
        }
    }
    0
}

/// `kill`: sends a signal to the process, which is the only one.
pub fn send(process: i32, signal: u64) -> Answer {
    if signal > SIGNALS.into() {
        return EINVAL;
    }
    if ![0, -1, threads::process_id(), -threads::process_id()].contains(&process) {
        return ESRCH;
    }
    if signal != 0 {
        OF_ALL.fetch_or(bit(signal as u32), Ordering::AcqRel);
        // Any of them may be the one that has not blocked it.
        (0..MAX_PEERS).filter(|&number| number != me()).for_each(sleep::unpark);
    }
    0
}

/// `pause`.
pub fn pause() -> Answer {
    time::until(None)
}

/// `rt_sigsuspend`.
///
/// # Safety
///
/// The address is that of a set.
pub unsafe fn suspend(set: u64, bytes: u64) -> Answer {
    if bytes != SET_BYTES {
        return EINVAL;
    }
    BEFORE.set(Some(mask()));
    // SAFETY: the caller's promise.
    set_mask(unsafe { (set as *const u64).read_unaligned() });
    time::until(None)
}

/// `rt_sigtimedwait`.
///
/// # Safety
///
/// `set` is that of a set, the others are 0 or those of their structures.
pub unsafe fn wait_for(set: u64, about: u64, timeout: u64, bytes: u64) -> Answer {
    if bytes != SET_BYTES {
        return EINVAL;
    }
    // SAFETY: the caller's promise.
    let (set, deadline) = unsafe { ((set as *const u64).read_unaligned(), time::after(timeout)) };
    let deadline = match deadline {
        Ok(deadline) => deadline,
        Err(error) => return error,
    };
    loop {
        if let Some(signal) = first_of(pending() & set) {
            if !take(signal) {
                continue;
            }
            if about != 0 {
                let info = About {
                    signal: signal as i32,
                    error: 0,
                    code: SI_TKILL,
                    pad: 0,
                    process: threads::process_id(),
                    user: 0,
                    rest: [0; 13],
                };
                // SAFETY: the caller's promise.
                unsafe { (about as *mut About).write_unaligned(info) };
            }
            return signal.into();
        }
        if interrupt().is_some() {
            return EINTR;
        }
        if deadline.is_some_and(|end| clock::now() >= end) {
            return EAGAIN;
        }
        sleep::park(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn structures_are_linuxs() {
        assert_eq!((size_of::<Action>(), size_of::<About>(), size_of::<Context>()), (32, 128, 968));
        assert_eq!(offset_of!(Context, mask), 296);
        assert_eq!((offset_of!(About, process), offset_of!(Delivery, handler)), (16, 24));
        assert_eq!((size_of::<Frame>(), offset_of!(Frame, answer)), (72, 56));
    }

    #[test]
    fn the_lowest_signal_comes_first() {
        assert_eq!((first_of(0), first_of(bit(64) | bit(3))), (None, Some(3)));
        assert!(Action::default().ignores(17) && !Action::default().ignores(15));
    }
}
