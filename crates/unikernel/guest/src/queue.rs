//! The driver's side of a split queue (Virtual I/O Device (VIRTIO) version 1.2, section 2.7).
//!
//! Its memory belongs to the heap. The driver only writes descriptors, and the device only reads them; the driver's own
//! state lies elsewhere, out of the device's reach.

use crate::{Error, Result};
use alloc::alloc::{alloc_zeroed, dealloc, Layout};
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{fence, AtomicU16, AtomicU32, Ordering};

/// `VIRTQ_DESC_F_NEXT`.
const NEXT: u16 = 1;
/// `VIRTQ_DESC_F_WRITE`.
const WRITE: u16 = 2;
/// No descriptor.
const NONE: u16 = u16::MAX;

/// Heap memory, zeroed at first, that a device reads and writes too. It stays with the guest that has the device, as
/// the device gives that guest its token: another thread of the family would sleep for ever.
#[derive(Debug)]
pub(crate) struct Shared {
    memory: NonNull<u8>,
    layout: Layout,
}

impl Shared {
    /// Allocates `bytes` bytes, aligned to 4096.
    pub fn new(bytes: usize) -> Result<Self> {
        let layout = Layout::from_size_align(bytes.max(1), 4096).map_err(|_| Error::Full)?;
        // SAFETY: the size is more than 0.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Error::Full)?;
        Ok(Self { memory, layout })
    }

    /// The address of the byte at `offset`, or of the end.
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.layout.size());
        // SAFETY: inside the memory, or at its end.
        unsafe { self.memory.as_ptr().add(offset) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. The device was stopped before, or else this value was leaked.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// A piece of an entry: its address, its bytes, and whether the device writes to it.
pub(crate) type Piece = (u64, u32, bool);

/// A driver's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    memory: Shared,
    size: u16,
    /// For each descriptor the next one: of the same entry, or in the list of free ones.
    next: Vec<u16>,
    free: u16,
    free_count: u16,
    /// Index of the next available entry.
    available: u16,
    /// Its value when [`Queue::wants_ring`] was called last.
    announced: u16,
    /// Index of the next used entry.
    used: u16,
}

impl Queue {
    /// Makes a queue of `size` entries, a power of two.
    pub fn new(size: u16) -> Result<Self> {
        assert!(size.is_power_of_two());
        let memory = Shared::new(Self::used_offset(size) + 6 + 8 * usize::from(size))?;
        let next = (1..size).chain([NONE]).collect();
        Ok(Self {
            memory,
            size,
            next,
            free: 0,
            free_count: size,
            available: 0,
            announced: 0,
            used: 0,
        })
    }

    fn available_offset(size: u16) -> usize {
        16 * usize::from(size)
    }

    fn used_offset(size: u16) -> usize {
        (Self::available_offset(size) + 6 + 2 * usize::from(size)).next_multiple_of(64)
    }

    /// The number of entries, and the addresses of descriptors, available ring and used ring.
    pub fn layout(&self) -> [u64; 4] {
        let at = |offset| self.memory.at(offset) as u64;
        let (available, used) = (Self::available_offset(self.size), Self::used_offset(self.size));
        [u64::from(self.size), at(0), at(available), at(used)]
    }

    fn half(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: inside the queue's memory, and aligned, as offsets are even; both sides use atomic accesses.
        unsafe { AtomicU16::from_ptr(self.memory.at(offset).cast()) }
    }

    fn available_ring(&self, field: usize) -> &AtomicU16 {
        self.half(Self::available_offset(self.size) + 2 * field)
    }

    fn used_ring(&self, field: usize) -> &AtomicU16 {
        self.half(Self::used_offset(self.size) + 2 * field)
    }

    /// The number of one-piece entries that fit.
    pub fn room(&self) -> u16 {
        self.free_count
    }

    /// The number of the next entry, if there is room.
    pub fn next_entry(&self) -> u16 {
        self.free
    }

