//! Addresses in the guest's address space, and offsets in its memory.
//!
//! A guest's memory is one block on the host and one memory slot of KVM, because each slot costs a grace period of
//! Linux. The block holds the tender's pages, the heap (aligned for large pages), the image, thread-local data and the
//! stack, in this order.

use crate::elf::{Image, Program};
use crate::error::{ensure, Result};
use kyozon_abi::unikernel::*;

/// Size of a page in bytes.
pub const PAGE: u64 = 4096;
/// Size of a large page in bytes.
pub const LARGE_PAGE: u64 = 2 << 20;
/// Maximum size of the stack in bytes; a guest with little memory gets a quarter of it.
const MAX_STACK_BYTES: u64 = 1 << 20;
/// Bytes from the thread pointer on that a program may use.
const THREAD_BYTES: u64 = 64;
const _: () = assert!(size_of::<GuestBoot>() <= PAGE as usize);

/// Offsets of the tender's pages in the block, which begins with [`SYSTEM_BYTES`] bytes of such pages. The guest maps
/// only the pages with a name here.
pub mod system {
    /// The boot block: read-only for the guest.
    pub const BOOT: u64 = 0x1000;
    /// The call block: writable for the guest.
    pub const CALL: u64 = 0x3000;
    /// The exception stack: writable for the guest.
    pub const FAULT_STACK: u64 = 0x5000;
    /// Interrupt descriptors: not accessible to the guest.
    pub const IDT: u64 = 0x7000;
    /// Segment descriptors: not accessible to the guest.
    pub const GDT: u64 = 0x8000;
    /// Task state with the port bitmap: not accessible to the guest.
    pub const TSS: u64 = 0x9000;
    /// The page of [`Lives`](crate::lives::Lives): read-only for the guest.
    pub const PEERS: u64 = 0xb000;
    /// The door, and the rest of the tender's code that the guest executes: two pages.
    pub const DOOR: u64 = 0x1_0000;
    /// End of the pages that every guest uses.
    pub const USED: u64 = 0x1_2000;
    /// Arguments: read-only for the guest.
    pub const ARGUMENTS: u64 = 0x2_0000;
    /// Maximum size of the arguments in bytes.
    pub const ARGUMENTS_BYTES: u64 = 0x1_0000;
    /// Page tables, up to the end: not mapped.
    pub const TABLES: u64 = 0x3_0000;
}
/// Size of the tender's pages in bytes.
pub const SYSTEM_BYTES: u64 = 2 << 20;

/// A range of the guest's address space with the same access rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First virtual address, a multiple of a page.
    pub base: u64,
    /// Size in bytes, a multiple of a page.
    pub bytes: u64,
    /// Offset in the block in bytes.
    pub offset: u64,
    /// The guest can write the piece.
    pub write: bool,
    /// The guest can execute the piece.
    pub execute: bool,
    /// Each peer of a family has a copy.
    pub private: bool,
}

/// The layout of one guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Pieces of the block behind the tender's pages. The first is the heap.
    pub pieces: Vec<Piece>,
    /// Size of all pieces in the guest's own block, in bytes.
    pub bytes: u64,
    /// Address of the first instruction.
    pub entry: u64,
    /// See [`GuestBoot`].
    pub argument: u64,
    /// The thread pointer.
    pub thread: u64,
    /// See [`GuestBoot`].
    pub image: Area,
    /// See [`GuestBoot`].
    pub stack: Area,
    /// See [`GuestBoot`].
    pub tls: Area,
    /// See [`GuestBoot`].
    pub heap: Area,
    /// See [`GuestBoot`].
    pub program: Program,
}

fn image_bytes(image: &Image) -> u64 {
    image.segments.iter().map(|s| s.pages().end - s.pages().start).sum()
}

/// Bytes of thread-local data, with the thread pointer's words.
fn tls_bytes(image: &Image) -> u64 {
    let align = image.tls.align.max(16);
    (image.tls.bytes.next_multiple_of(align) + THREAD_BYTES).next_multiple_of(PAGE)
}

fn stack_bytes(memory: u64) -> u64 {
    (memory / 4).clamp(16 * PAGE, MAX_STACK_BYTES) & !(PAGE - 1)
}

/// Bytes that a guest of the start with `memory` bytes needs beside its heap.
pub fn fixed_bytes(image: &Image, memory: u64) -> u64 {
    image_bytes(image) + tls_bytes(image) + stack_bytes(memory)
}

/// Bytes of the pieces that each peer of a family has for itself.
pub fn private_bytes(image: &Image) -> u64 {
    let private = image.segments.iter().filter(|s| s.private);
    private.map(|s| s.pages().end - s.pages().start).sum::<u64>() + tls_bytes(image)
}

