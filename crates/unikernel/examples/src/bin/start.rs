//! Prints the nanoseconds from the start of `kyozon run` to this guest's first instruction.
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