    /// Makes an entry available to the device. Returns its number; `None` if there is no room.
    ///
    /// # Safety
    ///
    /// The pieces belong to the device until [`Queue::take`] returns the number, or the queue was stopped.
    pub unsafe fn add(&mut self, pieces: &[Piece]) -> Option<u16> {
        if pieces.is_empty() || pieces.len() > usize::from(self.free_count) {
            return None;
        }
        let head = self.free;
        let mut last = head;
        for (i, (address, bytes, write)) in pieces.iter().enumerate() {
            let this = self.free;
            self.free = self.next[usize::from(this)];
            let more = i + 1 < pieces.len();
            let flags = if more { NEXT } else { 0 } | if *write { WRITE } else { 0 };
            let next = if more { self.free } else { 0 };
            let high = u64::from(*bytes) | u64::from(flags) << 32 | u64::from(next) << 48;
            let descriptor = self.memory.at(16 * usize::from(this)).cast::<u64>();
            // SAFETY: inside the table. The device reads the descriptor only after the index below was stored.
            unsafe {
                descriptor.write_volatile(*address);
                descriptor.add(1).write_volatile(high);
            }
            last = this;
        }
        self.next[usize::from(last)] = NONE;
        self.free_count -= pieces.len() as u16;
        let slot = 2 + usize::from(self.available % self.size);
        self.available_ring(slot).store(head, Ordering::Relaxed);
        self.available = self.available.wrapping_add(1);
        self.available_ring(1).store(self.available, Ordering::Release);
        Some(head)
    }

    /// Whether the device wants to be notified of entries that were added since the last call (section 2.7.10).
    pub fn wants_ring(&mut self) -> bool {
        fence(Ordering::SeqCst);
        let event = self.used_ring(2 + 4 * usize::from(self.size)).load(Ordering::Relaxed);
        let new =
            self.available.wrapping_sub(core::mem::replace(&mut self.announced, self.available));
        self.available.wrapping_sub(event).wrapping_sub(1) < new
    }

    /// Asks the device to wake this guest for the next used entry (section 2.7.7). Returns true if there is none yet,
    /// so that the guest can sleep.
    pub fn listen(&self) -> bool {
        self.ask_wake(self.used);
        fence(Ordering::SeqCst);
        self.is_empty()
    }

    /// Asks the device not to wake this guest. One entry in 65,536 still does: the one that is furthest from those that
    /// the device may return soon.
    pub fn ignore(&self) {
        self.ask_wake(self.used.wrapping_add(1 << 15));
    }

    /// Asks to be woken when the device has used the entry at index `event`.
    fn ask_wake(&self, event: u16) {
        self.available_ring(2 + usize::from(self.size)).store(event, Ordering::Relaxed);
    }

    /// Whether there is no used entry.
    pub fn is_empty(&self) -> bool {
        self.used_ring(1).load(Ordering::Acquire) == self.used
    }

    /// Takes a used entry: its number, and how many bytes the device wrote.
    ///
    /// # Panics
    ///
    /// Panics if the device returns an entry that does not exist.
    pub fn take(&mut self) -> Option<(u16, u32)> {
        if self.is_empty() {
            return None;
        }
        let slot = Self::used_offset(self.size) + 4 + 8 * usize::from(self.used % self.size);
        // SAFETY: inside the ring, and a multiple of 4.
        let word = |offset| unsafe { AtomicU32::from_ptr(self.memory.at(slot + offset).cast()) };
        let (id, bytes) = (word(0).load(Ordering::Relaxed), word(4).load(Ordering::Relaxed));
        self.used = self.used.wrapping_add(1);
        let head = u16::try_from(id).ok().filter(|head| *head < self.size);
        let head = head.expect("the device returned an entry of the queue");
        let mut last = head;
        let mut count = 1;
        while self.next[usize::from(last)] != NONE {
            last = self.next[usize::from(last)];
            count += 1;
        }
        self.next[usize::from(last)] = self.free;
        self.free = head;
        self.free_count += count;
        Some((head, bytes))
    }

    /// Leaks the queue's memory, which a device may still use.
    pub fn leak(self) {
        core::mem::forget(self.memory);
    }
}

#[cfg(test)]
mod tests;
