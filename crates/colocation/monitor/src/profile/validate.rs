//! The rules that a decoded profile keeps, checked once.

use super::format::Section;
use super::{Profile, ProfileError, MAX_LAYOUT_BYTES};
use core::ops::Range;

/// Items, and bytes, between two calls of `pause`.
const ITEMS: usize = 64;
const BYTES: usize = 4096;

/// Whether `holds` is true for all of `range`. Calls `pause` in between.
pub(super) fn all(
    range: Range<usize>,
    pause: &mut dyn FnMut(),
    holds: impl Fn(usize) -> bool,
) -> bool {
    range.clone().step_by(ITEMS).all(|first| {
        pause();
        (first..range.end.min(first + ITEMS)).all(&holds)
    })
}

impl Profile<'_> {
    pub(super) fn check_symbols(&self, pause: &mut dyn FnMut()) -> Result<(), ProfileError> {
        let header = &self.header;
        let count = header.addresses.count;
        rule(header.name_ends.count == count + 1, "the numbers of names and addresses differ")?;
        rule(
            header.kinds.count == count && header.by_name.count == count,
            "an index is incomplete",
        )?;
        rule(
            [header.names, header.keys, header.release].iter().all(|part| self.ascii(part, pause)),
            "a name is not ASCII",
        )?;
        rule(
            all(1..count, pause, |i| self.address(i - 1) <= self.address(i)),
            "symbols are not sorted by address",
        )?;
        rule(
            all(0..count, pause, |i| {
                self.u32_at(header.name_ends, i) <= self.u32_at(header.name_ends, i + 1)
            }) && self.u32_at(header.name_ends, count) as usize <= header.names.count,
            "a symbol's name lies outside its section",
        )?;
        rule(
            all(0..count, pause, |i| self.ranked(i) < count),
            "the index by name exceeds the symbols",
        )?;
        let key = |i| (self.name_bytes(self.ranked(i)), self.ranked(i));
        rule(all(1..count, pause, |i| key(i - 1) < key(i)), "the index by name is not sorted")
    }

    pub(super) fn check_layouts(&self, pause: &mut dyn FnMut()) -> Result<(), ProfileError> {
        let count = self.header.layouts.count;
        let inside = |i: usize| {
            let place = self.u64_at(self.header.layouts, 3 * i);
            (place as u32 as usize).saturating_add((place >> 32) as usize) <= self.header.keys.count
        };
        rule(all(0..count, pause, inside), "a member's name lies outside its section")?;
        let small = |i: usize| {
            let value = self.u64_at(self.header.layouts, 3 * i + 1);
            let bytes = self.u64_at(self.header.layouts, 3 * i + 2);
            self.key(i).starts_with('#') || (value <= MAX_LAYOUT_BYTES && bytes <= MAX_LAYOUT_BYTES)
        };
        rule(all(0..count, pause, small), "a structure is too large")?;
        rule(all(1..count, pause, |i| self.key(i - 1) < self.key(i)), "members are not sorted")
    }

    fn ascii(&self, section: &Section, pause: &mut dyn FnMut()) -> bool {
        let mut parts = self.bytes[section.offset..section.offset + section.count].chunks(BYTES);
        parts.all(|part| {
            pause();
            part.is_ascii()
        })
    }
}

/// `Ok` if the rule holds, else the error that states it.
pub(super) fn rule(holds: bool, text: &'static str) -> Result<(), ProfileError> {
    holds.then_some(()).ok_or(ProfileError::Malformed(text))
}
