//! The heap: all that the tender gave, for all machines of a family.
//!
//! A machine that dies inside the heap leaves it in an unknown state: from then on nothing can be allocated in the
//! family, and nothing is given back. Nobody waits for it.

use crate::vm::Vm;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use kyozon_abi::unikernel::GuestBoot;
use kyozon_channel::sync::{Acquired, RawMutex};
use talc::{base::binning::DefaultBinning, base::Talc, source::Manual};

/// An allocator, and who is in it.
struct Heap {
    lock: RawMutex,
    talc: UnsafeCell<Talc<Manual, DefaultBinning>>,
}

// SAFETY: what is in the cell is reached under the lock only.
unsafe impl Sync for Heap {}

impl Heap {
    /// Does something with it, unless somebody died in it.
    fn with<R>(&self, work: impl FnOnce(&mut Talc<Manual, DefaultBinning>) -> R) -> Option<R> {
        let then = self.lock.lock(&Vm, None).ok()?;
        // SAFETY: the lock is this machine's.
        let done = (then == Acquired::Clean).then(|| work(unsafe { &mut *self.talc.get() }));
        self.lock.unlock(&Vm, then);
        done
    }
}

// SAFETY: the allocator's own promises, under a lock.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: of some bytes, as the caller promises.
        let found = self.with(|talc| unsafe { talc.allocate(layout) });
        found.flatten().map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: allocated here with this layout, as the caller promises.
        self.with(|talc| unsafe { talc.deallocate(at, layout) });
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: allocated here with this layout, and of some bytes, as the caller promises.
        unsafe {
            if self.with(|talc| talc.try_realloc_in_place(at, layout, bytes)) == Some(true) {
                return at;
            }
            let to = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !to.is_null() {
                core::ptr::copy_nonoverlapping(at, to, layout.size().min(bytes));
                self.dealloc(at, layout);
            }
            to
        }
    }
}

#[global_allocator]
static HEAP: Heap = Heap { lock: RawMutex::new(), talc: UnsafeCell::new(Talc::new(Manual)) };

/// Before anything is allocated.
///
/// # Safety
///
/// Once in a family; `boot` is the tender's.
pub unsafe fn set_up(boot: &GuestBoot) {
    // SAFETY: the heap is nobody else's.
    HEAP.with(|talc| unsafe { talc.claim(boot.heap.base as *mut u8, boot.heap.bytes as usize) });
}
