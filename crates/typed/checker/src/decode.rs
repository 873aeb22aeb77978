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
use entry::{Form, Imm, Slot, SIZES, TABLE};
pub use refusal::Refusal;
use table::{NONE, ONE, P66, PF2, PF3, TWO, X38, X3A};

/// Decodes the instruction at the beginning of `bytes`. Reads no further than its end.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<Insn, Refusal> {
    match bytes.first_chunk() {
        Some(window) => Reader { window, at: 0 }.instruction(),
        None => decode_short(bytes),
    }
}

/// The same for less than 16 bytes: whatever needs a byte behind them is truncated.
#[cold]
fn decode_short(bytes: &[u8]) -> Result<Insn, Refusal> {
    let mut window = [0; 16];
    window[..bytes.len()].copy_from_slice(bytes);
    let mut reader = Reader { window: &window, at: 0 };
    let result = reader.instruction();
    if reader.at > bytes.len() {
        return Err(Refusal::Truncated);
    }
    result
}

const NO_MEMORY: Memory = Memory { base: None, index: None, displacement: 0, relative: false };

/// The ModRM byte and what belongs to it. The fields have the bits of REX.
struct ModRm {
    reg: Register,
    /// A register, unless `in_memory`.
    rm: Register,
    in_memory: bool,
    memory: Memory,
}

/// Instruction bytes, and how many of them are read.
struct Reader<'a> {
    window: &'a [u8; 16],
    at: usize,
}

