//! A kernel under inspection: its profile and its memory.
//!
//! Virtual addresses in the image and the direct map are translated by rule, all others by Linux's own page tables.
//! Sources: Linux, `Documentation/arch/x86/x86_64/mm.rst`, for the address map; Intel SDM volume 3A, 4.5, for the
//! tables.

use crate::memory::{KernelMemory, Page, PAGE_BYTES};
use crate::profile::Profile;
use alloc::string::String;
use core::sync::atomic::Ordering::Relaxed;

/// Start and end of the direct map in a kernel without variables for them: 4-level tables, no randomized layout.
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
const VMALLOC: u64 = 0xffff_c900_0000_0000;
/// The lowest virtual address that the kernel uses.
pub(crate) const KERNEL_HALF: u64 = 0xff00_0000_0000_0000;

/// Page-table entry bits: present; maps a large page.
pub(crate) const PRESENT: u64 = 1;
pub(crate) const LARGE: u64 = 1 << 7;
/// The physical address in an entry. In a large page's entry, bit 12 is an attribute.
pub(crate) const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// Linux as the checks see it. Addresses are virtual unless stated otherwise.
pub struct Kernel<'a, M> {
    /// Symbols and structure layouts.
    pub profile: &'a Profile<'a>,
    /// Linux's physical memory.
    pub memory: &'a M,
    /// Start and length of the direct map of all physical memory; the length is 0 if they could not be read.
    direct: (u64, u64),
    /// Start and length of the image.
    image: (u64, u64),
}

impl<'a, M: KernelMemory> Kernel<'a, M> {
    /// The kernel with `profile` in `memory`. The bounds of the direct map are read here, once: Linux sets them at
    /// boot, and every translation needs them.
    pub fn new(profile: &'a Profile<'a>, memory: &'a M) -> Self {
        let image = (profile.text_base(), profile.image_end().saturating_sub(profile.text_base()));
        let mut kernel = Self { profile, memory, direct: (0, 0), image };
        let variable = |symbol: Option<u64>, default| match symbol {
            Some(symbol) => kernel.image_word(symbol),
            None => Some(default),
        };
        let start = variable(profile.anchors.page_offset_base, DIRECT_MAP);
        let end = variable(profile.anchors.vmalloc_base, VMALLOC);
        if let Some((start, end)) = start.zip(end).filter(|(start, _)| *start >= KERNEL_HALF) {
            // Whatever the variables hold: the image is not a part of it.
            kernel.direct = (start, end.min(profile.text_base()).saturating_sub(start));
        }
        kernel
    }

    /// The word at physical address `physical`, a multiple of 8.
    pub fn physical_word(&self, physical: u64) -> Option<u64> {
        let (offset, word) = (physical % PAGE_BYTES, (physical % PAGE_BYTES / 8) as usize);
        let page = self.memory.part(physical - offset, word..word + 1)?;
        (offset % 8 == 0).then(|| page[word].load(Relaxed))
    }

    /// The address of `physical` in the direct map.
    pub(crate) fn direct(&self, physical: u64) -> u64 {
        self.direct.0.wrapping_add(physical)
    }

    /// The physical address of `address`; `None` if it is not mapped. The result may lie outside System RAM.
    #[inline]
    pub fn physical(&self, address: u64) -> Option<u64> {
        let (start, bytes) = self.direct;
        let inside = address.wrapping_sub(start);
        // Nearly all that the checks read lies there.
        if inside < bytes {
            return Some(inside);
        }
        let (start, bytes) = self.image;
        let inside = address.wrapping_sub(start);
        if inside < bytes {
            return Some(inside + self.profile.text_physical());
        }
        self.physical_elsewhere(address)
    }

    /// The same, outside of the direct map and of the image.
    #[inline(never)]
    fn physical_elsewhere(&self, address: u64) -> Option<u64> {
        if address < KERNEL_HALF {
            return None;
        }
        self.walk_page_tables(address)
    }

    /// The same, for an access.
    #[inline]
    fn located(&self, address: u64) -> Option<u64> {
        let physical = self.physical(address);
        if physical.is_none() {
            self.memory.lacks(address);
        }
        physical
    }

    /// The word at `address`, a multiple of 8 in the kernel's image.
    fn image_word(&self, address: u64) -> Option<u64> {
        let profile = self.profile;
        self.in_image(address)
            .then(|| self.physical_word(address - profile.text_base() + profile.text_physical()))?
    }

    /// The physical address of the kernel's own top page table, and the number of levels.
    pub(crate) fn page_tables(&self) -> Option<(u64, u32)> {
        let profile = self.profile;
        let table = profile.anchors.top_table.filter(|&table| self.in_image(table))?;
        let five = match profile.anchors.five_levels {
            // Outside the image, the flag's own address would need a translation.
            Some(flag) if self.in_image(flag) => self.u32(flag)? != 0,
            _ => false,
        };
        let levels = if five { 5 } else { 4 };
        Some((table - profile.text_base() + profile.text_physical(), levels))
    }

