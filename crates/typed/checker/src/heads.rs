//! The annotations of a function: one for each loop head, in the order of the text.
//!
//! A head is the target of a jump from below, or from a jump table. Its annotation lists the places whose type there is
//! weaker than what flows in from above. If nothing flows in from above, it lists the places whose type is other than
//! at the last instruction before.
//!
//! ```text
//! LEB128   distance from the last head, or from the function's start
//! byte     which of the parts below follow
//! bit 6    LEB128: the stack is checked down to 8 minus this many bytes from its value at the function's entry
//! bit 7    LEB128: 8-byte units from the stack pointer up to its value at the function's entry
//! bit 0    u16: mask of registers that are unknown
//! bit 1    u16: mask of registers that are any number
//! bit 2    u16: mask of registers that are any number of 32 bits
//! bit 3    slots: LEB128 count, then LEB128 4 * step + kind for each. The step leads from the last listed granule
//!          (first from -1) to this one. Kinds: 0 unknown (4 bytes), 1 u32 (4 bytes), 2 any number (8 bytes),
//!          3 unknown (8 bytes)
//! bit 4    ranges: LEB128 count, then for each a place, a byte with the stride (bit 7: of an image address), LEB128 of
//!          low and of high - low in units of 2^stride
//! bit 5    others: LEB128 count, then for each a place, a byte with the kind, LEB128 of its operand. Kinds: 0 bytes,
//!          1 stack (signed), 2 saved, 3 entry, 4 distance, 5 target; 6, with place 4 and no operand: the flags stem
//!          from data; 7 length, with its origin; 12 index, and 8 view, plus 1 if writable, plus 2 if exact, with
//!          origin, low and room (signed)
//! ```
//!
//! A place is LEB128: 0 to 15 a register, else 16 + 2 * granule, plus 1 for a slot of 8 bytes. The granule is that of
//! the slot's lower half: granule n lies 4 * (n + 1) bytes below the return address.

use crate::bytes::Reader;
use crate::frame::Slot;
use crate::insn::RSP;
use crate::range::Range;
use crate::value::{Spot, Value};

/// A register or a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A general register.
    Register(u8),
    /// A slot of the frame.
    Slot(Slot),
}

impl core::fmt::Display for Location {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Location::Register(n) => f.write_str(crate::value::REGISTERS[n as usize & 15]),
            Location::Slot(slot) => {
                let size = if slot.pair { 8 } else { 4 };
                write!(f, "[stack-{}, {size} bytes]", 4 * (slot.granule + 1))
            }
        }
    }
}

/// One item of an annotation.
pub(crate) enum Item {
    /// At this head, this location has this type.
    Type(Location, Value),
    /// The stack is checked down to this offset.
    Checked(i32),
    /// The flags stem from data.
    Flags,
}

/// The annotations that are left of a function.
pub(crate) struct Heads<'a> {
    reader: Reader<'a>,
    /// Where the next head is.
    pub next: Option<u64>,
}

impl<'a> Heads<'a> {
    /// The annotations of the function that starts at this offset of the text; none if they are malformed.
    pub fn new(bytes: &'a [u8], start: u32) -> Option<Self> {
        let mut heads = Heads { reader: Reader::new(bytes), next: None };
        heads.advance(start as u64, 0)?;
        Some(heads)
    }

    fn advance(&mut self, from: u64, least: u32) -> Option<()> {
        self.next = None;
        if !self.reader.is_empty() {
            let step = self.reader.leb32().filter(|&step| step >= least)?;
            self.next = Some(from + step as u64);
        }
        Some(())
    }

