//! Why a program is refused.

use core::fmt;

use crate::decode::Refusal;
use crate::heads::Location;
use crate::insn::{Op, Register};
use crate::program::Malformed;
use crate::value::{Value, REGISTERS};

/// A broken rule, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Number of the function.
    pub function: u32,
    /// Offset in the text.
    pub offset: u32,
    /// The instruction, if it was decoded.
    pub op: Option<Op>,
    /// The rule.
    pub rule: Rule,
}

/// A rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The file, before its text.
    File(Malformed),
    /// The instruction is not in the decoder's table.
    Decode(Refusal),
    /// Only memory that a type names may be accessed.
    Address {
        /// Bytes accessed.
        size: u8,
        /// It is written.
        write: bool,
        /// What the address is.
        found: Value,
    },
    /// Only data may be stored in the region, computed with in vectors, divided, or passed on the stack.
    NotData {
        /// Bytes that are used.
        size: u8,
        /// What they are.
        found: Value,
    },
    /// An argument has the type that the callee's signature says.
    Argument {
        /// Its register.
        register: Register,
        /// The signature's type.
        expected: Value,
        /// What it is.
        found: Value,
    },
    /// A stack argument is data.
    StackArgument {
        /// Its number.
        index: u8,
        /// Its bytes: 4 or 8.
        size: u8,
        /// What it is.
        found: Value,
    },
    /// The result has the type that the signature says.
    Result {
        /// The signature's type.
        expected: Value,
        /// What rax is.
        found: Value,
    },
    /// A tail call's signature must return what this function's signature says.
    TailResult,
    /// A tail call must not need more stack arguments than its caller has.
    TailArguments,
    /// A function returns with callee-saved registers as they were.
    NotSaved {
        /// The register.
        register: Register,
        /// What it is.
        found: Value,
    },
    /// The stack pointer is a known multiple of 8 below its value at entry, or equal to it at a return.
    StackPointer {
        /// What it is, or would become.
        found: Value,
    },
    /// The frame is deeper than the function's entry says.
    Frame {
        /// Bytes that it has.
        declared: u32,
        /// Bytes that it needs.
        found: u32,
    },
    /// Before a call, and before the stack pointer falls more than [`crate::SLACK`] bytes, its low 16 bits must be
    /// compared with a number: see [`crate::FLOOR`].
    NoStackCheck {
        /// Offset down to which the stack was checked.
        checked: i32,
        /// Offset that is needed.
        needed: i32,
    },
    /// The flags stem from something that is not data.
    Flags,
    /// An indirect branch needs an entry of a call table, or of a jump table.
    Indirect {
        /// What the address is.
        found: Value,
    },
    /// Indirect branches and returns go by thunks, unless the file's flags say otherwise.
    Thunk,
    /// A jump leads to no instruction, function or stub.
    Target(i64),
    /// A jump table leads to a place without endbr64, which the host needs.
    Landing(u32),
    /// A jump leads into an instruction.
    Middle(u32),
    /// A jump back leads to a place without an annotation.
    NoHead(u32),
    /// The type at a jump back, or what flows into a head, is not what the head says.
    Head {
        /// Offset of the head.
        head: u32,
        /// The place.
        location: Location,
        /// What the head says.
        expected: Value,
        /// What comes.
        found: Value,
    },
    /// A jump back has less checked stack than its head.
    HeadRoom(u32),
    /// A jump back has flags that do not stem from data, as its head says.
    HeadFlags(u32),
    /// The annotations of the function are malformed.
    Annotation,
    /// The function goes on behind its end.
    End,
    /// Jumps and heads have more values to copy, join and compare than [`crate::WORK`].
    Work,
    /// An operand form that the type system has no rule for.
    Form,
    /// The checker's memory does not suffice.
    Memory,
    /// The host ended the check.
    Stopped,
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Rule::File(malformed) = self.rule {
            return malformed.fmt(f);
        }
        write!(f, "function {}, text offset {:#x}", self.function, self.offset)?;
        if let Some(op) = self.op {
            write!(f, ", {op:?}")?;
        }
        write!(f, ": {}", self.rule)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Rule::*;
        let name = |register: Register| REGISTERS[register as usize & 15];
        match *self {
            File(malformed) => malformed.fmt(f),
            Decode(refusal) => refusal.fmt(f),
            Address { size, write, found } => {
                let access = if write { "write" } else { "read" };
                let expected = "an address of the region, frame, read-only data or a view";
                write!(f, "{access} of {size} bytes: expected {expected}, found {found}")
            }
            NotData { size, found } => write!(f, "expected {size} bytes of data, found {found}"),
            Argument { register, expected, found } => {
                write!(f, "argument {}: expected {expected}, found {found}", name(register))
            }
            StackArgument { index, size, found } => {
                write!(f, "stack argument {index}: expected {size} bytes of data, found {found}")
            }
            Result { expected, found } => {
                write!(f, "result rax: expected {expected}, found {found}")
            }
            TailResult => f.write_str("tail call: expected a callee with this function's result"),
            TailArguments => {
                f.write_str("tail call: expected a callee without further stack arguments")
            }
            NotSaved { register, found } => {
                write!(f, "{}: expected its value at entry, found {found}", name(register))
            }
            StackPointer { found } => {
                let expected = "a known multiple of 8 in the frame, at a return its value at entry";
                write!(f, "rsp: expected {expected}, found {found}")
            }
            Frame { declared, found } => {
                write!(f, "expected a frame of at most {declared} bytes, found {found}")
            }
            NoStackCheck { checked, needed } => {
                write!(f, "expected a stack checked down to {needed:+}, found {checked:+}")
            }
            Flags => f.write_str("expected flags that stem from data"),
            Indirect { found } => {
                write!(f, "expected an entry of a call or jump table, found {found}")
            }
            Thunk => f.write_str("expected a thunk: the file's flags have no indirect branches"),
            Target(at) => write!(f, "no instruction, function or stub begins at {at:#x}"),
            Landing(at) => write!(f, "expected endbr64 at {at:#x}, where a jump table leads"),
            Middle(at) => write!(f, "a jump leads into the middle of an instruction, to {at:#x}"),
            NoHead(at) => write!(f, "jump back to {at:#x}, which has no annotation"),
            Head { head, location, expected, found } => {
                write!(f, "head {head:#x}, {location}: expected {expected}, found {found}")
            }
            HeadRoom(head) => write!(f, "head {head:#x}: expected a checked stack as there"),
            HeadFlags(head) => write!(f, "head {head:#x}: expected flags that stem from data"),
            Annotation => f.write_str("malformed annotation, or one that is at no instruction"),
            End => f.write_str("the function goes on behind its end"),
            Work => f.write_str("too many jumps and heads with so deep a frame for so little text"),
            Form => f.write_str("operands that this checker has no rule for"),
            Memory => f.write_str("too many labels for the checker's memory"),
            Stopped => f.write_str("the check was stopped here"),
        }
    }
}
