//! What goes there and back: all ways do the same to it, by the same instructions, as nothing of it is compiled into its
//! callers.

/// Integers, as in the experiment of the paper on shared memory between unikernels.
pub const NUMBERS: usize = 8192;

/// All of them.
pub type Numbers = [u32; NUMBERS];

/// The numbers of a round.
#[inline(never)]
pub fn fill(numbers: &mut Numbers, round: u32) {
    (round..).zip(numbers).for_each(|(value, number)| *number = value);
}

/// What the other side does: it reads each and writes each.
#[inline(never)]
pub fn raise(numbers: &mut Numbers) {
    numbers.iter_mut().for_each(|number| *number = number.wrapping_add(1));
}

/// Whether they are those of the round, raised by one.
#[inline(never)]
pub fn check(numbers: &Numbers, round: u32) -> bool {
    let differ = |differ, (value, number): (u32, &u32)| differ | (value.wrapping_add(1) ^ number);
    (round..).zip(numbers).fold(0, differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_wrong_is_seen() {
        let mut numbers = [0; NUMBERS];
        fill(&mut numbers, 7);
        assert!(!check(&numbers, 7));
        raise(&mut numbers);
        assert!(check(&numbers, 7) && !check(&numbers, 8));
        numbers[NUMBERS - 1] ^= 1;
        assert!(!check(&numbers, 7));
    }
}
