//! Each operation against the numbers themselves: every range of a few small widths, and ranges near 2^64.

extern crate std;
use super::*;
use std::vec::Vec;

/// Small ranges, ranges at the wrap, at the sign of 32 bits, and wide ones.
fn samples() -> Vec<Range> {
    let mut all = Vec::new();
    for base in [
        0u64,
        1,
        5,
        0x7f,
        0x80,
        0xfe,
        0x7fff_fffe,
        0xffff_fffd,
        0x1_0000_0003,
        i64::MAX as u64 - 2,
        u64::MAX - 9,
    ] {
        for length in [0u64, 1, 2, 4, 8, 9] {
            for stride in 0..4 {
                if let Some(high) = base.checked_add(length) {
                    all.push(Range::new(base, high, stride));
                }
            }
        }
    }
    all.extend([
        Range::ANY,
        Range::U32,
        Range::to(255),
        Range::new(16, u64::MAX, 4),
        Range::new(3, 1 << 40, 20),
    ]);
    all
}

/// Members to try: all of a small range, the ends and some between of a large one.
fn members(range: Range) -> Vec<u64> {
    let step = if range.stride >= 63 { 1 } else { 1u64 << range.stride };
    let count = (range.high - range.low) / step;
    let picks: Vec<u64> = if count <= 12 {
        (0..=count).collect()
    } else {
        std::vec![0, 1, 2, count / 3, count / 2 + 1, count - 1, count]
    };
    picks.into_iter().map(|n| range.low + n * step).collect()
}

fn normal(range: Range) {
    assert!(range.low <= range.high);
    if range.low == range.high {
        assert_eq!(range.stride, 63);
    } else {
        assert!(range.stride <= 62);
        assert!(range.contains(range.high));
    }
}

fn unary(name: &str, bits: u32, abstract_: impl Fn(Range) -> Range, concrete: impl Fn(u64) -> u64) {
    for x in samples() {
        let x = x.truncate(bits);
        let result = abstract_(x);
        normal(result);
        for m in members(x) {
            assert!(
                result.contains(concrete(m)),
                "{name} of {bits} bits: {x:?}, member {m:#x}: {:#x} not in {result:?}",
                concrete(m)
            );
        }
    }
}

fn binary(
    name: &str,
    bits: u32,
    abstract_: impl Fn(Range, Range) -> Range,
    concrete: impl Fn(u64, u64) -> u64,
) {
    for x in samples() {
        for y in samples() {
            let (x, y) = (x.truncate(bits), y.truncate(bits));
            let result = abstract_(x, y);
            normal(result);
            for m in members(x) {
                for n in members(y) {
                    assert!(
                        result.contains(concrete(m, n)),
                        "{name} of {bits} bits: {x:?}, {y:?}: {m:#x}, {n:#x} give {:#x}, not in {result:?}",
                        concrete(m, n)
                    );
                }
            }
        }
    }
}

#[test]
fn unary_operations_cover_each_result() {
    for bits in [8, 16, 32, 64] {
        let mask = ones(bits);
        unary("not", bits, |x| x.not(bits), |x| !x & mask);
        for from in [8, 16, 32] {
            if from < bits {
                unary(
                    "sign_extend",
                    bits,
                    |x| x.sign_extend(from, bits),
                    |x| ((((x << (64 - from)) as i64) >> (64 - from)) as u64) & mask,
                );
            }
        }
        for count in [0, 1, 3, 7, bits - 1] {
            unary("shift_left", bits, |x| x.shift_left(count, bits), |x| (x << count) & mask);
            unary("shift_right", bits, |x| x.shift_right(count), |x| x >> count);
            unary(
                "shift_arithmetic",
                bits,
                |x| x.shift_arithmetic(count, bits),
                |x| ((((x << (64 - bits)) as i64) >> (64 - bits) >> count) as u64) & mask,
            );
        }
    }
    for bits in [1, 8, 16, 32, 63, 64] {
        unary("truncate", 64, |x| x.truncate(bits), |x| x & ones(bits));
    }
}

#[test]
fn binary_operations_cover_each_result() {
    binary("add", 64, Range::wrapping_add, u64::wrapping_add);
    binary("sub", 64, Range::wrapping_sub, u64::wrapping_sub);
    for bits in [8, 16, 32, 64] {
        let mask = ones(bits);
        binary("and", bits, Range::and, |x, y| x & y);
        binary("or", bits, Range::or, |x, y| x | y);
        binary("xor", bits, Range::xor, |x, y| x ^ y);
        binary("multiply", bits, |x, y| x.multiply(y, bits), |x, y| x.wrapping_mul(y) & mask);
        binary("join", bits, Range::join, |x, _| x);
        binary("join", bits, Range::join, |_, y| y);
    }
    for bits in [8, 16] {
        binary(
            "replace_low",
            64,
            |x, y| x.replace_low(y.truncate(bits), bits),
            |x, y| (x & !ones(bits)) | (y & ones(bits)),
        );
    }
}

#[test]
fn masks_keep_what_is_known() {
    let index = Range::U32.and(Range::constant(0xff));
    assert_eq!(index, Range::to(255));
    assert_eq!(Range::ANY.and(Range::constant(!15)), Range::new(0, !15, 4));
    assert_eq!(Range::new(32, 96, 5).and(Range::constant(!15)), Range::new(32, 96, 5));
    assert_eq!(Range::to(10).and(Range::constant(0xff)), Range::to(10));
    assert_eq!(Range::U32.shift_left(3, 64), Range::new(0, 0xffff_ffff << 3, 3));
    assert_eq!(Range::to(9).multiply(Range::constant(24), 64), Range::new(0, 216, 3));
}

#[test]
fn within_and_clamp_agree_with_membership() {
    for x in samples() {
        for y in samples() {
            let all = members(x).into_iter().all(|m| y.contains(m));
            assert!(!x.within(y) || all, "{x:?} {y:?}");
            if let Some(part) = x.clamp(y.low, y.high) {
                normal(part);
                for m in members(part) {
                    assert!(x.contains(m) && y.low <= m && m <= y.high);
                }
            }
            for m in members(x) {
                if y.low <= m && m <= y.high {
                    assert!(x.clamp(y.low, y.high).is_some_and(|part| part.contains(m)));
                }
            }
        }
    }
}
