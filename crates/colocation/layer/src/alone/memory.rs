//! Free memory, handed out by the page.

use kyozon_abi::layer::{Range, MAX_RANGES};

const PAGE: u64 = 4096;

/// A short list of ranges.
#[derive(Clone, Copy, Debug)]
pub struct Ranges {
    ranges: [Range; MAX_RANGES],
    count: usize,
}

impl Default for Ranges {
    fn default() -> Self {
        Self { ranges: [Range { base: 0, bytes: 0 }; MAX_RANGES], count: 0 }
    }
}

impl Ranges {
    /// Adds a range. False if the list is full.
    pub fn push(&mut self, range: Range) -> bool {
        let Some(slot) = self.ranges.get_mut(self.count) else { return false };
        *slot = range;
        self.count += 1;
        true
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[Range] {
        &self.ranges[..self.count]
    }

    /// Adds a page, to the last range if it follows that. False if the list is full.
    pub fn push_page(&mut self, base: u64) -> bool {
        if let Some(last) = self.ranges[..self.count].last_mut() {
            if last.base + last.bytes == base {
                last.bytes += PAGE;
                return true;
            }
        }
        self.push(Range { base, bytes: PAGE })
    }
}

/// Free pages of RAM, lowest first.
#[derive(Clone, Copy, Debug)]
pub struct Free(Ranges);

impl Free {
    /// Whole pages of `ram` in `within`, without the ranges in `taken`.
    pub fn new(ram: &[Range], within: Range, taken: &[Range]) -> Self {
        let mut free = Ranges::default();
        for r in ram {
            let base = r.base.max(within.base);
            let end = end(r).min(end(&within)) / PAGE * PAGE;
            if base < end {
                Self::add(&mut free, base.next_multiple_of(PAGE), end, taken);
            }
        }
        Self(free)
    }

    /// Adds the parts of `base..end` that are not taken. It goes from one taken range to the next: going by page would
    /// be slow.
    fn add(free: &mut Ranges, mut base: u64, end: u64, taken: &[Range]) {
        while base < end {
            let inside = taken.iter().find(|t| t.base <= base && base < self::end(t));
            if let Some(t) = inside {
                base = self::end(t).min(end).next_multiple_of(PAGE);
                continue;
            }
            let next = taken.iter().map(|t| t.base / PAGE * PAGE).filter(|&b| b > base).min();
            // A range that begins in this page takes the whole page.
            if taken.iter().any(|t| t.bytes != 0 && t.base / PAGE * PAGE == base) {
                base += PAGE;
                continue;
            }
            let stop = next.unwrap_or(end).min(end);
            if !free.push(Range { base, bytes: stop - base }) {
                return;
            }
            base = stop;
        }
    }

    /// Takes the next page. `None` if there is none.
    pub fn page(&mut self) -> Option<u64> {
        let ranges = &mut self.0;
        let range = ranges.ranges[..ranges.count].iter_mut().find(|r| r.bytes != 0)?;
        let page = range.base;
        range.base += PAGE;
        range.bytes -= PAGE;
        Some(page)
    }
}

fn end(range: &Range) -> u64 {
    range.base.saturating_add(range.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(base: u64, bytes: u64) -> Range {
        Range { base, bytes }
    }

    fn all(mut free: Free) -> Vec<u64> {
        std::iter::from_fn(|| free.page()).map(|p| p >> 12).collect()
    }

    #[test]
    fn only_whole_free_pages_are_given() {
        let ram = [range(0x0800, 0x4800), range(0x8000, 0x3000)];
        let everything = range(0, u64::MAX);
        assert_eq!(all(Free::new(&ram, everything, &[])), [1, 2, 3, 4, 8, 9, 10]);
        assert_eq!(all(Free::new(&ram, range(0x2000, 0x7000), &[])), [2, 3, 4, 8]);
        let taken = [range(0x2ff0, 0x20), range(0x9800, 1), range(0x4000, 0)];
        assert_eq!(all(Free::new(&ram, everything, &taken)), [1, 4, 8, 10]);
        assert_eq!(all(Free::new(&ram, everything, &[everything])), []);
        let last = range(u64::MAX - 0x2800, 0x2800);
        assert_eq!(all(Free::new(&[last], everything, &[])), [(u64::MAX >> 12) - 1]);
    }

    #[test]
    fn pieces_grow_page_by_page() {
        let mut pieces = Ranges::default();
        for page in [1, 2, 3, 8, 9] {
            assert!(pieces.push_page(page << 12));
        }
        assert_eq!(pieces.as_slice(), [range(0x1000, 0x3000), range(0x8000, 0x2000)]);
        for i in 2..MAX_RANGES as u64 {
            assert!(pieces.push_page(i << 20));
        }
        assert!(!pieces.push_page(0), "no room");
    }
}
