//! The group as the primitives of `kyozon-channel` see it: the own number, sleeping, waking, time, and the state of
//! peers.

use crate::start::own_boot;
use crate::{clock, sleep};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use kyozon_abi::unikernel::*;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::park::{Life, Park, Peer, Peers};

/// This virtual machine in its group, with the peers of all commands. Its methods always concern the machine that calls
/// them. For primitives in a region, [`Mapped`](crate::region::Mapped) also knows who has lost the region. Locks that
/// own their data need a [`Member`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vm;

/// This virtual machine, as locks that own their data need it. [`with_member`] makes it.
///
/// The next owner of a lock gets the data of an owner that has ended. So a reference to the data must not live on in
/// another thread, even if the guard was leaked. It cannot, because it borrows from the `Member`, and so from a call of
/// [`with_member`] that has returned or stopped for ever. Threads in a scope of the owner end before the owner does.
///
/// ```compile_fail,E0277
/// use kyozon_channel::border::Mutex;
/// use kyozon_unikernel::{thread, vm::Vm};
/// static NUMBER: Mutex<u64> = Mutex::new(0);
/// let guard = Box::leak(Box::new(NUMBER.lock(&Vm, None).unwrap()));
/// let number: &'static mut u64 = &mut *guard;
/// thread::spawn(move || *number += 1);
/// ```
///
/// ```compile_fail,E0521
/// use kyozon_channel::border::Mutex;
/// use kyozon_unikernel::{thread, vm};
/// static NUMBER: Mutex<u64> = Mutex::new(0);
/// vm::with_member(|me| {
///     let guard = Box::leak(Box::new(NUMBER.lock(me, None).unwrap()));
///     let number = &mut **guard;
///     thread::spawn(move || *number += 1);
/// });
/// ```
///
/// A thread in a scope can have such a reference:
///
/// ```no_run
/// use kyozon_channel::border::Mutex;
/// use kyozon_unikernel::{thread, vm};
/// static NUMBER: Mutex<u64> = Mutex::new(0);
/// vm::with_member(|me| {
///     let mut guard = NUMBER.lock(me, None).unwrap();
///     let number = &mut *guard;
///     thread::scope(|scope| {
///         scope.spawn(|| *number += 1);
///     });
/// });
/// ```
#[derive(Debug)]
pub struct Member {
    /// Neither `Send` nor `Sync`: it stands for the calling machine.
    here: PhantomData<*const ()>,
}

/// Calls `work` with the calling machine as a member of its group. Costs nothing.
#[inline]
pub fn with_member<R>(work: impl FnOnce(&Member) -> R) -> R {
    work(&Member { here: PhantomData })
}

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
    let row = own_boot().peer_table as *const RegionPeer;
    // SAFETY: the table has `MAX_PEERS` rows, and the number was checked.
    unsafe {
        let row = row.add(number);
        (load(&raw const (*row).state), load(&raw const (*row).generation))
    }
}

/// Whether a peer of the group has died, rather than exited.
fn had_deaths() -> bool {
    // SAFETY: the tender's count of deaths follows the table.
    unsafe { load((own_boot().peer_table as *const RegionPeer).add(MAX_PEERS).cast()) != 0 }
}

/// Whether this peer, in this generation, is gone: it never touches memory again.
pub(crate) fn gone(peer: Peer) -> bool {
    !Vm.alive(peer)
}

impl Park for Vm {
    // Each lock and release of a lock asks.
    #[inline]
    fn me(&self) -> Peer {
        let boot = own_boot();
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

impl Park for Member {
    #[inline]
    fn me(&self) -> Peer {
        Vm.me()
    }

    fn now(&self) -> u64 {
        Vm.now()
    }

    fn park(&self, deadline: Option<u64>) {
        Vm.park(deadline);
    }

    fn unpark(&self, number: u8) {
        Vm.unpark(number);
    }

    fn spins(&self) -> u32 {
        Vm.spins()
    }

    fn heartbeat(&self) -> u64 {
        Vm.heartbeat()
    }
}

impl Peers for Member {
    fn life(&self, number: u8) -> Life {
        Vm.life(number)
    }
}

// SAFETY: a peer has one thread of execution, and a boot block of its own with its number and generation. The tender
// reports a peer as gone only when it will never run it again, and has ended the threads of its scopes before. Other
// threads cannot have what borrows from a member, as its lifetime is that of a call of `with_member`, chosen anew for
// each call. There is no other group in the same memory.
unsafe impl TrustedGroup for Member {
    fn identity(&self) -> u64 {
        1
    }
}
