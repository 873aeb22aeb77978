//! A unikernel that uses, and misuses, everything the tender offers; its first argument is the name of a case.
#![no_std]
#![no_main]

fn run() -> u8 {
    0
}
kyozon_unikernel::main!(run);
