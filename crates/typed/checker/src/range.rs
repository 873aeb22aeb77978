//! Sets of 64-bit numbers: an interval and a stride.

use core::fmt;

/// The numbers x with low <= x <= high and x - low a multiple of 2^stride.
///
/// Normal form: high is a member; stride is 63 if low = high, else at most 62.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    low: u64,
    high: u64,
    stride: u8,
    spare: Spare,
}

/// A byte with one value. The others are room for the tag of [`crate::value::Value`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Spare {
    Zero,
}

/// A range of 32-bit numbers, in less memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Short {
    low: u32,
    high: u32,
    stride: u8,
}

impl From<Short> for Range {
    fn from(x: Short) -> Range {
        Range::make(x.low.into(), x.high.into(), x.stride)
    }
}

/// The largest number of so many bits (1 to 64).
pub(crate) const fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// 2^stride - 1
const fn below(stride: u8) -> u64 {
    (1 << stride) - 1
}

impl Range {
    /// Every number.
    pub const ANY: Range = Range::make(0, u64::MAX, 0);
    /// Every number of 32 bits.
    pub const U32: Range = Range::to(u32::MAX as u64);

    const fn make(low: u64, high: u64, stride: u8) -> Range {
        Range { low, high, stride, spare: Spare::Zero }
    }

    /// One number.
    pub const fn constant(value: u64) -> Range {
        Range::make(value, value, 63)
    }

    /// The numbers from 0 to `high`.
    pub const fn to(high: u64) -> Range {
        if high == 0 {
            return Range::constant(0);
        }
        Range::make(0, high, 0)
    }

    /// The numbers of so many bytes (1, 2, 4 or 8).
    pub const fn bytes(size: u8) -> Range {
        Range::to(ones(size as u32 * 8))
    }

    /// The numbers from `low` to `high` in steps of 2^stride; `low` must not exceed `high`.
    pub fn new(low: u64, high: u64, stride: u8) -> Range {
        debug_assert!(low <= high);
        let stride = stride.min(62);
        let high = high - ((high - low) & below(stride));
        if low == high {
            return Range::constant(low);
        }
        Range::make(low, high, stride)
    }

    /// The same in less memory, if its members have 32 bits.
    pub fn short(self) -> Option<Short> {
        let (low, high) = (self.low.try_into().ok()?, self.high.try_into().ok()?);
        Some(Short { low, high, stride: self.stride })
    }

    /// The smallest member.
    pub fn low(self) -> u64 {
        self.low
    }

    /// The largest member.
    pub fn high(self) -> u64 {
        self.high
    }

    /// Members differ by multiples of 2 to this power; 63 for a constant.
    pub fn stride(self) -> u8 {
        self.stride
    }

    /// The number, if it is only one.
    pub fn single(self) -> Option<u64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether it has this member.
    pub fn contains(self, x: u64) -> bool {
        self.low <= x && x <= self.high && (x - self.low) & below(self.stride) == 0
    }

    /// Whether each member is one of `other`.
    pub fn within(self, other: Range) -> bool {
        other.low <= self.low
            && self.high <= other.high
            && (self.stride >= other.stride || self.low == self.high)
            && (self.low - other.low) & below(other.stride) == 0
    }

    /// The smallest range with the members of both.
    pub fn join(self, other: Range) -> Range {
        let distance = self.low.abs_diff(other.low);
        let stride = self.stride.min(other.stride).min(distance.trailing_zeros().min(63) as u8);
        Range::new(self.low.min(other.low), self.high.max(other.high), stride)
    }

    /// The members from `low` to `high`; none, if there are none.
    pub fn clamp(self, low: u64, high: u64) -> Option<Range> {
        let step = below(self.stride);
        let start = if low > self.low {
            // The first member that is not below `low`.
            self.low.checked_add((low - self.low).checked_add(step)? & !step)?
        } else {
            self.low
        };
        let end = self.high.min(high);
        (start <= end).then(|| Range::new(start, end, self.stride))
    }

    /// How many of the lowest bits are 0 in every member.
    fn zeros(self) -> u8 {
        self.stride.min(self.low.trailing_zeros() as u8)
    }

    /// Every number of so many bits that is congruent to `low` modulo 2^stride.
    fn congruent(low: u64, stride: u8, bits: u32) -> Range {
        let stride = stride.min(bits as u8 - 1).min(62);
        let low = low & below(stride);
        Range::new(low, ones(bits), stride)
    }

    /// x modulo 2^bits.
    pub fn truncate(self, bits: u32) -> Range {
        if bits >= 64 || self.high <= ones(bits) {
            return self;
        }
        if self.low >> bits == self.high >> bits {
            return Range::new(self.low & ones(bits), self.high & ones(bits), self.stride);
        }
        Range::congruent(self.low, self.stride, bits)
    }

    /// The lowest `from` bits as a signed number, in `to` bits.
    pub fn sign_extend(self, from: u32, to: u32) -> Range {
        let x = self.truncate(from);
        let sign = 1 << (from - 1);
        if x.high < sign {
            return x;
        }
        if x.low >= sign {
            let upper = ones(to) & !ones(from);
            return Range::new(x.low | upper, x.high | upper, x.stride);
        }
        Range::congruent(x.low, x.stride.min(from as u8 - 1), to)
    }