/// Checks that a guest may have `memory` bytes.
///
/// # Errors
///
/// [`Error::Options`](crate::Error::Options): they are too many.
pub fn check_memory(memory: u64) -> Result<()> {
    let top = GUEST_MAX_MEMORY >> 30;
    ensure!(Options, memory <= GUEST_MAX_MEMORY, "a guest has at most {top}G of memory");
    Ok(())
}

impl Layout {
    /// Lays out an image, its heap and its stack in `memory` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Options`](crate::Error::Options): the memory is too large, or too small for this image.
    pub fn new(image: &Image, memory: u64) -> Result<Self> {
        check_memory(memory)?;
        let align = image.tls.align.max(16);
        let thread = GUEST_THREAD_BASE + image.tls.bytes.next_multiple_of(align);
        let tls = Area { base: GUEST_THREAD_BASE, bytes: tls_bytes(image) };
        let (stack_bytes, fixed) = (stack_bytes(memory), fixed_bytes(image, memory));
        let min = (fixed + PAGE) >> 10;
        ensure!(
            Options,
            memory >= fixed + PAGE,
            "{}K of memory is too little: this image, its stack and a heap need at least {min}K",
            memory >> 10
        );
        let heap = Area { base: GUEST_HEAP_BASE, bytes: (memory - fixed) & !(PAGE - 1) };
        let stack = Area { base: GUEST_STACK_TOP - stack_bytes, bytes: stack_bytes };

        let mut pieces = Vec::new();
        let mut offset = SYSTEM_BYTES;
        let mut add = |area: Area, write, execute, private| {
            let Area { base, bytes } = area;
            pieces.push(Piece { base, bytes, offset, write, execute, private });
            offset += area.bytes;
        };
        add(heap, true, false, false);
        for segment in &image.segments {
            let pages = segment.pages();
            let area = Area { base: pages.start, bytes: pages.end - pages.start };
            add(area, segment.write, segment.execute, segment.private);
        }
        add(tls, true, false, true);
        add(stack, true, false, false);
        let first = image.segments.first().map_or(0, |s| s.pages().start);
        let last = image.segments.last().map_or(0, |s| s.pages().end);
        let area = Area { base: first, bytes: last - first };
        let entry = image.entry;
        let bytes = offset - SYSTEM_BYTES;
        let (image, program) = (area, image.program);
        Ok(Self { pieces, bytes, entry, argument: 0, thread, image, stack, tls, heap, program })
    }

    /// The layout of a peer that is spawned into the family of this guest, which existed at the start. Offsets of
    /// shared pieces refer to this guest's block, offsets of private pieces to the new peer's block. The first page of
    /// `stack` becomes an unmapped guard.
    ///
    /// # Errors
    ///
    /// [`ERROR_ADDRESS`]: the entry or the stack breaks the rules of [`ASK_SPAWN`].
    pub fn spawned(&self, entry: u64, argument: u64, stack: Area) -> Result<Self, i64> {
        let inside = |p: &Piece, base: u64, bytes: u64| {
            base >= p.base && base - p.base < p.bytes && bytes <= p.bytes - (base - p.base)
        };
        let code = self.pieces.iter().any(|p| p.execute && inside(p, entry, 1));
        let aligned =
            (stack.base | stack.bytes).is_multiple_of(PAGE) && stack.bytes >= MIN_STACK_BYTES;
        let stack_piece = self
            .pieces
            .iter()
            .position(|p| p.write && !p.private && inside(p, stack.base, stack.bytes));
        let stack_piece = stack_piece.filter(|_| code && aligned).ok_or(ERROR_ADDRESS)?;
        let mut pieces = Vec::new();
        let mut own = SYSTEM_BYTES;
        for (i, piece) in self.pieces.iter().enumerate() {
            if piece.private {
                pieces.push(Piece { offset: own, ..*piece });
                own += piece.bytes;
            } else if i == stack_piece {
                let below = stack.base - piece.base;
                let above = below + PAGE;
                let (base, offset) = (piece.base + above, piece.offset + above);
                pieces.push(Piece { bytes: below, ..*piece });
                pieces.push(Piece { base, offset, bytes: piece.bytes - above, ..*piece });
            } else {
                pieces.push(*piece);
            }
        }
        pieces.retain(|piece| piece.bytes != 0);
        let stack = Area { base: stack.base + PAGE, bytes: stack.bytes - PAGE };
        Ok(Self { pieces, bytes: own - SYSTEM_BYTES, entry, argument, stack, ..self.clone() })
    }

    /// End address of the stack.
    pub fn stack_top(&self) -> u64 {
        self.stack.base + self.stack.bytes
    }

