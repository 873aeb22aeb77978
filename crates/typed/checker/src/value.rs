//! What a register or a piece of the stack can hold.

use core::fmt;

use crate::insn::Register;
use crate::range::{ones, Range, Short};

/// Most bytes of a view.
pub const MOST_VIEW: u32 = i32::MAX as u32;

/// A place in the view that an import gave when the call at offset `origin` of the text last returned. At a distance x
/// from the view's start: x >= `low`, and x + `room` is at most the view's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Spot {
    pub origin: u32,
    pub low: i32,
    pub room: i32,
}

impl Spot {
    /// What holds for both, of one view.
    fn join(self, other: Spot) -> Spot {
        let (low, room) = (self.low.min(other.low), self.room.min(other.room));
        Spot { low, room, ..self }
    }

    fn within(self, other: Spot) -> bool {
        self.origin == other.origin && self.low >= other.low && self.room >= other.room
    }

    /// The sum of two distances.
    fn moved(self, low: i32, room: i32) -> Option<Spot> {
        let (low, room) = (self.low.checked_add(low)?, self.room.checked_add(room)?);
        Some(Spot { low, room, ..self })
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} from {} room {}", self.origin, self.low, self.room)
    }
}

/// The type of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// Only some bytes are data: bit n stands for byte n. The others can be anything: a pointer's, another function's.
    /// All eight of a register are a [`Value::Number`].
    Bytes(u8),
    /// Plain data, with what is known of it.
    Number(Range),
    /// The start of the program's image (its text), plus a number.
    Image(Short),
    /// The stack pointer at the function's entry, plus this.
    Stack(i32),
    /// What this register held at the function's entry, and must hold again when it returns.
    Saved(Register),
    /// An address from the call table of this number: a function of the table's signature.
    Entry(u16),
    /// A distance from the jump table of this number.
    Distance(u16),
    /// The jump table's address plus a distance from it: a place in the function.
    Target(u16),
    /// An address in a view.
    View {
        /// The place that it names.
        spot: Spot,
        /// It may be written.
        write: bool,
        /// x is `low`, and `room` is minus that: nothing is known of the length.
        exact: bool,
    },
    /// The length of the view that the call at this offset gave: a number.
    Length(u32),
    /// The distance of a place from the start of its view: a number, so `low` is at least 0.
    Index(Spot),
    /// In a stack granule only: the upper half of the 8-byte value whose lower half is the granule below.
    Upper,
}

// States are arrays of values that are copied and joined all the time.
const _: () = assert!(size_of::<Value>() == 24);

impl Value {
    /// Nothing is known, nothing may be done with it.
    pub const UNKNOWN: Value = Value::Bytes(0);
    /// Any number.
    pub const ANY: Value = Value::Number(Range::ANY);

    /// Data of so many bytes, zero-extended.
    pub const fn data(size: u8) -> Value {
        Value::Number(Range::bytes(size))
    }

    /// One number.
    pub const fn constant(x: u64) -> Value {
        Value::Number(Range::constant(x))
    }

    /// Eight bytes of which these are data.
    pub const fn known(bytes: u8) -> Value {
        if bytes == 0xff {
            Value::ANY
        } else {
            Value::Bytes(bytes)
        }
    }

    /// The start of the image plus a number; unknown if that is far outside of it.
    pub fn image(distance: Range) -> Value {
        distance.short().map_or(Value::UNKNOWN, Value::Image)
    }

    /// Whether both are equal. This is inlined for the most frequent types.
    #[inline(always)]
    pub(crate) fn same(self, other: Value) -> bool {
        match (self, other) {
            (Value::Number(x), Value::Number(y)) => x == y,
            (Value::Bytes(x), Value::Bytes(y)) => x == y,
            _ => self == other,
        }
    }

    /// The number it is.
    #[inline(always)]
    pub fn number(self) -> Option<Range> {
        match self {
            Value::Number(range) => Some(range),
            Value::Length(_) => Some(Range::to(MOST_VIEW as u64)),
            Value::Index(Spot { low, room, .. }) => {
                let high = (MOST_VIEW as i64 - room as i64).max(low as i64);
                Some(Range::new(low as u64, high as u64, 0))
            }
            _ => None,
        }
    }

    /// The view that it belongs to.
    pub fn origin(self) -> Option<u32> {
        match self {
            Value::View { spot, .. } | Value::Index(spot) => Some(spot.origin),
            Value::Length(origin) => Some(origin),
            _ => None,
        }
    }

