//! Small free pieces that a machine keeps for itself, so that most allocations involve no other machine (J. Bonwick and
//! J. Adams, "Magazines and Vmem", USENIX 2001).
//!
//! A piece has one of [`SIZES`]. The machine that frees a piece keeps it, whichever machine allocated it. A machine
//! that keeps too many returns a batch, and a machine without any takes a batch. So the heap's lock is taken once per
//! batch.

use core::alloc::Layout;
use core::ptr::{null_mut, NonNull};

/// Sizes of pieces, multiples of [`STEP`].
const SIZES: [usize; 16] =
    [16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];
/// Every piece is aligned to this.
const STEP: usize = 16;
const LARGEST: usize = SIZES[SIZES.len() - 1];

/// For each number of steps, the index of the smallest size that fits.
const CLASSES: [u8; LARGEST / STEP + 1] = {
    let mut classes = [0; LARGEST / STEP + 1];
    let (mut steps, mut class) = (0, 0);
    while steps < classes.len() {
        if SIZES[class] < steps * STEP {
            class += 1;
        }
        classes[steps] = class as u8;
        steps += 1;
    }
    classes
};

/// A size of pieces, as its index in [`SIZES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(u8);

impl Class {
    /// The smallest class that fits a layout; `None` if none does.
    #[inline]
    pub fn of(layout: Layout) -> Option<Self> {
        let small = layout.align() <= STEP && layout.size() <= LARGEST;
        small.then(|| Self(CLASSES[layout.size().div_ceil(STEP)]))
    }

    /// The layout of the class's pieces.
    pub fn layout(self) -> Layout {
        // SAFETY: the alignment is a power of two, and the size a small multiple of it.
        unsafe { Layout::from_size_align_unchecked(SIZES[usize::from(self.0)], STEP) }
    }

    /// Pieces that move between machine and heap at once.
    pub fn batch(self) -> usize {
        (LARGEST / SIZES[usize::from(self.0)]).min(16)
    }

    /// All classes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SIZES.len() as u8).map(Self)
    }
}

/// A free piece, which holds a pointer to the next one.
struct Free {
    next: *mut Free,
}

/// Free pieces of one size.
#[derive(Clone, Copy)]
struct Magazine {
    first: *mut Free,
    count: usize,
}

/// All magazines of a machine.
pub struct Magazines([Magazine; SIZES.len()]);

impl Magazines {
    /// Magazines without pieces.
    pub const fn new() -> Self {
        Self([Magazine { first: null_mut(), count: 0 }; SIZES.len()])
    }

    /// Takes a kept piece.
    #[inline]
    pub fn take(&mut self, class: Class) -> Option<NonNull<u8>> {
        let magazine = &mut self.0[usize::from(class.0)];
        // Counted, as the last piece's `next` cannot be relied on: a C program may have freed that piece twice.
        magazine.count = magazine.count.checked_sub(1)?;
        let piece = NonNull::new(magazine.first)?;
        // SAFETY: `put` stored this piece, and no other code has it.
        magazine.first = unsafe { piece.as_ref() }.next;
        Some(piece.cast())
    }

    /// Whether no piece is kept.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|magazine| magazine.count == 0)
    }

    /// Keeps a piece. Returns whether a batch should be returned to the heap.
    ///
    /// # Safety
    ///
    /// The piece has the layout of this class, and no other code uses it from now on.
    #[inline]
    pub unsafe fn put(&mut self, class: Class, piece: NonNull<u8>) -> bool {
        let magazine = &mut self.0[usize::from(class.0)];
        let piece = piece.cast::<Free>();
        // SAFETY: every class has room for a `Free`, and its alignment.
        unsafe { piece.write(Free { next: magazine.first }) };
        magazine.first = piece.as_ptr();
        magazine.count += 1;
        magazine.count > 2 * class.batch()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::boxed::Box;
    use std::{vec, vec::Vec};

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).unwrap()
    }

    #[test]
    fn a_class_is_the_smallest_that_fits() {
        for bytes in 0..=LARGEST {
            let class = Class::of(layout(bytes, 8)).unwrap();
            assert!(class.layout().size() >= bytes, "{bytes}");
            assert!(class.0 == 0 || SIZES[usize::from(class.0) - 1] < bytes, "{bytes}");
            assert!((1..=16).contains(&class.batch()));
        }
        assert_eq!(Class::of(layout(LARGEST + 1, 1)), None);
        assert_eq!(Class::of(layout(8, 32)), None);
        assert_eq!(Class::all().count(), SIZES.len());
    }

    #[test]
    fn every_kept_piece_is_taken_once() {
        let mut magazines = Magazines::new();
        for class in Class::all() {
            let mut pieces: Vec<_> = (0..2 * class.batch() + 1)
                .map(|_| Box::leak(vec![0_u128; class.layout().size() / STEP].into_boxed_slice()))
                .map(|piece| NonNull::from(piece).cast::<u8>())
                .collect();
            for (count, piece) in pieces.iter().enumerate() {
                // SAFETY: of this size and alignment, and not used elsewhere.
                let full = unsafe { magazines.put(class, *piece) };
                assert_eq!(full, count == 2 * class.batch());
            }
            assert!(!magazines.is_empty());
            let mut back: Vec<_> = std::iter::from_fn(|| magazines.take(class)).collect();
            assert!(magazines.is_empty());
            back.sort();
            pieces.sort();
            assert_eq!(back, pieces);
            for piece in back {
                let all = std::ptr::slice_from_raw_parts_mut(
                    piece.cast::<u128>().as_ptr(),
                    class.layout().size() / STEP,
                );
                // SAFETY: leaked from a box above.
                drop(unsafe { Box::from_raw(all) });
            }
        }
    }
}
