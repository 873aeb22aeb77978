//! The heap: the task's heap memory behind a lock whose waiters sleep.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kyozon_abi::task::{StartInfo, NO_HANDLE};
use talc::{source::Manual, TalcLock};

use crate::notification::Notification;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may sleep until it is free.
const WANTED: u32 = 2;

/// A lock for threads of fixed priorities: a waiter that spun would keep a holder of lower priority from running.
pub struct SleepingLock(AtomicU32);

/// Handle of the notification on which waiters sleep. Made at the start, before there is a second thread.
static UNLOCKED: AtomicU64 = AtomicU64::new(NO_HANDLE);

fn unlocked() -> Notification {
    Notification(UNLOCKED.load(Ordering::Relaxed))
}

// SAFETY: `lock` returns only after this thread has changed the state from `FREE`, and only `unlock` sets `FREE` again.
// A signal without a waiter stays set, so no wake-up is lost.
unsafe impl lock_api::RawMutex for SleepingLock {
    #[allow(clippy::declare_interior_mutable_const)] // required by the trait
    const INIT: Self = Self(AtomicU32::new(FREE));
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        if !self.try_lock() {
            while self.0.swap(WANTED, Ordering::Acquire) != FREE {
                let _ = unlocked().wait();
            }
        }
    }

    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == WANTED {
            let _ = unlocked().signal(1);
        }
    }
}

#[global_allocator]
static HEAP: TalcLock<SleepingLock, Manual> = TalcLock::new(Manual);

/// Sets up the heap, before the first allocation.
///
/// # Safety
///
/// Must be called once, before there is a second thread, with the kernel's `info`.
pub unsafe fn set_up(info: &StartInfo) {
    if let Ok(notification) = Notification::new() {
        UNLOCKED.store(notification.0, Ordering::Relaxed);
    }
    // SAFETY: nothing else uses the heap's memory.
    unsafe { HEAP.lock().claim(info.heap as *mut u8, info.heap_bytes as usize) };
}
