//! What goes there and back: all ways do the same to it.

/// Integers, as in the experiment of the paper on shared memory between unikernels.
pub const NUMBERS: usize = 8192;

/// The numbers of a round.
pub fn fill(numbers: &mut [u32], round: u32) {
    (round..).zip(numbers).for_each(|(value, number)| *number = value);
}

/// What the other side does: it reads each and writes each.
pub fn raise(numbers: &mut [u32]) {
    numbers.iter_mut().for_each(|number| *number = number.wrapping_add(1));
}

/// Whether they are those of the round, raised by one.
pub fn check(numbers: &[u32], round: u32) -> bool {
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
