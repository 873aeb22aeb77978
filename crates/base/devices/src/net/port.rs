//! The work of a network device: packets from a guest's queue to a backend, and from there to the guest's other queue.
//!
//! Headers are copied once on each side, and checked in the copy, which the guest cannot change. Small frames are
//! copied, too; a backend reads large ones from the guest's memory and writes them there. Nothing waits here: results
//! say what to wait for.

mod transmit;

use super::backend::{Backend, MAX_PACKET};
use super::header::{check, check_header, Offloads, OFFLOADS};
use super::pace::Pace;
use super::{deliver, direct, Delivered, Mac, Net, ETHERNET, HEADER, RECEIVE};
use crate::mmio::Link;
use crate::ring::Ring;
use crate::Memory;
use std::io::{ErrorKind, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use virtio_bindings::virtio_net::*;

/// Maximum number of packets for which the guest is woken at once.
const BATCH: usize = 64;
/// Bytes after which the guest is woken, too: what it copies should still be in the processor's cache.
const BATCH_BYTES: usize = 256 << 10;
/// Bytes of the smallest packet of which a copy costs more than a system call with several pieces.
const LARGE: usize = 2048;
/// Number of small packets in a row after which packets are small.
const SMALL: usize = 16;
/// Number of packets that came one by one after which [`Port::receive_soon`] looks for more.
const LOOK: usize = 8;
/// Bytes that a VLAN tag adds to a frame.
const VLAN: usize = 4;

/// Numbers of packets.
#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    refused: AtomicU64,
    lost_out: AtomicU64,
    lost_in: AtomicU64,
}

/// Numbers of packets since the device was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that the backend took.
    pub sent: u64,
    /// Packets that the guest took.
    pub received: u64,
    /// Packets of the guest that break a rule: too short, too long, or with a header that asks for too much.
    pub refused: u64,
    /// Packets of the guest that the backend did not take.
    pub lost_out: u64,
    /// Packets of the backend that the guest did not take.
    pub lost_in: u64,
}

/// A packet that was taken from one side and not passed to the other one yet.
struct Held {
    bytes: Vec<u8>,
    /// Bytes of the packet; 0 if there is none.
    length: usize,
    /// Bytes that the backend took.
    sent: usize,
    /// Number of the guest's packets in it.
    packets: u64,
}

impl Default for Held {
    fn default() -> Self {
        Self { bytes: vec![0; MAX_PACKET], length: 0, sent: 0, packets: 1 }
    }
}

impl Held {
    /// The packet's header and frame.
    fn parts(&mut self) -> Option<(&mut [u8; HEADER], &mut [u8])> {
        self.bytes[..self.length].split_first_chunk_mut()
    }

    fn clear(&mut self) {
        (self.length, self.sent, self.packets) = (0, 0, 1);
    }
}

/// The way to the guest.
#[derive(Default)]
struct Back {
    held: Held,
    /// Packets are large: they go to the guest's memory without a copy.
    large: bool,
    /// Number of small packets since the last large one.
    small: usize,
    /// Packets come one by one.
    single: bool,
    /// Number of packets since the last look for more than one.
    looked: usize,
}

impl Back {
    /// Learns from a packet of this size.
    fn learn(&mut self, bytes: usize) {
        if bytes >= LARGE {
            (self.large, self.small) = (true, 0);
        } else if self.large {
            self.small += 1;
            self.large = self.small < SMALL;
        }
    }
}

/// What to wait for before the next [`Port::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For nothing: there may be more packets.
    Nothing,
    /// For the backend's descriptor.
    Backend,
    /// For the guest: it has no buffers, or does not run.
    Guest,
    /// For ever: the backend's other end is gone.
    Closed,
}

/// Outcome of a packet that is not copied.
enum Direct {
    /// The guest has it, a packet of this many bytes.
    Taken(usize),
    /// It is not for the guest, or there is none this time.
    Lost,
    /// It is held: the guest has too few buffers.
    Held,
    /// Packets must be copied.
    Copy,
    /// There is none.
    Wait(Wait),
}

/// A device without its thread.
pub struct Port {
    net: Net,
    backend: Box<dyn Backend>,
    /// The features that the guest accepted.
    accepted: AtomicU64,
    out: Mutex<Held>,
    back: Mutex<Back>,
    /// The guest's queue has packets for which [`Port::transmit`] must be called again.
    blocked: AtomicBool,
    up: AtomicBool,
    pace: Pace,
    /// Changes when a thread of the guest waits.
    turn: AtomicU64,
    /// [`Port::receive_between`] found that the device's thread has to look.
    look: AtomicBool,
    counters: Counters,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|e| e.into_inner())
}

