//! A packet into the buffers of a guest's receive queue (section 5.1.6.3).

use super::HEADER;
use crate::chain::Chain;
use crate::ring::{Bad, Ring, State};
use crate::Memory;

/// Outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The guest has the packet.
    Taken,
    /// The guest has too few buffers at the moment; none is used.
    NoRoom,
    /// The packet is lost: the guest's buffer is too short and was returned, or all buffers of the queue are too short.
    Short,
    /// The packet is lost: the queue does not run.
    Ended,
}

/// Writes `header` and `frame` to the guest's next buffer, or with `mergeable` to several of them. Sets the header's
/// number of buffers.
pub fn deliver<M: Memory>(
    ring: &mut Ring,
    memory: &M,
    header: &mut [u8; HEADER],
    frame: &[u8],
    mergeable: bool,
) -> Delivered {
    let bytes = (HEADER + frame.len()) as u64;
    let mut chains: Vec<(u16, Chain)> = Vec::new();
    let mut room = 0;
    while room < bytes && (mergeable || chains.is_empty()) {
        let Some((head, chain)) = ring.next(memory) else {
            if ring.state() != State::Running {
                return Delivered::Ended;
            }
            let all = chains.len() == ring.size();
            ring.undo(chains.len());
            return if all { Delivered::Short } else { Delivered::NoRoom };
        };
        if chain.to_read() > 0 {
            return end(ring, Bad::Kind);
        }
        room += chain.to_write();
        chains.push((head, chain));
    }
    if room < bytes {
        // The guest gets its memory back, with 0 bytes written.
        let entries: Vec<_> = chains.iter().map(|(head, _)| (*head, 0)).collect();
        ring.put_all(memory, &entries);
        return Delivered::Short;
    }
    header[10..].copy_from_slice(&(chains.len() as u16).to_le_bytes());
    match write(memory, &mut chains, header, frame) {
        Ok(entries) => {
            ring.put_all(memory, &entries);
            match ring.state() {
                State::Running => Delivered::Taken,
                _ => Delivered::Ended,
            }
        }
        Err(bad) => end(ring, bad),
    }
}

fn end(ring: &mut Ring, bad: Bad) -> Delivered {
    ring.fail(bad);
    Delivered::Ended
}

/// Writes to buffers that have enough room together. Returns their entries.
fn write<M: Memory>(
    memory: &M,
    chains: &mut [(u16, Chain)],
    header: &[u8],
    mut frame: &[u8],
) -> Result<Vec<(u16, u32)>, Bad> {
    let mut entries = Vec::with_capacity(chains.len());
    for (i, (head, chain)) in chains.iter_mut().enumerate() {
        let mut written = 0;
        if i == 0 {
            // The header lies in the first buffer as a whole.
            chain.write(memory, header)?;
            written = header.len();
        }
        let count = usize::try_from(chain.to_write()).unwrap_or(usize::MAX).min(frame.len());
        let (now, later) = frame.split_at(count);
        chain.write(memory, now)?;
        entries.push((*head, (written + count) as u32));
        frame = later;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
