//! The part of the stack that a function owns: from its stack pointer up to the return address.
//!
//! It is kept in granules of four bytes. Granule n holds the bytes from -4 * (n + 1) to -4 * n, counted from the stack
//! pointer at the function's entry. A value of eight bytes lies in the granule of its lower half, and the granule of
//! its upper half, whose number is one less, is [`Value::Upper`].

use crate::value::Value;

/// Granules of a function's frame, of which those down to the stack pointer are in use.
pub struct Frame<'a> {
    granules: &'a mut [Value],
    depth: usize,
}

impl<'a> Frame<'a> {
    /// A frame that was kept in this memory, or an empty one. The memory's length is the deepest it can become.
    pub fn of(granules: &'a mut [Value], depth: usize) -> Self {
        Frame { granules, depth }
    }

    /// What is in use, and must be kept to restore it.
    pub fn used(&self) -> &[Value] {
        &self.granules[..self.depth]
    }

    /// Restores what [`Frame::used`] returned.
    pub fn restore(&mut self, saved: &[Value]) {
        self.depth = saved.len();
        self.granules[..self.depth].copy_from_slice(saved);
    }

    /// The stack pointer is now `bytes` below its value at entry: what is below is lost, what is new is unknown.
    /// The caller has checked that it is a multiple of 4 and within the frame.
    pub fn set_depth(&mut self, bytes: u32) {
        let depth = bytes as usize / 4;
        if depth > self.depth {
            self.granules[self.depth..depth].fill(Value::UNKNOWN);
        } else if depth > 0 && matches!(self.granules[depth - 1], Value::Upper) {
            // The upper half stays of a value whose lower half is lost.
            self.split(depth - 1);
        }
        self.depth = depth;
    }

    /// The granule of the byte at this offset, which must be in use.
    fn index(offset: i32) -> usize {
        (-(offset as i64) as usize).div_ceil(4) - 1
    }

    /// Whether a range of bytes is in use.
    pub fn contains(&self, offset: i32, size: u8) -> bool {
        offset < 0 && offset as i64 + size as i64 <= 0 && -(offset as i64) <= self.depth as i64 * 4
    }

    fn is_lower(&self, granule: usize) -> bool {
        granule > 0 && matches!(self.granules[granule - 1], Value::Upper)
    }

    /// The four bytes of one granule.
    fn half(&self, granule: usize) -> Value {
        half_of(self.granules, granule)
    }

    /// Eight bytes, of which `granule` has the lower half.
    fn pair(&self, granule: usize) -> Value {
        pair_of(self.granules, granule)
    }

    /// Makes sure that a granule is not half of an 8-byte value.
    fn split(&mut self, granule: usize) {
        let lower = match self.granules[granule] {
            Value::Upper => granule + 1,
            _ if self.is_lower(granule) => granule,
            _ => return,
        };
        let whole = self.granules[lower];
        self.granules[lower] = whole.truncate(4);
        self.granules[lower - 1] = upper_half(whole);
    }

    /// The value of 1 to 16 bytes that are in use.
    pub fn read(&self, offset: i32, size: u8) -> Value {
        let granule = Self::index(offset);
        match size {
            8 if offset % 4 == 0 => self.pair(granule),
            4 if offset % 4 == 0 => self.half(granule),
            _ => {
                let mut known = 0u16;
                for n in 0..size as i32 {
                    let bytes = self.half(Self::index(offset + n)).data_bytes();
                    known |= ((bytes >> ((offset + n) & 3) & 1) as u16) << n;
                }
                match size {
                    16 if known == 0xffff => Value::ANY,
                    16 => Value::UNKNOWN,
                    8 => Value::known(known as u8),
                    _ => Value::Bytes(known as u8 | !(crate::range::ones(size as u32) as u8))
                        .truncate(size),
                }
            }
        }
    }

