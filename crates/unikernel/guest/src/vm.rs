//! The group as the primitives of `kyozon-channel` see it: the own number, sleeping, waking, time, and the state of
//! peers.

use crate::{boot, clock, sleep};
use core::sync::atomic::{AtomicU32, Ordering};
use kyozon_abi::unikernel::*;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::park::{Life, Park, Peer, Peers};

/// This virtual machine in its group, with the peers of all commands. Its methods always concern the machine that calls
/// them. For primitives in a region, [`Mapped`](crate::region::Mapped) also knows who has lost the region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vm;

/// Checks of a lock before a machine sleeps. Two machines that wait for each other in turn should poll for longer than
/// a wake-up takes (docs/results, shm-paths): otherwise each sleep makes the other one sleep too, and both sleep in
/// every turn. The duration depends on the cost of PAUSE, which differs between processors.
const SPINS: u32 = 8000;

/// Maximum sleep, in nanoseconds, after a peer died.
const HEARTBEAT: u64 = 100_000_000;

/// A word of the tender's table of peers.
///
/// # Safety
///
/// The address lies in the table.
unsafe fn load(word: *const u32) -> u32 {
    // SAFETY: the tender writes the table by atomic stores; a load is allowed on read-only pages.
    unsafe { AtomicU32::from_ptr(word.cast_mut()) }.load(Ordering::Acquire)
}

/// A row of the tender's table of peers: the state of the last peer with this number, and its generation.
pub(crate) fn row(number: usize) -> (u32, u32) {
    if number >= MAX_PEERS {
        return (PEER_ABSENT, 0);
    }
    let row = boot().peer_table as *const RegionPeer;
    // SAFETY: the table has `MAX_PEERS` rows, and the number was checked.
    unsafe {
        let row = row.add(number);
        (load(&raw const (*row).state), load(&raw const (*row).generation))
    }
}

/// Whether a peer of the group has died, rather than exited.
fn had_deaths() -> bool {
    // SAFETY: the tender's count of deaths follows the table.
    unsafe { load((boot().peer_table as *const RegionPeer).add(MAX_PEERS).cast()) != 0 }
}

/// Whether this peer, in this generation, is gone: it never touches memory again.
pub(crate) fn gone(peer: Peer) -> bool {
    !Vm.alive(peer)
}

impl Park for Vm {
    fn me(&self) -> Peer {
        let boot = boot();
        // The tender's numbers are below `MAX_PEERS`.
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

    /// None as long as no peer has died: the tender gives every peer its token at a death, so each sleeper wakes and
    /// looks. But a dead waiter stays in the set of waiters, and if its number has a new peer, a wake-up may go there
    /// instead of to a waiter.
    fn heartbeat(&self) -> u64 {
        if had_deaths() {
            HEARTBEAT
        } else {
            u64::MAX
        }
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

// SAFETY: a peer has one thread of execution, and a boot block of its own with its number and generation. The tender
// reports a peer as gone only when it will never run it again.
unsafe impl TrustedGroup for Vm {}
