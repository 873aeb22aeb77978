//! A guest with one queue, for tests and fuzzers. Several of them on one memory are a guest with several queues.
//!
//! Constants give the addresses of its parts, so that a test can overwrite them. [`driver`] writes registers, and
//! [`wire`] is a backend of a network device.

pub mod driver;
pub mod wire;

use crate::ring::Place;
use std::sync::atomic::Ordering;
use virtio_bindings::virtio_ring::{VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};
use virtio_queue::desc::{split::Descriptor, RawDescriptor};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// First address of the guest's memory.
pub const BASE: u64 = 0x10_0000;
/// Bytes of the guest's memory.
pub const BYTES: usize = 0x1_0000;
/// Address of the descriptor table.
pub const DESCRIPTORS: u64 = BASE + 0x1000;
/// Address of the available ring.
pub const AVAILABLE: u64 = BASE + 0x2000;
/// Address of the used ring.
pub const USED: u64 = BASE + 0x3000;
/// From this address on, memory is free for requests.
pub const FREE: u64 = BASE + 0x4000;
/// Number of entries of the queue.
pub const SIZE: u16 = 8;
/// Distance of a part of a queue from the same part of the guest's next queue.
pub const NEXT: u64 = 0x200;

/// The guest.
#[derive(Debug)]
pub struct Guest {
    /// Its memory.
    pub memory: GuestMemoryMmap,
    /// Offset of the queue's parts.
    offset: u64,
    /// Index of the next descriptor to use.
    descriptor: u16,
    available: u16,
    used: u16,
}

/// A piece of memory: address, bytes, whether the device writes.
pub type Piece = (u64, u32, bool);

impl Default for Guest {
    fn default() -> Self {
        let ranges = [(GuestAddress(BASE), BYTES)];
        let Ok(memory) = GuestMemoryMmap::from_ranges(&ranges) else { panic!("64K of memory") };
        Self::with_memory(memory)
    }
}

impl Guest {
    /// A guest with empty rings in this memory, which other guests may use, too.
    pub fn with_memory(memory: GuestMemoryMmap) -> Self {
        Self { memory, offset: 0, descriptor: 0, available: 0, used: 0 }
    }

    /// The same guest's queue with this number.
    pub fn queue(&self, number: u64) -> Self {
        Self { offset: number * NEXT, ..Self::with_memory(self.memory.clone()) }
    }

    /// Size and addresses of its queue.
    pub fn place(&self) -> Place {
        let [descriptors, available, used] =
            [DESCRIPTORS, AVAILABLE, USED].map(|at| at + self.offset);
        Place { size: SIZE, descriptors, available, used }
    }

    /// Writes `bytes` at `at`; does nothing outside the guest's memory.
    pub fn poke(&self, at: u64, bytes: &[u8]) {
        let _ = self.memory.write_slice(bytes, GuestAddress(at));
    }

    /// Reads `N` bytes.
    pub fn peek<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let _ = self.memory.read_slice(&mut bytes, GuestAddress(at));
        bytes
    }

    fn half(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.peek(at))
    }

    /// Writes one descriptor.
    pub fn describe(&self, index: u16, address: u64, bytes: u32, flags: u16, next: u16) {
        let descriptor = RawDescriptor::from(Descriptor::new(address, bytes, flags, next));
        let at = self.offset + DESCRIPTORS + 16 * u64::from(index);
        let _ = self.memory.write_obj(descriptor, GuestAddress(at));
    }

    /// Makes an entry of these pieces available. Returns the index of its first descriptor.
    pub fn ask(&mut self, pieces: &[Piece]) -> u16 {
        let head = self.descriptor;
        for (i, (address, bytes, write)) in pieces.iter().enumerate() {
            let index = (head + i as u16) % SIZE;
            let next = if i + 1 < pieces.len() { VRING_DESC_F_NEXT } else { 0 };
            let flags = next | if *write { VRING_DESC_F_WRITE } else { 0 };
            self.describe(index, *address, *bytes, flags as u16, (index + 1) % SIZE);
        }
        self.descriptor = (head + pieces.len() as u16) % SIZE;
        self.offer(head);
        head
    }

    /// Makes the entry that starts with the descriptor `head` available.
    pub fn offer(&mut self, head: u16) {
        let slot = self.offset + AVAILABLE + 4 + 2 * u64::from(self.available % SIZE);
        self.poke(slot, &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        let index = GuestAddress(self.offset + AVAILABLE + 2);
        let _ = self.memory.store(self.available.to_le(), index, Ordering::Release);
    }

    /// The next entry that the device returned: its first descriptor, and the bytes that the device wrote. The guest
    /// then asks to be woken for the entry after it.
    pub fn answer(&mut self) -> Option<(u32, u32)> {
        if self.half(self.offset + USED + 2) == self.used {
            return None;
        }
        let slot = self.offset + USED + 4 + 8 * u64::from(self.used % SIZE);
        self.used = self.used.wrapping_add(1);
        self.wake_at(self.used);
        Some((u32::from_le_bytes(self.peek(slot)), u32::from_le_bytes(self.peek(slot + 4))))
    }

    /// Asks to be woken when `used` + 1 entries have returned.
    pub fn wake_at(&self, used: u16) {
        self.poke(self.offset + AVAILABLE + 4 + 2 * u64::from(SIZE), &used.to_le_bytes());
    }

    /// Whether the device asks the guest to ring for the next entry.
    pub fn is_asked_to_ring(&self) -> bool {
        self.half(self.offset + USED + 4 + 8 * u64::from(SIZE)) == self.available
    }
}
