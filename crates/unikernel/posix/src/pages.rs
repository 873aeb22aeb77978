//! Which pages of the program's memory are taken, and which free ones are not zero.

/// A map of pages, with a bit for each in two arrays. All pages are free and zero at first.
#[derive(Debug)]
pub struct Pages {
    taken: &'static mut [u64],
    dirty: &'static mut [u64],
    count: usize,
    /// Where the next search begins.
    next: usize,
}

/// Words of 64 bits that each array needs for `count` pages.
pub const fn words(count: usize) -> usize {
    count.div_ceil(64)
}

impl Pages {
    /// `count` pages. Each array has [`words`] of them, all zero.
    pub fn new(taken: &'static mut [u64], dirty: &'static mut [u64], count: usize) -> Self {
        let count = count.min(64 * taken.len().min(dirty.len()));
        Self { taken, dirty, count, next: 0 }
    }

    /// Number of pages.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes `count` free pages in a row. Returns the first; `None` if there are none.
    pub fn take(&mut self, count: usize) -> Option<usize> {
        let found = self.find(count, self.next, self.count).or_else(|| {
            let end = self.next.saturating_add(count).min(self.count);
            self.find(count, 0, end)
        })?;
        set(self.taken, found, count, true);
        self.next = found + count;
        Some(found)
    }

    /// Takes pages at a place, free or not.
    pub fn take_at(&mut self, first: usize, count: usize) {
        set(self.taken, first, count, true);
    }

    /// Whether all these pages are free.
    pub fn are_free(&self, first: usize, count: usize) -> bool {
        first + count <= self.count && (first..first + count).all(|page| !get(self.taken, page))
    }

    /// Frees pages, which are zero if `zero`.
    pub fn free(&mut self, first: usize, count: usize, zero: bool) {
        set(self.taken, first, count, false);
        set(self.dirty, first, count, !zero);
        self.next = self.next.min(first);
    }

    /// Whether a page may not be zero. From then on it counts as zero.
    pub fn clean(&mut self, page: usize) -> bool {
        let dirty = get(self.dirty, page);
        if dirty {
            set(self.dirty, page, 1, false);
        }
        dirty
    }

    fn find(&self, count: usize, from: usize, to: usize) -> Option<usize> {
        let (mut first, mut page) = (from, from);
        if count == 0 {
            return None;
        }
        while page < to {
            if page.is_multiple_of(64) && self.taken[page / 64] == u64::MAX {
                page += 64;
                first = page;
            } else if get(self.taken, page) {
                page += 1;
                first = page;
            } else {
                page += 1;
                if page - first == count {
                    return Some(first);
                }
            }
        }
        None
    }
}

fn get(words: &[u64], bit: usize) -> bool {
    words[bit / 64] >> (bit % 64) & 1 != 0
}

fn set(words: &mut [u64], first: usize, count: usize, on: bool) {
    for bit in first..first + count {
        if on {
            words[bit / 64] |= 1 << (bit % 64);
        } else {
            words[bit / 64] &= !(1 << (bit % 64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec;

    fn pages(count: usize) -> Pages {
        let array = || Box::leak(vec![0; words(count)].into_boxed_slice());
        Pages::new(array(), array(), count)
    }

    #[test]
    fn pages_are_taken_once_and_found_again() {
        let mut pages = pages(130);
        assert_eq!((pages.take(64), pages.take(60), pages.take(7)), (Some(0), Some(64), None));
        assert_eq!((pages.take(6), pages.take(1)), (Some(124), None));
        pages.free(10, 3, false);
        assert_eq!((pages.take(4), pages.take(3)), (None, Some(10)));
        pages.free(0, 130, true);
        assert_eq!((pages.take(131), pages.take(130), pages.take(0)), (None, Some(0), None));
    }

    #[test]
    fn a_free_page_is_dirty_until_it_is_cleaned() {
        let mut pages = pages(8);
        assert!(!pages.clean(3));
        pages.take_at(2, 3);
        assert!(pages.are_free(5, 3) && !pages.are_free(4, 2) && !pages.are_free(7, 2));
        pages.free(2, 3, false);
        assert!(pages.clean(3) && !pages.clean(3) && pages.clean(4) && !pages.clean(5));
        pages.take_at(2, 1);
        pages.free(2, 1, true);
        assert!(!pages.clean(2));
    }

    /// Against a list of booleans.
    #[test]
    fn a_random_walk_never_gives_a_page_twice() {
        let mut pages = pages(200);
        let mut model = [false; 200];
        let mut random = 1_u32;
        let mut held = vec![];
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
            let count = (random >> 16) as usize % 12 + 1;
            if random >> 12 & 1 == 0 || held.is_empty() {
                match pages.take(count) {
                    Some(first) => {
                        assert!(model[first..first + count].iter().all(|taken| !taken));
                        model[first..first + count].fill(true);
                        held.push((first, count));
                    }
                    None => assert!(model.windows(count).all(|w| w.contains(&true))),
                }
            } else {
                let (first, count) = held.swap_remove((random >> 8) as usize % held.len());
                model[first..first + count].fill(false);
                pages.free(first, count, random >> 3 & 1 == 0);
            }
        }
    }
}
