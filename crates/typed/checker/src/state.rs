//! What is known before an instruction: registers, flags, how much of the stack was checked. The frame is apart.

use crate::condition::{refine, refine_sign};
use crate::frame::Frame;
use crate::insn::{Condition, Register, R8, R9, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
use crate::program::{Signature, ARGUMENTS};
use crate::range::{ones, Range};
use crate::value::{Spot, Value};

/// Registers that a function must leave as they were.
pub(crate) const CALLEE_SAVED: [Register; 6] = [RBX, RBP, 12, 13, 14, 15];
/// Registers that a function may change.
pub(crate) const SCRATCH: [Register; 9] = [RAX, RCX, RDX, RSI, RDI, R8, R9, 10, 11];

/// Names the contents of registers: two registers of the same identity hold the same.
pub(crate) type Identity = u32;

/// One operand of a comparison, as it was when it was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    /// Where it is.
    pub place: Place,
    /// What it was: a number.
    pub value: Value,
}

impl Side {
    fn range(self) -> Range {
        self.value.number().unwrap_or(Range::ANY)
    }
}

/// Where a compared number is, so that the outcome tells something of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In no place that is followed: a constant, memory, a part of a register.
    Nowhere,
    /// In all registers of this identity.
    Registers(Identity),
    /// In the frame at this offset.
    Slot(i32),
}

/// What conditions narrowed: both operands of a comparison, with their values before.
pub(crate) type Undo = [Option<(Place, Value)>; 2];

/// The flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Which of them stem from data, as bits: a branch on another one would tell of what is not data.
    pub data: u8,
    /// What else is known.
    pub origin: Origin,
}

/// The bits of [`Flags::data`]; the last one is for sign and parity.
pub(crate) const CARRY: u8 = 1;
pub(crate) const ZERO: u8 = 2;
pub(crate) const OVERFLOW: u8 = 4;
pub(crate) const SIGN: u8 = 8;
pub(crate) const ALL: u8 = 15;

impl Flags {
    /// All of them stem from data, or none.
    pub fn new(data: bool) -> Flags {
        Flags { data: if data { ALL } else { 0 }, origin: Origin::Unknown }
    }
}

/// What the flags stem from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing is known of it.
    Unknown,
    /// From the comparison of two numbers of so many bytes.
    Compare(Side, Side, u8),
    /// From an operation whose result of so many bytes is here: only zero and sign are followed.
    Result(Side, u8),
    /// From the comparison of the low 16 bits of a stack address, which has this offset, with this number.
    Depth(i32, u16),
}

/// Registers and flags.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub(crate) registers: [Value; 16],
    pub(crate) identities: [Identity; 16],
    pub(crate) flags: Flags,
    /// The stack was checked down to this offset: that is at least [`crate::FLOOR`] bytes above the stack's end.
    pub(crate) room: i32,
}

impl State {
    /// A state in which nothing is known.
    pub const BLANK: State = State {
        registers: [Value::UNKNOWN; 16],
        identities: [0; 16],
        flags: Flags { data: 0, origin: Origin::Unknown },
        room: 8,
    };

    /// The state at the entry of a function.
    pub(crate) fn entry(signature: Signature) -> State {
        let mut state = State::BLANK;
        for (register, argument) in ARGUMENTS.into_iter().zip(signature.arguments) {
            state.registers[register as usize] = argument;
        }
        for register in CALLEE_SAVED {
            state.registers[register as usize] = Value::Saved(register);
        }
        state.registers[RSP as usize] = Value::Stack(0);
        for (n, identity) in state.identities.iter_mut().enumerate() {
            *identity = n as Identity;
        }
        state
    }

    /// Whether a condition depends on data only.
    pub(crate) fn may_test(&self, condition: Condition) -> bool {
        const O: u8 = OVERFLOW;
        const NEEDED: [u8; 8] =
            [O, CARRY, ZERO, CARRY | ZERO, SIGN, SIGN, O | SIGN, O | SIGN | ZERO];
        NEEDED[condition as usize / 2] & !self.flags.data == 0
    }

    /// Whether all flags stem from data.
    pub(crate) fn flags_are_data(&self) -> bool {
        self.flags.data == ALL
    }

    pub(crate) fn get(&self, register: Register) -> Value {
        self.registers[register as usize & 15]
    }

    /// What holds in this state and in `other`; `fresh` makes new identities.
    pub(crate) fn join(&mut self, other: &State, fresh: &mut Identity) {
        for n in 0..16 {
            if !self.registers[n].same(other.registers[n]) {
                self.registers[n] = self.registers[n].join(other.registers[n]);
            }
            if self.identities[n] != other.identities[n] {
                *fresh += 1;
                self.identities[n] = *fresh;
            }
        }
        self.flags.data &= other.flags.data;
        if self.flags.origin != other.flags.origin {
            self.flags.origin = Origin::Unknown;
        }
        self.room = self.room.max(other.room);
    }

