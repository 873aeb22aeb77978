//! What the opcode table holds of an instruction, and the index that finds it.

use super::table::*;
use crate::insn::{Condition, Op, Operand};

/// Where an operand comes from. [`super::table`] explains the letters.
#[derive(Clone, Copy, PartialEq, Eq)]
#[rustfmt::skip]
pub(super) enum Slot { N, G, E, B, O, A, C, V, W, I }

/// What operand a [`Slot`] is, without and with memory in ModRM.rm. The registers have no number yet.
pub(super) const KINDS: [[Operand; 2]; 10] = [
    [Operand::None; 2],
    [Operand::Register(0); 2],
    [Operand::Register(0), Operand::Memory],
    [Operand::Register(0), Operand::Memory],
    [Operand::Register(0); 2],
    [Operand::Register(0); 2],
    [Operand::Register(0); 2],
    [Operand::Vector; 2],
    [Operand::Vector, Operand::Memory],
    [Operand::Immediate; 2],
];

/// The size of the operation.
#[derive(Clone, Copy)]
pub(super) enum Size {
    /// One byte.
    Byte,
    /// Two bytes with prefix 66, eight with REX.W, else four.
    Sized,
    /// Eight bytes with REX.W, else four.
    Wide,
    /// Eight bytes always.
    Quad,
    /// Four bytes always.
    Dword,
    /// Eight bytes; REX.W must be there.
    OnlyWide,
}

/// Bytes of the operation by [`Size`], REX.W (2) and prefix 66 (1); 0 is not allowed. Prefix 66 and REX.W together are
/// allowed only if the prefix is part of the opcode.
pub(super) const SIZES: [[u8; 4]; 6] =
    [[1; 4], [4, 2, 8, 0], [4, 4, 8, 8], [8; 4], [4; 4], [0, 0, 8, 0]];

/// The immediate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Imm {
    /// None.
    No,
    /// One byte.
    Byte,
    /// As many bytes as the operation has, but four for eight.
    Full,
    /// As many bytes as the operation has.
    Long,
    /// No byte: the number 1.
    One,
}

/// Bytes of the immediate by [`Imm`] and half the size of the operation.
pub(super) const IMMEDIATES: [[u32; 8]; 5] =
    [[0; 8], [1; 8], [1, 2, 4, 4, 4, 4, 4, 4], [1, 2, 4, 4, 8, 8, 8, 8], [0; 8]];

/// Whether there is a ModRM byte, and which are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The opcode is not in the table.
    Refused,
    /// No ModRM byte.
    Plain,
    /// No ModRM byte, and no REX prefix either.
    NoRex,
    /// A ModRM byte.
    Any,
    /// A ModRM byte with a memory operand.
    Memory,
    /// A ModRM byte with registers only.
    Register,
    /// A ModRM byte whose memory operand is not accessed.
    Hint,
    /// Exactly the ModRM byte in [`Entry::bits`].
    Exact,
}

/// What a row of the table says.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub op: Op,
    pub destination: Slot,
    pub source: Slot,
    pub size: Size,
    /// Bytes of the memory operand; 0 for the size of the operation.
    pub width: u8,
    pub immediate: Imm,
    pub form: Form,
    pub lock: bool,
    pub by_cl: bool,
    /// Bits of a general register's result; 0 for the size of the operation.
    pub bits: u8,
}

/// An instruction with a ModRM byte.
pub(super) const fn op(op: Op, destination: Slot, source: Slot, size: Size) -> Entry {
    #[rustfmt::skip]
    let entry = Entry {
        op, destination, source, size, width: 0,
        immediate: Imm::No, form: Form::Any, lock: false, by_cl: false, bits: 0,
    };
    entry
}

/// An instruction without a ModRM byte.
pub(super) const fn plain(what: Op, destination: Slot, source: Slot, size: Size) -> Entry {
    let mut entry = op(what, destination, source, size);
    entry.form = Form::Plain;
    entry
}

/// A vector instruction whose memory operand has `width` bytes.
pub(super) const fn vector(destination: Slot, source: Slot, width: u8) -> Entry {
    op(Op::Vector, destination, source, Size::Dword).width(width)
}

#[rustfmt::skip]
impl Entry {
    pub const fn imm(mut self, immediate: Imm) -> Entry { self.immediate = immediate; self }
    pub const fn width(mut self, width: u8) -> Entry { self.width = width; self }
    pub const fn bits(mut self, bits: u8) -> Entry { self.bits = bits; self }
    pub const fn lock(mut self) -> Entry { self.lock = true; self }
    pub const fn by_cl(mut self) -> Entry { self.by_cl = true; self }
    pub const fn no_rex(mut self) -> Entry { self.form = Form::NoRex; self }
    pub const fn memory(mut self) -> Entry { self.form = Form::Memory; self }
    pub const fn register(mut self) -> Entry { self.form = Form::Register; self }
    pub const fn hint(mut self) -> Entry { self.form = Form::Hint; self }
    pub const fn exact(mut self, modrm: u8) -> Entry { self.form = Form::Exact; self.bits = modrm; self }
}

