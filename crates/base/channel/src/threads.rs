//! A group of threads in one process: for tests, and as the baseline for measurements of virtual machines.

use crate::border::TrustedGroup;
use crate::park::{Life, Park, Peer, Peers, MAX_PEERS};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The threads of a group.
#[derive(Debug)]
pub struct Threads {
    start: Instant,
    spins: u32,
    identity: u64,
    seats: [Seat; MAX_PEERS],
}

/// In [`Seat::peer`]: the peer is dead. It is not the word of any peer.
const DEAD: u64 = u64::MAX;

/// A peer number and the thread that has it.
#[derive(Debug, Default)]
struct Seat {
    /// [`Peer::word`]; 0 if no thread has had this number yet, [`DEAD`] if its last thread is gone.
    peer: AtomicU64,
    /// The thread, and how many threads had the number before.
    thread: Mutex<(Option<Thread>, u32)>,
}

/// One thread of a group. Dropping it makes the peer dead for the others.
#[derive(Debug)]
pub struct Member {
    group: Arc<Threads>,
    peer: Peer,
    /// Not `Send`: this very thread sleeps and is woken.
    not_send: PhantomData<*const ()>,
}

impl Threads {
    /// An empty group, whose threads check a condition `spins` times before they sleep.
    pub fn new(spins: u32) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let seats = std::array::from_fn(|_| Seat::default());
        let identity = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { start: Instant::now(), spins, identity, seats })
    }

    /// The calling thread becomes peer `number`; `None` if another thread has this number, or if it is not below
    /// [`MAX_PEERS`].
    pub fn join(self: &Arc<Self>, number: u8) -> Option<Member> {
        let seat = self.seats.get(usize::from(number))?;
        let mut thread = seat.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.0.is_some() {
            return None;
        }
        let peer = Peer::new(number, thread.1)?;
        thread.0 = Some(thread::current());
        seat.peer.store(peer.word(), Ordering::Release);
        Some(Member { group: self.clone(), peer, not_send: PhantomData })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let seat = &self.group.seats[usize::from(self.peer.number())];
        let mut thread = seat.thread.lock().unwrap_or_else(PoisonError::into_inner);
        seat.peer.store(DEAD, Ordering::Release);
        *thread = (None, thread.1.wrapping_add(1));
    }
}

impl Park for Member {
    fn me(&self) -> Peer {
        self.peer
    }

    fn now(&self) -> u64 {
        self.group.start.elapsed().as_nanos() as u64
    }

    fn park(&self, deadline: Option<u64>) {
        match deadline.map(|deadline| deadline.saturating_sub(self.now())) {
            None => thread::park(),
            Some(0) => {}
            Some(nanoseconds) => thread::park_timeout(Duration::from_nanos(nanoseconds)),
        }
    }

    fn unpark(&self, number: u8) {
        let Some(seat) = self.group.seats.get(usize::from(number)) else { return };
        let thread = seat.thread.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    fn spins(&self) -> u32 {
        self.group.spins
    }

    fn panicking(&self) -> bool {
        thread::panicking()
    }
}

impl Peers for Member {
    fn life(&self, number: u8) -> Life {
        let seat = self.group.seats.get(usize::from(number));
        match seat.map(|seat| seat.peer.load(Ordering::Acquire)) {
            None | Some(0) => Life::NotYet,
            Some(word) => {
                Peer::from_word(word).map_or(Life::Dead, |peer| Life::Alive(peer.generation()))
            }
        }
    }
}

// SAFETY: a seat has one thread at a time, and a member cannot leave its thread. A member that is dead for the others
// was dropped, so nothing borrows from it any more: no guard, nor a reference that a guard gave out, even if the guard
// was leaked. A member that was leaked never dies. Groups are numbered as they are made.
#[allow(unsafe_code)]
unsafe impl TrustedGroup for Member {
    fn identity(&self) -> u64 {
        self.group.identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_thread_and_a_new_generation_each() {
        let group = Threads::new(0);
        let first = group.join(3).unwrap();
        assert!(group.join(3).is_none() && group.join(64).is_none());
        assert_eq!((first.life(3), first.life(4)), (Life::Alive(0), Life::NotYet));
        let observer = group.join(0).unwrap();
        let peer = first.me();
        assert!(observer.alive(peer));
        drop(first);
        assert!(!observer.alive(peer) && observer.life(3) == Life::Dead);
        let second = group.join(3).unwrap();
        assert_eq!(second.me().generation(), 1);
        assert!(!observer.alive(peer) && observer.alive(second.me()));
    }

    #[test]
    fn an_early_wake_up_is_not_lost() {
        let group = Threads::new(0);
        let me = group.join(0).unwrap();
        me.unpark(0);
        me.park(None);
        let at = me.now() + 1_000_000;
        while me.now() < at {
            me.park(Some(at));
        }
    }
}