    /// Reads the next head's annotation; `bad` is returned if it is malformed.
    pub fn read<E: Copy>(
        &mut self,
        bad: E,
        mut item: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = self.next.ok_or(bad)?;
        let parts = self.reader.u8().ok_or(bad)?;
        if parts & 0x40 != 0 {
            let below = self.reader.leb32().and_then(|n| i32::try_from(n).ok()).ok_or(bad)?;
            item(Item::Checked(8 - below))?;
        }
        if parts & 0x80 != 0 {
            let units = self.reader.leb32().ok_or(bad)?;
            let offset = i32::try_from(units).ok().and_then(|n| n.checked_mul(-8)).ok_or(bad)?;
            item(Item::Type(Location::Register(RSP), Value::Stack(offset)))?;
        }
        for (bit, value) in [(0, Value::UNKNOWN), (1, Value::ANY), (2, Value::data(4))] {
            if parts >> bit & 1 != 0 {
                let mask = self.reader.u16().ok_or(bad)?;
                for register in (0..16).filter(|n| mask >> n & 1 != 0) {
                    item(Item::Type(Location::Register(register), value))?;
                }
            }
        }
        if parts & 0x08 != 0 {
            let mut granule = u32::MAX;
            for _ in 0..self.reader.leb32().ok_or(bad)? {
                let code = self.reader.leb32().ok_or(bad)?;
                granule = granule.wrapping_add(code >> 2);
                let (pair, value) = match code & 3 {
                    0 => (false, Value::UNKNOWN),
                    1 => (false, Value::data(4)),
                    2 => (true, Value::ANY),
                    _ => (true, Value::UNKNOWN),
                };
                item(Item::Type(Location::Slot(Slot { granule, pair }), value))?;
            }
        }
        for (bit, parse) in [(0x10, parse_range as ParseItem), (0x20, parse_other)] {
            if parts & bit != 0 {
                for _ in 0..self.reader.leb32().ok_or(bad)? {
                    let location = parse_location(&mut self.reader).ok_or(bad)?;
                    item(parse(&mut self.reader, location).ok_or(bad)?)?;
                }
            }
        }
        self.advance(at, 1).ok_or(bad)
    }
}

fn parse_location(reader: &mut Reader<'_>) -> Option<Location> {
    let n = reader.leb32()?;
    Some(match n.checked_sub(16) {
        None => Location::Register(n as u8),
        Some(slot) => Location::Slot(Slot { granule: slot >> 1, pair: slot & 1 != 0 }),
    })
}

type ParseItem = fn(&mut Reader<'_>, Location) -> Option<Item>;

fn parse_range(reader: &mut Reader<'_>, location: Location) -> Option<Item> {
    let kind = reader.u8()?;
    let stride = kind & 0x7f;
    let low = reader.leb()?;
    let steps = reader.leb()?;
    if stride > 62 {
        return None;
    }
    let width = steps.checked_mul(1 << stride)?;
    let range = Range::new(low, low.checked_add(width)?, stride);
    let image = kind & 0x80 != 0;
    let value = if image { Value::Image(range.short()?) } else { Value::Number(range) };
    Some(Item::Type(location, value))
}

fn parse_other(reader: &mut Reader<'_>, location: Location) -> Option<Item> {
    let kind = reader.u8()?;
    let value = match kind {
        1 => Value::Stack(reader.signed()?),
        7 => Value::Length(reader.leb32()?),
        8..=12 => {
            let (origin, low, room) = (reader.leb32()?, reader.signed()?, reader.signed()?);
            let spot = Spot { origin, low, room };
            match kind {
                12 => Value::Index(Some(spot).filter(|spot| spot.low >= 0)?),
                _ => Value::View { spot, write: kind & 1 != 0, exact: kind & 2 != 0 },
            }
        }
        6 => return (location == Location::Register(RSP)).then_some(Item::Flags),
        _ => {
            let operand = reader.leb32()?;
            let table = u16::try_from(operand).ok();
            match kind {
                0 => Value::known(u8::try_from(operand).ok()?),
                2 if operand < 16 => Value::Saved(operand as u8),
                3 => Value::Entry(table?),
                4 => Value::Distance(table?),
                5 => Value::Target(table?),
                _ => return None,
            }
        }
    };
    Some(Item::Type(location, value))
}