    /// Takes in what a condition that holds says. False if it cannot hold.
    pub(crate) fn assume(
        &mut self,
        frame: &mut Frame<'_>,
        condition: Condition,
        undo: &mut Undo,
    ) -> bool {
        let Some(bounds) = outcome(self.flags.origin, condition) else {
            return false;
        };
        for (bound, undo) in bounds.into_iter().flatten().zip(undo) {
            let place = bound.side.place;
            let current = match place {
                Place::Nowhere => None,
                Place::Registers(identity) => {
                    let register = self.identities.iter().position(|&n| n == identity);
                    register.map(|n| self.registers[n])
                }
                Place::Slot(offset) => frame.compared(offset, bound.size),
            };
            if let Some(value) = current {
                let Some(narrow) = bound.narrow(value) else { return false };
                if !narrow.same(value) {
                    *undo = Some((place, value));
                    self.replace(frame, place, narrow);
                }
            }
        }
        if let Origin::Depth(offset, limit) = self.flags.origin {
            let height = match condition {
                Condition::AboveEqual => limit as i32,
                Condition::Above => limit as i32 + 1,
                _ => 0,
            };
            // What is left above the floor is checked too.
            self.room = self.room.min(offset.saturating_sub(height - crate::FLOOR as i32));
        }
        true
    }

    /// A place that was compared holds this.
    fn replace(&mut self, frame: &mut Frame<'_>, place: Place, value: Value) {
        match place {
            Place::Nowhere => (),
            // They hold the same, so what is true of one is true of all.
            Place::Registers(identity) => {
                for (register, _) in
                    self.registers.iter_mut().zip(self.identities).filter(|r| r.1 == identity)
                {
                    *register = value;
                }
            }
            Place::Slot(offset) => frame.set_compared(offset, value),
        }
    }

    /// Takes back what [`State::assume`] narrowed. Nothing else may have changed since.
    pub(crate) fn undo(&mut self, frame: &mut Frame<'_>, undo: Undo) {
        for (place, value) in undo.into_iter().flatten().rev() {
            self.replace(frame, place, value);
        }
    }

    /// What the value of a register is if a condition holds; none if it cannot hold.
    pub(crate) fn value_if(&self, register: Register, condition: Condition) -> Option<Value> {
        let value = self.get(register);
        let identity = self.identities[register as usize & 15];
        let mut result = value;
        for bound in outcome(self.flags.origin, condition)?.into_iter().flatten() {
            if bound.side.place == Place::Registers(identity) {
                result = bound.narrow(result)?;
            }
        }
        Some(result)
    }
}

/// An operand of a comparison, of `size` bytes, with the interval that it must lie in.
struct Bound {
    side: Side,
    size: u8,
    interval: (u64, u64),
    /// With this many bytes from there on, it is within the view of this origin.
    room: Option<(u32, i32)>,
}

impl Bound {
    /// What a place holds whose value was compared; none if nothing is left of it.
    fn narrow(&self, value: Value) -> Option<Value> {
        if let (Some((origin, room)), Some(range)) = (self.room, value.number()) {
            let index = i32::try_from(range.low().max(self.interval.0)).ok();
            let index = index.map(|low| Value::Index(Spot { origin, low, room }));
            return Some(index.filter(|&index| !value.within(index)).unwrap_or(value));
        }
        match value {
            Value::Number(range) => {
                range.clamp(self.interval.0, self.interval.1).map(Value::Number)
            }
            other => Some(other),
        }
    }
}

/// What a condition says of the operands that the flags stem from. None if it cannot hold.
fn outcome(origin: Origin, condition: Condition) -> Option<[Option<Bound>; 2]> {
    let interval = |range: Range| (range.low(), range.high());
    let sign = matches!(condition, Condition::Sign | Condition::NotSign);
    match origin {
        Origin::Compare(a, b, size) if !sign => {
            let bits = size as u32 * 8;
            let (x, y) = refine(condition, interval(a.range()), interval(b.range()), bits)?;
            // A stride can exclude what an interval does not.
            a.range().clamp(x.0, x.1)?;
            b.range().clamp(y.0, y.1)?;
            let room = |limit: Side, less, not_more| match limit.value {
                Value::Length(origin) if condition == less => Some((origin, 1)),
                Value::Length(origin) if condition == not_more => Some((origin, 0)),
                _ => None,
            };
            let below = room(b, Condition::Below, Condition::BelowEqual);
            let above = room(a, Condition::Above, Condition::AboveEqual);
            let bound = |side, interval, room| Some(Bound { side, size, interval, room });
            Some([bound(a, x, below), bound(b, y, above)])
        }
        Origin::Result(a, size) => {
            let bits = size as u32 * 8;
            let x = match condition {
                Condition::Sign | Condition::NotSign => {
                    refine_sign(condition == Condition::Sign, interval(a.range()), bits)?
                }
                Condition::Equal | Condition::NotEqual => {
                    refine(condition, interval(a.range()), (0, 0), bits)?.0
                }
                _ => return Some([None, None]),
            };
            a.range().clamp(x.0, x.1)?;
            debug_assert!(x.1 <= ones(bits));
            Some([Some(Bound { side: a, size, interval: x, room: None }), None])
        }
        _ => Some([None, None]),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_call_keeps_or_forgets_each_register() {
        let mut all = [&CALLEE_SAVED[..], &SCRATCH, &[RSP]].concat();
        all.sort();
        assert!(all.into_iter().eq(0..16));
    }
}