    /// The sum of an address, or of an index of a view, and a number.
    pub(crate) fn moved(self, by: Value) -> Option<Value> {
        let distance = by.number()?;
        let constant = || distance.single().and_then(|by| i32::try_from(by as i64).ok());
        let shifted = |spot: Spot| spot.moved(constant()?, constant()?.checked_neg()?);
        Some(match (self, by) {
            (Value::Image(x), _) => Value::image(Range::from(x).wrapping_add(distance)),
            (Value::Stack(offset), _) => Value::Stack(offset.checked_add(constant()?)?),
            (Value::View { spot, write, exact: true }, Value::Index(index))
                if spot.origin == index.origin =>
            {
                Value::View { spot: spot.moved(index.low, index.room)?, write, exact: false }
            }
            (Value::View { spot, write, exact }, _) => {
                Value::View { spot: shifted(spot)?, write, exact }
            }
            // Below 0 it would be a large number.
            (Value::Index(spot), _) => Value::Index(shifted(spot).filter(|spot| spot.low >= 0)?),
            _ => return None,
        })
    }

    /// Which of its bytes are data.
    pub fn data_bytes(self) -> u8 {
        match self {
            Value::Number(_) | Value::Length(_) | Value::Index(_) => 0xff,
            Value::Bytes(known) => known,
            _ => 0,
        }
    }

    /// Whether its lowest `size` bytes are data.
    pub fn is_data(self, size: u8) -> bool {
        let needed = ones(size as u32) as u8;
        self.data_bytes() & needed == needed
    }

    /// Its lowest `size` bytes, zero-extended.
    #[inline(always)]
    pub fn truncate(self, size: u8) -> Value {
        match self {
            _ if size == 8 => self,
            Value::Number(range) if range.high() <= ones(size as u32 * 8) => self,
            // They have 32 bits.
            Value::Length(_) | Value::Index(_) if size == 4 => self,
            Value::Number(range) => Value::Number(range.truncate(size as u32 * 8)),
            _ if self.is_data(size) => Value::data(size),
            _ => Value::Bytes(self.data_bytes() | !(ones(size as u32) as u8)),
        }
    }

    /// The number in its lowest `size` bytes, if they are data.
    pub fn operand(self, size: u8) -> Option<Range> {
        self.truncate(size).number()
    }

    /// The result of an operation whose bytes depend only on the operands' bytes at the same place. An and makes 0 of
    /// anything where the other operand has 0.
    pub(crate) fn bytewise(self, other: Value, and: bool) -> Value {
        let limit = self.number().or(other.number()).filter(|_| and).map_or(u64::MAX, Range::high);
        let zero = (0xff_u32 << (8 - limit.leading_zeros() / 8)) as u8;
        Value::known(self.data_bytes() & other.data_bytes() | zero)
    }

    /// What holds for both.
    pub fn join(self, other: Value) -> Value {
        match (self, other) {
            (Value::Number(x), Value::Number(y)) => Value::Number(x.join(y)),
            (Value::Image(x), Value::Image(y)) => Value::image(Range::from(x).join(y.into())),
            _ if self == other => self,
            (Value::View { spot: x, write, .. }, Value::View { spot: y, write: may, .. })
                if x.origin == y.origin =>
            {
                Value::View { spot: x.join(y), write: write && may, exact: false }
            }
            (Value::Index(x), Value::Index(y)) if x.origin == y.origin => Value::Index(x.join(y)),
            _ => match (self.number(), other.number()) {
                (Some(x), Some(y)) => Value::Number(x.join(y)),
                _ => Value::known(self.data_bytes() & other.data_bytes()),
            },
        }
    }

    /// Whether a place of this type may be used as one of type `other`.
    pub fn within(self, other: Value) -> bool {
        match (self, other) {
            (Value::Number(x), Value::Number(y)) => x.within(y),
            (_, Value::Number(y)) => self.number().is_some_and(|x| x.within(y)),
            (Value::Image(x), Value::Image(y)) => Range::from(x).within(y.into()),
            (Value::Index(x), Value::Index(y)) => x.within(y),
            (
                Value::View { spot: x, write, exact },
                Value::View { spot: y, write: w, exact: e },
            ) => x.within(y) && write >= w && exact >= e,
            (_, Value::Bytes(needed)) => self.data_bytes() & needed == needed,
            _ => self == other,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Bytes(0) => f.write_str("unknown"),
            Value::Bytes(known) => write!(f, "bytes {known:#x}"),
            Value::Number(range) => write!(f, "{range}"),
            Value::Image(range) => write!(f, "image+{}", Range::from(range)),
            Value::Stack(offset) => write!(f, "stack{offset:+}"),
            Value::Saved(register) => write!(f, "saved {}", REGISTERS[register as usize & 15]),
            Value::Entry(table) => write!(f, "entry of call table {table}"),
            Value::Distance(table) => write!(f, "distance from jump table {table}"),
            Value::Target(table) => write!(f, "target of jump table {table}"),
            Value::View { spot, write, exact } => {
                let (write, exact) =
                    (if write { "writable " } else { "" }, if exact { ", exactly" } else { "" });
                write!(f, "{write}view of {spot}{exact}")
            }
            Value::Length(origin) => write!(f, "length of {origin:#x}"),
            Value::Index(spot) => write!(f, "index of {spot}"),
            Value::Upper => f.write_str("upper half"),
        }
    }
}

