//! The heap: all that the kernel gave, behind a lock whose waiters sleep.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use kyozon_abi::task::{StartInfo, NO_HANDLE};
use talc::{source::Manual, TalcLock};

use crate::notification::Notification;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody sleeps until it is free.
const WANTED: u32 = 2;

/// A lock for threads of fixed priorities: nobody spins while the holder, of a lower one, cannot run.
pub struct Sleeping(AtomicU32);

/// Handle of the notification where waiters sleep. Made at the start, before there is a second thread.
static FREED: AtomicU64 = AtomicU64::new(NO_HANDLE);

fn freed() -> Notification {
    Notification(FREED.load(Ordering::Relaxed))
}

// SAFETY: `lock` returns only when `state` went from `FREE` to something else by its own doing, and only `unlock` makes it
// `FREE` again. A signal that finds nobody stays set, so that none is lost.
unsafe impl lock_api::RawMutex for Sleeping {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's way to make one
    const INIT: Self = Self(AtomicU32::new(FREE));
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        if !self.try_lock() {
            while self.0.swap(WANTED, Ordering::Acquire) != FREE {
                let _ = freed().wait();
            }
        }
    }

    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    unsafe fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == WANTED {
            let _ = freed().signal(1);
        }
    }
}

#[global_allocator]
static HEAP: TalcLock<Sleeping, Manual> = TalcLock::new(Manual);

/// Before anything is allocated.
///
/// # Safety
///
/// Once, before there is a second thread; `info` is the kernel's.
pub unsafe fn set_up(info: &StartInfo) {
    if let Ok(notification) = Notification::new() {
        FREED.store(notification.0, Ordering::Relaxed);
    }
    // SAFETY: the heap is nobody else's.
    unsafe { HEAP.lock().claim(info.heap as *mut u8, info.heap_bytes as usize) };
}
