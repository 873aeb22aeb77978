//! Structures in a region.

use super::{Bytes, Mutex, RwLock};
use crate::wait::Waiters;
use crate::{mpmc, spsc, sync};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Types for data in a lock in a region: any bytes are a value, and zero bytes are the initial one.
///
/// # Safety
///
/// The type has this property, a stated layout (`repr(C)`, `repr(transparent)` or a primitive) and no pointers.
pub unsafe trait Plain {}

/// Types that may lie directly in a region: any bytes are a value, and a peer may write to any of them at any time,
/// even while there are references.
///
/// # Safety
///
/// The type consists of atomic words, or of a lock whose data is [`Plain`]. It has a stated layout and no pointers.
pub unsafe trait Shared: Sync {}

macro_rules! implement {
    ($trait:ident: $($type:ty)*) => { $(
        // SAFETY: any bytes are a number; for `Shared`, the types are atomic numbers and `repr(C)` structures of them
        // whose code accepts any value.
        unsafe impl $trait for $type {}
    )* };
}
implement!(Plain: u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 AtomicU32 AtomicU64);
implement!(Shared: AtomicU32 AtomicU64 Waiters<AtomicU64>);
implement!(Shared: sync::RawMutex sync::Semaphore sync::Barrier sync::Condvar);
implement!(Shared: spsc::Control mpmc::Control mpmc::Slot);

// SAFETY: atomic words whose code accepts any value.
unsafe impl<const PEERS: usize> Shared for sync::RawRwLock<AtomicU64, PEERS> {}
// SAFETY: an array consists of its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
// SAFETY: an array consists of its elements.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}
// SAFETY: `repr(C)`: atomic words, and plain data that is accessed only through the lock.
unsafe impl<T: Plain + Send> Shared for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Plain + Send + Sync, const PEERS: usize> Shared for RwLock<T, AtomicU64, PEERS> {}

/// Memory that peers share, in which structures are found by their offset.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    base: *mut u8,
    bytes: usize,
    lifetime: PhantomData<&'a UnsafeCell<u8>>,
}

// SAFETY: it only gives out values that may be shared: `Sync` structures, and bytes that are accessed atomically.
unsafe impl Send for Region<'_> {}
// SAFETY: as above.
unsafe impl Sync for Region<'_> {}

impl<'a> Region<'a> {
    /// The region of `bytes` bytes at `base`.
    ///
    /// # Safety
    ///
    /// The memory must be mapped, readable and writable for `'a`, and must not wrap around. Code in this address space
    /// must access it through regions only, and by different types at the same offset only if these are atomic words or
    /// [`Bytes`]. Other address spaces may write anything, except that they must keep the protocol of each [`Mutex`]
    /// and [`RwLock`] in it.
    pub unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        Self { base, bytes, lifetime: PhantomData }
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The structure at `offset`; `None` unless all of it lies inside and it is aligned.
    pub fn get<T: Shared>(&self, offset: usize) -> Option<&'a T> {
        self.array(offset, 1)?.first()
    }

    /// `count` structures at `offset`; `None` under the conditions of [`Region::get`].
    pub fn array<T: Shared>(&self, offset: usize, count: usize) -> Option<&'a [T]> {
        let bytes = count.checked_mul(size_of::<T>())?;
        let first = self.part(offset, bytes)?.cast::<T>();
        // SAFETY: inside mapped memory, and aligned; any bytes are a value, and may change.
        first.is_aligned().then(|| unsafe { core::slice::from_raw_parts(first, count) })
    }

    /// `bytes` bytes at `offset`; `None` unless all of them lie inside and their address is a multiple of 8.
    pub fn data(&self, offset: usize, bytes: usize) -> Option<Bytes<'a>> {
        let base = self.part(offset, bytes)?;
        // SAFETY: inside mapped memory, which is accessed atomically.
        base.cast::<u64>().is_aligned().then(|| unsafe { Bytes::new(base, bytes) })
    }

    /// Control words and data of an [`spsc`] ring at `offset` with `bytes` bytes of data; the ring takes
    /// [`spsc::HEADER`] bytes more. `None` unless all of it lies inside and its address is a multiple of 128.
    pub fn spsc(&self, offset: usize, bytes: usize) -> Option<(&'a spsc::Control, Bytes<'a>)> {
        Some((self.get(offset)?, self.data(offset.checked_add(spsc::HEADER)?, bytes)?))
    }

    /// The [`mpmc`] ring at `offset` with `slots` slots of `room` bytes each; the ring takes [`mpmc::bytes`]. `None`
    /// unless all of it lies inside, its address is a multiple of 128, `slots` is a power of two and at least 2, and
    /// `room` is a multiple of 8.
    pub fn mpmc(
        &self,
        offset: usize,
        slots: usize,
        room: usize,
    ) -> Option<mpmc::Ring<&'a mpmc::Control, &'a [mpmc::Slot], Bytes<'a>>> {
        let first = offset.checked_add(size_of::<mpmc::Control>())?;
        let data = first.checked_add(slots.checked_mul(size_of::<mpmc::Slot>())?)?;
        let bytes = slots.checked_mul(room)?;
        mpmc::Ring::new(self.get(offset)?, self.array(first, slots)?, self.data(data, bytes)?)
    }

    fn part(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let inside = crate::data::inside(self.bytes, offset, bytes);
        inside.then(|| self.base.wrapping_add(offset)).filter(|base| !base.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn only_aligned_structures_inside_are_found() {
        let words: [AtomicU64; 8] = Default::default();
        // SAFETY: the array outlives the region and is accessed atomically.
        let region = unsafe { Region::new(words.as_ptr() as *mut u8, 64) };
        region.get::<AtomicU64>(8).unwrap().store(7, Relaxed);
        assert_eq!(words[1].load(Relaxed), 7);
        assert_eq!(region.array::<AtomicU64>(0, 8).unwrap().len(), 8);
        assert!(region.array::<AtomicU64>(0, 9).is_none());
        assert!(region.array::<AtomicU64>(8, usize::MAX / 4).is_none());
        assert!(region.get::<AtomicU64>(64).is_none() && region.get::<AtomicU64>(57).is_none());
        assert!(
            region.get::<AtomicU64>(4).is_none() && region.get::<AtomicU64>(usize::MAX).is_none()
        );
        assert!(region.data(4, 8).is_none() && region.data(56, 9).is_none());
        assert!(region.data(0, 64).is_some());
    }
}
