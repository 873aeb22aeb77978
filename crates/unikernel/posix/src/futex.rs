//! `futex`: waiting for a word to change. Each thread waits for at most one word, so the waiters are a table with a row
//! for each.

use crate::errno::*;
use crate::{signals, time, with, Answer};
use core::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use kyozon_abi::unikernel::MAX_PEERS;
use kyozon_channel::border::Mutex;
use kyozon_unikernel::{me, sleep};

const WAIT: u32 = 0;
const WAKE: u32 = 1;
const REQUEUE: u32 = 3;
const CMP_REQUEUE: u32 = 4;
const WAIT_BITSET: u32 = 9;
const WAKE_BITSET: u32 = 10;
/// `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
const PRIVATE: u32 = 128;
const REALTIME: u32 = 256;
const ANY: u32 = u32::MAX;
/// How often a thread looks before it sleeps.
const LOOKS: u32 = 1000;

/// A thread that waits, or none.
#[derive(Clone, Copy, Debug, Default)]
struct Waiter {
    /// Of the word; 0 if the thread does not wait.
    address: u64,
    bits: u32,
    /// Who came earlier is woken first.
    order: u64,
}

/// The waiters, by the threads' numbers.
#[derive(Debug)]
struct Waiters {
    rows: [Waiter; MAX_PEERS],
    next: u64,
}

impl Waiters {
    const fn new() -> Self {
        const NONE: Waiter = Waiter { address: 0, bits: 0, order: 0 };
        Self { rows: [NONE; MAX_PEERS], next: 0 }
    }

    fn add(&mut self, thread: usize, address: u64, bits: u32) {
        self.rows[thread] = Waiter { address, bits, order: self.next };
        self.next += 1;
    }

    fn remove(&mut self, thread: usize) {
        self.rows[thread].address = 0;
    }

    fn waits(&self, thread: usize) -> bool {
        self.rows[thread].address != 0
    }

    /// Takes the first thread out that waits for a word with one of these bits.
    fn take(&mut self, address: u64, bits: u32) -> Option<usize> {
        let first = self.first(address, bits)?;
        self.remove(first);
        Some(first)
    }

    /// Has the first thread that waits for one word wait for another one. Whether there was one.
    fn move_one(&mut self, from: u64, to: u64) -> bool {
        let first = self.first(from, ANY);
        if let Some(first) = first {
            self.rows[first].address = to;
        }
        first.is_some()
    }

    fn first(&self, address: u64, bits: u32) -> Option<usize> {
        let fits = |row: &Waiter| row.address == address && row.bits & bits != 0;
        let all = self.rows.iter().enumerate().filter(|(_, row)| fits(row));
        all.min_by_key(|(_, row)| row.order).map(|(thread, _)| thread)
    }
}

static WAITERS: Mutex<Waiters> = Mutex::new(Waiters::new());
/// How many threads wait, or are about to: waking costs no lock if there are none.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Whether a thread is in the table, by its number.
static WAITING: [AtomicU64; MAX_PEERS] = [const { AtomicU64::new(0) }; MAX_PEERS];

/// The value of a word of the program.
///
/// # Safety
///
/// The address is a readable word.
unsafe fn load(address: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::SeqCst)
}

/// `futex`.
///
/// # Safety
///
/// The addresses are those of a valid call.
pub unsafe fn call(
    address: u64,
    operation: u32,
    value: u32,
    fourth: u64,
    second: u64,
    third: u32,
) -> Answer {
    if !address.is_multiple_of(4) {
        return EINVAL;
    }
    let realtime = operation & REALTIME != 0;
    // SAFETY: the caller's promise, for each.
    unsafe {
        match operation & !(PRIVATE | REALTIME) {
            WAIT => match time::after(fourth) {
                Ok(deadline) => wait(address, value, ANY, deadline),
                Err(error) => error,
            },
            WAIT_BITSET if third != 0 => match time::at(fourth, realtime) {
                Ok(deadline) => wait(address, value, third, deadline),
                Err(error) => error,
            },
            WAKE => wake(address, value, ANY),
            WAKE_BITSET if third != 0 => wake(address, value, third),
            REQUEUE => requeue(address, value, fourth as u32, second),
            CMP_REQUEUE if load(address) != third => EAGAIN,
            CMP_REQUEUE => requeue(address, value, fourth as u32, second),
            WAIT_BITSET | WAKE_BITSET => EINVAL,
            _ => ENOSYS,
        }
    }
}

