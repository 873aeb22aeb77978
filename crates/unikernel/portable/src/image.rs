//! A machine of virtual machines.

use alloc::string::{String, ToString};
use core::fmt;
pub use kyozon_unikernel::clock::now;
pub use kyozon_unikernel::net::Port;
pub use kyozon_unikernel::thread;
pub use kyozon_unikernel::vm::Vm as Member;

/// The calling thread as one of a group.
pub fn member() -> Member {
    Member
}

/// The program's arguments.
pub fn arguments() -> impl Iterator<Item = String> {
    kyozon_unikernel::arguments::strings().map(|word| word.to_string())
}

/// Prints a line.
pub fn say(line: fmt::Arguments<'_>) {
    kyozon_unikernel::println!("{line}");
}

/// The port on the first network.
///
/// # Errors
///
/// What is missing.
pub fn port() -> Result<Port, String> {
    Port::open("").map_err(|_| "kyozon run --net name=lan,...".to_string())
}

/// Numbers that nobody can guess.
///
/// # Panics
///
/// Where the tender has none.
pub fn random() -> [u64; 2] {
    let mut bytes = [0; 16];
    kyozon_unikernel::system::random(&mut bytes).expect("the tender has random numbers");
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}
