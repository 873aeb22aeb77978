//! Prints a greeting, to the name in its argument if there is one.
#![no_std]
#![no_main]

use kyozon_unikernel::{arguments, main, me, peers, println};

main!(run);

fn run() -> u8 {
    match arguments::strings().next() {
        Some(name) => println!("Hello, {name}!"),
        None => println!("Hello from peer {} of {}", me(), peers()),
    }
    0
}
