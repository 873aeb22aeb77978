//! Random instructions.

use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::insn::{Insn, Op, Operand, RAX, RDX, RSP};

use crate::machine::FRAME;
use crate::random::Random;

/// Operations that programs consist of.
pub const OPERATIONS: [&str; 38] = [
    "Move",
    "MoveZero",
    "MoveSign",
    "Lea",
    "Add",
    "Sub",
    "Compare",
    "Test",
    "And",
    "Or",
    "Xor",
    "AddCarry",
    "SubBorrow",
    "Increment",
    "Decrement",
    "Negate",
    "Not",
    "ShiftLeft",
    "ShiftRight",
    "ShiftArithmetic",
    "Rotate",
    "ShiftDouble",
    "MultiplyImmediate",
    "Multiply",
    "MultiplyWide",
    "Divide",
    "SignIntoRdx",
    "SignInRax",
    "Exchange",
    "ExchangeAdd",
    "CompareExchange",
    "Set",
    "MoveIf",
    "BitTest",
    "BitChange",
    "BitScan",
    "BitCount",
    "ByteSwap",
];

/// Opcodes of one byte, and the last bytes of those that begin with 0F. Some are refused.
const ONE: &[u8] = &[
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x13, 0x18, 0x19,
    0x1a, 0x1b, 0x20, 0x21, 0x22, 0x23, 0x25, 0x28, 0x29, 0x2a, 0x2b, 0x2d, 0x30, 0x31, 0x32, 0x33,
    0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x63, 0x69, 0x6b, 0x80, 0x81, 0x83, 0x84, 0x85, 0x86, 0x87,
    0x88, 0x89, 0x8a, 0x8b, 0x8d, 0x91, 0x92, 0x93, 0x97, 0x98, 0x99, 0xa8, 0xa9, 0xb0, 0xb4, 0xb8,
    0xbb, 0xc0, 0xc1, 0xc6, 0xc7, 0xd0, 0xd1, 0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff,
];
const TWO: &[u8] = &[
    0xa3, 0xa4, 0xa5, 0xab, 0xac, 0xad, 0xaf, 0xb0, 0xb1, 0xb3, 0xb6, 0xb7, 0xb8, 0xba, 0xbb, 0xbc,
    0xbd, 0xbe, 0xbf, 0xc0, 0xc1, 0xc8, 0xc9, 0xcf,
];

/// The name of an operation, without its condition.
pub fn operation(op: Op) -> String {
    let name = format!("{op:?}");
    name.split('(').next().unwrap_or_default().to_string()
}

/// The instructions of some code, with their bytes.
pub fn instructions(code: &[u8]) -> impl Iterator<Item = (&[u8], Insn)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let insn = decode(&code[at..]).ok()?;
        let start = at;
        at += usize::from(insn.length);
        Some((&code[start..at], insn))
    })
}

/// Bytes that can be an instruction.
fn bytes(random: &mut Random, reads_flags: bool) -> Vec<u8> {
    let mut code = Vec::new();
    match random.below(12) {
        0 | 1 => code.push(0x66),
        2 => code.push(0xf3),
        _ => (),
    }
    match random.below(16) {
        0 | 1 => (),
        n if n % 2 == 0 => code.push(0x40 | random.below(16) as u8),
        _ => code.push(0x48),
    }
    match random.below(10) {
        _ if reads_flags => match random.below(5) {
            0 | 1 => code.extend([0x0f, 0x90 | random.below(16) as u8]),
            2 => code.extend([0x0f, 0x40 | random.below(16) as u8]),
            3 => code.push(0x83),
            _ => code.push(random.pick(&[0x11, 0x13, 0x19, 0x1b])),
        },
        0..3 => code.extend([0x0f, random.pick(TWO)]),
        _ => code.push(random.pick(ONE)),
    }
    match random.below(20) {
        0..5 => code.extend([
            0x44 | (random.below(8) as u8) << 3,
            0x24,
            random.below(FRAME as u64) as u8,
        ]),
        5..8 => code.push(random.any() as u8),
        _ => code.push(0xc0 | random.any() as u8),
    }
    for _ in 0..8 {
        code.push(match random.below(4) {
            0 => 0,
            1 => random.below(64) as u8,
            2 => 0xff,
            _ => random.any() as u8,
        });
    }
    code
}

/// An instruction that touches the frame at most, and leaves the stack pointer alone. The last one of a program often
/// reads the flags.
pub fn instruction(random: &mut Random, last: bool) -> Vec<u8> {
    loop {
        let reads_flags = last && random.below(3) != 0 || random.below(10) == 0;
        let mut code = bytes(random, reads_flags);
        let Ok(insn) = decode(&code) else { continue };
        code.truncate(insn.length.into());
        let known = OPERATIONS.contains(&operation(insn.op).as_str());
        let swaps = matches!(insn.op, Op::Exchange | Op::ExchangeAdd);
        let stack = Operand::Register(RSP);
        if !known || insn.destination == stack || swaps && insn.source == stack {
            continue;
        }
        let memory = insn.memory;
        let accesses = insn.destination == Operand::Memory || insn.source == Operand::Memory;
        let inside = (0..FRAME as i32).contains(&memory.displacement);
        if memory.relative || accesses && (memory.base != Some(RSP) || !inside) {
            continue;
        }
        if insn.op != Op::Divide {
            return code;
        }
        // A division that does not fault: of a number below 2^31 by one from 1 to 1000.
        let Operand::Register(divisor) = insn.source else { continue };
        if insn.size < 4 || [RAX, RDX, RSP].contains(&divisor) {
            continue;
        }
        let mut safe = vec![0xba, 0, 0, 0, 0, 0xb8];
        safe.extend((random.any() as u32 >> 1).to_le_bytes());
        safe.extend([0x48 | divisor >> 3, 0xc7, 0xc0 | divisor & 7]);
        safe.extend((1 + random.below(1000) as u32).to_le_bytes());
        safe.extend(code);
        return safe;
    }
}
