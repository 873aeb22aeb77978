//! What each instruction does to the state.

use crate::access::{add, low_part};
use crate::error::Rule;
use crate::flow::{Judge, Pass, Step};
use crate::insn::{Condition, Insn, Op, Operand, RAX, RBP, RCX, RDX, RSP};
use crate::range::{ones, Range};
use crate::state::{Flags, Origin, ALL, CARRY, OVERFLOW, SIGN, ZERO};
use crate::value::Value;

/// A number computed from operands that may be no numbers.
fn computed(range: Option<Range>) -> Value {
    range.map_or(Value::UNKNOWN, Value::Number)
}

/// Both operands, if they are data.
fn both(a: Value, b: Value, size: u8) -> Option<(Range, Range)> {
    a.operand(size).zip(b.operand(size))
}

impl<J: Judge> Pass<'_, '_, J> {
    /// Takes one instruction into the state: whether the next one can be reached.
    pub(crate) fn step(&mut self) -> Step<bool> {
        let Insn { op, size, width, destination, source, immediate, .. } = self.insn;
        let bits = size as u32 * 8;
        let target = (self.next as i64).wrapping_add(immediate);
        if op == Op::Lea || destination == Operand::Memory || source == Operand::Memory {
            self.address = self.compute_address();
        }
        match op {
            Op::Nop => (),
            Op::Move | Op::MoveZero => {
                let value = self.read(source, width)?;
                self.write(destination, size, value)?;
                if let (Operand::Register(from), Operand::Register(to)) = (source, destination) {
                    // A part that is the same number as the whole is all of it.
                    let same = self.state.get(from) == self.state.get(to);
                    if same && size >= 4 && self.state.get(to).number().is_some() {
                        self.state.identities[to as usize & 15] =
                            self.state.identities[from as usize & 15];
                    }
                }
            }
            Op::MoveSign => self.move_sign()?,
            Op::Lea => self.write(destination, size, self.address)?,
            Op::Add | Op::Sub | Op::Increment | Op::Decrement => self.add_or_sub()?,
            Op::Compare => self.compare()?,
            Op::Test => self.test()?,
            Op::And | Op::Or | Op::Xor => self.logic()?,
            Op::AddCarry | Op::SubBorrow => {
                let a = self.read(destination, size)?;
                let b = self.read(source, size)?;
                let carry = self.state.may_test(Condition::Below);
                // x - x - carry depends on the carry only.
                let same =
                    op == Op::SubBorrow && source == destination && source != Operand::Memory;
                let data = carry && (same || a.is_data(size) && b.is_data(size));
                self.write(destination, size, computed(data.then(|| Range::bytes(size))))?;
                self.state.flags = Flags::new(data);
            }
            Op::Negate => {
                let x = self.read(destination, size)?.operand(size);
                let result = x.map(|x| Range::constant(0).wrapping_sub(x).truncate(bits));
                self.write(destination, size, computed(result))?;
                self.set_result(result, ALL);
            }
            Op::Not => {
                let x = self.read(destination, size)?.operand(size);
                self.write(destination, size, computed(x.map(|x| x.not(bits))))?;
            }
            Op::ShiftLeft | Op::ShiftRight | Op::ShiftArithmetic | Op::Rotate => self.shift()?,
            Op::ShiftDouble => {
                let a = self.read(destination, size)?;
                let b = self.read(source, size)?;
                let count = self.shift_count(self.insn.by_cl);
                // With a count of more than 16, 2 bytes and the flags are undefined.
                let defined = count.is_some_and(|count| count.high() <= bits as u64);
                let data = a.is_data(size) && b.is_data(size) && defined;
                let moves = count.is_some_and(|count| count.low() > 0);
                self.write(destination, size, computed(data.then(|| Range::bytes(size))))?;
                // With a count of 0 the flags stay, else the overflow flag can.
                self.set_some_flags(data, if moves { CARRY | ZERO } else { 0 });
            }
            Op::MultiplyImmediate | Op::Multiply => {
                let (a, b) = if op == Op::Multiply {
                    (self.read(destination, size)?, self.read(source, size)?)
                } else {
                    (self.read(source, size)?, self.read(Operand::Immediate, size)?)
                };
                let product = both(a, b, size).map(|(a, b)| a.multiply(b, bits));
                self.write(destination, size, computed(product))?;
                self.set_some_flags(product.is_some(), CARRY);
            }
            Op::MultiplyWide => {
                let data =
                    self.read(source, size)?.is_data(size) && self.state.get(RAX).is_data(size);
                self.set_wide(data)?;
            }
            Op::Divide => {
                let divisor = self.read(source, size)?;
                self.need_data(size, divisor)?;
                let rax = self.state.get(RAX);
                self.need_data(if size == 1 { 2 } else { size }, rax)?;
                if size > 1 {
                    let rdx = self.state.get(RDX);
                    self.need_data(size, rdx)?;
                }
                self.set_wide(true)?;
            }
            Op::SignIntoRdx => {
                let sign = self.state.get(RAX).operand(size);
                let sign = sign
                    .map(|x| Range::to(if x.high() <= ones(bits - 1) { 0 } else { ones(bits) }));
                self.set_part(RDX, size, computed(sign))?;
            }
            Op::SignInRax => {
                let x = self.state.get(RAX).operand(size / 2);
                self.set_part(RAX, size, computed(x.map(|x| x.sign_extend(bits / 2, bits))))?;
            }
            Op::Push => self.push()?,
            Op::Pop => {
                let value = self.pop()?;
                self.write(destination, 8, value)?;
            }
            Op::Leave => {
                let rbp = self.state.get(RBP);
                self.set(RSP, rbp)?;
                let value = self.pop()?;
                self.set(RBP, value)?;
            }
            Op::Exchange => {
                let a = self.read(destination, size)?;
                let b = self.read(source, size)?;
                self.write(destination, size, b)?;
                self.write(source, size, a)?;
            }
            Op::ExchangeAdd => {
                let a = self.read(destination, size)?;
                let b = self.read(source, size)?;
                let sum = both(a, b, size).map(|(a, b)| a.wrapping_add(b).truncate(bits));
                // With one register as both, the sum stays.
                self.write(source, size, a)?;
                self.write(destination, size, computed(sum))?;
                self.state.flags = Flags::new(sum.is_some());
            }
            Op::CompareExchange => {
                let old = self.read(destination, size)?;
                let new = self.read(source, size)?;
                let rax = self.state.get(RAX);
                for value in [old, new, rax] {
                    self.need_data(size, value)?;
                }
                // With 4 bytes, what is not written keeps its upper half.
                self.set_maybe(RAX, size, Value::data(size))?;
                match destination {
                    Operand::Register(register) => {
                        self.set_maybe(register, size, Value::data(size))?
                    }
                    _ => self.write(destination, size, Value::data(size))?,
                }
                self.state.flags = Flags::new(true);
            }
            Op::Set(condition) => {
                let known = self.state.may_test(condition);
                let bit = if known { Value::Number(Range::to(1)) } else { Value::UNKNOWN };
                self.write(destination, 1, bit)?;
            }
            Op::MoveIf(condition) => self.move_if(condition)?,
            Op::BitTest | Op::BitChange => {
                let data = self.read(destination, size)?.is_data(size)
                    && self.read(source, size)?.is_data(size);
                if op == Op::BitChange {
                    self.write(destination, size, computed(data.then(|| Range::bytes(size))))?;
                }
                self.set_some_flags(data, CARRY);
            }
            Op::BitScan => {
                let x = self.read(source, size)?.operand(size);
                let Operand::Register(register) = destination else {
                    self.broken(Rule::Form)?;
                    return Ok(true);
                };
                // lzcnt and tzcnt count to the width; a processor without them runs bsr and bsf.
                let found = Value::Number(Range::to(bits as u64));
                match x {
                    Some(x) if x.low() > 0 => self.set_part(register, size, found)?,
                    Some(_) => self.set_maybe(register, size, found)?,
                    None => self.set(register, Value::UNKNOWN)?,
                }
                self.set_some_flags(x.is_some(), ZERO);
            }
            Op::BitCount => {
                let data = self.read(source, size)?.is_data(size);
                let count = data.then(|| Range::to(bits as u64));
                self.write(destination, size, computed(count))?;
                self.state.flags = Flags::new(data);
            }
            Op::ByteSwap => {
                let data = self.read(destination, size)?.is_data(size);
                self.write(destination, size, computed(data.then(|| Range::bytes(size))))?;
            }
            Op::Jump => {
                self.flow(target)?;
                return Ok(false);
            }
            Op::JumpIf(condition) => return self.branch(condition, target),
            Op::JumpIndirect => {
                let value = self.read(source, 8)?;
                self.jump_indirect(value)?;
                return Ok(false);
            }
            Op::Call => match self.program.callee(target) {
                Some(callee) => self.call(callee)?,
                None => self.broken(Rule::Target(target))?,
            },
            Op::CallIndirect => {
                let value = self.read(source, 8)?;
                self.need_indirect()?;
                let signature = self.entry_signature(value)?;
                self.call_to(signature)?;
            }
            Op::Return => {
                self.need_indirect()?;
                self.leave()?;
                return Ok(false);
            }
            Op::Trap => return Ok(false),
            Op::Vector | Op::VectorToRegister | Op::VectorCompare => self.vector()?,
        }
        Ok(true)
    }