    /// Writes 1 to 16 bytes that are in use. With 16, `value` stands for data.
    pub fn write(&mut self, offset: i32, size: u8, value: Value) {
        let granule = Self::index(offset);
        match size {
            8 if offset % 4 == 0 => {
                self.split(granule);
                self.split(granule - 1);
                self.granules[granule] = value;
                self.granules[granule - 1] = Value::Upper;
            }
            4 if offset % 4 == 0 => {
                self.split(granule);
                self.granules[granule] = value.truncate(4);
            }
            _ => {
                for n in 0..size as i32 {
                    let granule = Self::index(offset + n);
                    self.split(granule);
                    let bit = 1 << ((offset + n) & 3);
                    let mut known = self.granules[granule].data_bytes() & 0xf;
                    if size == 16 || value.data_bytes() >> n & 1 != 0 {
                        known |= bit;
                    } else {
                        known &= !bit;
                    }
                    self.granules[granule] =
                        if known == 0xf { Value::data(4) } else { Value::Bytes(known | 0xf0) };
                }
            }
        }
    }

    /// The number that was compared at this place: of 8 bytes, or of the 4 of one granule.
    pub fn compared(&self, offset: i32, size: u8) -> Option<Value> {
        if !self.contains(offset, size) || offset % 4 != 0 {
            return None;
        }
        let granule = Self::index(offset);
        let whole = match size {
            8 => self.is_lower(granule),
            4 => !self.is_lower(granule) && self.granules[granule] != Value::Upper,
            _ => false,
        };
        whole.then_some(self.granules[granule])
    }

    /// Replaces what [`Frame::compared`] returned.
    pub fn set_compared(&mut self, offset: i32, value: Value) {
        self.granules[Self::index(offset)] = value;
    }

    /// What holds in this frame and in `other`, which another path brought to the same place.
    pub fn join(&mut self, other: &[Value]) {
        let depth = self.depth.min(other.len());
        if depth < self.depth {
            self.set_depth(depth as u32 * 4);
        }
        let (mine, theirs) = (&mut self.granules[..depth], &other[..depth]);
        let mut i = 0;
        while i < depth {
            // Most places are the same in both. A value in one granule has no more than four bytes, so it is the same
            // where the other frame has eight.
            let pair = matches!(mine[i], Value::Upper) && i + 1 < depth;
            let lower = i + pair as usize;
            if !mine[lower].same(theirs[lower]) || pair && !matches!(theirs[i], Value::Upper) {
                let value = if pair { pair_of(other, lower) } else { half_of(other, i) };
                mine[lower] = mine[lower].join(value);
            }
            i = lower + 1;
        }
    }

    /// Calls `differ` for each place that is not within `kept`, the frame of an annotated head: with the granule, what
    /// is there, and what the head has.
    pub fn compare<E>(
        &self,
        kept: &[Value],
        mut differ: impl FnMut(Slot, Value, Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut i = 0;
        while i < kept.len() {
            let pair = matches!(kept[i], Value::Upper);
            let lower = i + pair as usize;
            let same = self.used().get(lower).is_some_and(|value| value.same(kept[lower]));
            if !same || pair && !matches!(self.granules[i], Value::Upper) {
                let slot = Slot { granule: lower as u32, pair };
                let value = self.slot(slot).unwrap_or(Value::UNKNOWN);
                if !value.within(kept[lower]) {
                    differ(slot, value, kept[lower])?;
                }
            }
            i = lower + 1;
        }
        Ok(())
    }

    /// The value of a slot, if it is in use.
    pub fn slot(&self, slot: Slot) -> Option<Value> {
        let granule = slot.granule as usize;
        if granule >= self.depth || slot.pair && granule == 0 {
            return None;
        }
        Some(if slot.pair { self.pair(granule) } else { self.half(granule) })
    }

    /// Sets a slot that is in use.
    pub fn set_slot(&mut self, slot: Slot, value: Value) {
        let offset = -4 * (slot.granule as i32 + 1);
        self.write(offset, if slot.pair { 8 } else { 4 }, value);
    }
}

/// A place of 4 or 8 bytes in a frame: the granule of its lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Granule of the lower four bytes.
    pub granule: u32,
    /// It has eight bytes.
    pub pair: bool,
}

