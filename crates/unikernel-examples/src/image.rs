//! A machine of virtual machines.

use alloc::string::{String, ToString};
use core::fmt;
pub use kyozon_unikernel::clock::now;
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