    /// Flags after an instruction that sets some of them, and may leave the others as they were.
    fn set_some_flags(&mut self, data: bool, set: u8) {
        self.state.flags.origin = Origin::Unknown;
        self.state.flags.data = if data { self.state.flags.data | set } else { 0 };
    }

    /// Writes a register, or leaves all of it as it was.
    fn set_maybe(&mut self, register: u8, size: u8, value: Value) -> Step {
        let old = self.state.get(register);
        self.set_part(register, size, value)?;
        self.set(register, self.state.get(register).join(old))
    }

    /// Flags of a result that was written to the destination; none if it is no data. `data` is as in [`Flags`].
    fn set_result(&mut self, result: Option<Range>, data: u8) {
        let Insn { size, destination, .. } = self.insn;
        self.state.flags = match result {
            Some(range) => {
                let side = self.side(destination, size, Value::Number(range));
                Flags { data, origin: Origin::Result(side, size) }
            }
            None => Flags::new(false),
        };
    }

    fn move_sign(&mut self) -> Step {
        let Insn { size, width, destination, source, .. } = self.insn;
        if let (Operand::Memory, 4, 8) = (source, width, size) {
            if let Value::Image(range) = self.address {
                if let Some(distance) =
                    self.program.jump_distance(range.into(), self.function.index)
                {
                    return self.write(destination, 8, distance);
                }
            }
        }
        let value = self.read(source, width)?.operand(width);
        let extended = value.map(|x| x.sign_extend(width as u32 * 8, size as u32 * 8));
        self.write(destination, size, computed(extended))
    }

