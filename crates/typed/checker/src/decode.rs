//! The decoder: from bytes to [`Insn`], for the instructions in one table and no others.
//!
//! [`table`] says which opcodes there are and what they do; this file applies it. An instruction that compilers do not
//! emit is refused, although a processor would carry it out. Prefixes are allowed once each, in front of REX.

mod entry;
mod refusal;
mod table;

#[cfg(test)]
mod tests;

use crate::insn::{Insn, Memory, Op, Operand, Register, RAX, RCX};
use entry::{Form, Imm, Slot, IMMEDIATES, KINDS, SIZES, TABLE};
pub use refusal::Refusal;
use table::{NONE, ONE, P66, PF2, PF3, TWO, X38, X3A};

/// Decodes the instruction at the beginning of `bytes`. Reads no further than its end.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<Insn, Refusal> {
    let mut insn = Insn::BLANK;
    decode_into(bytes, &mut insn).map(|()| insn)
}

/// The same into a place, because copies of what was just written in small parts are slow.
#[inline]
pub(crate) fn decode_into(bytes: &[u8], insn: &mut Insn) -> Result<(), Refusal> {
    match bytes.first_chunk() {
        Some(window) => instruction(window, insn, &mut 0),
        None => decode_short(bytes, insn),
    }
}

/// The same for less than 16 bytes: whatever needs a byte behind them is truncated.
#[cold]
fn decode_short(bytes: &[u8], insn: &mut Insn) -> Result<(), Refusal> {
    let mut window = [0; 16];
    window[..bytes.len()].copy_from_slice(bytes);
    let mut read = 0;
    let result = instruction(&window, insn, &mut read);
    if result.map_or(read, |()| insn.length.into()) > bytes.len() as u32 {
        return Err(Refusal::Truncated);
    }
    result
}

const NO_MEMORY: Memory = Insn::BLANK.memory;

/// What the ModRM byte, the SIB byte and REX say.
struct ModRm {
    reg: Register,
    /// A register, unless `in_memory`.
    rm: Register,
    in_memory: bool,
    /// Without the displacement, of which `displacement` is the number of bytes.
    memory: Memory,
    displacement: u32,
}

/// The first eight bytes, which are enough for prefixes, opcode, ModRM and SIB, without the `at` that are read.
struct Reader {
    rest: u64,
    at: u32,
}

/// `read` becomes the number of bytes that led to a refusal.
fn instruction(window: &[u8; 16], insn: &mut Insn, read: &mut u32) -> Result<(), Refusal> {
    let mut reader = Reader::new(window);
    let (mut prefix, mut lock) = (NONE, false);
    let mut byte = reader.byte();
    while matches!(byte, 0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e) {
        match byte {
            0xf0 if !lock => lock = true,
            0x66 if prefix == NONE => prefix = P66,
            0xf2 if prefix == NONE => prefix = PF2,
            0xf3 if prefix == NONE => prefix = PF3,
            _ => return padding(window, byte, read).map(|padding| *insn = padding),
        }
        byte = reader.byte();
    }
    // Every second instruction has REX: no branch.
    let is_rex = byte & 0xf0 == 0x40;
    let rex = if is_rex { byte } else { 0 };
    byte = if is_rex { reader.rest as u8 } else { byte };
    reader.rest >>= 8 * u32::from(is_rex);
    reader.at += u32::from(is_rex);
    let mut map = ONE;
    if byte == 0x0f {
        byte = reader.byte();
        map = TWO;
        if matches!(byte, 0x38 | 0x3a) {
            map = if byte == 0x38 { X38 } else { X3A };
            byte = reader.byte();
        }
    }
    let (opcode, next) = (byte, reader.rest as u8);
    let reg = next >> 3 & 7;
    let entry = TABLE.entry(map, prefix, opcode, reg);

    let mut m = ModRm { reg: 0, rm: 0, in_memory: false, memory: NO_MEMORY, displacement: 0 };
    let form = entry.form;
    if matches!(form, Form::Any | Form::Memory | Form::Register | Form::Hint) {
        m = reader.modrm(rex);
    }
    *read = reader.at;
    if !matches!(form, Form::Any | Form::Plain) {
        match form {
            Form::Memory if !m.in_memory => return Err(Refusal::NeedsMemory),
            Form::Register if m.in_memory => return Err(Refusal::NeedsRegister),
            Form::NoRex if rex != 0 => return Err(Refusal::Prefix(rex)),
            Form::Exact => reader.at += 1,
            Form::Refused => return Err(refusal(map, prefix, opcode, reg, read)),
            _ => {}
        }
        if form == Form::Exact && next != entry.bits {
            *read += 1;
            return Err(Refusal::ModRm(next));
        }
    }
    let wide = rex & 8 != 0;
    let size = SIZES[entry.size as usize][usize::from(wide) << 1 | usize::from(prefix == P66)];
    if size == 0 {
        return Err(if wide { Refusal::Prefix(0x66) } else { Refusal::NeedsWide });
    }
    let rest = window.get(reader.at as usize..).and_then(|rest| rest.first_chunk());
    let rest = u64::from_le_bytes(*rest.ok_or(Refusal::TooLong)?);
    let count = IMMEDIATES[entry.immediate as usize][usize::from(size >> 1 & 7)];
    let immediate = extended(rest >> (8 * m.displacement), count);
    m.memory.displacement = extended(rest, m.displacement) as i32;
    let length = reader.at + m.displacement + count;
    if length > 15 {
        return Err(Refusal::TooLong);
    }

    // The register that a slot would name, in the byte with its number.
    let low = opcode & 7 | (rex & 1) << 3;
    let registers = u64::from_le_bytes([0, m.reg, m.rm, m.rm, low, RAX, RCX, 0]);
    let high = (size == 1 || entry.source == Slot::B) && rex == 0;
    let operand = |slot: Slot| {
        let register = registers.wrapping_shr(8 * slot as u32) as u8;
        match KINDS[slot as usize][usize::from(m.in_memory)] {
            Operand::Register(_) if high => high_or_low(register, size == 1 || slot == Slot::B),
            Operand::Register(_) => Operand::Register(register),
            kind => kind,
        }
    };
    let destination = operand(entry.destination);
    if lock && !(entry.lock && destination == Operand::Memory) {
        *read = length;
        return Err(Refusal::Lock);
    }
    let (op, result_bits) = match entry.op {
        Op::VectorToRegister if destination == Operand::Memory => (Op::Vector, 0),
        Op::VectorToRegister if entry.bits == 0 => (entry.op, 8 * size),
        Op::VectorToRegister => (entry.op, entry.bits),
        op => (op, 0),
    };
    *insn = Insn {
        op,
        length: length as u8,
        size,
        width: if entry.width == 0 { size } else { entry.width },
        result_bits,
        by_cl: entry.by_cl,
        destination,
        source: operand(entry.source),
        memory: if op == Op::Nop { NO_MEMORY } else { m.memory },
        immediate: if entry.immediate == Imm::One { 1 } else { immediate },
    };
    Ok(())
}