    /// x + y modulo 2^64.
    pub fn wrapping_add(self, other: Range) -> Range {
        let (low, carry_low) = self.low.overflowing_add(other.low);
        let (high, carry_high) = self.high.overflowing_add(other.high);
        let stride = self.stride.min(other.stride);
        if carry_low == carry_high {
            Range::new(low, high, stride)
        } else {
            Range::congruent(low, stride, 64)
        }
    }

    /// x - y modulo 2^64.
    pub fn wrapping_sub(self, other: Range) -> Range {
        let (low, borrow_low) = self.low.overflowing_sub(other.high);
        let (high, borrow_high) = self.high.overflowing_sub(other.low);
        let stride = self.stride.min(other.stride);
        if borrow_low == borrow_high {
            Range::new(low, high, stride)
        } else {
            Range::congruent(low, stride, 64)
        }
    }

    /// x * y modulo 2^bits, for operands of so many bits.
    pub fn multiply(self, other: Range, bits: u32) -> Range {
        let zeros = self.zeros() + other.zeros();
        match (self.low.checked_mul(other.low), self.high.checked_mul(other.high)) {
            (Some(low), Some(high)) if high <= ones(bits) => {
                // With a constant factor, members keep their distances.
                let stride = match (self.single(), other.single()) {
                    (Some(factor), _) => other.stride + factor.trailing_zeros().min(63) as u8,
                    (_, Some(factor)) => self.stride + factor.trailing_zeros().min(63) as u8,
                    _ => zeros.min(low.trailing_zeros() as u8),
                };
                Range::new(low, high, stride)
            }
            _ => Range::congruent(0, zeros, bits),
        }
    }

    /// x << count modulo 2^bits.
    pub fn shift_left(self, count: u32, bits: u32) -> Range {
        self.multiply(Range::constant(1 << count), 64).truncate(bits)
    }

    /// x >> count, unsigned.
    pub fn shift_right(self, count: u32) -> Range {
        Range::new(self.low >> count, self.high >> count, self.stride.saturating_sub(count as u8))
    }

    /// x >> count for signed numbers of so many bits.
    pub fn shift_arithmetic(self, count: u32, bits: u32) -> Range {
        let sign = 1 << (bits - 1);
        if self.high < sign {
            return self.shift_right(count);
        }
        if self.low >= sign {
            let x = self.sign_extend(bits, 64);
            let upper = !(u64::MAX >> count);
            let shifted = x.shift_right(count);
            return Range::new(shifted.low | upper, shifted.high | upper, shifted.stride)
                .truncate(bits);
        }
        Range::to(ones(bits))
    }

    /// !x in so many bits.
    pub fn not(self, bits: u32) -> Range {
        Range::new(!self.high, !self.low, self.stride).truncate(bits)
    }

    /// x & y
    pub fn and(self, other: Range) -> Range {
        let (x, mask) = if self.single().is_some() { (other, self) } else { (self, other) };
        let Some(mask) = mask.single() else {
            return Range::new(0, x.high.min(mask.high), x.zeros().max(mask.zeros()));
        };
        if mask == 0 {
            return Range::constant(0);
        }
        let zeros = mask.trailing_zeros();
        let bits = 64 - mask.leading_zeros();
        if mask >> zeros == ones(bits - zeros) && x.high <= ones(bits) {
            // Clears low bits only: keeps the order, and distances that the mask keeps.
            let zeros = zeros as u8;
            let stride = if x.stride >= zeros { x.stride } else { zeros };
            return Range::new(x.low & mask, x.high & mask, stride);
        }
        Range::new(0, x.high.min(mask), x.zeros().max(zeros as u8))
    }

    /// Bound of x | y and x ^ y: no bit above the highest of both.
    fn union_high(self, other: Range) -> u64 {
        match self.high | other.high {
            0 => 0,
            high => ones(64 - high.leading_zeros()),
        }
    }

    /// x | y
    pub fn or(self, other: Range) -> Range {
        if let (Some(x), Some(y)) = (self.single(), other.single()) {
            return Range::constant(x | y);
        }
        let stride = self.zeros().min(other.zeros()).min(62);
        Range::new(self.low.max(other.low) & !below(stride), self.union_high(other), stride)
    }

    /// x ^ y
    pub fn xor(self, other: Range) -> Range {
        if let (Some(x), Some(y)) = (self.single(), other.single()) {
            return Range::constant(x ^ y);
        }
        Range::new(0, self.union_high(other), self.zeros().min(other.zeros()))
    }

    /// What a register holds whose lowest `bits` were replaced by `part`.
    pub fn replace_low(self, part: Range, bits: u32) -> Range {
        let mask = ones(bits);
        if self.low >> bits == self.high >> bits {
            let upper = self.low & !mask;
            return Range::new(upper | part.low, upper | part.high, part.stride);
        }
        Range::new(self.low & !mask, self.high | mask, 0)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low, self.high, self.stride) {
            (0, u64::MAX, 0) => f.write_str("any"),
            (0, 0xffff_ffff, 0) => f.write_str("u32"),
            (0, 0xffff, 0) => f.write_str("u16"),
            (0, 0xff, 0) => f.write_str("u8"),
            (low, high, _) if low == high => write!(f, "{low:#x}"),
            (low, high, 0) => write!(f, "[{low:#x}, {high:#x}]"),
            (low, high, stride) => write!(f, "[{low:#x}, {high:#x}, {:#x}]", 1u64 << stride),
        }
    }
}

#[cfg(test)]
mod tests;
