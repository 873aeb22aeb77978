//! A network device (section 5.1).
//!
//! | item | contents |
//! |---|---|
//! | [`Net`] | a port of a network: it takes frames from its guest and gives frames to it; no offloads |
//! | [`NetDevice`], [`port`] | a device behind a transport, with a backend and offloads |
//! | [`backend`] | TAP device, socket of packets, stream, recorder |
//! | [`header`] | the header before a frame, and what it may ask for |
//! | `delivery` | a packet into the buffers of a guest |
//! | `direct` | the same without a copy |
//! | `merge` | several packets of a guest as one |
//! | `pace` | for how many packets a guest rings |

pub mod backend;
mod delivery;
mod device;
mod direct;
pub mod header;
mod merge;
mod pace;
pub mod port;

pub use delivery::{deliver, Delivered};
pub use device::{NetDevice, NetHandle};
pub use header::Offloads;

use crate::ring::{Bad, Ring, Served, State, FEATURES};
use crate::Memory;
use virtio_bindings::virtio_net::{VIRTIO_NET_F_MAC, VIRTIO_NET_F_MTU};

/// Bytes before a frame in a guest's memory (section 5.1.6).
pub const HEADER: usize = 12;
/// Bytes of an Ethernet header: destination, source, type.
pub const ETHERNET: usize = 14;
/// Range of the bytes after the Ethernet header (section 5.1.4.1; 16 bits of length limit them).
pub const MTU: std::ops::RangeInclusive<u16> = 68..=65520;

/// Number of the queue with frames for the guest.
pub const RECEIVE: usize = 0;
/// Number of the queue with frames from the guest.
pub const TRANSMIT: usize = 1;

/// A port's hardware address.
pub type Mac = [u8; 6];

/// Outcome of giving a frame to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The guest has the frame.
    Taken {
        /// Whether the guest wants to be woken.
        wake: bool,
    },
    /// The guest has no room.
    NoRoom,
    /// The frame is lost: the queue does not run, or the guest's memory for it is too short.
    Lost {
        /// Whether the guest wants to be woken: for the returned memory, or because the queue ended.
        wake: bool,
    },
}

/// A port.
#[derive(Clone, Debug)]
pub struct Net {
    mac: Mac,
    mtu: u16,
}

impl Net {
    /// Number of queues of the device.
    pub const QUEUES: usize = 2;

    /// A port with this address. Its frames have at most `mtu` bytes after the Ethernet header; [`MTU`] limits `mtu`.
    pub fn new(mac: Mac, mtu: u16) -> Self {
        Self { mac, mtu: mtu.clamp(*MTU.start(), *MTU.end()) }
    }

    /// The port's address.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Maximum bytes of a frame.
    pub fn max_frame(&self) -> usize {
        ETHERNET + usize::from(self.mtu)
    }

    /// Feature bits (section 5.1.3).
    pub fn features(&self) -> u64 {
        FEATURES | 1 << VIRTIO_NET_F_MAC | 1 << VIRTIO_NET_F_MTU
    }

    /// The configuration space (section 5.1.4): address, status, queue pairs, MTU. The middle two have no feature
    /// bit and are 0.
    pub fn config(&self) -> Vec<u8> {
        [&self.mac[..], &[0; 4], &self.mtu.to_le_bytes()].concat()
    }

    /// Takes frames from the guest, by its transmit queue, and passes each to `to`. Drops those that are too short or
    /// too long.
    pub fn take<M: Memory>(
        &self,
        ring: &mut Ring,
        memory: &M,
        mut to: impl FnMut(&[u8]),
    ) -> Served {
        let mut buffer = vec![0; HEADER + self.max_frame()];
        ring.serve(memory, |memory, chain| {
            if chain.to_write() > 0 {
                return Err(Bad::Kind);
            }
            let bytes = chain.to_read();
            if bytes < HEADER as u64 {
                return Err(Bad::Short);
            }
            if (HEADER + ETHERNET) as u64 <= bytes && bytes <= buffer.len() as u64 {
                let frame = &mut buffer[..bytes as usize];
                chain.read(memory, frame)?;
                to(&frame[HEADER..]);
            }
            Ok(0)
        })
    }

    /// Gives a frame to the guest, by its receive queue.
    pub fn give<M: Memory>(&self, ring: &mut Ring, memory: &M, frame: &[u8]) -> Given {
        if !matches!(ring.state(), State::Running) || frame.len() > self.max_frame() {
            return Given::Lost { wake: false };
        }
        // Without offloads every field is 0, except the number of buffers.
        match deliver(ring, memory, &mut [0; HEADER], frame, false) {
            Delivered::Taken => Given::Taken { wake: ring.wants_wake(memory) },
            Delivered::NoRoom => Given::NoRoom,
            Delivered::Short => Given::Lost { wake: ring.wants_wake(memory) },
            Delivered::Ended => Given::Lost { wake: true },
        }
    }
}

#[cfg(test)]
mod tests;
