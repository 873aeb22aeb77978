//! A network device (section 5.1), as a port: it takes frames from its guest, and gives frames to it.

use crate::ring::{Bad, Ring, Served, State, FEATURES};
use crate::Memory;
use virtio_bindings::virtio_net::{VIRTIO_NET_F_MAC, VIRTIO_NET_F_MTU};

/// Bytes before a frame in a guest's memory (section 5.1.6).
pub const HEADER: usize = 12;
/// Bytes of an Ethernet header: destination, source, type.
pub const ETHERNET: usize = 14;
/// Bytes behind the Ethernet header, at least and at most (section 5.1.4.1; what 16 bits of length can hold).
pub const MTU: std::ops::RangeInclusive<u16> = 68..=65520;

/// Number of the queue of frames for the guest.
pub const RECEIVE: usize = 0;
/// Number of the queue of frames from the guest.
pub const TRANSMIT: usize = 1;

/// A port's hardware address.
pub type Mac = [u8; 6];

/// What became of a frame for a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// It is the guest's, who wants to be woken or not.
    Taken {
        /// Whether.
        wake: bool,
    },
    /// The guest has no room.
    NoRoom,
    /// The frame is lost: the queue does not run, or what the guest has for it is too short.
    Lost {
        /// The guest wants to be woken for what it had for the frame, or the queue ended with this.
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
    /// Queues that the device has.
    pub const QUEUES: usize = 2;

    /// A port with this address, whose frames have at most `mtu` bytes behind the Ethernet header.
    pub fn new(mac: Mac, mtu: u16) -> Self {
        Self { mac, mtu: mtu.clamp(*MTU.start(), *MTU.end()) }
    }

    /// Its address.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Bytes of a frame, at most.
    pub fn most(&self) -> usize {
        ETHERNET + usize::from(self.mtu)
    }

    /// Feature bits (section 5.1.3).
    pub fn features(&self) -> u64 {
        FEATURES | 1 << VIRTIO_NET_F_MAC | 1 << VIRTIO_NET_F_MTU
    }

    /// The configuration space (section 5.1.4): address, status, pairs of queues, MTU; the middle two have no feature
    /// bit, and are 0.
    pub fn config(&self) -> Vec<u8> {
        [&self.mac[..], &[0; 4], &self.mtu.to_le_bytes()].concat()
    }

    /// Takes frames from the guest, each to `to`. One that is too short or too long to be a frame goes nowhere.
    pub fn take<M: Memory>(
        &self,
        ring: &mut Ring,
        memory: &M,
        mut to: impl FnMut(&[u8]),
    ) -> Served {
        let mut buffer = vec![0; HEADER + self.most()];
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

    /// Gives a frame to the guest.
    pub fn give<M: Memory>(&self, ring: &mut Ring, memory: &M, frame: &[u8]) -> Given {
        if !matches!(ring.state(), State::Running) || frame.len() > self.most() {
            return Given::Lost { wake: false };
        }
        let Some((head, mut chain)) = ring.next(memory) else {
            return match ring.state() {
                State::Running => Given::NoRoom,
                _ => Given::Lost { wake: true },
            };
        };
        if chain.to_read() > 0 {
            ring.fail(Bad::Kind);
            return Given::Lost { wake: true };
        }
        let bytes = HEADER + frame.len();
        if chain.to_write() < bytes as u64 {
            // The guest gets its memory back, with nothing in it.
            ring.put(memory, head, chain, 0);
            return Given::Lost { wake: ring.wants_wake(memory) };
        }
        // Without offloads all is 0, but the number of buffers, which is 1 (section 5.1.6.4.1).
        let mut header = [0; HEADER];
        header[10] = 1;
        if let Err(bad) = chain.write(memory, &header).and_then(|()| chain.write(memory, frame)) {
            ring.fail(bad);
            return Given::Lost { wake: true };
        }
        ring.put(memory, head, chain, bytes as u32);
        Given::Taken { wake: ring.wants_wake(memory) }
    }
}

#[cfg(test)]
mod tests;