/// Opcodes of all maps and prefixes.
const OPCODES: usize = 4 * 4 * 256;
/// Room for entries and groups; powers of two, so that an index needs no check.
const ENTRIES: usize = 512;
const GROUPS: usize = 64;
/// In [`Table::index`]: the rest is the number of a group.
const GROUP: u16 = 0x8000;

/// The table, ready to be looked up.
pub(super) struct Table {
    index: [u16; OPCODES],
    groups: [[u16; 8]; GROUPS],
    entries: [Entry; ENTRIES],
}

pub(super) static TABLE: Table = build();

impl Table {
    /// The entry of an opcode; `reg` is ModRM.reg, of the byte after the opcode.
    #[inline(always)]
    pub fn entry(&self, map: u8, prefix: u8, opcode: u8, reg: u8) -> &Entry {
        let mut number = self.index[key(map, prefix, opcode)];
        if number >= GROUP {
            number = self.groups[usize::from(number - GROUP) % GROUPS][usize::from(reg & 7)];
        }
        &self.entries[usize::from(number) % ENTRIES]
    }
}

/// A table that is being built. Entry 0 refuses.
struct Builder {
    table: Table,
    entries: u16,
    groups: u16,
}

impl Builder {
    /// Adds `row`, its opcodes increased by `shift`, as operation `op`. LOCK can be allowed, but not taken back.
    const fn add(&mut self, row: &Row, shift: u8, reg: u8, op: Op, lock: bool) {
        let mut offset = 0;
        while offset <= row.last - row.first {
            let opcode = row.first + offset;
            let condition = Condition::ALL[(opcode & 15) as usize];
            let exact = match op {
                Op::JumpIf(_) => Op::JumpIf(condition),
                Op::MoveIf(_) => Op::MoveIf(condition),
                Op::Set(_) => Op::Set(condition),
                op => op,
            };
            if opcode == row.first || matches!(op, Op::JumpIf(_) | Op::MoveIf(_) | Op::Set(_)) {
                let mut entry = row.entry;
                entry.op = exact;
                entry.lock |= lock;
                self.entries += 1;
                self.table.entries[self.entries as usize] = entry;
            }
            let mut prefix = 0;
            while prefix < 4 {
                if prefix == row.prefix || row.prefix == SIZE && prefix <= P66 {
                    self.place(key(row.map, prefix, opcode + shift), reg, self.entries);
                }
                prefix += 1;
            }
            offset += 1;
        }
    }

    /// Lets an opcode lead to an entry. Two rows for one opcode do not compile.
    const fn place(&mut self, key: usize, reg: u8, entry: u16) {
        let known = self.table.index[key];
        if reg == ANY {
            assert!(known == 0, "two rows for one opcode");
            self.table.index[key] = entry;
            return;
        }
        if known == 0 {
            self.table.index[key] = GROUP + self.groups;
            self.groups += 1;
        }
        let group = (self.table.index[key] - GROUP) as usize;
        let mut i = 0;
        while i < 8 {
            if reg >> i & 1 != 0 {
                assert!(self.table.groups[group][i] == 0, "two rows for one opcode");
                self.table.groups[group][i] = entry;
            }
            i += 1;
        }
    }
}

const fn build() -> Table {
    let mut refused = plain(Op::Trap, Slot::N, Slot::N, Size::Dword);
    refused.form = Form::Refused;
    let table =
        Table { index: [0; OPCODES], groups: [[0; 8]; GROUPS], entries: [refused; ENTRIES] };
    let mut builder = Builder { table, entries: 0, groups: 0 };
    let mut i = 0;
    while i < 8 {
        let op = ARITHMETIC[i as usize];
        let lock = !matches!(op, Op::AddCarry | Op::SubBorrow | Op::Compare);
        let mut j = 0;
        while j < ARITHMETIC_ROWS.len() {
            builder.add(&ARITHMETIC_ROWS[j], 8 * i, ANY, op, lock);
            j += 1;
        }
        j = 0;
        while j < ARITHMETIC_GROUPS.len() {
            builder.add(&ARITHMETIC_GROUPS[j], 0, 1 << i, op, lock);
            j += 1;
        }
        i += 1;
    }
    let mut i = 0;
    while i < SHIFTS.len() * SHIFT_GROUPS.len() {
        let (reg, op) = SHIFTS[i % SHIFTS.len()];
        builder.add(&SHIFT_GROUPS[i / SHIFTS.len()], 0, reg, op, false);
        i += 1;
    }
    let mut i = 0;
    while i < ROWS.len() {
        builder.add(&ROWS[i], 0, ROWS[i].reg, ROWS[i].entry.op, false);
        i += 1;
    }
    builder.table
}

const fn key(map: u8, prefix: u8, opcode: u8) -> usize {
    ((map & 3) as usize) << 10 | ((prefix & 3) as usize) << 8 | opcode as usize
}
