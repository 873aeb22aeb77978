//! Annotations of heads as maps, and their bytes.

use std::collections::BTreeMap;

use kyozon_typed_checker::frame::Slot;
use kyozon_typed_checker::heads::Location;
use kyozon_typed_checker::insn::RSP;
use kyozon_typed_checker::range::Range;
use kyozon_typed_checker::value::Value;

/// What one head says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Types of places.
    pub types: BTreeMap<Location, Value>,
    /// The stack is checked down to this offset from its value at the function's entry.
    pub checked: Option<i32>,
    /// The flags stem from data.
    pub flags: bool,
}

/// The heads of a function by their offsets in the text.
pub type Heads = BTreeMap<u32, Head>;

fn leb(out: &mut Vec<u8>, mut n: u64) {
    loop {
        let byte = (n & 0x7f) as u8;
        n >>= 7;
        if n == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

/// The number whose LEB128 form stands for a signed one.
fn signed(n: i32) -> u64 {
    u64::from((n << 1 ^ n >> 31) as u32)
}

fn location(out: &mut Vec<u8>, location: Location) {
    leb(
        out,
        match location {
            Location::Register(n) => u64::from(n),
            Location::Slot(Slot { granule, pair }) => 16 + 2 * u64::from(granule) + u64::from(pair),
        },
    );
}

/// How a type is written in the list of slots, if it can be.
fn slot_kind(slot: Slot, value: Value) -> Option<u64> {
    Some(match (slot.pair, value) {
        (false, Value::UNKNOWN) => 0,
        (false, Value::Number(Range::U32)) => 1,
        (true, Value::Number(Range::ANY)) => 2,
        (true, Value::UNKNOWN) => 3,
        _ => return None,
    })
}

/// The bytes of a function's annotations. The function starts at `start`.
pub fn encode(heads: &Heads, start: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = start;
    for (&at, head) in heads {
        leb(&mut out, u64::from(at - last));
        last = at;
        encode_head(&mut out, head);
    }
    out
}

fn encode_head(out: &mut Vec<u8>, head: &Head) {
    let mut masks = [0u16; 3];
    let (mut slots, mut ranges, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut depth = None;
    for (&place, &value) in &head.types {
        match (place, value) {
            (Location::Register(RSP), Value::Stack(offset)) => {
                depth = Some(offset.unsigned_abs() / 8)
            }
            (Location::Register(n), Value::UNKNOWN) => masks[0] |= 1 << n,
            (Location::Register(n), Value::Number(Range::ANY)) => masks[1] |= 1 << n,
            (Location::Register(n), Value::Number(Range::U32)) => masks[2] |= 1 << n,
            (Location::Slot(slot), _) if slot_kind(slot, value).is_some() => {
                slots.push((slot.granule, slot_kind(slot, value).unwrap_or(0)));
            }
            (_, Value::Number(range)) => ranges.push((place, range, 0)),
            (_, Value::Image(range)) => ranges.push((place, range.into(), 0x80)),
            _ => others.push((place, value)),
        }
    }
    let lists = [
        !slots.is_empty(),
        !ranges.is_empty(),
        !others.is_empty() || head.flags,
        head.checked.is_some(),
    ];
    let parts = masks.iter().map(|&mask| mask != 0).chain(lists).chain([depth.is_some()]);
    out.push(parts.enumerate().map(|(bit, there)| u8::from(there) << bit).sum());
    if let Some(offset) = head.checked {
        leb(out, u64::from((8 - offset).unsigned_abs()));
    }
    if let Some(depth) = depth {
        leb(out, u64::from(depth));
    }
    for mask in masks.into_iter().filter(|&mask| mask != 0) {
        out.extend(mask.to_le_bytes());
    }
    if lists[0] {
        leb(out, slots.len() as u64);
        let mut last = u32::MAX;
        for (granule, kind) in slots {
            leb(out, u64::from(granule.wrapping_sub(last)) << 2 | kind);
            last = granule;
        }
    }
    if lists[1] {
        leb(out, ranges.len() as u64);
        for (place, range, image) in ranges {
            location(out, place);
            let stride = range.stride().min(62);
            out.push(stride | image);
            leb(out, range.low());
            leb(out, (range.high() - range.low()) >> stride);
        }
    }
    if lists[2] {
        leb(out, others.len() as u64 + u64::from(head.flags));
        if head.flags {
            location(out, Location::Register(RSP));
            out.push(6);
        }
        for (place, value) in others {
            location(out, place);
            let (kind, operand) = match value {
                Value::Bytes(known) => (0, u64::from(known)),
                Value::Stack(offset) => (1, signed(offset)),
                Value::Saved(register) => (2, u64::from(register)),
                Value::Entry(table) => (3, u64::from(table)),
                Value::Distance(table) => (4, u64::from(table)),
                Value::Target(table) => (5, u64::from(table)),
                Value::Length(origin) => (7, u64::from(origin)),
                Value::View { spot, write, exact } => {
                    (8 + u8::from(write) + 2 * u8::from(exact), u64::from(spot.origin))
                }
                Value::Index(spot) => (12, u64::from(spot.origin)),
                Value::Number(_) | Value::Image(_) | Value::Upper => unreachable!("written above"),
            };
            out.push(kind);
            leb(out, operand);
            if let Value::View { spot, .. } | Value::Index(spot) = value {
                leb(out, signed(spot.low));
                leb(out, signed(spot.room));
            }
        }
    }
}
