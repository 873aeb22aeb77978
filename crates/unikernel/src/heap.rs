//! The heap: all that the tender gave.

use core::sync::atomic::{AtomicBool, Ordering};
use kyozon_abi::unikernel::GuestBoot;
use talc::{source::Manual, TalcLock};

/// A lock for one thread of execution: it is free, unless the heap is used from inside the heap.
struct Alone(AtomicBool);

// SAFETY: `lock` and `try_lock` succeed only where the flag was clear and they set it; only `unlock` clears it.
unsafe impl lock_api::RawMutex for Alone {
    #[allow(clippy::declare_interior_mutable_const)] // the trait's way to make one
    const INIT: Self = Self(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        assert!(self.try_lock(), "the heap is used from inside the heap");
    }

    fn try_lock(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }

    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

#[global_allocator]
static HEAP: TalcLock<Alone, Manual> = TalcLock::new(Manual);

/// Before anything is allocated.
///
/// # Safety
///
/// Once; `boot` is the tender's.
pub unsafe fn set_up(boot: &GuestBoot) {
    // SAFETY: the heap is nobody else's.
    unsafe { HEAP.lock().claim(boot.heap.base as *mut u8, boot.heap.bytes as usize) };
}
