//! A group whose peers poll only briefly before they sleep.
//!
//! Front and workers share the CPUs with each other, with their network's threads and often with the clients: long
//! polling would keep the awaited thread from running. A batch in progress is done in a few microseconds.

use kyozon_channel::border::TrustedGroup;
use kyozon_channel::park::{Life, Park, Peer, Peers};

/// Checks before a sleep: some microseconds.
const SPINS: u32 = 200;

/// One peer's view of the group, with a lower limit of checks.
#[derive(Debug)]
pub struct Brief<G>(pub G);

impl<G: Park> Park for Brief<G> {
    fn me(&self) -> Peer {
        self.0.me()
    }

    fn now(&self) -> u64 {
        self.0.now()
    }

    fn park(&self, deadline: Option<u64>) {
        self.0.park(deadline);
    }

    fn unpark(&self, number: u8) {
        self.0.unpark(number);
    }

    fn spins(&self) -> u32 {
        self.0.spins().min(SPINS)
    }

    fn heartbeat(&self) -> u64 {
        self.0.heartbeat()
    }

    fn panicking(&self) -> bool {
        self.0.panicking()
    }
}

impl<G: Peers> Peers for Brief<G> {
    fn life(&self, number: u8) -> Life {
        self.0.life(number)
    }
}

// SAFETY: numbers and deaths are those of the group itself.
unsafe impl<G: TrustedGroup> TrustedGroup for Brief<G> {
    fn identity(&self) -> u64 {
        self.0.identity()
    }
}
