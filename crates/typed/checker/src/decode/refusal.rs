//! Why an instruction is refused.

use core::fmt;

/// Why the decoder refuses an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes end within the instruction.
    Truncated,
    /// The instruction would be longer than 15 bytes.
    TooLong,
    /// The opcode is not in the table: its map (0 to 3) and its last byte.
    Opcode(u8, u8),
    /// The opcode is in the table, but not with this number in the reg field of its ModRM byte.
    Extension(u8, u8, u8),
    /// The opcode cannot have this prefix, or not a second time.
    Prefix(u8),
    /// A segment prefix.
    Segment(u8),
    /// The address-size prefix.
    AddressSize,
    /// A REX prefix that is not directly before the opcode.
    Rex,
    /// LOCK with an instruction that cannot have it, or without a memory destination.
    Lock,
    /// The operand must be in memory.
    NeedsMemory,
    /// The operand must be a register.
    NeedsRegister,
    /// The opcode needs REX.W.
    NeedsWide,
    /// The opcode is allowed with one ModRM byte only, which is not this one.
    ModRm(u8),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAPS: [&str; 4] = ["", "0f ", "0f 38 ", "0f 3a "];
        let map = |map: u8| MAPS[usize::from(map & 3)];
        match *self {
            Refusal::Truncated => f.write_str("the instruction is truncated"),
            Refusal::TooLong => f.write_str("the instruction is longer than 15 bytes"),
            Refusal::Opcode(m, opcode) => write!(f, "unknown opcode {}{opcode:02x}", map(m)),
            Refusal::Extension(m, opcode, reg) => {
                write!(f, "unknown opcode {}{opcode:02x} /{reg}", map(m))
            }
            Refusal::Prefix(prefix) => write!(f, "prefix {prefix:02x} is not allowed here"),
            Refusal::Segment(prefix) => write!(f, "segment prefix {prefix:02x} is not allowed"),
            Refusal::AddressSize => f.write_str("address-size prefix 67 is not allowed"),
            Refusal::Rex => f.write_str("the REX prefix is not directly before the opcode"),
            Refusal::Lock => f.write_str("LOCK is not allowed here"),
            Refusal::NeedsMemory => f.write_str("the register form is not allowed"),
            Refusal::NeedsRegister => f.write_str("the memory form is not allowed"),
            Refusal::NeedsWide => f.write_str("the form without REX.W is not allowed"),
            Refusal::ModRm(byte) => write!(f, "ModRM byte {byte:02x} is not allowed here"),
        }
    }
}

impl core::error::Error for Refusal {}