    fn add_or_sub(&mut self) -> Step {
        let Insn { op, size, destination, source, .. } = self.insn;
        let bits = size as u32 * 8;
        if op == Op::Sub && source == destination && source != Operand::Memory {
            self.write(destination, size, Value::constant(0))?;
            self.state.flags = Flags::new(true);
            return Ok(());
        }
        let adds = matches!(op, Op::Add | Op::Increment);
        let a = self.read(destination, size)?;
        let (b, carry) = match op {
            Op::Add | Op::Sub => (self.read(source, size)?, CARRY),
            _ => (Value::constant(1), self.state.flags.data & CARRY),
        };
        if let Some((a, b)) = both(a, b, size) {
            let sum = if adds { a.wrapping_add(b) } else { a.wrapping_sub(b) }.truncate(bits);
            self.write(destination, size, Value::Number(sum))?;
            self.set_result(Some(sum), carry | ZERO | OVERFLOW | SIGN);
            return Ok(());
        }
        let result = match (adds, a, b) {
            _ if size != 8 => low_part(a, b),
            (true, Value::Image(at), Value::Distance(table))
            | (true, Value::Distance(table), Value::Image(at)) => {
                let start = self.program.read_only_start() + self.program.jump_table(table).start;
                if Range::from(at).single() == Some(start as u64) {
                    Value::Target(table)
                } else {
                    Value::UNKNOWN
                }
            }
            (true, a, b) => add(a, b),
            (_, a, b) => match b.number() {
                Some(b) => add(a, Value::Number(Range::constant(0).wrapping_sub(b))),
                None => low_part(a, b),
            },
        };
        self.write(destination, size, result)?;
        self.state.flags = Flags::new(false);
        Ok(())
    }

