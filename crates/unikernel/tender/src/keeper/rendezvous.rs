//! Rendezvous: peers that wait until others have mapped a region.

use super::state::{Id, Rendezvous, State};

impl State {
    /// Adds a peer that waits until `count` peers have mapped a region.
    pub fn add_rendezvous(
        &mut self,
        requester: Id,
        id: u64,
        peer: usize,
        number: usize,
        count: u64,
    ) {
        // A new request of a peer replaces its former one.
        self.rendezvous.retain(|waiter| waiter.peer != peer);
        self.rendezvous.push(Rendezvous { requester, id, peer, number, count });
        self.answer_rendezvous();
    }

    /// Answers the rendezvous that are complete.
    pub fn answer_rendezvous(&mut self) {
        let (done, left) = std::mem::take(&mut self.rendezvous)
            .into_iter()
            .partition(|waiter| self.regions.arrived(waiter.number) >= waiter.count);
        self.rendezvous = left;
        let done: Vec<Rendezvous> = done;
        for waiter in done {
            self.answer(waiter.requester, waiter.id, Ok(self.regions.arrived(waiter.number)), None);
        }
    }
}
