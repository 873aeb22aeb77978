//! The payload of a round trip. Every experiment handles it by the same instructions, as these functions are never
//! inlined.

/// Integers of a round trip, as in the experiment of the paper on shared memory between unikernels.
pub const NUMBERS: usize = 8192;

/// The integers of a round trip.
pub type Numbers = [u32; NUMBERS];

/// Writes the numbers of a round.
#[inline(never)]
pub fn fill(numbers: &mut Numbers, round: u32) {
    (round..).zip(numbers).for_each(|(value, number)| *number = value);
}

/// The other side's work: reads and writes each number.
#[inline(never)]
pub fn increment(numbers: &mut Numbers) {
    numbers.iter_mut().for_each(|number| *number = number.wrapping_add(1));
}

/// Whether these are the numbers of the round, each incremented.
#[inline(never)]
pub fn check(numbers: &Numbers, round: u32) -> bool {
    let differ = |differ, (value, number): (u32, &u32)| differ | (value.wrapping_add(1) ^ number);
    (round..).zip(numbers).fold(0, differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_found() {
        let mut numbers = [0; NUMBERS];
        fill(&mut numbers, 7);
        assert!(!check(&numbers, 7));
        increment(&mut numbers);
        assert!(check(&numbers, 7) && !check(&numbers, 8));
        numbers[NUMBERS - 1] ^= 1;
        assert!(!check(&numbers, 7));
    }
}
