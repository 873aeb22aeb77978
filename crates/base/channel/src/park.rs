//! What a primitive asks of the group it runs in: who am I, what time is it, sleep, wake, who lives.
//!
//! This crate makes no host call. A unikernel answers by hypercalls and doorbells, a process by an event descriptor, a
//! thread by [`crate::threads`] (feature `std`).

/// Most peers of a group. Who waits is one bit of a word.
pub const MAX_PEERS: usize = 64;

/// Set in a lock's word beside its owner: somebody died in it.
pub(crate) const POISON: u64 = 1 << 63;

/// One thread of execution of the group: a virtual machine, a process or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    number: u8,
    generation: u32,
}

impl Peer {
    /// Peer `number`, below [`MAX_PEERS`], in its `generation`: how many had the number before.
    pub const fn new(number: u8, generation: u32) -> Option<Self> {
        if number as usize >= MAX_PEERS {
            return None;
        }
        Some(Self { number, generation })
    }

    /// Number, below [`MAX_PEERS`].
    pub const fn number(self) -> u8 {
        self.number
    }

    /// How many had the number before, modulo 2^32.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Its bit in a word of peers.
    pub const fn bit(self) -> u64 {
        1 << self.number
    }

    /// As a word that is never 0, with bits 39 to 63 clear.
    pub const fn word(self) -> u64 {
        (self.number as u64 + 1) << 32 | self.generation as u64
    }

    /// The peer that [`Peer::word`] made `word` of; `None` where it is no such word.
    pub const fn from_word(word: u64) -> Option<Self> {
        match word >> 32 {
            number @ 1..=64 => Self::new(number as u8 - 1, word as u32),
            _ => None,
        }
    }
}

/// Sleep and wake, as `std::thread::park` has them, and the clock that says how long.
pub trait Park {
    /// Who calls.
    fn me(&self) -> Peer;

    /// Nanoseconds of a clock that all of the group share and that never goes back.
    fn now(&self) -> u64;

    /// Sleeps until somebody calls [`Park::unpark`] for this peer, or `deadline` on [`Park::now`]'s clock; returns at
    /// once where somebody did since the last call. May return for no reason.
    fn park(&self, deadline: Option<u64>);

    /// Ends the sleep of peer `number`, below [`MAX_PEERS`], or its next one. What the caller wrote before must be seen
    /// by who wakes.
    fn unpark(&self, number: u8);

    /// How often a primitive looks before it sleeps. About as long as a sleep and a wake-up take; 0 where peers share
    /// a CPU.
    fn spins(&self) -> u32;

    /// Between two looks.
    fn spin_hint(&self) {
        core::hint::spin_loop();
    }

    /// Longest sleep, in nanoseconds, after which a waiter looks who has died and whether a wake-up was lost with him.
    fn heartbeat(&self) -> u64 {
        100_000_000
    }

    /// Whether the caller unwinds. A lock that is given back then is poisoned, as std's.
    fn panicking(&self) -> bool {
        false
    }
}

/// What became of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Nobody had it yet.
    NotYet,
    /// The peer of this generation has it.
    Alive(u32),
    /// The last who had it is dead.
    Dead,
}

/// Who lives.
pub trait Peers {
    /// What became of `number`, below [`MAX_PEERS`].
    fn life(&self, number: u8) -> Life;

    /// Whether this very peer lives.
    fn alive(&self, peer: Peer) -> bool {
        self.life(peer.number()) == Life::Alive(peer.generation())
    }
}

/// All that a primitive asks.
pub trait Group: Park + Peers {}

impl<G: Park + Peers + ?Sized> Group for G {}

/// Whether `deadline` has passed.
pub(crate) fn passed<G: Park + ?Sized>(group: &G, deadline: Option<u64>) -> bool {
    deadline.is_some_and(|deadline| group.now() >= deadline)
}

/// Sleeps until `deadline`, and not longer than a heartbeat.
pub(crate) fn nap<G: Park + ?Sized>(group: &G, deadline: Option<u64>) {
    let beat = match group.heartbeat() {
        u64::MAX => None,
        beat => Some(group.now().saturating_add(beat)),
    };
    group.park(match (beat, deadline) {
        (Some(beat), Some(deadline)) => Some(beat.min(deadline)),
        (beat, deadline) => beat.or(deadline),
    });
}

/// How a waiter looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Soon again.
    Quick,
    /// Before it sleeps: also at who has died.
    Thorough,
}

/// Looks as often as the group says is cheaper than a sleep.
pub(crate) fn spin<G: Park + ?Sized, R>(
    group: &G,
    deadline: Option<u64>,
    look: &mut impl FnMut(Look) -> Option<R>,
) -> Option<R> {
    for turn in 1..=group.spins() {
        let found = look(Look::Quick);
        if found.is_some() {
            return found;
        }
        if turn % 64 == 1 && passed(group, deadline) {
            return None;
        }
        group.spin_hint();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_what_its_word_says() {
        for (number, generation) in [(0, 0), (0, u32::MAX), (63, 0), (63, 7)] {
            let peer = Peer::new(number, generation).unwrap();
            assert_eq!(Peer::from_word(peer.word()), Some(peer));
            assert_eq!(peer.word() & POISON, 0);
        }
        assert_eq!(Peer::new(64, 0), None);
        for word in [0, 1, u64::MAX, 65 << 32, 1 << 39 | 1 << 32, POISON | 1 << 32] {
            assert_eq!(Peer::from_word(word), None, "{word:#x}");
        }
    }
}