/// Waits until the word is woken, unless it has another value.
///
/// # Safety
///
/// The address is a readable word.
unsafe fn wait(address: u64, value: u32, bits: u32, deadline: Option<u64>) -> Answer {
    let thread = me();
    COUNT.fetch_add(1, Ordering::SeqCst);
    let begun = with(&WAITERS, |waiters| {
        // SAFETY: the caller's promise.
        let changed = unsafe { load(address) } != value;
        if !changed {
            waiters.add(thread, address, bits);
            WAITING[thread].store(1, Ordering::Relaxed);
        }
        !changed
    });
    let answer = if begun { asleep(thread, deadline) } else { EAGAIN };
    COUNT.fetch_sub(1, Ordering::SeqCst);
    answer
}

/// Sleeps while the thread is in the table. It looks for a while first: a wake-up takes longer than that.
fn asleep(thread: usize, deadline: Option<u64>) -> Answer {
    let mut looks = 0..LOOKS;
    while looks.next().is_some() && WAITING[thread].load(Ordering::Relaxed) != 0 {
        core::hint::spin_loop();
    }
    loop {
        if WAITING[thread].load(Ordering::Acquire) == 0 {
            return 0;
        }
        let signal = signals::interrupt();
        let late = deadline.is_some_and(|end| kyozon_unikernel::clock::now() >= end);
        if signal.is_some() || late {
            let woken = with(&WAITERS, |waiters| {
                let woken = !waiters.waits(thread);
                waiters.remove(thread);
                WAITING[thread].store(0, Ordering::Relaxed);
                woken
            });
            return match signal {
                _ if woken => 0,
                // A call with a time limit does not begin again: signal(7).
                Some(RESTART) if deadline.is_some() => EINTR,
                Some(answer) => answer,
                None => ETIMEDOUT,
            };
        }
        sleep::park(deadline);
    }
}

/// Wakes up to `count` threads. The answer is how many.
pub fn wake(address: u64, count: u32, bits: u32) -> Answer {
    // Before: the program's store to the word. A waiter adds itself, and then loads the word.
    fence(Ordering::SeqCst);
    if COUNT.load(Ordering::SeqCst) == 0 {
        return 0;
    }
    let mut woken = 0;
    while woken < count {
        let next = with(&WAITERS, |waiters| {
            let next = waiters.take(address, bits);
            if let Some(thread) = next {
                WAITING[thread].store(0, Ordering::Release);
            }
            next
        });
        let Some(thread) = next else { break };
        sleep::unpark(thread);
        woken += 1;
    }
    woken.into()
}

/// Wakes one waiter, as the end of a thread does.
pub fn wake_one(address: u64) {
    wake(address, 1, ANY);
}

/// Wakes all waiters of a word of the host.
pub fn wake_all(word: &AtomicU32) {
    wake(word.as_ptr() as u64, u32::MAX, ANY);
}

/// Waits until a word of the host has another value than `seen`. Answers as `futex`.
pub fn wait_for_change(word: &AtomicU32, seen: u32, deadline: Option<u64>) -> Answer {
    // SAFETY: the word is readable.
    unsafe { wait(word.as_ptr() as u64, seen, ANY, deadline) }
}

fn requeue(address: u64, count: u32, moved: u32, to: u64) -> Answer {
    let woken = wake(address, count, ANY);
    let moved = with(&WAITERS, |waiters| {
        (0..moved.min(MAX_PEERS as u32)).take_while(|_| waiters.move_one(address, to)).count()
    });
    woken + moved as Answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_is_woken_first_and_by_its_bits() {
        let mut waiters = Waiters::new();
        waiters.add(5, 0x10, 1);
        waiters.add(2, 0x10, 2);
        waiters.add(9, 0x20, ANY);
        waiters.add(1, 0x10, 3);
        assert_eq!(waiters.take(0x10, 2), Some(2));
        assert_eq!((waiters.take(0x10, ANY), waiters.take(0x20, 8)), (Some(5), Some(9)));
        assert!(waiters.waits(1) && !waiters.waits(2));
        assert_eq!((waiters.take(0x10, 4), waiters.take(0x10, 1)), (None, Some(1)));
    }

    #[test]
    fn a_moved_waiter_keeps_its_turn() {
        let mut waiters = Waiters::new();
        waiters.add(3, 0x10, ANY);
        waiters.add(4, 0x20, ANY);
        assert!(waiters.move_one(0x10, 0x20) && !waiters.move_one(0x10, 0x20));
        assert_eq!((waiters.take(0x20, ANY), waiters.take(0x20, ANY)), (Some(3), Some(4)));
    }
}
