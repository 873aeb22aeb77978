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
    let max = if mergeable { ring.size() } else { 1 };
    let chains = ring.look_ahead(memory, bytes, max);
    let (mut count, mut room) = (0, 0);
    for (_, chain) in chains.iter().take(max).take_while(|(_, chain)| chain.to_read() == 0) {
        if room >= bytes {
            break;
        }
        room += chain.to_write();
        count += 1;
    }
    let all = chains.len();
    if ring.state() != State::Running {
        return Delivered::Ended;
    }
    if room < bytes && count < all.min(max) {
        return end(ring, Bad::Kind);
    }
    if room < bytes && mergeable {
        return if all == ring.size() { Delivered::Short } else { Delivered::NoRoom };
    }
    if room < bytes {
        // The guest gets its memory back.
        ring.put_ahead(memory, &vec![0; count]);
        return if count > 0 { Delivered::Short } else { Delivered::NoRoom };
    }
    header[10..].copy_from_slice(&(count as u16).to_le_bytes());
    let chains = ring.look_ahead(memory, 0, 0);
    let written = match write(memory, chains.iter_mut().take(count), header, frame) {
        Ok(written) => written,
        Err(bad) => return end(ring, bad),
    };
    ring.put_ahead(memory, &written);
    match ring.state() {
        State::Running => Delivered::Taken,
        _ => Delivered::Ended,
    }
}

fn end(ring: &mut Ring, bad: Bad) -> Delivered {
    ring.fail(bad);
    Delivered::Ended
}

/// Writes to buffers that have enough room together. Returns the bytes in each.
fn write<'a, M: Memory>(
    memory: &M,
    chains: impl Iterator<Item = &'a mut (u16, Chain)>,
    header: &[u8],
    mut frame: &[u8],
) -> Result<Vec<u32>, Bad> {
    let mut entries = Vec::new();
    for (i, (_, chain)) in chains.enumerate() {
        let mut written = 0;
        if i == 0 {
            // The header lies in the first buffer as a whole.
            chain.write(memory, header)?;
            written = header.len();
        }
        let count = usize::try_from(chain.to_write()).unwrap_or(usize::MAX).min(frame.len());
        let (now, later) = frame.split_at(count);
        chain.write(memory, now)?;
        entries.push((written + count) as u32);
        frame = later;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