    fn compare(&mut self) -> Step {
        let Insn { size, destination, source, immediate, .. } = self.insn;
        let a = self.read(destination, size)?;
        let b = self.read(source, size)?;
        let stack = match destination {
            Operand::Register(register) if size == 2 => self.state.get(register),
            _ => Value::UNKNOWN,
        };
        let origin = match (stack, source) {
            _ if a.is_data(size) && b.is_data(size) => {
                Origin::Compare(self.side(destination, size, a), self.side(source, size, b), size)
            }
            // Further down, the address may lie below the stack, where its low bits mean nothing.
            (Value::Stack(offset), Operand::Immediate)
                if offset as i64 >= self.state.room as i64 - crate::FLOOR as i64 =>
            {
                Origin::Depth(offset, immediate as u16)
            }
            _ => Origin::Unknown,
        };
        self.state.flags = Flags { origin, ..Flags::new(origin != Origin::Unknown) };
        Ok(())
    }

    fn test(&mut self) -> Step {
        let Insn { size, destination, source, .. } = self.insn;
        let a = self.read(destination, size)?;
        let b = self.read(source, size)?;
        self.state.flags = Flags::new(a.is_data(size) && b.is_data(size));
        if destination == source && a.is_data(size) {
            self.state.flags.origin = Origin::Result(self.side(destination, size, a), size);
        }
        Ok(())
    }

    fn logic(&mut self) -> Step {
        let Insn { op, size, destination, source, immediate, .. } = self.insn;
        let (x, y) = (self.read(destination, size)?, self.read(source, size)?);
        let (a, b) = (x.operand(size), y.operand(size));
        let all = Some(Range::constant(ones(size as u32 * 8)));
        let same = source == destination && source != Operand::Memory;
        let result = match (op, a, b) {
            (Op::Xor, _, _) if same => Some(Range::constant(0)),
            (Op::Or, None, _) if source == Operand::Immediate && immediate == -1 => all,
            (Op::And, Some(a), Some(b)) => Some(if same { a } else { a.and(b) }),
            (Op::Or, Some(a), Some(b)) => Some(if same { a } else { a.or(b) }),
            (_, Some(a), Some(b)) => Some(a.xor(b)),
            _ => None,
        };
        let bytes = x.truncate(size).bytewise(y.truncate(size), op == Op::And);
        let value = result.map_or(bytes, Value::Number);
        self.write(destination, size, value)?;
        self.set_result(value.operand(size), ALL);
        Ok(())
    }

    /// The count of a shift: an immediate, or cl.
    fn shift_count(&self, by_cl: bool) -> Option<Range> {
        let most = if self.insn.size == 8 { 63 } else { 31 };
        if !by_cl {
            return Some(Range::constant(self.insn.immediate as u64 & most));
        }
        self.state.get(RCX).operand(1).map(|count| count.and(Range::constant(most)))
    }

    fn shift(&mut self) -> Step {
        let Insn { op, size, destination, source, .. } = self.insn;
        let bits = size as u32 * 8;
        let value = self.read(destination, size)?;
        let count = self.shift_count(source != Operand::Immediate);
        // What a shift to the left drops need not be data. The carry is the lowest bit of that.
        let left = match (op, count.and_then(Range::single)) {
            (Op::ShiftLeft, Some(count)) => bits.saturating_sub(count as u32) as u8,
            _ => bits as u8,
        };
        let x = value.operand(left.div_ceil(8).max(1));
        let carried = value.is_data(size.min(left / 8 + 1));
        let result = match (x, count) {
            (Some(x), Some(count)) => Some(match (op, count.single()) {
                (Op::ShiftLeft, Some(count)) => x.shift_left(count as u32, bits),
                (Op::ShiftRight, Some(count)) => x.shift_right(count as u32),
                (Op::ShiftArithmetic, Some(count)) => x.shift_arithmetic(count as u32, bits),
                (Op::ShiftRight, None) => Range::to(x.high()),
                (Op::ShiftArithmetic, None) if x.high() <= ones(bits - 1) => Range::to(x.high()),
                _ => Range::bytes(size),
            }),
            _ => None,
        };
        self.write(destination, size, computed(result))?;
        let always = count.is_some_and(|count| count.low() > 0);
        if op != Op::Rotate && always {
            // The overflow flag is defined for a count of 1 only. The carry is the last bit that was shifted out, and
            // undefined if all were.
            let few = count.is_some_and(|count| count.high() < bits as u64);
            let carry = if few || op == Op::ShiftArithmetic { CARRY } else { 0 };
            let data = if carried { self.state.flags.data | carry } else { 0 };
            self.set_result(result, data | ZERO | SIGN);
        } else {
            // With a count of 0 the flags stay, and a rotation changes only the carry and the overflow flag.
            self.set_some_flags(result.is_some(), if always { CARRY } else { 0 });
        }
        Ok(())
    }

