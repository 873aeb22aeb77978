//! Reads and writes: of registers, of memory, and where memory may be touched.

use crate::error::Rule;
use crate::flow::{Judge, Pass, Step};
use crate::insn::{Memory, Operand, Register, RSP};
use crate::range::{ones, Range};
use crate::state::{Origin, Place, Side};
use crate::value::{Spot, Value};

/// The sum of two places' values, of 8 bytes: of numbers, or of an address and a number.
pub(crate) fn add(a: Value, b: Value) -> Value {
    let sum = |x: Range, y| Value::Number(x.wrapping_add(y));
    match (a, b, a.number(), b.number()) {
        (Value::Number(x), Value::Number(y), ..) => sum(x, y),
        (.., Some(x), Some(y)) => a.moved(b).or_else(|| b.moved(a)).unwrap_or(sum(x, y)),
        _ => a.moved(b).or_else(|| b.moved(a)).unwrap_or(low_part(a, b)),
    }
}

/// Whether `size` bytes at each of these addresses lie in the `length` bytes from `start` on.
fn inside(range: Range, size: u8, start: u64, length: u64) -> bool {
    let end = range.high().checked_add(size as u64);
    range.low() >= start && end.is_some_and(|end| end - start <= length)
}

/// Whether the `size` bytes from a place in a view on are in it.
fn in_view(spot: Spot, size: u8) -> bool {
    spot.low >= 0 && spot.room >= size as i32
}

/// What is known of a result each of whose bytes depends on bytes up to its own only, as in a sum: the lowest bytes are
/// data as far as those of both operands are.
pub(crate) fn low_part(a: Value, b: Value) -> Value {
    let known = a.data_bytes() & b.data_bytes();
    Value::known(known & !known.wrapping_add(1))
}

impl<J: Judge> Pass<'_, '_, J> {
    /// The address of the memory operand, from the registers as they are: before the instruction changes them.
    pub(crate) fn compute_address(&self) -> Value {
        let Memory { base, index, displacement, relative } = self.insn.memory;
        let displacement = displacement as i64 as u64;
        if relative {
            return Value::image(Range::constant((self.next as u64).wrapping_add(displacement)));
        }
        let displacement = Value::constant(displacement);
        let mut address = base.map_or(displacement, |base| add(self.state.get(base), displacement));
        if let Some((index, scale)) = index {
            let index = self.state.get(index);
            let scaled = match index.number() {
                _ if scale == 0 => index,
                Some(range) => Value::Number(range.shift_left(scale as u32, 64)),
                None => low_part(index, index),
            };
            address = add(address, scaled);
        }
        address
    }

    /// Whether `size` bytes at this address lie in the memory reserved for the region.
    fn in_region(&self, address: Value, size: u8) -> bool {
        let host = self.program.host();
        address.number().is_some_and(|range| inside(range, size, host.region, host.reserved))
    }

    /// Whether `size` bytes at this offset are arguments on the stack.
    fn in_arguments(&self, offset: i32, size: u8) -> bool {
        let end = 8 + 8 * self.signature.stack as i64;
        offset >= 8 && offset as i64 + size as i64 <= end
    }

    /// Whether bytes of stack arguments are data.
    fn are_arguments(&self, offset: i32, size: u8) -> bool {
        let upper_half =
            |at: i32| (at & 4 != 0) && self.signature.halves >> ((at - 8) / 8) & 1 != 0;
        self.in_arguments(offset, size) && !(offset..offset + size as i32).any(upper_half)
    }

    /// Loads the memory operand, of `size` bytes.
    pub(crate) fn load(&mut self, size: u8) -> Step<Value> {
        let data = if size == 16 { Value::ANY } else { Value::data(size) };
        let address = self.address;
        match address {
            Value::Stack(offset) if self.frame.contains(offset, size) => {
                return Ok(self.frame.read(offset, size));
            }
            Value::Stack(offset) if self.are_arguments(offset, size) => return Ok(data),
            Value::View { spot, .. } if in_view(spot, size) => return Ok(data),
            _ if self.in_region(address, size) => {
                self.faults = true;
                return Ok(data);
            }
            Value::Image(range) => {
                let range = range.into();
                if let Some(entry) = self.program.table_entry(range).filter(|_| size == 8) {
                    return Ok(entry);
                }
                let length = self.program.read_only().len() as u64;
                if inside(range, size, self.program.read_only_start().into(), length) {
                    return Ok(data);
                }
            }
            _ => (),
        }
        self.broken(Rule::Address { size, write: false, found: address })?;
        Ok(data)
    }

    /// Stores `size` bytes of a value into the memory operand. With 16, the value stands for data.
    pub(crate) fn store(&mut self, size: u8, value: Value) -> Step {
        let address = self.address;
        match address {
            Value::Stack(offset) if self.frame.contains(offset, size) => {
                self.forget_slots();
                self.frame.write(offset, size, value);
                return Ok(());
            }
            Value::Stack(offset) if self.in_arguments(offset, size) => (),
            Value::View { spot, write: true, .. } if in_view(spot, size) => (),
            _ if self.in_region(address, size) => self.faults = true,
            _ => return self.broken(Rule::Address { size, write: true, found: address }),
        }
        self.need_data(size.min(8), value)
    }

