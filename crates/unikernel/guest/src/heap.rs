//! The heap that all machines of a family share. Each machine keeps small pieces that it freed, and allocates from them
//! first.
//!
//! A machine that dies inside the heap leaves it in an unknown state: from then on a machine can allocate only the
//! pieces that it keeps, and nothing can be freed. No machine waits for the heap. The pieces that a machine kept when
//! it died are lost: at most 64 KiB.

use crate::magazines::{Class, Magazines};
use crate::vm::Vm;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use kyozon_abi::unikernel::GuestBoot;
use kyozon_channel::sync::{Acquired, RawMutex};
use talc::{base::binning::DefaultBinning, base::Talc, source::Manual};

/// The allocator, and its lock.
struct Heap {
    lock: RawMutex,
    talc: UnsafeCell<Talc<Manual, DefaultBinning>>,
}

// SAFETY: the cell is accessed under the lock only.
unsafe impl Sync for Heap {}

impl Heap {
    /// Runs `work` with the allocator; `None` if a machine died inside it.
    fn with<R>(&self, work: impl FnOnce(&mut Talc<Manual, DefaultBinning>) -> R) -> Option<R> {
        let acquired = self.lock.lock(&Vm, None).ok()?;
        // SAFETY: this machine holds the lock.
        let done = (acquired == Acquired::Clean).then(|| work(unsafe { &mut *self.talc.get() }));
        self.lock.unlock(&Vm, acquired);
        done
    }

    /// Allocates a batch of pieces: returns one, and keeps the others.
    fn refill(&self, kept: &mut Magazines, class: Class) -> Option<NonNull<u8>> {
        let found = self.with(|talc| {
            // SAFETY: no class has size 0.
            let mut next = || unsafe { talc.allocate(class.layout()) };
            let found = next()?;
            for piece in core::iter::from_fn(next).take(class.batch() - 1) {
                // SAFETY: new, with this layout.
                unsafe { kept.put(class, piece) };
            }
            Some(found)
        });
        found.flatten()
    }

    /// Returns up to `count` kept pieces of each class to the allocator.
    fn give(&self, kept: &mut Magazines, classes: impl Iterator<Item = Class>, count: usize) {
        self.with(|talc| {
            for class in classes {
                for piece in core::iter::from_fn(|| kept.take(class)).take(count) {
                    // SAFETY: allocated with this layout, by any machine.
                    unsafe { talc.deallocate(piece.as_ptr(), class.layout()) };
                }
            }
        });
    }
}

crate::private! {
    /// The pieces that this machine keeps.
    static KEPT: Magazines = Magazines::new();
}

/// The pieces that this machine keeps. There is only one such reference at a time, as allocating never allocates.
fn kept() -> &'static mut Magazines {
    // SAFETY: the machine's own copy; its only thread of execution is here, and holds no other reference.
    unsafe { &mut *KEPT.pointer().get() }
}

/// Returns all kept pieces to the allocator. Returns whether there were any.
pub fn give_back() -> bool {
    let some = !kept().is_empty();
    if some {
        HEAP.give(kept(), Class::all(), usize::MAX);
    }
    some
}

// SAFETY: the allocator keeps these promises under its lock; a kept piece belongs to one machine only.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let find = || match Class::of(layout) {
            Some(class) => kept().take(class).or_else(|| self.refill(kept(), class)),
            // SAFETY: the size is not 0, as the caller promises.
            None => self.with(|talc| unsafe { talc.allocate(layout) }).flatten(),
        };
        // The kept pieces may be the only free memory, or split it in two.
        let found = find().or_else(|| give_back().then(find).flatten());
        found.map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: allocated here with this layout, as the caller promises.
        unsafe {
            match (Class::of(layout), NonNull::new(piece)) {
                (Some(class), Some(small)) => {
                    if kept().put(class, small) {
                        self.give(kept(), core::iter::once(class), class.batch());
                    }
                }
                _ => drop(self.with(|talc| talc.deallocate(piece, layout))),
            }
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: allocated here with this layout, and the new size is not 0, as the caller promises.
        unsafe {
            let new = Layout::from_size_align_unchecked(bytes, layout.align());
            let stays = match (Class::of(layout), Class::of(new)) {
                (None, None) => self.with(|talc| talc.try_realloc_in_place(piece, layout, bytes)),
                (before, after) => Some(before == after),
            };
            if stays == Some(true) {
                return piece;
            }
            let to = self.alloc(new);
            if !to.is_null() {
                core::ptr::copy_nonoverlapping(piece, to, layout.size().min(bytes));
                self.dealloc(piece, layout);
            }
            to
        }
    }
}

#[global_allocator]
static HEAP: Heap = Heap { lock: RawMutex::new(), talc: UnsafeCell::new(Talc::new(Manual)) };

/// Gives more memory to the allocator. False if a machine died inside it.
///
/// # Safety
///
/// Nothing else uses this memory from now on.
pub unsafe fn extend(address: usize, bytes: usize) -> bool {
    // SAFETY: the caller's promise.
    HEAP.with(|talc| unsafe { talc.claim(address as *mut u8, bytes) }.is_some()).unwrap_or(false)
}

/// Gives the heap's memory to the allocator, before anything is allocated.
///
/// # Safety
///
/// Must be called once in a family, with the tender's boot block.
pub unsafe fn set_up(boot: &GuestBoot) {
    // SAFETY: nothing else uses the heap's memory.
    HEAP.with(|talc| unsafe { talc.claim(boot.heap.base as *mut u8, boot.heap.bytes as usize) });
}
