//! What a register or a piece of the stack can hold.

use core::fmt;

use crate::insn::Register;
use crate::range::{ones, Range, Short};

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

    /// The number it is.
    pub fn number(self) -> Option<Range> {
        match self {
            Value::Number(range) => Some(range),
            _ => None,
        }
    }

    /// Which of its bytes are data.
    pub fn data_bytes(self) -> u8 {
        match self {
            Value::Number(_) => 0xff,
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
    pub fn truncate(self, size: u8) -> Value {
        match self {
            _ if size == 8 => self,
            Value::Number(range) => Value::Number(range.truncate(size as u32 * 8)),
            _ if self.is_data(size) => Value::data(size),
            _ => Value::Bytes(self.data_bytes() | !(ones(size as u32) as u8)),
        }
    }

    /// The number in its lowest `size` bytes, if they are data.
    pub fn operand(self, size: u8) -> Option<Range> {
        self.truncate(size).number()
    }

    /// What holds for both.
    pub fn join(self, other: Value) -> Value {
        match (self, other) {
            (Value::Number(x), Value::Number(y)) => Value::Number(x.join(y)),
            (Value::Image(x), Value::Image(y)) => Value::image(Range::from(x).join(y.into())),
            _ if self == other => self,
            _ => Value::known(self.data_bytes() & other.data_bytes()),
        }
    }

    /// Whether a place of this type may be used as one of type `other`.
    pub fn within(self, other: Value) -> bool {
        match (self, other) {
            (Value::Number(x), Value::Number(y)) => x.within(y),
            (Value::Image(x), Value::Image(y)) => Range::from(x).within(y.into()),
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
}