/// The names of the general registers.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pointer_is_not_data() {
        assert_eq!(Value::Stack(-8).truncate(4), Value::Bytes(0xf0));
        assert!(!Value::Stack(-8).is_data(1));
        assert_eq!(Value::Stack(-8).operand(4), None);
        assert_eq!(Value::Bytes(0x01).operand(1), Some(Range::bytes(1)));
        assert_eq!(Value::Bytes(0x01).operand(2), None);
        assert_eq!(Value::Bytes(0x01).truncate(4), Value::Bytes(0xf1));
    }

    fn spot(origin: u32, low: i32, room: i32) -> Spot {
        Spot { origin, low, room }
    }

    /// Every view of up to 8 bytes, every place in it: a sum is where its type says.
    #[test]
    fn sums_in_views_hold() {
        let fits = |x: i32, length: i32, spot: Spot| x >= spot.low && x + spot.room <= length;
        for (length, x) in (0..9).flat_map(|length| (0..9).map(move |x| (length, x))) {
            for (low, room) in (0..9).flat_map(|low| (-8..9).map(move |room| (low, room))) {
                let index = spot(8, low, room);
                if !fits(x, length, index) {
                    continue;
                }
                let Some(range) = Value::Index(index).number() else { panic!("an index") };
                assert!(range.contains(x as u64));
                for by in -8..9 {
                    let constant = Value::constant(by as i64 as u64);
                    if let Some(Value::Index(sum)) = Value::Index(index).moved(constant) {
                        assert!(x + by >= 0 && fits(x + by, length, sum));
                    }
                    let start = Value::View { spot: spot(8, 0, 0), write: false, exact: true };
                    let place = start.moved(constant).and_then(|at| at.moved(Value::Index(index)));
                    let Some(Value::View { spot: sum, exact: false, .. }) = place else {
                        panic!("a view")
                    };
                    assert!(fits(by + x, length, sum));
                    let twice = Value::View { spot: sum, write: false, exact: false };
                    assert_eq!(twice.moved(Value::Index(index)), None);
                }
            }
        }
        assert_eq!(Value::Index(spot(8, 4, 0)).moved(Value::constant(5u64.wrapping_neg())), None);
    }

    #[test]
    fn join_and_within_agree() {
        let all = [
            Value::UNKNOWN,
            Value::Bytes(1),
            Value::Bytes(0xf),
            Value::ANY,
            Value::constant(8),
            Value::constant(16),
            Value::data(4),
            Value::image(Range::constant(4)),
            Value::image(Range::to(8)),
            Value::Stack(-8),
            Value::Stack(-16),
            Value::Saved(3),
            Value::Entry(0),
            Value::Entry(1),
            Value::Distance(0),
            Value::Target(0),
            Value::Length(8),
            Value::Length(9),
            Value::Index(spot(8, 0, 1)),
            Value::Index(spot(8, 4, -3)),
            Value::Index(spot(9, 4, 0)),
            Value::View { spot: spot(8, 0, 0), write: true, exact: true },
            Value::View { spot: spot(8, 0, 0), write: false, exact: true },
            Value::View { spot: spot(8, 4, -4), write: false, exact: true },
            Value::View { spot: spot(8, 0, 1), write: true, exact: false },
            Value::View { spot: spot(9, 4, 0), write: false, exact: false },
        ];
        for a in all {
            for b in all {
                let both = a.join(b);
                assert!(a.within(both) && b.within(both), "{a} {b} {both}");
                assert_eq!(both, b.join(a));
                for c in all {
                    assert!(!(a.within(b) && b.within(c)) || a.within(c), "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn bytewise_operations_keep_data_apart_from_what_is_not() {
        let bit = Value::Number(Range::to(1));
        let low = Value::Bytes(1);
        for (a, b, and, expected) in [
            (low, bit, true, Value::ANY),
            (bit, low, true, Value::ANY),
            (low, bit, false, low),
            (low, low, true, low),
            (Value::UNKNOWN, bit, true, Value::Bytes(0xfe)),
            (Value::UNKNOWN, Value::constant(0), true, Value::ANY),
            (Value::UNKNOWN, Value::constant(0x100), true, Value::Bytes(0xfc)),
            (Value::Stack(0), Value::constant(u64::MAX), true, Value::UNKNOWN),
            (Value::Bytes(6), Value::Bytes(3), false, Value::Bytes(2)),
        ] {
            assert_eq!(a.bytewise(b, and), expected, "{a} {b} {and}");
        }
    }
}
