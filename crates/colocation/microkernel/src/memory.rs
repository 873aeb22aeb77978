//! The cokernel's memory: physical pieces mapped contiguously at a virtual address. Pages are handed out at boot only.

use kyozon_abi::layer::{Range, MAX_RANGES};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// The cokernel's memory.
#[derive(Clone, Copy)]
pub struct Memory {
    pieces: [Range; MAX_RANGES],
    count: usize,
    /// The next page is `offset` bytes into piece number `piece`.
    piece: usize,
    offset: u64,
}

impl Memory {
    /// No memory.
    pub const EMPTY: Self =
        Self { pieces: [Range { base: 0, bytes: 0 }; MAX_RANGES], count: 0, piece: 0, offset: 0 };

    /// Memory of at most [`MAX_RANGES`] `pieces`; others are ignored.
    pub fn new(pieces: &[Range]) -> Self {
        let mut memory = Self::EMPTY;
        memory.count = pieces.len().min(MAX_RANGES);
        memory.pieces[..memory.count].copy_from_slice(&pieces[..memory.count]);
        memory
    }

    /// Virtual offset of the page at `physical` from the start of the memory; `None` if it is not a page of it.
    pub fn offset(&self, physical: u64) -> Option<u64> {
        let mut before = 0;
        for piece in &self.pieces[..self.count] {
            let inside = physical.wrapping_sub(piece.base);
            if inside < piece.bytes {
                return physical.is_multiple_of(PAGE).then_some(before + inside);
            }
            before += piece.bytes;
        }
        None
    }

    /// Physical address of the next page. It is zero: the loader cleared it, and it was not used before.
    pub fn take(&mut self) -> Option<u64> {
        loop {
            let piece = self.pieces[..self.count].get(self.piece)?;
            if self.offset < piece.bytes {
                let page = piece.base + self.offset;
                self.offset += PAGE;
                return Some(page);
            }
            self.piece += 1;
            self.offset = 0;
        }
    }

    /// Bytes not handed out yet.
    pub fn left(&self) -> u64 {
        let rest = self.pieces[..self.count].get(self.piece..).unwrap_or(&[]);
        rest.iter().map(|p| p.bytes).sum::<u64>() - if rest.is_empty() { 0 } else { self.offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(base: u64, bytes: u64) -> Range {
        Range { base, bytes }
    }

    #[test]
    fn offsets_follow_the_order_of_pieces() {
        let m = Memory::new(&[range(0x10_0000, 0x2000), range(0x8000, 0x1000)]);
        for (physical, offset) in [
            (0x10_0000, Some(0)),
            (0x10_1000, Some(0x1000)),
            (0x10_2000, None),
            (0x8000, Some(0x2000)),
            (0x8008, None),
            (0x9000, None),
            (0, None),
            (u64::MAX, None),
        ] {
            assert_eq!(m.offset(physical), offset, "{physical:#x}");
        }
    }

    #[test]
    fn each_page_is_handed_out_once() {
        let mut m = Memory::new(&[range(0x10_0000, 0x2000), range(0x8000, 0x1000)]);
        assert_eq!(m.left(), 0x3000);
        assert_eq!([m.take(), m.take()], [Some(0x10_0000), Some(0x10_1000)]);
        assert_eq!(m.left(), 0x1000);
        assert_eq!([m.take(), m.take(), m.take()], [Some(0x8000), None, None]);
        let mut none = Memory::EMPTY;
        assert_eq!((m.left(), none.left(), none.take()), (0, 0, None));
    }
}
