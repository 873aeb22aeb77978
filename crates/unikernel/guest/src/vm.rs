//! The group as the primitives of `kyozon-channel` see it: who am I, sleep, wake, time, who lives.

use crate::{boot, clock, sleep};
use core::sync::atomic::{AtomicU32, Ordering};
use kyozon_abi::unikernel::*;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::park::{Life, Park, Peer, Peers};

/// This virtual machine, among those of its group. What is asked of it is always about whoever asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vm;

/// How often a lock looks before it sleeps. Two that wait for each other in turn should look for longer than a wake-up
/// takes (docs/results, shm-paths): else each sleep makes the other one sleep, too, and both sleep in every turn. How
/// long it is depends on what PAUSE takes, which differs between processors.
const SPINS: u32 = 8000;

/// A row of the tender's table of peers: what became of a number, and the generation of the last that had it.
pub(crate) fn row(number: usize) -> (u32, u32) {
    if number >= MAX_PEERS {
        return (PEER_ABSENT, 0);
    }
    let row = boot().peer_table as *const RegionPeer;
    // SAFETY: a table of so many rows in a page of the tender's, whose words are written by atomic stores; a load is
    // allowed on pages that cannot be written.
    let load =
        |word: *const u32| unsafe { AtomicU32::from_ptr(word.cast_mut()) }.load(Ordering::Acquire);
    // SAFETY: inside the table, as was checked.
    unsafe {
        let row = row.add(number);
        (load(&raw const (*row).state), load(&raw const (*row).generation))
    }
}

/// Whether this very peer is gone: it never touches memory again.
pub(crate) fn gone(peer: Peer) -> bool {
    !Vm.alive(peer)
}

impl Park for Vm {
    fn me(&self) -> Peer {
        let boot = boot();
        // The tender's numbers are below this.
        Peer::new((boot.peer % MAX_PEERS as u32) as u8, boot.generation)
            .unwrap_or_else(|| unreachable!())
    }

    fn now(&self) -> u64 {
        clock::now()
    }

    fn park(&self, deadline: Option<u64>) {
        sleep::park(deadline);
    }

    fn unpark(&self, number: u8) {
        sleep::unpark(number.into());
    }

    fn spins(&self) -> u32 {
        SPINS
    }
}

impl Peers for Vm {
    fn life(&self, number: u8) -> Life {
        match row(number.into()) {
            (PEER_PRESENT, generation) => Life::Alive(generation),
            (PEER_ABSENT, _) => Life::NotYet,
            _ => Life::Dead,
        }
    }
}

// SAFETY: a peer has one thread of execution, and its boot block, with its number and generation, is its own. The
// tender says that a peer is gone when it will not run it any more.
unsafe impl TrustedGroup for Vm {}