    /// Address of the copied template of thread-local data.
    pub fn tls_template(&self, image: &Image) -> u64 {
        self.thread - image.tls.bytes.next_multiple_of(image.tls.align.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;

    #[test]
    fn pieces_do_not_overlap_and_use_all_memory() {
        let image = elf::parse(&elf::tests::image()).unwrap();
        for memory in [1 << 20, 64 << 20, (3 << 30) + 5000] {
            let layout = Layout::new(&image, memory).unwrap();
            assert!(memory - layout.bytes < PAGE);
            let mut pieces = layout.pieces.clone();
            assert_eq!(pieces[0].base % LARGE_PAGE, 0);
            let mut end = SYSTEM_BYTES;
            for piece in &pieces {
                assert_eq!((piece.offset, piece.base % PAGE, piece.bytes % PAGE), (end, 0, 0));
                assert!(!(piece.write && piece.execute) && piece.bytes > 0);
                end += piece.bytes;
            }
            assert_eq!(end, SYSTEM_BYTES + layout.bytes);
            pieces.sort_by_key(|piece| piece.base);
            assert!(pieces.windows(2).all(|p| p[0].base + p[0].bytes <= p[1].base));
            assert!(pieces.iter().all(|p| p.base >= GUEST_IMAGE_BASE && p.base < REGION_BASE));
            let inside = |area: Area, a: u64| (area.base..area.base + area.bytes).contains(&a);
            assert!(
                inside(layout.tls, layout.thread)
                    && inside(layout.tls, layout.tls_template(&image))
            );
        }
    }

    #[test]
    fn spawned_peers_have_a_guard_and_private_data() {
        let image = elf::parse(&elf::tests::image()).unwrap();
        let first = Layout::new(&image, 1 << 20).unwrap();
        let entry = GUEST_IMAGE_BASE + 0x20;
        let data = Area { base: GUEST_IMAGE_BASE + 0x1000, bytes: 2 * PAGE };
        let heap = Area { base: first.heap.base + 5 * PAGE, bytes: 4 * PAGE };
        let start = Area { base: first.heap.base, bytes: first.heap.bytes };
        for stack in [heap, start, data, first.stack] {
            let layout = first.spawned(entry, 7, stack).unwrap();
            let at = |layout: &Layout, address: u64| {
                let inside = |p: &&Piece| (p.base..p.base + p.bytes).contains(&address);
                layout
                    .pieces
                    .iter()
                    .find(inside)
                    .map(|p| (p.offset + (address - p.base), p.private))
            };
            assert_eq!((layout.entry, layout.argument), (entry, 7));
            assert_eq!(layout.stack_top(), stack.base + stack.bytes);
            let mut own = SYSTEM_BYTES;
            for piece in &first.pieces {
                for address in (piece.base..piece.base + piece.bytes).step_by(PAGE as usize) {
                    let expected = match piece.private {
                        _ if address == stack.base => None,
                        true => Some((own + (address - piece.base), true)),
                        false => at(&first, address),
                    };
                    assert_eq!(at(&layout, address), expected, "{address:#x}");
                }
                own += if piece.private { piece.bytes } else { 0 };
            }
            assert_eq!(layout.bytes, own - SYSTEM_BYTES);
        }
        let bad = |entry, base, bytes| first.spawned(entry, 0, Area { base, bytes }).is_err();
        assert!(bad(data.base, heap.base, heap.bytes), "the entry is in data");
        assert!(bad(0, heap.base, heap.bytes) && bad(u64::MAX, heap.base, heap.bytes));
        for (base, bytes) in [
            (0, 4 * PAGE),
            (heap.base, 0),
            (heap.base, PAGE),
            (heap.base + 8, 4 * PAGE),
            (heap.base, !(PAGE - 1)),
            (first.heap.base - PAGE, 4 * PAGE),
            (first.heap.base + first.heap.bytes - PAGE, 2 * PAGE),
            (first.tls.base, 2 * PAGE),
            (GUEST_IMAGE_BASE, 2 * PAGE),
            (GUEST_SYSTEM_BASE, 2 * PAGE),
        ] {
            assert!(bad(entry, base, bytes), "{base:#x} {bytes:#x}");
        }
    }

    #[test]
    fn too_little_memory_reports_the_minimum() {
        let image = elf::parse(&elf::tests::image()).unwrap();
        let error = Layout::new(&image, 64 << 10).unwrap_err().to_string();
        let min: u64 = error.rsplit(' ').next().unwrap().trim_end_matches('K').parse().unwrap();
        assert!(
            Layout::new(&image, min << 10).is_ok() && Layout::new(&image, (min - 4) << 10).is_err()
        );
        assert!(Layout::new(&image, GUEST_MAX_MEMORY + 1).is_err());
    }
}
