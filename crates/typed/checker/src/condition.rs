//! What a condition says about the operands that were compared.

use crate::insn::Condition;
use crate::range::ones;

/// Two intervals, of the left and the right operand of a comparison.
pub(crate) type Sides = ((u64, u64), (u64, u64));

/// Which numbers of `bits` bits from two intervals fulfil a condition after `cmp a, b`: a smaller pair of intervals,
/// or none if no two numbers do.
pub(crate) fn refine(
    condition: Condition,
    a: (u64, u64),
    b: (u64, u64),
    bits: u32,
) -> Option<Sides> {
    use Condition::*;
    match condition {
        Below => less(a, b, 1),
        BelowEqual => less(a, b, 0),
        Above => less(b, a, 1).map(swap),
        AboveEqual => less(b, a, 0).map(swap),
        Less => signed(a, b, bits, |a, b| less(a, b, 1)),
        LessEqual => signed(a, b, bits, |a, b| less(a, b, 0)),
        Greater => signed(a, b, bits, |a, b| less(b, a, 1).map(swap)),
        GreaterEqual => signed(a, b, bits, |a, b| less(b, a, 0).map(swap)),
        Equal => {
            let both = meet(a, b)?;
            Some((both, both))
        }
        NotEqual => Some((without(a, b)?, without(b, a)?)),
        Overflow | NotOverflow | Sign | NotSign | Parity | NotParity => Some((a, b)),
    }
}

/// The same for the sign of a number, which was compared with 0 or is the result of an operation.
pub(crate) fn refine_sign(negative: bool, a: (u64, u64), bits: u32) -> Option<(u64, u64)> {
    let sign = 1 << (bits - 1);
    meet(a, if negative { (sign, ones(bits)) } else { (0, sign - 1) })
}

fn swap((a, b): Sides) -> Sides {
    (b, a)
}

fn meet(a: (u64, u64), b: (u64, u64)) -> Option<(u64, u64)> {
    let both = (a.0.max(b.0), a.1.min(b.1));
    (both.0 <= both.1).then_some(both)
}

/// a + gap <= b, gap 0 or 1
fn less(a: (u64, u64), b: (u64, u64), gap: u64) -> Option<Sides> {
    let most = b.1.checked_sub(gap)?;
    let least = a.0.checked_add(gap)?;
    Some((meet(a, (0, most))?, meet(b, (least, u64::MAX))?))
}

/// An interval without the other side's only number, if that is at one of its ends.
fn without(a: (u64, u64), other: (u64, u64)) -> Option<(u64, u64)> {
    if other.0 != other.1 {
        return Some(a);
    }
    match (a.0 == other.0, a.1 == other.0) {
        (true, true) => None,
        (true, false) => Some((a.0 + 1, a.1)),
        (false, true) => Some((a.0, a.1 - 1)),
        (false, false) => Some(a),
    }
}

/// Signed order is unsigned order of numbers whose sign bit is inverted.
fn signed(
    a: (u64, u64),
    b: (u64, u64),
    bits: u32,
    order: impl Fn((u64, u64), (u64, u64)) -> Option<Sides>,
) -> Option<Sides> {
    let sign = 1u64 << (bits - 1);
    let bias = |x: (u64, u64)| {
        if x.0 < sign && x.1 >= sign {
            (0, ones(bits))
        } else {
            (x.0 ^ sign, x.1 ^ sign)
        }
    };
    let back = |biased: (u64, u64), was: (u64, u64)| {
        if biased.0 < sign && biased.1 >= sign {
            return Some(was);
        }
        meet((biased.0 ^ sign, biased.1 ^ sign), was)
    };
    let (x, y) = order(bias(a), bias(b))?;
    Some((back(x, a)?, back(y, b)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Condition::*;

    /// Every pair of intervals of 4-bit numbers, every condition: no pair of numbers that fulfils it is lost.
    #[test]
    fn no_pair_is_lost() {
        let signed = |x: u64| ((x << 60) as i64) >> 60;
        let holds = |condition, a: u64, b: u64| match condition {
            Below => a < b,
            BelowEqual => a <= b,
            Above => a > b,
            AboveEqual => a >= b,
            Equal => a == b,
            NotEqual => a != b,
            Less => signed(a) < signed(b),
            LessEqual => signed(a) <= signed(b),
            Greater => signed(a) > signed(b),
            GreaterEqual => signed(a) >= signed(b),
            _ => true,
        };
        let all = [
            Below,
            BelowEqual,
            Above,
            AboveEqual,
            Equal,
            NotEqual,
            Less,
            LessEqual,
            Greater,
            GreaterEqual,
            Sign,
            Parity,
        ];
        let inside = |x: u64, range: (u64, u64)| range.0 <= x && x <= range.1;
        let intervals = || (0..16u64).flat_map(|low| (low..16).map(move |high| (low, high)));
        for condition in all {
            for a in intervals() {
                for b in intervals() {
                    let result = refine(condition, a, b, 4);
                    for x in a.0..=a.1 {
                        for y in b.0..=b.1 {
                            if holds(condition, x, y) {
                                let (left, right) = result.expect("a pair fulfils it");
                                assert!(
                                    inside(x, left) && inside(y, right),
                                    "{condition:?} {a:?} {b:?}"
                                );
                            }
                        }
                    }
                    if let Some((left, right)) = result {
                        assert!(a.0 <= left.0 && left.1 <= a.1 && b.0 <= right.0 && right.1 <= b.1);
                    }
                }
            }
        }
        for a in intervals() {
            for x in a.0..=a.1 {
                assert!(refine_sign(signed(x) < 0, a, 4).is_some_and(|range| inside(x, range)));
            }
        }
    }

    #[test]
    fn comparisons_with_constants_are_exact() {
        let any = (0, u64::MAX);
        assert_eq!(refine(Above, any, (100, 100), 64), Some(((101, u64::MAX), (100, 100))));
        assert_eq!(refine(BelowEqual, any, (100, 100), 64), Some(((0, 100), (100, 100))));
        assert_eq!(refine(Below, any, (0, 0), 64), None);
        assert_eq!(refine(GreaterEqual, any, (0, 0), 64), Some(((0, i64::MAX as u64), (0, 0))));
        assert_eq!(refine(Less, (0, 99), (10, 10), 64), Some(((0, 9), (10, 10))));
        assert_eq!(refine(NotEqual, (0, 9), (0, 0), 32), Some(((1, 9), (0, 0))));
        assert_eq!(refine(Equal, (0, 9), (10, 20), 32), None);
    }
}
