//! A packet from a backend to a guest's receive queue, without a copy of its frame.
//!
//! The backend writes the frame into buffers of the guest, and the header into memory of this process, where it is
//! checked before the guest gets the buffers. The guest can change the frame meanwhile, as it could change it later:
//! nothing that is checked depends on it, except the frame's length, which is the backend's.

use super::backend::{Backend, MAX_PACKET, MAX_PIECES};
use super::{Delivered, HEADER};
use crate::chain::Chain;
use crate::ring::{Ring, State};
use crate::Memory;
use std::io::Result;
use vm_memory::VolatileSlice;

/// Maximum number of the guest's buffers for a packet: the largest packet in buffers for the usual frames.
const MAX_BUFFERS: usize = 64;

/// A packet that the backend wrote.
pub struct Received {
    /// Bytes of the packet; 0 if no more will come.
    pub bytes: usize,
    /// Bytes of the frame.
    pub frame: usize,
    /// Number of the next entries whose memory was offered to the backend.
    offered: usize,
    /// Bytes of the frame in their memory; the rest is in the private memory.
    inside: usize,
}

/// Receives a packet: its header into `header`, its frame into the guest's next buffers, and the part that has no room
/// there into `rest`, which has room for the largest frame. Returns `None` if the backend or the guest's buffers do not
/// allow that. No entry is used yet.
pub fn receive<M: Memory>(
    ring: &mut Ring,
    memory: &M,
    backend: &dyn Backend,
    header: &mut [u8; HEADER],
    rest: &mut [u8],
) -> Option<Result<Received>> {
    ring.look_ahead(memory, MAX_PACKET as u64, MAX_BUFFERS);
    if ring.state() != State::Running {
        return None;
    }
    let chains = ring.look_ahead(memory, 0, 0);
    let offered = chains.len().min(MAX_BUFFERS);
    let chains = chains.iter().take(offered).map(|(_, chain)| chain);
    // The usual way reports what is wrong with an entry.
    let valid = chains.clone().all(|chain| chain.to_read() == 0)
        && chains.clone().next().is_some_and(|first| first.to_write() >= HEADER as u64);
    let mut slices = Vec::with_capacity(offered + 1);
    if !valid || !show(memory, chains, &mut slices) || slices.len() > MAX_PIECES {
        return None;
    }
    let room: usize = slices.iter().map(VolatileSlice::len).sum();
    let bytes = match backend.receive_pieces(header, &slices, rest)? {
        Ok(bytes) => bytes,
        Err(error) => return Some(Err(error)),
    };
    let frame = bytes.saturating_sub(HEADER).min(rest.len());
    Some(Ok(Received { bytes, frame, offered, inside: frame.min(room) }))
}

/// Appends the memory of a packet's buffers, behind the header, to `slices`. Returns whether it is valid.
fn show<'a, 'b, M: Memory>(
    memory: &'a M,
    chains: impl Iterator<Item = &'b Chain>,
    slices: &mut Vec<VolatileSlice<'a>>,
) -> bool {
    let mut header = HEADER;
    for chain in chains {
        let from = slices.len();
        if chain.show_writable(memory, slices).is_err() {
            return false;
        }
        while header > 0 {
            let Some(first) = slices.get_mut(from) else { return false };
            let count = header.min(first.len());
            let Ok(rest) = first.offset(count) else { return false };
            *first = rest;
            header -= count;
            if first.is_empty() {
                slices.remove(from);
            }
        }
    }
    true
}

impl Received {
    /// Gives the guest the packet. With [`Delivered::NoRoom`] its buffers have no room for the rest, and none is used.
    pub fn give<M: Memory>(
        &self,
        ring: &mut Ring,
        memory: &M,
        header: &mut [u8; HEADER],
        rest: &[u8],
    ) -> Delivered {
        let bytes = (HEADER + self.frame) as u64;
        let mut rest = &rest[..self.frame - self.inside];
        let size = ring.size();
        let chains = ring.look_ahead(memory, bytes, size);
        let (mut left, mut written) = (bytes, Vec::with_capacity(chains.len()));
        for (_, chain) in chains.iter().take_while(|(_, chain)| chain.to_read() == 0) {
            if left == 0 {
                break;
            }
            let count = chain.to_write().min(left);
            written.push(count as u32);
            left -= count;
        }
        if left > 0 {
            return Delivered::NoRoom;
        }
        header[10..].copy_from_slice(&(written.len() as u16).to_le_bytes());
        for (i, ((_, chain), bytes)) in chains.iter_mut().zip(&written).enumerate() {
            let mut now = if i == 0 { &header[..] } else { &[] };
            if i >= self.offered {
                (now, rest) = rest.split_at(*bytes as usize);
            }
            if let Err(bad) = chain.write(memory, now) {
                ring.fail(bad);
                return Delivered::Ended;
            }
        }
        ring.put_ahead(memory, &written);
        match ring.state() {
            State::Running => Delivered::Taken,
            _ => Delivered::Ended,
        }
    }

    /// Makes the frame private: `frame`, whose front has the part without room, gets all of it.
    pub fn take_back<M: Memory>(&self, ring: &mut Ring, memory: &M, frame: &mut [u8]) {
        frame.copy_within(..self.frame - self.inside, self.inside);
        let mut slices = Vec::new();
        let chains = ring.look_ahead(memory, 0, 0).iter();
        show(memory, chains.take(self.offered).map(|(_, chain)| chain), &mut slices);
        let mut to = &mut frame[..self.inside];
        for slice in slices {
            let count = slice.copy_to(to);
            to = &mut to[count..];
        }
    }
}

#[cfg(test)]
mod tests;
