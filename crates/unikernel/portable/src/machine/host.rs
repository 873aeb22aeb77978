//! A process of the host, whose threads are the host's.

mod port;

pub use kyozon_channel::threads::Member;
use kyozon_channel::threads::Threads;
pub use port::{port, Port};
use std::fmt;
use std::sync::{Arc, OnceLock};
pub use std::thread;
use std::time::Instant;

/// Checks of a lock before a thread sleeps: the same as in a virtual machine.
const SPINS: u32 = 8000;

/// Maximum threads of a group.
const MEMBERS: u8 = 64;

/// Adds the calling thread to the process's group, until the value is dropped.
///
/// # Panics
///
/// Panics if the group has 64 threads already.
pub fn member() -> Member {
    static GROUP: OnceLock<Arc<Threads>> = OnceLock::new();
    let group = GROUP.get_or_init(|| Threads::new(SPINS));
    (0..MEMBERS).find_map(|number| group.join(number)).expect("a group has at most 64 threads")
}

/// Calls `work` with the calling thread as a member of the process's group.
///
/// # Panics
///
/// Panics if the group has 64 threads already.
pub fn with_member<R>(work: impl FnOnce(&Member) -> R) -> R {
    work(&member())
}

/// The program's arguments, without network options.
pub fn arguments() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|word| port::option(word).is_none())
}

/// Two unpredictable numbers.
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
pub fn print_line(line: fmt::Arguments<'_>) {
    println!("{line}");
}
