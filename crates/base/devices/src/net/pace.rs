//! For how many packets a guest rings.
//!
//! A guest that sends many packets without a pause rings once for several of them: they are passed on together, merged
//! where that is possible. What comes back is looked for at the same time, so that nothing else has to wake up for it.
//! The device's thread looks after packets for which no ring comes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;

/// Time after which the device's thread looks whether packets wait for a ring.
pub const TICK: Duration = Duration::from_micros(100);
/// Maximum number of packets per ring.
const MAX_PACKETS: usize = 32;
/// Bytes of packets per ring: those of a packet of the largest size.
const BYTES: usize = 64 << 10;
/// Number of ticks without packets after which the guest rings for each packet again.
const QUIET: u32 = 2;

/// The state of a device's queue of packets from its guest.
#[derive(Debug, Default)]
pub struct Pace {
    /// Packets and bytes since the last pause, or since the last decision.
    packets: AtomicUsize,
    bytes: AtomicUsize,
    /// The turn of the last call of [`Pace::passed_on`].
    turn: AtomicU64,
    /// Number of packets for a ring, less one.
    held: AtomicUsize,
    /// Packets were passed on since the last tick.
    active: AtomicBool,
    /// Ticks without packets.
    quiet: AtomicU32,
}

impl Pace {
    /// Number of packets for which the guest rings, if its queue has `size` entries.
    pub fn packets(&self, size: usize) -> usize {
        (self.held.load(SeqCst) + 1).min((size / 8).max(1))
    }

    /// Whether packets may wait for a ring. The device's thread has to tick then.
    pub fn is_holding(&self) -> bool {
        self.held.load(SeqCst) > 0
    }

    /// Packets were passed on. `turn` differs from the last call's if a thread of the guest waited meanwhile. Returns
    /// whether packets may wait from now on. One thread at a time calls this.
    pub fn passed_on(&self, packets: usize, bytes: usize, turn: u64) -> bool {
        if packets == 0 {
            return false;
        }
        self.active.store(true, Release);
        if self.turn.load(Relaxed) != turn && !self.is_holding() {
            self.restart();
        }
        self.turn.store(turn, Relaxed);
        let packets = self.packets.load(Relaxed) + packets;
        let bytes = self.bytes.load(Relaxed) + bytes;
        self.packets.store(packets, Relaxed);
        self.bytes.store(bytes, Relaxed);
        if packets < MAX_PACKETS {
            return false;
        }
        self.restart();
        let held = (BYTES * packets / bytes.max(1)).clamp(1, MAX_PACKETS) - 1;
        self.held.swap(held, SeqCst) == 0 && held > 0
    }

    fn restart(&self) {
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// A thread of the guest is going to wait. Returns whether packets may wait for a ring: they must be passed on.
    pub fn pause(&self) -> bool {
        let holding = self.is_holding();
        if holding {
            self.active.store(true, Release);
        }
        holding
    }

    /// A tick. Returns whether none were passed on since the last one: then those that wait must be.
    pub fn tick(&self) -> bool {
        if self.active.swap(false, Acquire) {
            self.quiet.store(0, SeqCst);
            return false;
        }
        if self.quiet.fetch_add(1, SeqCst) + 1 >= QUIET {
            self.reset();
        }
        true
    }

    /// The guest rings for each packet.
    pub fn reset(&self) {
        self.restart();
        self.held.store(0, SeqCst);
        self.quiet.store(0, SeqCst);
    }
}

#[cfg(test)]
mod tests;
