//! What an instruction of the checker reads and writes, by the words of `insn.rs`.

use iced_x86::RflagsBits;
use kyozon_typed_checker::insn::{Insn, Op, Operand, RAX, RBP, RCX, RDX, RSP};

/// Registers as bits by number, accesses to memory, and flags as iced-x86 has them.
#[derive(Default, Debug)]
pub struct Effects {
    pub reads: u16,
    pub writes: u16,
    /// The memory operand is read, written.
    pub operand: (bool, bool),
    /// The stack is read, written.
    pub stack: (bool, bool),
    pub flags: u32,
    /// Some of the flags may be left as they are.
    pub flags_at_most: bool,
}

const CARRY: u32 = RflagsBits::CF;
const OVERFLOW: u32 = RflagsBits::OF;
const NOT_CARRY: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
const ALL: u32 = NOT_CARRY | CARRY;

impl Effects {
    fn read(&mut self, operand: Operand, insn: &Insn) {
        match operand {
            Operand::Register(r) | Operand::High(r) => self.reads |= 1 << r,
            Operand::Memory => {
                self.operand.0 = true;
                self.address(insn);
            }
            Operand::None | Operand::Vector | Operand::Immediate => {}
        }
    }

    fn write(&mut self, operand: Operand, insn: &Insn) {
        match operand {
            Operand::Register(r) | Operand::High(r) => self.writes |= 1 << r,
            Operand::Memory => {
                self.operand.1 = true;
                self.address(insn);
            }
            Operand::None | Operand::Vector => {}
            Operand::Immediate => panic!("an immediate is written"),
        }
    }

    fn address(&mut self, insn: &Insn) {
        self.reads |= insn.memory.base.map_or(0, |r| 1 << r);
        self.reads |= insn.memory.index.map_or(0, |(r, _)| 1 << r);
    }
}

pub fn of(insn: &Insn) -> Effects {
    let (d, s) = (insn.destination, insn.source);
    let mut e = Effects::default();
    let (reads_d, writes_d, reads_s) = match insn.op {
        Op::Nop | Op::Trap | Op::Jump | Op::JumpIf(_) => (false, false, false),
        Op::Call | Op::Return | Op::Leave => (false, false, false),
        Op::Move | Op::MoveZero | Op::MoveSign | Op::Set(_) | Op::Pop => (false, true, true),
        Op::MultiplyImmediate | Op::BitCount => (false, true, true),
        Op::Vector | Op::VectorToRegister => (false, true, true),
        Op::Compare | Op::Test | Op::BitTest | Op::VectorCompare => (true, false, true),
        Op::Push | Op::JumpIndirect | Op::CallIndirect => (false, false, true),
        Op::MultiplyWide | Op::Divide => (false, false, true),
        Op::Lea => (false, true, false),
        Op::SignIntoRdx | Op::SignInRax => (false, false, false),
        Op::BitScan => (false, true, true),
        _ => (true, true, true),
    };
    if reads_d {
        e.read(d, insn);
    }
    if writes_d {
        e.write(d, insn);
    }
    if reads_s {
        e.read(s, insn);
    }
    match insn.op {
        Op::Lea => e.address(insn),
        Op::Push | Op::Call | Op::CallIndirect => {
            e.stack.1 = true;
            e.reads |= 1 << RSP;
            e.writes |= 1 << RSP;
        }
        Op::Pop | Op::Return => {
            e.stack.0 = true;
            e.reads |= 1 << RSP;
            e.writes |= 1 << RSP;
        }
        Op::Leave => {
            e.stack.0 = true;
            e.reads |= 1 << RBP;
            e.writes |= 1 << RSP | 1 << RBP;
        }
        Op::MultiplyWide | Op::Divide => {
            e.reads |= 1 << RAX;
            e.writes |= 1 << RAX;
            if insn.size > 1 {
                e.writes |= 1 << RDX;
                e.reads |= if insn.op == Op::Divide { 1 << RDX } else { 0 };
            }
        }
        Op::SignIntoRdx => {
            e.reads |= 1 << RAX;
            e.writes |= 1 << RDX;
        }
        Op::SignInRax => {
            e.reads |= 1 << RAX;
            e.writes |= 1 << RAX;
        }
        Op::Exchange | Op::ExchangeAdd => e.write(s, insn),
        Op::CompareExchange => {
            e.reads |= 1 << RAX;
            e.writes |= 1 << RAX;
        }
        Op::ShiftDouble if insn.by_cl => e.reads |= 1 << RCX,
        _ => {}
    }
    let count = insn.immediate & if insn.size == 8 { 63 } else { 31 };
    e.flags = match insn.op {
        Op::Add | Op::Sub | Op::Compare | Op::Test | Op::And | Op::Or | Op::Xor => ALL,
        Op::AddCarry | Op::SubBorrow | Op::Negate | Op::ExchangeAdd | Op::CompareExchange => ALL,
        Op::MultiplyImmediate | Op::Multiply | Op::MultiplyWide | Op::Divide => ALL,
        Op::BitScan | Op::BitCount | Op::VectorCompare => ALL,
        Op::Increment | Op::Decrement => NOT_CARRY,
        Op::ShiftLeft | Op::ShiftRight | Op::ShiftArithmetic
            if s == Operand::Immediate && count == 0 =>
        {
            0
        }
        Op::ShiftLeft | Op::ShiftRight | Op::ShiftArithmetic => ALL,
        Op::ShiftDouble if !insn.by_cl && count == 0 => 0,
        Op::ShiftDouble => ALL,
        Op::Rotate if s == Operand::Immediate && count == 0 => 0,
        Op::Rotate => CARRY | OVERFLOW,
        Op::BitTest | Op::BitChange => ALL,
        _ => 0,
    };
    e.flags_at_most = matches!(insn.op, Op::BitTest | Op::BitChange);
    e
}
