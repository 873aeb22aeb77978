//! What a primitive needs from the group in which it runs: the caller's identity, a clock, sleep, wake, and which peers
//! live.
//!
//! This crate makes no host call. A unikernel implements these traits by hypercalls and doorbells, a process by an
//! event descriptor, a group of threads by `threads` (feature `std`).

/// Maximum number of peers in a group: a set of peers is one word.
pub const MAX_PEERS: usize = 64;

/// Flag in a lock's word beside its owner: a peer died while it held the lock.
pub(crate) const POISON: u64 = 1 << 63;

/// One thread of execution of the group: a virtual machine, a process or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    number: u8,
    generation: u32,
}

impl Peer {
    /// Peer `number` in its `generation`: how many peers had the number before. `None` unless `number` is below
    /// [`MAX_PEERS`].
    pub const fn new(number: u8, generation: u32) -> Option<Self> {
        if number as usize >= MAX_PEERS {
            return None;
        }
        Some(Self { number, generation })
    }

    /// Its number, below [`MAX_PEERS`].
    pub const fn number(self) -> u8 {
        self.number
    }

    /// How many peers had the number before, modulo 2^32.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Its bit in a set of peers.
    pub const fn bit(self) -> u64 {
        1 << self.number
    }

    /// The peer as a word: never 0, with bits 39 to 63 clear.
    pub const fn word(self) -> u64 {
        (self.number as u64 + 1) << 32 | self.generation as u64
    }

    /// The inverse of [`Peer::word`]; `None` if `word` is not the word of a peer.
    pub const fn from_word(word: u64) -> Option<Self> {
        match word >> 32 {
            number @ 1..=64 => Self::new(number as u8 - 1, word as u32),
            _ => None,
        }
    }
}

/// Sleep and wake with the semantics of `std::thread::park`, and the clock of the deadlines.
pub trait Park {
    /// The calling peer.
    fn me(&self) -> Peer;

    /// Nanoseconds on a clock that the whole group shares and that never goes back.
    fn now(&self) -> u64;

    /// Sleeps until a peer calls [`Park::unpark`] for the caller, or until `deadline` on [`Park::now`]'s clock. Returns
    /// at once if a peer has called it since the last `park`. May return for no reason.
    fn park(&self, deadline: Option<u64>);

    /// Ends the present sleep, or else the next one, of peer `number`, below [`MAX_PEERS`]. The woken peer must see
    /// what the caller wrote before the call.
    fn unpark(&self, number: u8);

    /// Number of times that a primitive checks its condition before it sleeps. The checks should take about as long as
    /// a sleep and a wake-up; 0 if peers share a CPU.
    fn spins(&self) -> u32;

    /// Called between two checks.
    fn spin_hint(&self) {
        core::hint::spin_loop();
    }

    /// Maximum sleep in nanoseconds. After it a waiter checks which peers have died and whether a wake-up was lost with
    /// one of them. [`u64::MAX`] if no peer has died yet, and a death wakes every peer.
    fn heartbeat(&self) -> u64 {
        100_000_000
    }

    /// Whether the caller is unwinding. A lock that is released then becomes poisoned, like std's.
    fn panicking(&self) -> bool {
        false
    }
}

/// The state of a peer number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// No peer has had it yet.
    NotYet,
    /// The peer of this generation has it.
    Alive(u32),
    /// The last peer that had it is dead.
    Dead,
}

/// Which peers live.
pub trait Peers {
    /// The state of `number`, below [`MAX_PEERS`].
    fn life(&self, number: u8) -> Life;

    /// Whether `peer` is known to be dead. A peer whose number nobody has had is not: the group may not know it yet.
    fn dead(&self, peer: Peer) -> bool {
        match self.life(peer.number()) {
            Life::NotYet => false,
            Life::Alive(generation) => generation != peer.generation(),
            Life::Dead => true,
        }
    }

    /// Whether `peer` lives, in this generation.
    fn alive(&self, peer: Peer) -> bool {
        self.life(peer.number()) == Life::Alive(peer.generation())
    }
}

impl<G: Park + ?Sized> Park for &G {
    fn me(&self) -> Peer {
        (**self).me()
    }

    fn now(&self) -> u64 {
        (**self).now()
    }

    fn park(&self, deadline: Option<u64>) {
        (**self).park(deadline);
    }

    fn unpark(&self, number: u8) {
        (**self).unpark(number);
    }

    fn spins(&self) -> u32 {
        (**self).spins()
    }

    fn spin_hint(&self) {
        (**self).spin_hint();
    }

    fn heartbeat(&self) -> u64 {
        (**self).heartbeat()
    }

    fn panicking(&self) -> bool {
        (**self).panicking()
    }
}

impl<G: Peers + ?Sized> Peers for &G {
    fn life(&self, number: u8) -> Life {
        (**self).life(number)
    }

    fn dead(&self, peer: Peer) -> bool {
        (**self).dead(peer)
    }

    fn alive(&self, peer: Peer) -> bool {
        (**self).alive(peer)
    }
}

/// Everything that a primitive needs.
pub trait Group: Park + Peers {}

impl<G: Park + Peers + ?Sized> Group for G {}

/// Whether `deadline` has passed.
pub(crate) fn has_passed<G: Park + ?Sized>(group: &G, deadline: Option<u64>) -> bool {
    deadline.is_some_and(|deadline| group.now() >= deadline)
}

/// Sleeps until `deadline`, but not longer than a heartbeat.
pub(crate) fn sleep_until<G: Park + ?Sized>(group: &G, deadline: Option<u64>) {
    let beat = match group.heartbeat() {
        u64::MAX => None,
        beat => Some(group.now().saturating_add(beat)),
    };
    group.park(match (beat, deadline) {
        (Some(beat), Some(deadline)) => Some(beat.min(deadline)),
        (beat, deadline) => beat.or(deadline),
    });
}

/// How thoroughly a waiter checks its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Only the condition, because the next check follows soon.
    Quick,
    /// Also which peers have died: the last check before a sleep.
    Thorough,
}

/// Calls `look` [`Park::spins`] times, which is cheaper than a sleep, or until it finds something.
pub(crate) fn spin<G: Park + ?Sized, R>(
    group: &G,
    deadline: Option<u64>,
    look: &mut impl FnMut(Effort) -> Option<R>,
) -> Option<R> {
    for turn in 1..=group.spins() {
        let found = look(Effort::Quick);
        if found.is_some() {
            return found;
        }
        if turn % 64 == 1 && has_passed(group, deadline) {
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
    fn a_word_round_trips_or_is_no_peer() {
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