impl Reader {
    #[inline(always)]
    fn new(window: &[u8; 16]) -> Reader {
        Reader { rest: u128::from_le_bytes(*window) as u64, at: 0 }
    }

    #[inline(always)]
    fn byte(&mut self) -> u8 {
        let byte = self.rest as u8;
        self.rest >>= 8;
        self.at += 1;
        byte
    }

    /// Reads a ModRM byte and the SIB byte: SDM volume 2, 2.1.5 and 2.2.1.
    #[inline(always)]
    fn modrm(&mut self, rex: u8) -> ModRm {
        let modrm = self.byte();
        let (mode, low) = (modrm >> 6, modrm & 7);
        let reg = modrm >> 3 & 7 | (rex & 4) << 1;
        let mut rm = low | (rex & 1) << 3;
        let mut memory = NO_MEMORY;
        if mode == 3 {
            return ModRm { reg, rm, in_memory: false, memory, displacement: 0 };
        }
        if low == 4 {
            let sib = self.byte();
            let index = sib >> 3 & 7 | (rex & 2) << 2;
            if index != 4 {
                memory.index = Some((index, sib >> 6));
            }
            rm = sib & 7 | (rex & 1) << 3;
        }
        let no_base = mode == 0 && rm & 7 == 5;
        memory.relative = no_base && low == 5;
        memory.base = if no_base { None } else { Some(rm) };
        let displacement = if no_base { 4 } else { [0, 1, 4, 0][usize::from(mode)] };
        ModRm { reg, rm, in_memory: true, memory, displacement }
    }
}

/// The nops that assemblers pad with: any number of prefixes 66 and 2E, then 90 or 0F 1F /0. They are the only
/// instructions with the prefix 2E or with one twice; `repeated` is the prefix that makes this one such.
#[cold]
fn padding(window: &[u8; 16], repeated: u8, read: &mut u32) -> Result<Insn, Refusal> {
    let prefixes = window.iter().take_while(|byte| matches!(byte, 0x66 | 0x2e)).count();
    let code = u128::from_le_bytes(*window) >> (8 * prefixes.min(15));
    let mut reader = Reader { rest: code as u64, at: prefixes as u32 };
    let known = match reader.byte() {
        0x90 => true,
        0x0f if reader.byte() == 0x1f => {
            let m = reader.modrm(0);
            reader.at += m.displacement;
            m.reg == 0
        }
        _ => false,
    };
    *read = reader.at;
    if !known {
        return Err(misplaced(repeated));
    }
    if reader.at > 15 {
        return Err(Refusal::TooLong);
    }
    Ok(Insn { length: reader.at as u8, ..Insn::BLANK })
}

/// Why an opcode that is not in the table is refused.
#[cold]
fn refusal(map: u8, prefix: u8, opcode: u8, reg: u8, read: &mut u32) -> Refusal {
    let allowed =
        |prefix| (0..8).any(|reg| TABLE.entry(map, prefix, opcode, reg).form != Form::Refused);
    match (map, opcode) {
        (ONE, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67) => misplaced(opcode),
        (ONE, 0x66 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f) => Refusal::Rex,
        _ if allowed(prefix) => {
            *read += 1;
            Refusal::Extension(map, opcode, reg)
        }
        _ if prefix != NONE && (0..4).any(allowed) => {
            Refusal::Prefix([0, 0x66, 0xf3, 0xf2][usize::from(prefix & 3)])
        }
        _ => Refusal::Opcode(map, opcode),
    }
}

/// A register without REX: spl, bpl, sil and dil are ah, ch, dh and bh then.
#[cold]
fn high_or_low(register: Register, byte: bool) -> Operand {
    match register {
        4..=7 if byte => Operand::High(register - 4),
        _ => Operand::Register(register),
    }
}

/// The number in the low `count` bytes, with their sign.
#[inline(always)]
fn extended(bytes: u64, count: u32) -> i64 {
    // Twice half the distance, because a shift by 64 is none.
    let half = 32 - 4 * count;
    ((bytes << half << half) as i64) >> half >> half
}

fn misplaced(prefix: u8) -> Refusal {
    match prefix {
        0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => Refusal::Segment(prefix),
        0x67 => Refusal::AddressSize,
        _ => Refusal::Prefix(prefix),
    }
}
