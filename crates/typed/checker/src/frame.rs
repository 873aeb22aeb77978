//! The part of the stack that a function owns: from its stack pointer up to the return address.
//!
//! It is kept in granules of four bytes. Granule n holds the bytes from -4 * (n + 1) to -4 * n, counted from the stack
//! pointer at the function's entry. A value of eight bytes lies in the granule of its lower half, and the granule of
//! its upper half, whose number is one less, is [`Value::Upper`].

use crate::value::Value;

/// Four bytes of data.
const U32: Value = Value::data(4);
/// Chunks of a frame.
const CHUNKS: usize = 8;

/// How much of a frame is in use, and a number for the contents of each chunk. Chunks of the same number, other than 0,
/// have the same granules in use, and these hold the same: a chunk gets a new number, or 0, when one of its granules is
/// written, or comes into use, or is lost. Only one frame of a function gives numbers.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    depth: usize,
    versions: [u64; CHUNKS],
    /// The last number that was given; 0 in a frame that gives none.
    last: u64,
}

impl Shape {
    /// So many granules are in use, and have no numbers. With `last` 1 it is of the frame that gives numbers.
    pub const fn of(depth: usize, last: u64) -> Shape {
        Shape { depth, versions: [0; CHUNKS], last }
    }

    /// What a frame of this shape has in use.
    pub(crate) fn saved<'a>(&'a self, granules: &'a [Value]) -> Saved<'a> {
        (&granules[..self.depth], self)
    }
}

/// Granules of a function's frame, of which those down to the stack pointer are in use.
pub struct Frame<'a> {
    granules: &'a mut [Value],
    shape: &'a mut Shape,
    /// The logarithm of the granules in a chunk.
    chunk: u32,
}

impl<'a> Frame<'a> {
    /// A frame of this shape. The memory's length is the deepest it can become.
    pub fn of(granules: &'a mut [Value], shape: &'a mut Shape) -> Self {
        let chunk = granules.len().div_ceil(CHUNKS).next_power_of_two().trailing_zeros();
        Frame { granules, shape, chunk }
    }

    fn put(&mut self, granule: usize, value: Value) {
        self.granules[granule] = value;
        self.touch(granule);
    }

    /// The chunk of this granule is no longer what it was.
    fn touch(&mut self, granule: usize) {
        self.shape.last += u64::from(self.shape.last != 0);
        self.shape.versions[granule >> self.chunk] = self.shape.last;
    }

    /// What is in use.
    pub fn used(&self) -> &[Value] {
        &self.granules[..self.shape.depth]
    }

