//! Prints how many nanoseconds passed from the beginning of `kyozon run` to the first instruction here.
#![no_std]
#![no_main]

use kyozon_unikernel::{boot, clock, main, println};

main!(run);

fn run() -> u8 {
    match clock::first_instruction() {
        Some(first) => println!("{}", first - boot().clock_ns),
        None => return 1,
    }
    0
}
