//! Memory of the program: `mmap`, `munmap`, `mremap`, `madvise`, `mprotect`.
//!
//! All of it is heap of the guest. Pages are readable and writable, whatever the program asks for, and a new mapping
//! is zero.

use crate::errno::*;
use crate::pages::{words, Pages};
use crate::{files, with, Answer};
use alloc::vec::Vec;
use kyozon_channel::border::Mutex;
use kyozon_unikernel::system;

const PAGE: u64 = 4096;
const PROT_WRITE: u64 = 2;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MREMAP_MAYMOVE: u64 = 1;
const MADV_DONTNEED: u64 = 4;
/// From this number of pages on, memory goes back to the host, which zeroes it: the call costs as much as zeroing some
/// dozens of pages.
const RETURN_PAGES: usize = 64;

#[derive(Debug)]
struct Arena {
    base: u64,
    pages: Pages,
}

static ARENA: Mutex<Option<Arena>> = Mutex::new(None);

/// Gives the memory of the program to it.
///
/// # Safety
///
/// The memory is zero, and nothing else uses it from now on.
pub unsafe fn set_up(base: u64, bytes: u64) {
    let start = base.next_multiple_of(PAGE);
    let all = (bytes.saturating_sub(start - base) / PAGE) as usize;
    let map = words(all);
    let map_pages = (2 * 8 * map as u64).div_ceil(PAGE);
    // SAFETY: the caller's promise; the arrays lie in the first pages, which no mapping gets.
    let array = |n: usize| unsafe {
        core::slice::from_raw_parts_mut((start as *mut u64).add(n * map), map)
    };
    let pages = Pages::new(array(0), array(1), all.saturating_sub(map_pages as usize));
    with(&ARENA, |arena| *arena = Some(Arena { base: start + map_pages * PAGE, pages }));
}

fn locked(work: impl FnOnce(&mut Arena) -> Answer) -> Answer {
    with(&ARENA, |arena| arena.as_mut().map_or(ENOMEM, work))
}

impl Arena {
    /// The pages from `address` on; `None` if some are not the arena's.
    fn range(&self, address: u64, bytes: u64) -> Option<(usize, usize)> {
        let first = address.checked_sub(self.base)? / PAGE;
        let count = bytes.checked_next_multiple_of(PAGE)? / PAGE;
        let inside = first.checked_add(count)? <= self.pages.count() as u64;
        (inside && address.is_multiple_of(PAGE)).then_some((first as usize, count as usize))
    }

    fn address(&self, page: usize) -> u64 {
        self.base + page as u64 * PAGE
    }

    /// Makes taken pages zero, where they may not be.
    fn zero(&mut self, first: usize, count: usize) {
        for page in first..first + count {
            if self.pages.clean(page) {
                // SAFETY: a page of the arena that nobody uses yet.
                unsafe { core::ptr::write_bytes(self.address(page) as *mut u8, 0, PAGE as usize) };
            }
        }
    }

    /// Returns memory to the host if it is much. Whether it is zero.
    fn give_back(&self, first: usize, count: usize) -> bool {
        let (address, bytes) = (self.address(first) as usize, count * PAGE as usize);
        // SAFETY: the program has given these pages up.
        count >= RETURN_PAGES && unsafe { system::discard(address, bytes) }.is_ok()
    }

    fn map(&mut self, count: usize) -> Answer {
        let Some(first) = self.pages.take(count) else { return ENOMEM };
        self.zero(first, count);
        self.address(first) as Answer
    }

    fn unmap(&mut self, first: usize, count: usize) {
        let zero = self.give_back(first, count);
        self.pages.free(first, count, zero);
    }
}

/// `mmap`. A file is copied, so it cannot be written by way of a mapping.
pub fn map(address: u64, bytes: u64, rights: u64, flags: u64, descriptor: i32, at: u64) -> Answer {
    if flags & MAP_ANONYMOUS != 0 {
        return map_memory(address, bytes, flags);
    }
    if flags & MAP_PRIVATE == 0 && rights & PROT_WRITE != 0 {
        return ENODEV;
    }
    let mapped = map_memory(address, bytes, flags);
    if mapped > 0 {
        // SAFETY: new memory, which nobody else knows.
        let to = unsafe { core::slice::from_raw_parts_mut(mapped as *mut u8, bytes as usize) };
        let copied = files::copy(descriptor, at, to);
        if copied < 0 {
            unmap(mapped as u64, bytes);
            return copied;
        }
    }
    mapped
}