impl Port {
    /// A port with this address. Its frames have at most `mtu` bytes after the Ethernet header, unless their receiver
    /// divides them.
    pub fn new(mac: Mac, mtu: u16, backend: Box<dyn Backend>) -> Self {
        Self {
            net: Net::new(mac, mtu),
            backend,
            accepted: AtomicU64::new(0),
            out: Mutex::default(),
            back: Mutex::default(),
            blocked: AtomicBool::new(false),
            up: AtomicBool::new(true),
            pace: Pace::default(),
            turn: AtomicU64::new(0),
            look: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    /// Feature bits.
    pub fn features(&self) -> u64 {
        let own = 1 << VIRTIO_NET_F_MRG_RXBUF | 1 << VIRTIO_NET_F_STATUS;
        self.net.features() | own | self.backend.offloads() & OFFLOADS
    }

    /// The configuration space (section 5.1.4): address, status, queue pairs, MTU.
    pub fn config(&self) -> Vec<u8> {
        let mut config = self.net.config();
        config[6] = if self.is_up() { VIRTIO_NET_S_LINK_UP as u8 } else { 0 };
        config
    }

    /// Takes over the features that the guest accepted.
    ///
    /// # Errors
    /// The backend cannot provide them.
    pub fn accept(&self, features: u64) -> Result<()> {
        self.backend.accept(features)?;
        self.accepted.store(features, SeqCst);
        Ok(())
    }

    /// Forgets held packets, except one of which the backend has a part.
    pub fn reset(&self) {
        lock(&self.back).held.clear();
        self.pace.reset();
        let mut out = lock(&self.out);
        if out.sent == 0 {
            out.clear();
        }
    }

    /// The backend.
    pub fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    /// Numbers of packets.
    pub fn counts(&self) -> Counts {
        let Counters { sent, received, refused, lost_out, lost_in } = &self.counters;
        let [sent, received, refused, lost_out, lost_in] =
            [sent, received, refused, lost_out, lost_in].map(|count| count.load(Relaxed));
        Counts { sent, received, refused, lost_out, lost_in }
    }

    /// Whether the link is up. Without a link all packets are lost.
    pub fn is_up(&self) -> bool {
        self.up.load(SeqCst)
    }

    /// Sets whether the link is up. Returns whether that changed it.
    pub fn set_up(&self, up: bool) -> bool {
        self.up.swap(up, SeqCst) != up
    }

    /// Whether [`Port::transmit`] must be called again when the backend is ready.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(SeqCst)
    }

    /// Maximum bytes of a frame that its receiver does not divide.
    fn max_frame(&self) -> usize {
        self.net.max_frame() + VLAN
    }

    /// Passes packets from the backend to the guest. A packet for which the guest has no buffers is held.
    pub fn receive<M: Memory>(&self, link: &Link<M>) -> Wait {
        self.receive_up_to(link, BATCH)
    }

    /// As [`Port::receive`], for a thread that will look again before it sleeps. Packets that come one by one reach the
    /// guest without a call of the backend that finds no other one.
    pub fn receive_soon<M: Memory>(&self, link: &Link<M>) -> Wait {
        let max = {
            let mut back = lock(&self.back);
            back.looked += 1;
            let single = back.single && !back.looked.is_multiple_of(LOOK);
            if single && !self.backend.holds_packets() {
                1
            } else {
                BATCH
            }
        };
        self.receive_up_to(link, max)
    }

    /// As [`Port::receive_soon`], for a thread that has just passed on packets of the guest.
    pub fn receive_between<M: Memory>(&self, link: &Link<M>) -> Wait {
        let wait = self.receive_soon(link);
        if wait != Wait::Backend {
            self.look.store(true, SeqCst);
        }
        wait
    }

    /// Whether [`Port::receive_between`] left something to the device's thread.
    pub fn must_look(&self) -> bool {
        self.look.swap(false, SeqCst)
    }

    fn receive_up_to<M: Memory>(&self, link: &Link<M>, max: usize) -> Wait {
        let wait = link.serve(RECEIVE, |ring, memory| {
            let (wait, returned) = self.receive_some(ring, memory, max);
            (wait, returned && ring.wants_wake(memory))
        });
        wait.unwrap_or(Wait::Guest)
    }

    fn receive_some<M: Memory>(&self, ring: &mut Ring, memory: &M, max: usize) -> (Wait, bool) {
        let features = self.accepted.load(SeqCst);
        let mergeable = features >> VIRTIO_NET_F_MRG_RXBUF & 1 != 0;
        let mut back = lock(&self.back);
        let (mut returned, mut count, mut bytes) = (false, 0, 0);
        let wait = loop {
            if count == max || bytes >= BATCH_BYTES {
                break Wait::Nothing;
            }
            count += 1;
            if back.held.length == 0 && mergeable && back.large {
                match self.receive_directly(ring, memory, &mut back, features) {
                    Direct::Taken(length) => {
                        returned = true;
                        bytes += length;
                        continue;
                    }
                    Direct::Lost => continue,
                    Direct::Wait(wait) => break wait,
                    Direct::Held | Direct::Copy => {}
                }
            }
            if back.held.length == 0 {
                if let Some(wait) = self.fetch(&mut back.held, features) {
                    break wait;
                }
            }
            let length = back.held.length;
            let Some((header, frame)) = back.held.parts() else { continue };
            let counter = match deliver(ring, memory, header, frame, mergeable) {
                Delivered::Taken => &self.counters.received,
                Delivered::Short => &self.counters.lost_in,
                Delivered::NoRoom if ring.listen(memory) => continue,
                Delivered::NoRoom | Delivered::Ended => break Wait::Guest,
            };
            returned = true;
            counter.fetch_add(1, Relaxed);
            back.learn(length);
            back.held.clear();
        };
        if max > 1 {
            // The last call of the backend found none.
            back.single = wait == Wait::Backend && count <= 2;
        }
        (wait, returned)
    }

    /// Passes a packet from the backend to the guest without a copy, or holds it.
    fn receive_directly<M: Memory>(
        &self,
        ring: &mut Ring,
        memory: &M,
        back: &mut Back,
        features: u64,
    ) -> Direct {
        let (offloads, max) = (Offloads::to_guest(features), self.max_frame());
        let Some((header, rest)) = back.held.bytes.split_first_chunk_mut() else {
            return Direct::Copy;
        };
        // A guest that checks checksums gets a complete one, for which the frame must be private.
        if !offloads.checksum {
            return Direct::Copy;
        }
        let got = match direct::receive(ring, memory, self.backend(), header, rest) {
            None => return Direct::Copy,
            Some(Err(error)) if error.kind() == ErrorKind::Interrupted => return Direct::Lost,
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => {
                return Direct::Wait(Wait::Backend);
            }
            Some(Err(_)) => return Direct::Wait(Wait::Closed),
            Some(Ok(got)) if got.bytes == 0 => return Direct::Wait(Wait::Closed),
            Some(Ok(got)) => got,
        };
        let checked = check_header(header, got.frame, offloads, max, false);
        if !self.is_up() || got.frame < ETHERNET || checked != Ok(None) {
            self.counters.lost_in.fetch_add(1, Relaxed);
            return Direct::Lost;
        }
        match got.give(ring, memory, header, rest) {
            Delivered::Taken => {
                self.counters.received.fetch_add(1, Relaxed);
                back.learn(HEADER + got.frame);
                Direct::Taken(HEADER + got.frame)
            }
            Delivered::Ended => Direct::Wait(Wait::Guest),
            Delivered::NoRoom | Delivered::Short => {
                got.take_back(ring, memory, rest);
                back.held.length = HEADER + got.frame;
                Direct::Held
            }
        }
    }

    /// Fetches and checks the backend's next packet. Drops one that is not for the guest.
    fn fetch(&self, back: &mut Held, features: u64) -> Option<Wait> {
        match self.backend.receive(&mut back.bytes) {
            Ok(0) => return Some(Wait::Closed),
            Ok(bytes) => back.length = bytes.min(back.bytes.len()),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Some(Wait::Backend),
                ErrorKind::Interrupted => return None,
                _ => return Some(Wait::Closed),
            },
        }
        let (offloads, max, up) = (Offloads::to_guest(features), self.max_frame(), self.is_up());
        let checked = back.parts().map(|(header, frame)| {
            up && frame.len() >= ETHERNET && check(header, frame, offloads, max, false).is_ok()
        });
        if checked != Some(true) {
            back.clear();
            self.counters.lost_in.fetch_add(1, Relaxed);
        }
        None
    }
}

#[cfg(test)]
mod tests;
