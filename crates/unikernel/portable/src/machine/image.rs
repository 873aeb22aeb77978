//! A family of virtual machines, which are the program's threads.

use super::PortError;
use alloc::string::{String, ToString};
use core::fmt;
pub use kyozon_unikernel::clock::now;
pub use kyozon_unikernel::net::Port;
pub use kyozon_unikernel::thread;
pub use kyozon_unikernel::vm::{with_member, Vm as Member};
use kyozon_unikernel::Error;

/// The calling thread, as a member of its group.
pub fn member() -> Member {
    Member
}

/// The program's arguments.
pub fn arguments() -> impl Iterator<Item = String> {
    kyozon_unikernel::arguments::strings().map(|word| word.to_string())
}

/// Prints a line.
pub fn print_line(line: fmt::Arguments<'_>) {
    kyozon_unikernel::println!("{line}");
}

/// Opens the port on the first network.
///
/// # Errors
///
/// [`PortError::Missing`]: the guest has no network. [`PortError::Failed`]: its device cannot be started.
pub fn port() -> Result<Port, PortError> {
    Port::open("").map_err(|error| match error {
        Error::Name => PortError::Missing("kyozon run --net name=lan,..."),
        error => PortError::Failed(error.to_string()),
    })
}

/// Two unpredictable numbers.
///
/// # Panics
///
/// Panics if the tender has no random numbers.
pub fn random() -> [u64; 2] {
    let mut bytes = [0; 16];
    kyozon_unikernel::system::random(&mut bytes).expect("the tender has random numbers");
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}