    /// What is in use, and must be kept to restore it.
    pub(crate) fn saved(&self) -> Saved<'_> {
        self.shape.saved(self.granules)
    }

    /// Restores what [`Frame::saved`] returned.
    pub(crate) fn restore(&mut self, (saved, shape): Saved<'_>) {
        self.granules[..saved.len()].copy_from_slice(saved);
        *self.shape = Shape { last: self.shape.last, ..*shape };
    }

    /// The stack pointer is now `bytes` below its value at entry: what is below is lost, what is new is unknown.
    /// The caller has checked that it is a multiple of 4 and within the frame.
    pub fn set_depth(&mut self, bytes: u32) {
        let depth = bytes as usize / 4;
        if depth > self.shape.depth {
            self.granules[self.shape.depth..depth].fill(Value::UNKNOWN);
        } else if depth > 0 && matches!(self.granules[depth - 1], Value::Upper) {
            // The upper half stays of a value whose lower half is lost.
            self.split(depth - 1);
        }
        let (least, most) = (depth.min(self.shape.depth), depth.max(self.shape.depth));
        for chunk in least >> self.chunk..most.div_ceil(1 << self.chunk) {
            self.touch(chunk << self.chunk);
        }
        self.shape.depth = depth;
    }

    /// The granule of the byte at this offset, which must be in use.
    fn index(offset: i32) -> usize {
        (-(offset as i64) as usize).div_ceil(4) - 1
    }

    /// Whether a range of bytes is in use.
    pub fn contains(&self, offset: i32, size: u8) -> bool {
        offset < 0
            && offset as i64 + size as i64 <= 0
            && -(offset as i64) <= self.shape.depth as i64 * 4
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
        self.put(lower, whole.truncate(4));
        self.put(lower - 1, upper_half(whole));
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
                self.put(granule, value);
                self.put(granule - 1, Value::Upper);
            }
            4 if offset % 4 == 0 => {
                self.split(granule);
                self.put(granule, value.truncate(4));
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
                    let all = known == 0xf;
                    self.put(granule, if all { U32 } else { Value::Bytes(known | 0xf0) });
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
        self.put(Self::index(offset), value);
    }

    /// What holds in this frame and in `other`, which another path brought to the same place.
    pub fn join(&mut self, (other, shape): Saved<'_>) {
        let depth = self.shape.depth.min(other.len());
        if depth < self.shape.depth {
            self.set_depth(depth as u32 * 4);
        }
        for lower in self.other(shape, depth) {
            if let Some(slot) = differing(lower, self.used(), other) {
                let value = if slot.pair { pair_of(other, lower) } else { half_of(other, lower) };
                self.put(lower, self.granules[lower].join(value));
            }
        }
    }

    /// Of so many granules, those that can be different in a frame of this shape: in chunks of other numbers, and the
    /// first of each chunk, which may have its upper half in the one before.
    fn other(&self, shape: &Shape, count: usize) -> impl Iterator<Item = usize> {
        let (chunk, mine, theirs) = (self.chunk, self.shape.versions, shape.versions);
        (0..CHUNKS).flat_map(move |n| {
            let same = mine[n] != 0 && mine[n] == theirs[n];
            let end = if same { (n << chunk) + 1 } else { (n + 1) << chunk };
            n << chunk..end.min(count)
        })
    }

    /// The first slot from granule `next` on that is not within `kept`, the frame of an annotated head: what is there,
    /// and what the head has.
    pub(crate) fn weaker(
        &self,
        (kept, shape): Saved<'_>,
        next: usize,
    ) -> Option<(Slot, Value, Value)> {
        self.other(shape, kept.len()).filter(|&lower| lower >= next).find_map(|lower| {
            let slot = differing(lower, kept, self.used())?;
            let found = self.slot(slot).unwrap_or(Value::UNKNOWN);
            (!found.within(kept[lower])).then_some((slot, found, kept[lower]))
        })
    }

    /// The value of a slot, if it is in use.
    pub fn slot(&self, slot: Slot) -> Option<Value> {
        let granule = slot.granule as usize;
        if granule >= self.shape.depth || slot.pair && granule == 0 {
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

/// The granules of a frame that are in use, and its shape.
pub type Saved<'a> = (&'a [Value], &'a Shape);

/// A place of 4 or 8 bytes in a frame: the granule of its lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Granule of the lower four bytes.
    pub granule: u32,
    /// It has eight bytes.
    pub pair: bool,
}

/// The slot of `kept` with this lower granule, if `other` may hold something else there.
#[inline(always)]
fn differing(lower: usize, kept: &[Value], other: &[Value]) -> Option<Slot> {
    if matches!(kept[lower], Value::Upper) {
        return None;
    }
    let pair = lower > 0 && matches!(kept[lower - 1], Value::Upper);
    // Most places are the same in both. A value in one granule has no more than four bytes, so it is the same where the
    // other frame has eight.
    let same = other.get(lower).is_some_and(|value| value.same(kept[lower]));
    let differs = !same || pair && !matches!(other[lower - 1], Value::Upper);
    differs.then_some(Slot { granule: lower as u32, pair })
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
    use std::boxed::Box;
    use std::vec::Vec;

    const U8: Value = Value::data(1);

    fn frame(memory: &mut [Value], bytes: u32) -> Frame<'_> {
        let mut frame = Frame::of(memory, Box::leak(Box::new(Shape::of(0, 0))));
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
                both.restore(a.saved());
                both.join(b.saved());
                for frame in [&a, &b] {
                    for (offset, size) in (-16..0).flat_map(|o| [1, 2, 4, 8, 16].map(|s| (o, s))) {
                        if both.contains(offset, size) {
                            let (x, y) = (frame.read(offset, size), both.read(offset, size));
                            assert!(x.within(y), "{offset} {size}: {x} is not {y}");
                        }
                    }
                    assert_eq!(frame.weaker(both.saved(), 0), None);
                }
                let fits = a.weaker(b.saved(), 0).is_none();
                if fits {
                    for (offset, size) in (-16..0).flat_map(|o| [4, 8].map(|s| (o, s))) {
                        if a.contains(offset, size) && offset % 4 == 0 {
                            assert!(a.read(offset, size).within(b.read(offset, size)));
                        }
                    }
                }
            }
        }
    }

    /// One frame that gives numbers and frames that were kept of it, with random writes, depths, joins and restores:
    /// joins and comparisons find what they find without numbers.
    #[test]
    fn numbers_change_no_result() {
        const GRANULES: usize = 40;
        let mut seed = 1u64;
        let mut below = |limit: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % limit
        };
        let mut memory = [Value::UNKNOWN; GRANULES];
        let mut shape = Shape::of(0, 1);
        let mut kept = [([Value::UNKNOWN; GRANULES], Shape::of(0, 0)); 3];
        let mut skipped = 0;
        for _ in 0..100_000 {
            let (label, label_shape) = &mut kept[below(3) as usize];
            let mut frame = Frame::of(&mut memory, &mut shape);
            let depth = frame.used().len() as u64;
            match below(12) {
                0 => frame.set_depth(below(GRANULES as u64 / 2 + 1) as u32 * 8),
                1 => Frame::of(label, label_shape).restore(frame.saved()),
                2 => frame.restore(label_shape.saved(label)),
                way @ 3..=5 => {
                    let mut current = Frame::of(label, label_shape);
                    let (into, from) = match way {
                        3 => (&mut current, &frame),
                        _ => (&mut frame, &current),
                    };
                    let other = from.used().to_vec();
                    let mut plain = into.used().to_vec();
                    plain.resize(GRANULES, Value::UNKNOWN);
                    let mut plain_shape = Shape::of(into.used().len(), 0);
                    let mut plain = Frame::of(&mut plain, &mut plain_shape);
                    let no_numbers = Shape::of(other.len(), 0);
                    let all = |frame: &Frame<'_>, saved: Saved<'_>| -> Vec<_> {
                        let mut next = 0;
                        core::iter::from_fn(|| {
                            let found = frame.weaker(saved, next)?;
                            next = found.0.granule as usize + 1;
                            Some(found)
                        })
                        .collect()
                    };
                    assert_eq!(all(into, from.saved()), all(&plain, (&other, &no_numbers)));
                    let same = |(a, b): (&u64, &u64)| *a == *b && *a != 0;
                    skipped += into
                        .shape
                        .versions
                        .iter()
                        .zip(&from.shape.versions)
                        .filter(|v| same(*v))
                        .count();
                    into.join(from.saved());
                    plain.join((&other, &no_numbers));
                    assert_eq!(into.used(), plain.used());
                }
                _ if depth >= 4 => {
                    let size = [1, 2, 4, 8, 8, 8, 16][below(7) as usize];
                    let aligned = if below(4) > 0 && size >= 4 { 4 } else { 1 };
                    let places = (depth * 4 - u64::from(size)) / aligned + 1;
                    let offset = (below(places) * aligned) as i32 - depth as i32 * 4;
                    let value = match below(5) {
                        0 => Value::Saved(3),
                        1 => Value::ANY,
                        2 => Value::Stack(-8),
                        _ => Value::constant(below(3)),
                    };
                    let value = if size == 16 { Value::ANY } else { value };
                    frame.write(offset, size, value);
                }
                _ => (),
            }
        }
        assert!(skipped > 1000, "{skipped} chunks");
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
