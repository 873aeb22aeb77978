//! Threads that wait for something that does not come, in every way that there is.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use kyozon_channel::border::{Mutex, RwLock};
use kyozon_channel::park::Park;
use kyozon_channel::sync::{Barrier, Condvar, Semaphore};
use kyozon_unikernel::thread::{self, Builder};
use kyozon_unikernel::vm::{with_member, Vm};
use kyozon_unikernel::{boot, println, sleep};

static MUTEX: Mutex<u64> = Mutex::new(0);
static LOCK: RwLock<u64> = RwLock::new(0);
static OWN: Mutex<u64> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();
static PERMITS: Semaphore = Semaphore::new(0);
static BARRIER: Barrier = Barrier::new();
static ASLEEP: AtomicU64 = AtomicU64::new(0);

/// Waits, in one of the ways.
fn wait(way: usize) {
    ASLEEP.fetch_add(1, Ordering::Relaxed);
    match way % 7 {
        0 => with_member(|me| drop(MUTEX.lock(me, None))),
        1 => with_member(|me| drop(LOCK.read(me, None))),
        2 => with_member(|me| drop(LOCK.write(me, None))),
        3 => with_member(|me| {
            let mut guard = OWN.lock(me, None).unwrap();
            loop {
                guard = guard.wait(&CHANGED, None).unwrap().0;
            }
        }),
        4 => drop(PERMITS.acquire(&Vm, None)),
        5 => drop(BARRIER.wait(&Vm, Vm.me().bit() | 1, None)),
        _ => loop {
            sleep::park(None);
        },
    }
    panic!("way {way} has ended");
}

/// Starts as many threads as there can be, which wait, and waits for one of them.
pub fn idle() {
    with_member(|me| {
        let _mutex = MUTEX.lock(me, None).unwrap();
        let _lock = LOCK.write(me, None).unwrap();
        wait_all();
    });
}

fn wait_all() {
    let count = boot().limit as usize - 1;
    let made = |way| Builder::new().stack_size(16 << 10).spawn(move || wait(way)).unwrap();
    let mut threads: Vec<_> = (0..count).map(made).collect();
    while ASLEEP.load(Ordering::Relaxed) < count as u64 {
        core::hint::spin_loop();
    }
    println!("{count} threads wait");
    drop(threads.pop().map(thread::JoinHandle::join));
}