    /// Translates `address` by the kernel's own page tables, in at most five steps.
    fn walk_page_tables(&self, address: u64) -> Option<u64> {
        let (mut table, levels) = self.page_tables()?;
        if (address as i64) >> (12 + 9 * levels - 1) != -1 {
            return None;
        }
        for level in (0..levels).rev() {
            let shift = 12 + 9 * level;
            let entry = self.physical_word((table & FRAME) + (address >> shift & 511) * 8)?;
            if entry & PRESENT == 0 {
                return None;
            }
            if level == 0 || (entry & LARGE != 0 && level <= 2) {
                let inside = (1u64 << shift) - 1;
                return Some((entry & FRAME & !inside) | (address & inside));
            }
            table = entry;
        }
        None
    }

    /// The byte at `address`.
    pub fn u8(&self, address: u64) -> Option<u8> {
        self.array::<1>(address).map(|[byte]| byte)
    }

    /// The two bytes at `address`.
    pub fn u16(&self, address: u64) -> Option<u16> {
        self.array(address).map(u16::from_le_bytes)
    }

    /// The four bytes at `address`; a single read if it is a multiple of 4.
    pub fn u32(&self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_le_bytes)
    }

    /// The eight bytes at `address`; a single read if it is a multiple of 8.
    pub fn u64(&self, address: u64) -> Option<u64> {
        if address.is_multiple_of(8) {
            return self.physical_word(self.located(address)?);
        }
        self.array(address).map(u64::from_le_bytes)
    }

    /// Calls `see` with the address of each of the `count` words from `address` on, a multiple of 8, and the word. What
    /// is not mapped or not readable is left out.
    pub(crate) fn words(&self, address: u64, count: u64, mut see: impl FnMut(u64, u64)) {
        let (mut at, end) = (address, address.saturating_add(8 * count));
        while at < end {
            let (offset, behind) =
                (at % PAGE_BYTES, (at | (PAGE_BYTES - 1)).saturating_add(1).min(end));
            let words = (offset / 8) as usize..(offset + (behind - at)) as usize / 8;
            let page = self
                .located(at)
                .and_then(|physical| self.memory.part(physical - offset, words.clone()));
            for (number, word) in
                page.and_then(|page| page.get(words)).into_iter().flatten().enumerate()
            {
                see(at + 8 * number as u64, word.load(Relaxed));
            }
            at = behind;
        }
    }

    /// The unsigned integer of 1, 2, 4 or 8 `bytes` at `address`; `None` for other sizes.
    pub fn uint(&self, address: u64, bytes: u64) -> Option<u64> {
        match bytes {
            1 => self.u8(address).map(u64::from),
            2 => self.u16(address).map(u64::from),
            4 => self.u32(address).map(u64::from),
            8 => self.u64(address),
            _ => None,
        }
    }

    pub(crate) fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let offset = address % 8;
        // Nearly all values lie in one word.
        if offset + N as u64 <= 8 {
            let word = self.u64(address - offset)? >> (8 * offset);
            return word.to_le_bytes().first_chunk().copied();
        }
        let mut bytes = [0; N];
        self.bytes(address, &mut bytes)?;
        Some(bytes)
    }

    /// Fills `into` from `address` on; `None` if a part is not mapped or not readable.
    pub fn bytes(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut at = address;
        let mut rest = into;
        while !rest.is_empty() {
            let physical = self.located(at)?;
            let offset = (physical % PAGE_BYTES) as usize;
            let length = rest.len().min(PAGE_BYTES as usize - offset);
            let words = offset / 8..(offset + length).div_ceil(8);
            let page = self.memory.part(physical - offset as u64, words)?;
            let (part, behind) = rest.split_at_mut(length);
            copy(page, offset, part);
            rest = behind;
            if !rest.is_empty() {
                at = at.checked_add(length as u64)?;
            }
        }
        Some(())
    }

    /// The zero-terminated text at `address`, at most `limit` bytes; bytes that are not printable ASCII become `?`.
    pub fn c_string(&self, address: u64, limit: usize) -> Option<String> {
        let mut text = String::new();
        for at in 0..limit {
            match self.u8(address.checked_add(at as u64)?)? {
                0 => break,
                byte @ b' '..=b'~' => text.push(byte.into()),
                _ => text.push('?'),
            }
        }
        Some(text)
    }

    /// Whether `address` lies in the kernel's image, between `_text` and `_end`.
    pub fn in_image(&self, address: u64) -> bool {
        let (start, bytes) = self.image;
        address.wrapping_sub(start) < bytes
    }
}

/// Copies bytes of `page` from `offset` on; each word is read once.
fn copy(page: &Page, offset: usize, into: &mut [u8]) {
    let mut at = offset;
    let mut rest = into;
    while !rest.is_empty() {
        let word = page[at / 8].load(Relaxed).to_le_bytes();
        let from = &word[at % 8..];
        let length = from.len().min(rest.len());
        let (part, behind) = rest.split_at_mut(length);
        part.copy_from_slice(&from[..length]);
        rest = behind;
        at += length;
    }
}

#[cfg(test)]
mod tests;
