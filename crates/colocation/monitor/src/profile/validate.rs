//! The rules that a decoded profile keeps, checked once.

use super::format::Section;
use super::{Profile, ProfileError, MAX_LAYOUT_BYTES};

impl Profile<'_> {
    pub(super) fn check_symbols(&self) -> Result<(), ProfileError> {
        let header = &self.header;
        let count = header.addresses.count;
        rule(header.name_ends.count == count + 1, "the numbers of names and addresses differ")?;
        rule(
            header.kinds.count == count && header.by_name.count == count,
            "an index is incomplete",
        )?;
        rule(
            self.ascii(header.names) && self.ascii(header.keys) && self.ascii(header.release),
            "a name is not ASCII",
        )?;
        rule(
            (1..count).all(|i| self.address(i - 1) <= self.address(i)),
            "symbols are not sorted by address",
        )?;
        rule(
            (0..count)
                .all(|i| self.u32_at(header.name_ends, i) <= self.u32_at(header.name_ends, i + 1))
                && self.u32_at(header.name_ends, count) as usize <= header.names.count,
            "a symbol's name lies outside its section",
        )?;
        rule((0..count).all(|i| self.ranked(i) < count), "the index by name exceeds the symbols")?;
        let key = |i| (self.name(self.ranked(i)), self.ranked(i));
        rule((1..count).all(|i| key(i - 1) < key(i)), "the index by name is not sorted")
    }

    pub(super) fn check_layouts(&self) -> Result<(), ProfileError> {
        let count = self.header.layouts.count;
        let inside = |i: usize| {
            let place = self.u64_at(self.header.layouts, 3 * i);
            (place as u32 as usize).saturating_add((place >> 32) as usize) <= self.header.keys.count
        };
        rule((0..count).all(inside), "a member's name lies outside its section")?;
        let small = |i: usize| {
            let value = self.u64_at(self.header.layouts, 3 * i + 1);
            let bytes = self.u64_at(self.header.layouts, 3 * i + 2);
            self.key(i).starts_with('#') || (value <= MAX_LAYOUT_BYTES && bytes <= MAX_LAYOUT_BYTES)
        };
        rule((0..count).all(small), "a structure is too large")?;
        rule((1..count).all(|i| self.key(i - 1) < self.key(i)), "members are not sorted")
    }

    fn ascii(&self, section: Section) -> bool {
        self.bytes[section.offset..section.offset + section.count].is_ascii()
    }
}

/// `Ok` if the rule holds, else the error that states it.
pub(super) fn rule(holds: bool, text: &'static str) -> Result<(), ProfileError> {
    holds.then_some(()).ok_or(ProfileError::Malformed(text))
}
