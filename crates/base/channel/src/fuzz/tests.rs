//! The fuzz targets on generated inputs: `KYOZON_FUZZ_ROUNDS` of them, 3000 by default.

use super::*;
use core::ops::Range;
use std::vec::Vec;

/// Minimum number of records that arrive if the inputs are useful.
const ENOUGH: u64 = if cfg!(miri) { 0 } else { 100 };

/// xorshift64*: the same inputs from the same seed.
fn inputs(seed: u64, breaking: Range<u8>) -> impl Iterator<Item = Vec<u8>> {
    let mut state = seed;
    let mut next = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let rounds = std::env::var("KYOZON_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if cfg!(miri) { 4 } else { 3000 });
    println!("seed {seed:#x}, {rounds} inputs");
    (0..rounds).map(move |_| {
        let len = next() % 600;
        // Half of the inputs keep the rules: they contain no operation that breaks one.
        let breaking = breaking.clone();
        let honest = next() % 2 == 0;
        let broken = move |byte: u8| honest && breaking.contains(&(byte % 16));
        (0..len)
            .map(|_| (next() >> 56) as u8)
            .map(|byte| byte - 4 * u8::from(broken(byte)))
            .collect()
    })
}

#[test]
fn no_input_breaks_a_ring_between_two() {
    assert!(inputs(0x5eed_0001, 11..13).map(|input| spsc(&input)).sum::<u64>() > ENOUGH);
}

#[test]
fn no_input_breaks_a_ring_between_many() {
    assert!(inputs(0x5eed_0002, 9..11).map(|input| mpmc(&input)).sum::<u64>() > ENOUGH);
}

#[test]
fn a_script_ends_in_zeros() {
    let mut script = Script(&[7, 9, 8]);
    assert_eq!((script.byte(), script.byte(), script.byte(), script.byte()), (7, 9, 8, 0));
    assert_eq!(Script(&[1, 2]).number(), 16);
    assert_eq!(Script(&[3, 2]).number(), u64::MAX - 2);
}
