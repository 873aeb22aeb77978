//! A machine of the host's threads.

#[path = "host_port.rs"]
mod port;

pub use kyozon_channel::threads::Member;
use kyozon_channel::threads::Threads;
pub use port::{port, Port};
use std::fmt;
use std::sync::{Arc, OnceLock};
pub use std::thread;
use std::time::Instant;

/// As in a virtual machine.
const SPINS: u32 = 8000;

/// The calling thread as one of a group, as long as it keeps this.
///
/// # Panics
///
/// Where 64 threads are there already.
pub fn member() -> Member {
    static ALL: OnceLock<Arc<Threads>> = OnceLock::new();
    let all = ALL.get_or_init(|| Threads::new(SPINS));
    (0..64).find_map(|number| all.join(number)).expect("a group has at most 64 threads")
}

/// The program's arguments, without that of its network.
pub fn arguments() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|word| port::option(word).is_none())
}

/// Numbers that nobody can guess.
pub fn random() -> [u64; 2] {
    use std::hash::{BuildHasher, RandomState};
    [(); 2].map(|()| RandomState::new().hash_one(0))
}

/// Nanoseconds since the first call.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Prints a line.
pub fn say(line: fmt::Arguments<'_>) {
    println!("{line}");
}