fn upper_half(whole: Value) -> Value {
    match whole.number() {
        Some(range) => Value::Number(range.shift_right(32)),
        None => Value::Bytes(whole.data_bytes() >> 4 | 0xf0).truncate(4),
    }
}

fn half_of(granules: &[Value], i: usize) -> Value {
    if matches!(granules[i], Value::Upper) {
        granules.get(i + 1).map_or(Value::UNKNOWN, |&whole| upper_half(whole))
    } else {
        granules[i].truncate(4)
    }
}

fn pair_of(granules: &[Value], lower: usize) -> Value {
    if matches!(granules[lower - 1], Value::Upper) {
        return granules[lower];
    }
    let known = half_of(granules, lower).data_bytes() & 0xf
        | (half_of(granules, lower - 1).data_bytes() & 0xf) << 4;
    Value::known(known)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::range::Range;

    const U8: Value = Value::data(1);

    fn frame(memory: &mut [Value], bytes: u32) -> Frame<'_> {
        let mut frame = Frame::of(memory, 0);
        frame.set_depth(bytes);
        frame
    }

    #[test]
    fn a_spilled_value_comes_back_whole() {
        let mut memory = [Value::UNKNOWN; 8];
        let mut f = frame(&mut memory, 32);
        for value in
            [Value::Saved(3), Value::Stack(-8), Value::ANY, Value::Entry(2), Value::Bytes(0x3)]
        {
            f.write(-16, 8, value);
            assert_eq!(f.read(-16, 8), value);
        }
        f.write(-20, 4, Value::constant(7));
        assert_eq!(f.read(-20, 4), Value::constant(7));
        assert_eq!(f.read(-16, 8), Value::Bytes(0x3));
    }

    #[test]
    fn new_bytes_are_unknown_and_lost_bytes_stay_lost() {
        let mut memory = [Value::UNKNOWN; 8];
        let mut f = frame(&mut memory, 32);
        assert_eq!(f.read(-32, 8), Value::UNKNOWN);
        f.write(-32, 8, Value::ANY);
        f.set_depth(24);
        f.set_depth(32);
        assert_eq!(f.read(-32, 8), Value::UNKNOWN);
        f.write(-24, 8, Value::Saved(3));
        f.write(-32, 8, Value::Saved(5));
        f.set_depth(24);
        assert_eq!(f.read(-24, 8), Value::Saved(3));
        f.set_depth(32);
        f.write(-28, 8, Value::Stack(0));
        f.set_depth(24);
        assert_eq!(f.read(-24, 4), Value::Bytes(0xf0));
    }

    #[test]
    fn half_a_pointer_is_no_pointer() {
        let mut memory = [Value::UNKNOWN; 8];
        let mut f = frame(&mut memory, 32);
        f.write(-16, 8, Value::Stack(-8));
        assert_eq!(f.read(-16, 4), Value::Bytes(0xf0));
        f.write(-16, 4, Value::constant(16));
        assert_eq!(f.read(-16, 8), Value::Bytes(0x0f));
        f.write(-16, 8, Value::Stack(-8));
        f.write(-13, 1, U8);
        assert_eq!(f.read(-16, 8), Value::Bytes(0x08));
        f.write(-16, 8, Value::Stack(-8));
        f.write(-20, 8, Value::ANY);
        assert_eq!(f.read(-16, 8), Value::Bytes(0x0f));
    }

    #[test]
    fn bytes_are_data_only_where_they_were_written() {
        let mut memory = [Value::UNKNOWN; 8];
        let mut f = frame(&mut memory, 32);
        f.write(-9, 1, U8);
        assert_eq!(f.read(-9, 1), U8);
        assert_eq!(f.read(-10, 1), Value::Bytes(0xfe));
        assert!(!f.read(-12, 4).is_data(4));
        f.write(-12, 2, Value::data(2));
        f.write(-10, 1, U8);
        assert_eq!(f.read(-12, 4), Value::data(4));
        f.write(-32, 16, Value::ANY);
        assert_eq!(f.read(-31, 8), Value::ANY);
        assert_eq!(f.read(-32, 16), Value::ANY);
        assert_eq!(f.read(-20, 16), Value::UNKNOWN);
        f.write(-10, 1, Value::UNKNOWN);
        assert!(!f.read(-12, 4).is_data(4));
    }

    #[test]
    fn ranges_outside_the_frame_are_not_in_use() {
        let mut memory = [Value::UNKNOWN; 8];
        let f = frame(&mut memory, 16);
        assert!(f.contains(-16, 16) && f.contains(-1, 1));
        for (offset, size) in
            [(-17, 1), (-8, 16), (0, 1), (8, 8), (-4, 8), (i32::MIN, 8), (i32::MAX, 8)]
        {
            assert!(!f.contains(offset, size), "{offset} {size}");
        }
    }

    /// All pairs of frames with a few shapes: what the join says of a place holds in both.
    #[test]
    fn a_join_holds_in_both() {
        let shapes: [fn(&mut Frame<'_>); 7] = [
            |_| (),
            |f| f.write(-8, 8, Value::Saved(3)),
            |f| f.write(-8, 8, Value::constant(5)),
            |f| f.write(-12, 8, Value::constant(5)),
            |f| {
                f.write(-8, 4, Value::constant(5));
                f.write(-4, 4, Value::constant(0))
            },
            |f| f.write(-16, 16, Value::ANY),
            |f| f.write(-7, 1, U8),
        ];
        for one in shapes {
            for two in shapes {
                let (mut m, mut n) = ([Value::UNKNOWN; 4], [Value::UNKNOWN; 4]);
                let (mut a, mut b) = (frame(&mut m, 16), frame(&mut n, 16));
                one(&mut a);
                two(&mut b);
                let mut memory = [Value::UNKNOWN; 4];
                let mut both = frame(&mut memory, 16);
                both.restore(a.used());
                both.join(b.used());
                for frame in [&a, &b] {
                    for (offset, size) in (-16..0).flat_map(|o| [1, 2, 4, 8, 16].map(|s| (o, s))) {
                        if both.contains(offset, size) {
                            let (x, y) = (frame.read(offset, size), both.read(offset, size));
                            assert!(x.within(y), "{offset} {size}: {x} is not {y}");
                        }
                    }
                    let result: Result<(), Slot> =
                        frame.compare(both.used(), |slot, _, _| Err(slot));
                    assert_eq!(result, Ok(()));
                }
                let fits: Result<(), Slot> = a.compare(b.used(), |slot, _, _| Err(slot));
                if fits.is_ok() {
                    for (offset, size) in (-16..0).flat_map(|o| [4, 8].map(|s| (o, s))) {
                        if a.contains(offset, size) && offset % 4 == 0 {
                            assert!(a.read(offset, size).within(b.read(offset, size)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_comparison_refines_the_slot_that_it_names() {
        let mut memory = [Value::UNKNOWN; 8];
        let mut f = frame(&mut memory, 32);
        f.write(-8, 8, Value::ANY);
        f.write(-12, 4, Value::data(4));
        let small = Value::Number(Range::to(9));
        for (offset, size, value) in [(-8, 8, Value::ANY), (-12, 4, Value::data(4))] {
            assert_eq!(f.compared(offset, size), Some(value));
            f.set_compared(offset, small);
            assert_eq!(f.read(offset, size), small);
        }
        for (offset, size) in [(-8, 4), (-4, 4), (-12, 8), (-10, 4), (-36, 4), (8, 8)] {
            assert_eq!(f.compared(offset, size), None, "{offset} {size}");
        }
    }
}
