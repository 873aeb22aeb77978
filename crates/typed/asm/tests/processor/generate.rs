//! Random instructions.

use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::insn::{Insn, Op, Operand, Register, RAX, RBP, RBX, RDX, RSP};

use crate::machine::{Code, FRAME};
use crate::random::Random;

/// Operations that programs consist of.
pub const OPERATIONS: [&str; 43] = [
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
    "Push",
    "Pop",
    "Leave",
    "JumpIf",
    "Call",
];

/// The counter of loops.
const COUNTER: Register = 15;

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

/// An instruction that touches the frame at most, and leaves the stack pointer and the registers in `keep` alone. The
/// last one of a program often reads the flags.
fn instruction(random: &mut Random, last: bool, keep: &[Register]) -> Vec<u8> {
    loop {
        let reads_flags = last && random.below(3) != 0 || random.below(10) == 0;
        let mut code = bytes(random, reads_flags);
        let Ok(insn) = decode(&code) else { continue };
        code.truncate(insn.length.into());
        let known = OPERATIONS[..38].contains(&operation(insn.op).as_str());
        let swaps = matches!(insn.op, Op::Exchange | Op::ExchangeAdd);
        let kept = |operand: Operand| match operand {
            Operand::Register(n) | Operand::High(n) => n == RSP || keep.contains(&n),
            _ => false,
        };
        if !known || kept(insn.destination) || swaps && kept(insn.source) {
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
        if insn.size < 4 || [RAX, RDX].contains(&divisor) || kept(insn.source) {
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

/// push, pop or leave, at most times of registers, or lea of the frame's end into rbp.
fn stack(random: &mut Random, keep: &[Register]) -> Vec<u8> {
    let register = random.below(16) as u8;
    let (rex, low) = (0x40 | register >> 3, register & 7);
    match random.below(10) {
        0..3 => vec![rex, 0x50 | low],
        3 => vec![0x6a, random.any() as u8],
        4 => vec![0xff, 0x74, 0x24, 8 * random.below(8) as u8],
        5..8 if !keep.contains(&register) && register != RSP => vec![rex, 0x58 | low],
        8 if !keep.contains(&RBP) => vec![0x48, 0x8d, 0x6c, 0x24, 8 * random.below(8) as u8],
        _ => vec![0xc9],
    }
}

/// Instructions, some of them under a condition, that leave the registers in `keep` alone; perhaps with calls.
fn block(random: &mut Random, calls: bool, last: bool, keep: &[Register]) -> Vec<u8> {
    let mut code = Vec::new();
    let count = 1 + random.below(7);
    // Where a forward jump's distance is, until it has one.
    let mut open = None;
    for n in 0..count {
        let inside = n > 0 && n + 1 < count;
        if inside && open.is_none() && random.below(5) == 0 {
            code.extend([0x70 | random.below(16) as u8, 0]);
            open = Some(code.len());
            continue;
        }
        match random.below(8) {
            0 => code.extend(stack(random, keep)),
            // The distance comes later.
            1 if calls => code.extend([0xe8, 0, 0, 0, 0]),
            _ => code.extend(instruction(random, last && n + 1 == count, keep)),
        }
        if let Some(start) = open.filter(|_| random.below(2) == 0) {
            code[start - 1] = (code.len() - start) as u8;
            open = None;
        }
    }
    if let Some(start) = open {
        code[start - 1] = (code.len() - start) as u8;
    }
    code
}

/// A block that runs a few times.
fn repeated(random: &mut Random, calls: bool) -> Vec<u8> {
    let times = 1 + random.below(20) as u8;
    let down = random.below(2) == 0;
    // mov $start, %r15d
    let mut code = vec![0x41, 0xbf, if down { times } else { 0 }, 0, 0, 0];
    let head = code.len();
    code.extend(block(random, calls, false, &[COUNTER]));
    let jump = if down {
        // dec %r15d; jne
        code.extend([0x41, 0xff, 0xcf]);
        0x75
    } else {
        // inc %r15d; cmp $times, %r15d; jb, jne or jl
        code.extend([0x41, 0xff, 0xc7, 0x41, 0x83, 0xff, times]);
        random.pick(&[0x72, 0x75, 0x7c])
    };
    let distance = code.len() + 2 - head;
    code.extend([jump, (distance as u8).wrapping_neg()]);
    // With a longer distance there is no jump back.
    code.truncate(if distance <= 128 { code.len() } else { code.len() - 2 });
    code
}

/// A function that makes a frame and then does something with it and with registers, in a loop or with calls.
pub fn program(random: &mut Random) -> Code {
    let (calls, loops) = (random.below(4) == 0, random.below(4) == 0);
    let mut callee = Vec::new();
    let mut function = Vec::new();
    if calls {
        // mov %edi, %eax; instructions; mov %rbx, which is no data, to registers; ret
        callee.extend([0x89, 0xf8]);
        for _ in 0..random.below(4) {
            callee.extend(instruction(random, false, &[RBX, RBP, 12, 13, 14, 15]));
        }
        for register in [1, 2, 6, 7, 8, 9, 10, 11] {
            if random.below(2) == 0 {
                callee.extend([0x48 | register >> 3, 0x89, 0xd8 | register & 7]);
            }
        }
        callee.push(0xc3);
        // cmp $0x6000, %sp; jae over ud2
        function.extend([0x66, 0x81, 0xfc, 0, 0x60, 0x73, 0x02, 0x0f, 0x0b]);
    }
    // sub $FRAME, %rsp
    function.extend([0x48, 0x83, 0xec, FRAME as u8]);
    if loops {
        if random.below(2) == 0 {
            function.extend(block(random, calls, false, &[]));
        }
        function.extend(repeated(random, calls));
    }
    if !loops || random.below(2) == 0 {
        function.extend(block(random, calls, true, &[]));
    }
    let mut at = 0;
    while let Ok(insn) = decode(&function[at..]) {
        at += usize::from(insn.length);
        if insn.op == Op::Call {
            let distance = -((callee.len() + at) as i32);
            function[at - 4..at].copy_from_slice(&distance.to_le_bytes());
        }
    }
    Code { callee, function }
}