impl Reader<'_> {
    fn instruction(&mut self) -> Result<Insn, Refusal> {
        let mut byte = self.byte()?;
        let (mut prefix, mut lock, mut rex) = (NONE, false, 0);
        while matches!(byte, 0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e) {
            match byte {
                0xf0 if !lock => lock = true,
                0x66 if prefix == NONE => prefix = P66,
                0xf2 if prefix == NONE => prefix = PF2,
                0xf3 if prefix == NONE => prefix = PF3,
                _ => return self.padding(byte),
            }
            byte = self.byte()?;
        }
        if byte & 0xf0 == 0x40 {
            rex = byte;
            byte = self.byte()?;
        }
        let wide = rex & 8 != 0;
        let mut map = ONE;
        if byte == 0x0f {
            byte = self.byte()?;
            map = match byte {
                0x38 => X38,
                0x3a => X3A,
                _ => TWO,
            };
            if map != TWO {
                byte = self.byte()?;
            }
        }
        let opcode = byte;
        // The next byte is ModRM if the opcode has one.
        let next = self.window.get(self.at).copied().unwrap_or(0);
        let entry = TABLE.entry(map, prefix, opcode, next >> 3 & 7);

        let mut m = ModRm { reg: 0, rm: 0, in_memory: false, memory: NO_MEMORY };
        match entry.form {
            Form::Plain => {}
            Form::NoRex if rex == 0 => {}
            Form::Any | Form::Memory | Form::Register | Form::Hint => m = self.modrm(rex)?,
            Form::Exact(modrm) => {
                if self.byte()? != modrm {
                    return Err(Refusal::ModRm(next));
                }
            }
            Form::NoRex => return Err(Refusal::Prefix(rex)),
            Form::Refused => {
                let refusal = refusal(map, prefix, opcode, next >> 3 & 7);
                self.at += usize::from(matches!(refusal, Refusal::Extension(..)));
                return Err(refusal);
            }
        }
        match entry.form {
            Form::Memory if !m.in_memory => return Err(Refusal::NeedsMemory),
            Form::Register if m.in_memory => return Err(Refusal::NeedsRegister),
            Form::Hint => m.memory = NO_MEMORY,
            _ => {}
        }
        let size = SIZES[entry.size as usize][usize::from(wide) << 1 | usize::from(prefix == P66)];
        if size == 0 {
            return Err(if wide { Refusal::Prefix(0x66) } else { Refusal::NeedsWide });
        }
        let immediate = match (entry.immediate, size) {
            (Imm::No, _) => 0,
            (Imm::One, _) => 1,
            (Imm::Byte, _) => i64::from(self.byte()? as i8),
            (Imm::Full | Imm::Long, 2) => i64::from(i16::from_le_bytes(self.bytes()?)),
            (Imm::Long, 8) => i64::from_le_bytes(self.bytes()?),
            (Imm::Full | Imm::Long, _) => i64::from(i32::from_le_bytes(self.bytes()?)),
        };
        let low_byte = |register| match register {
            4..=7 if rex == 0 => Operand::High(register - 4),
            _ => Operand::Register(register),
        };
        let general =
            |register| if size == 1 { low_byte(register) } else { Operand::Register(register) };
        let operand = |slot| match slot {
            Slot::N => Operand::None,
            Slot::G => general(m.reg),
            Slot::E | Slot::B | Slot::W if m.in_memory => Operand::Memory,
            Slot::E => general(m.rm),
            Slot::B => low_byte(m.rm),
            Slot::V | Slot::W => Operand::Vector,
            Slot::O => general(opcode & 7 | (rex & 1) << 3),
            Slot::A => Operand::Register(RAX),
            Slot::C => Operand::Register(RCX),
            Slot::I => Operand::Immediate,
        };
        let destination = operand(entry.destination);
        if lock && !(entry.lock && destination == Operand::Memory) {
            return Err(Refusal::Lock);
        }
        if self.at > 15 {
            return Err(Refusal::TooLong);
        }
        let mut insn = Insn {
            op: entry.op,
            length: self.at as u8,
            size,
            width: if entry.width == 0 { size } else { entry.width },
            result_bits: 0,
            by_cl: entry.by_cl,
            destination,
            source: operand(entry.source),
            memory: m.memory,
            immediate,
        };
        if entry.op == Op::VectorToRegister {
            if destination == Operand::Memory {
                insn.op = Op::Vector;
            } else {
                insn.result_bits = if entry.bits == 0 { 8 * size } else { entry.bits };
            }
        }
        Ok(insn)
    }

    /// Reads a ModRM byte, the SIB byte and the displacement: SDM volume 2, 2.1.5 and 2.2.1.
    #[inline(always)]
    fn modrm(&mut self, rex: u8) -> Result<ModRm, Refusal> {
        let modrm = self.byte()?;
        let (mode, low) = (modrm >> 6, modrm & 7);
        let reg = modrm >> 3 & 7 | (rex & 4) << 1;
        let mut rm = low | (rex & 1) << 3;
        if mode == 3 {
            return Ok(ModRm { reg, rm, in_memory: false, memory: NO_MEMORY });
        }
        let mut memory = NO_MEMORY;
        let mut long = mode == 2;
        if low == 4 {
            let sib = self.byte()?;
            let index = sib >> 3 & 7 | (rex & 2) << 2;
            if index != 4 {
                memory.index = Some((index, sib >> 6));
            }
            rm = sib & 7 | (rex & 1) << 3;
        }
        if mode == 0 && rm & 7 == 5 {
            long = true;
            memory.relative = low == 5;
        } else {
            memory.base = Some(rm);
        }
        if long {
            memory.displacement = i32::from_le_bytes(self.bytes()?);
        } else if mode == 1 {
            memory.displacement = i32::from(self.byte()? as i8);
        }
        Ok(ModRm { reg, rm, in_memory: true, memory })
    }

    /// The nops that assemblers pad with: any number of prefixes 66 and 2E, then 90 or 0F 1F /0. They are the only
    /// instructions with the prefix 2E or with one twice; `repeated` is the prefix that makes this one such.
    #[cold]
    fn padding(&mut self, repeated: u8) -> Result<Insn, Refusal> {
        self.at = 0;
        let mut byte = self.byte()?;
        while matches!(byte, 0x66 | 0x2e) {
            byte = self.byte()?;
        }
        match byte {
            0x90 => {}
            0x0f => {
                let nop = self.byte()? == 0x1f;
                if !nop || self.modrm(0)?.reg != 0 {
                    return Err(misplaced(repeated));
                }
            }
            _ => return Err(misplaced(repeated)),
        }
        if self.at > 15 {
            return Err(Refusal::TooLong);
        }
        Ok(Insn {
            op: Op::Nop,
            length: self.at as u8,
            size: 4,
            width: 4,
            result_bits: 0,
            by_cl: false,
            destination: Operand::None,
            source: Operand::None,
            memory: NO_MEMORY,
            immediate: 0,
        })
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Refusal> {
        let byte = *self.window.get(self.at).ok_or(Refusal::TooLong)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let rest = self.window.get(self.at..).and_then(|rest| rest.first_chunk());
        self.at += N;
        rest.copied().ok_or(Refusal::TooLong)
    }
}

/// Why an opcode that is not in the table is refused.
#[cold]
fn refusal(map: u8, prefix: u8, opcode: u8, reg: u8) -> Refusal {
    let allowed =
        |prefix, reg| !matches!(TABLE.entry(map, prefix, opcode, reg).form, Form::Refused);
    match (map, opcode) {
        (ONE, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67) => misplaced(opcode),
        (ONE, 0x66 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f) => Refusal::Rex,
        _ if (0..8).any(|reg| allowed(prefix, reg)) => Refusal::Extension(map, opcode, reg),
        _ if prefix != NONE && (0..4).any(|prefix| allowed(prefix, reg)) => {
            Refusal::Prefix([0, 0x66, 0xf3, 0xf2][usize::from(prefix)])
        }
        _ => Refusal::Opcode(map, opcode),
    }
}

fn misplaced(prefix: u8) -> Refusal {
    match prefix {
        0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => Refusal::Segment(prefix),
        0x67 => Refusal::AddressSize,
        _ => Refusal::Prefix(prefix),
    }
}
