//! The heap: all that the tender gave, for all machines of a family. Each machine keeps small pieces that it freed, and
//! allocates from them first.
//!
//! A machine that dies inside the heap leaves it in an unknown state: from then on nothing can be allocated in the
//! family but what a machine has kept, and nothing is given back. Nobody waits for it. What a machine kept when it died
//! is nobody's any more: 64 KiB at most.

use crate::magazines::{Class, Magazines};
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

    /// A piece that this machine did not keep, and more of them to keep.
    fn refill(&self, kept: &mut Magazines, class: Class) -> Option<NonNull<u8>> {
        let found = self.with(|talc| {
            // SAFETY: of some bytes, as all classes are.
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

    /// Gives back so many of each of these classes that this machine kept.
    fn give(&self, kept: &mut Magazines, classes: impl Iterator<Item = Class>, count: usize) {
        self.with(|talc| {
            for class in classes {
                for piece in core::iter::from_fn(|| kept.take(class)).take(count) {
                    // SAFETY: allocated with this layout, by whichever machine.
                    unsafe { talc.deallocate(piece.as_ptr(), class.layout()) };
                }
            }
        });
    }
}

crate::private! {
    /// What this machine keeps.
    static KEPT: Magazines = Magazines::new();
}

/// What this machine keeps. Nobody has it at the same time: allocating never calls what allocates.
fn kept() -> &'static mut Magazines {
    // SAFETY: this machine's own, whose only thread of execution is here, and has no other reference.
    unsafe { &mut *KEPT.pointer().get() }
}

/// What this machine has kept is for others again. Whether there was something.
pub fn give_back() -> bool {
    let some = !kept().is_empty();
    if some {
        HEAP.give(kept(), Class::all(), usize::MAX);
    }
    some
}

// SAFETY: the allocator's own promises, under a lock; a piece is kept by one machine, and nobody else's meanwhile.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let find = || match Class::of(layout) {
            Some(class) => kept().take(class).or_else(|| self.refill(kept(), class)),
            // SAFETY: of some bytes, as the caller promises.
            None => self.with(|talc| unsafe { talc.allocate(layout) }).flatten(),
        };
        // What is kept may be all that is left, or lie in the middle of it.
        let found = find().or_else(|| give_back().then(find).flatten());
        found.map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: allocated here with this layout, as the caller promises.
        unsafe {
            match (Class::of(layout), NonNull::new(at)) {
                (Some(class), Some(piece)) => {
                    if kept().put(class, piece) {
                        self.give(kept(), core::iter::once(class), class.batch());
                    }
                }
                _ => drop(self.with(|talc| talc.deallocate(at, layout))),
            }
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: allocated here with this layout, and of some bytes, as the caller promises.
        unsafe {
            let then = Layout::from_size_align_unchecked(bytes, layout.align());
            let stays = match (Class::of(layout), Class::of(then)) {
                (None, None) => self.with(|talc| talc.try_realloc_in_place(at, layout, bytes)),
                (before, after) => Some(before == after),
            };
            if stays == Some(true) {
                return at;
            }
            let to = self.alloc(then);
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