    /// The result of a wide multiplication or division, in rax and rdx.
    fn set_wide(&mut self, data: bool) -> Step {
        let size = self.insn.size;
        let value = |size| if data { Value::data(size) } else { Value::UNKNOWN };
        if size == 1 {
            self.set_part(RAX, 2, value(2))?;
        } else {
            self.set_part(RAX, size, value(size))?;
            self.set_part(RDX, size, value(size))?;
        }
        // A division leaves the flags undefined, a multiplication all but carry and overflow.
        self.set_some_flags(data, if self.insn.op == Op::MultiplyWide { CARRY } else { 0 });
        Ok(())
    }

    fn push(&mut self) -> Step {
        let value = self.read(self.insn.source, 8)?;
        let moved = add(self.state.get(RSP), Value::constant(-8i64 as u64));
        self.set(RSP, moved)?;
        match moved {
            Value::Stack(offset) if self.frame.contains(offset, 8) => {
                self.forget_slots();
                self.frame.write(offset, 8, value);
                Ok(())
            }
            found => self.broken(Rule::StackPointer { found }),
        }
    }

    fn pop(&mut self) -> Step<Value> {
        match self.state.get(RSP) {
            Value::Stack(offset) if self.frame.contains(offset, 8) => {
                let value = self.frame.read(offset, 8);
                self.set(RSP, Value::Stack(offset + 8))?;
                Ok(value)
            }
            found => {
                self.broken(Rule::StackPointer { found })?;
                Ok(Value::UNKNOWN)
            }
        }
    }

    fn move_if(&mut self, condition: Condition) -> Step {
        let Insn { size, destination, source, .. } = self.insn;
        let value = self.read(source, size)?;
        let (Operand::Register(to), true) = (destination, self.state.may_test(condition)) else {
            return self.write(destination, size, Value::UNKNOWN);
        };
        let moved = match source {
            Operand::Register(from) => {
                self.state.value_if(from, condition).map(|value| value.truncate(size))
            }
            _ => Some(value),
        };
        let kept = self.state.value_if(to, condition.inverse()).map(|value| value.truncate(size));
        let result = match (moved, kept) {
            (Some(moved), Some(kept)) => moved.join(kept),
            (Some(value), None) | (None, Some(value)) => value,
            (None, None) => Value::UNKNOWN,
        };
        self.write(destination, size, result)
    }

    fn vector(&mut self) -> Step {
        let Insn { op, size, width, result_bits, destination, source, .. } = self.insn;
        match source {
            Operand::Memory => {
                let value = self.load(width)?;
                self.need_data(width.min(8), value)?;
            }
            Operand::Register(_) | Operand::High(_) => {
                let value = self.read(source, size)?;
                self.need_data(size, value)?;
            }
            Operand::Vector | Operand::Immediate | Operand::None => (),
        }
        match destination {
            Operand::Vector | Operand::None => (),
            Operand::Memory => self.store(width, Value::ANY)?,
            Operand::Register(register) if op == Op::VectorToRegister => {
                self.set_part(register, size, Value::Number(Range::to(ones(result_bits as u32))))?;
            }
            _ => self.broken(Rule::Form)?,
        }
        if op == Op::VectorCompare {
            self.state.flags = Flags::new(true);
        }
        Ok(())
    }
}