/// Makes sure that the host's own structures can grow by `bytes`. False: there is no memory.
pub fn make_room(bytes: usize) -> bool {
    /// Memory that is moved at least from the program to the host.
    const LEAST: usize = 256 << 10;
    let mut probe = Vec::<u8>::new();
    if probe.try_reserve_exact(bytes).is_ok() {
        return true;
    }
    let bytes = (bytes + PAGE as usize).max(LEAST).next_multiple_of(PAGE as usize);
    let more = map_memory(0, bytes as u64, 0);
    // SAFETY: new memory, which stays the host's.
    more > 0 && unsafe { system::extend_heap(more as usize, bytes) }
}

fn map_memory(address: u64, bytes: u64, flags: u64) -> Answer {
    if bytes == 0 {
        return EINVAL;
    }
    let Some(count) = bytes.checked_next_multiple_of(PAGE).map(|bytes| bytes / PAGE) else {
        return ENOMEM;
    };
    locked(|arena| {
        if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) == 0 {
            return arena.map(count as usize);
        }
        let Some((first, count)) = arena.range(address, bytes) else { return ENOMEM };
        if !arena.pages.are_free(first, count) {
            if flags & MAP_FIXED_NOREPLACE != 0 {
                return EEXIST;
            }
            arena.unmap(first, count);
        }
        arena.pages.take_at(first, count);
        arena.zero(first, count);
        address as Answer
    })
}

/// `munmap`.
pub fn unmap(address: u64, bytes: u64) -> Answer {
    locked(|arena| match arena.range(address, bytes) {
        Some((_, 0)) | None => EINVAL,
        Some((first, count)) => {
            arena.unmap(first, count);
            0
        }
    })
}

/// `mremap`. `stack` is the first thread's, of which the C library asks where it begins.
pub fn remap(address: u64, old: u64, new: u64, flags: u64, stack: (u64, u64)) -> Answer {
    if new == 0 || !address.is_multiple_of(PAGE) {
        return EINVAL;
    }
    if (stack.0..stack.0 + stack.1).contains(&address) {
        return ENOMEM;
    }
    locked(|arena| {
        let Some((first, have)) = arena.range(address, old) else { return EFAULT };
        let want = new.div_ceil(PAGE) as usize;
        if want <= have {
            if want < have {
                arena.unmap(first + want, have - want);
            }
            return address as Answer;
        }
        if arena.pages.are_free(first + have, want - have) {
            arena.pages.take_at(first + have, want - have);
            arena.zero(first + have, want - have);
            return address as Answer;
        }
        if flags & MREMAP_MAYMOVE == 0 {
            return ENOMEM;
        }
        let to = arena.map(want);
        if to > 0 {
            // SAFETY: both are the program's memory, and do not overlap.
            unsafe {
                let bytes = have * PAGE as usize;
                core::ptr::copy_nonoverlapping(address as *const u8, to as *mut u8, bytes);
            }
            arena.unmap(first, have);
        }
        to
    })
}

/// `madvise`: only what changes the contents has an effect.
pub fn advise(address: u64, bytes: u64, advice: u64) -> Answer {
    if advice != MADV_DONTNEED {
        return 0;
    }
    locked(|arena| {
        let Some((first, count)) = arena.range(address, bytes) else { return ENOMEM };
        if !arena.give_back(first, count) {
            // SAFETY: the program's memory, whose contents it gives up.
            unsafe { core::ptr::write_bytes(address as *mut u8, 0, count * PAGE as usize) };
        }
        0
    })
}

/// `mprotect`: accepted, without an effect.
pub fn protect(address: u64) -> Answer {
    if address.is_multiple_of(PAGE) {
        0
    } else {
        EINVAL
    }
}