    /// Flags that stem from a slot no longer tell of it.
    pub(crate) fn forget_slots(&mut self) {
        let slot = |side: Side| matches!(side.place, Place::Slot(_));
        match self.state.flags.origin {
            Origin::Compare(a, b, _) if !slot(a) && !slot(b) => (),
            Origin::Result(side, _) if !slot(side) => (),
            Origin::Depth(..) => (),
            _ => self.state.flags.origin = Origin::Unknown,
        }
    }

    /// Checks that the lowest `size` bytes of a value are data.
    pub(crate) fn need_data(&mut self, size: u8, value: Value) -> Step {
        if value.is_data(size) {
            return Ok(());
        }
        self.broken(Rule::NotData { size, found: value })
    }

    /// An operand of `size` bytes, zero-extended.
    pub(crate) fn read(&mut self, operand: Operand, size: u8) -> Step<Value> {
        Ok(match operand {
            Operand::Register(register) => self.state.get(register).truncate(size),
            Operand::High(register) => {
                Value::Bytes(self.state.get(register).data_bytes() >> 1 | 0xfe).truncate(1)
            }
            Operand::Immediate => {
                Value::constant(self.insn.immediate as u64 & ones(size as u32 * 8))
            }
            Operand::Memory => self.load(size)?.truncate(size),
            Operand::Vector => Value::ANY,
            Operand::None => Value::UNKNOWN,
        })
    }

    /// Writes `size` bytes of a value to an operand.
    pub(crate) fn write(&mut self, operand: Operand, size: u8, value: Value) -> Step {
        match operand {
            Operand::Register(register) => self.set_part(register, size, value),
            Operand::High(register) => {
                let old = self.state.get(register);
                let new = match (old.number(), value.operand(1)) {
                    (Some(whole), Some(_)) => Value::Number(whole.replace_low(Range::bytes(2), 16)),
                    (_, Some(_)) => Value::known(old.data_bytes() | 2),
                    (_, None) => Value::known(old.data_bytes() & !2),
                };
                self.set(register, new)
            }
            Operand::Memory => self.store(size, value),
            Operand::Vector => Ok(()),
            Operand::Immediate | Operand::None => self.broken(Rule::Form),
        }
    }

    /// Writes the lowest `size` bytes of a register; four bytes clear the upper half.
    pub(crate) fn set_part(&mut self, register: Register, size: u8, value: Value) -> Step {
        let new = match size {
            8 => value,
            4 => value.truncate(4),
            _ => {
                let old = self.state.get(register);
                match (old.number(), value.operand(size)) {
                    (Some(whole), Some(part)) => {
                        Value::Number(whole.replace_low(part, size as u32 * 8))
                    }
                    _ => {
                        let low = ones(size as u32) as u8;
                        Value::known(old.data_bytes() & !low | value.data_bytes() & low)
                    }
                }
            }
        };
        self.set(register, new)
    }

    /// Writes a register.
    pub(crate) fn set(&mut self, register: Register, value: Value) -> Step {
        self.state.registers[register as usize & 15] = value;
        self.fresh += 1;
        self.state.identities[register as usize & 15] = self.fresh;
        if register == RSP {
            return self.moved_stack_pointer(value);
        }
        Ok(())
    }

    /// The rules for a new stack pointer.
    fn moved_stack_pointer(&mut self, value: Value) -> Step {
        let offset = match value {
            Value::Stack(offset) if offset <= 0 && offset % 8 == 0 => offset,
            found => {
                self.frame.set_depth(0);
                return self.broken(Rule::StackPointer { found });
            }
        };
        let bytes = offset.unsigned_abs();
        if bytes > self.function.frame {
            self.frame.set_depth(self.function.frame);
            return self.broken(Rule::Frame { declared: self.function.frame, found: bytes });
        }
        self.work((bytes as usize / 4).saturating_sub(self.frame.used().len()))?;
        self.frame.set_depth(bytes);
        self.check_room(offset)
    }

    /// The stack may be used down to this offset without a further check.
    pub(crate) fn check_room(&mut self, needed: i32) -> Step {
        let checked = self.state.room;
        if (needed as i64) < checked as i64 - crate::SLACK as i64 {
            return self.broken(Rule::NoStackCheck { checked, needed });
        }
        Ok(())
    }

    /// An operand of a comparison, which has this value: where it is, if all of that place was compared.
    pub(crate) fn side(&self, operand: Operand, size: u8, value: Value) -> Side {
        let place = match operand {
            Operand::Register(register) => match self.state.get(register).number() {
                Some(whole) if whole.high() <= ones(size as u32 * 8) => {
                    Place::Registers(self.state.identities[register as usize & 15])
                }
                _ => Place::Nowhere,
            },
            Operand::Memory => match self.address {
                Value::Stack(offset) if size >= 4 => Place::Slot(offset),
                _ => Place::Nowhere,
            },
            _ => Place::Nowhere,
        };
        Side { place, value }
    }
}
