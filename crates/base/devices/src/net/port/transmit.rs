//! Packets from a guest's queue to the backend.

use super::*;
use crate::chain::Chain;
use crate::net::merge::{Headers, MAX_HEADERS};
use crate::net::{ETHERNET, TRANSMIT};
use crate::ring::Bad;
use vm_memory::VolatileSlice;

/// Maximum number of rounds over the guest's queue in one call.
const ROUNDS: usize = 4;
/// Bytes of the smallest packet that counts as data. Acknowledgements, which may be smaller, should not wait.
const DATA: usize = 110;

/// Progress of [`Port::transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Done,
    More,
    Blocked,
}

/// Packets of the guest that are passed on as one.
struct Group<'a> {
    /// The header of the first packet.
    header: [u8; HEADER],
    /// If they can be merged: the headers of the frame, which `pieces` does not have then.
    headers: Option<Headers>,
    pieces: Vec<VolatileSlice<'a>>,
    /// Bytes of `pieces`.
    bytes: usize,
    /// Number of pieces and bytes of the first packet.
    first: (usize, usize),
    chains: Vec<(u16, Chain)>,
}

impl Group<'_> {
    /// Whether it lacks packets, without which its packets cannot be one.
    fn is_partial(&self) -> bool {
        self.headers.as_ref().is_some_and(|headers| !headers.is_whole())
    }

    /// Makes all packets but the first `keep` ones the next ones again.
    fn give_back(&mut self, ring: &mut Ring, keep: usize) {
        for (head, mut chain) in self.chains.drain(keep..).rev() {
            chain.rewind();
            ring.unget(head, chain);
        }
        if keep == 0 {
            (self.headers, self.first) = (None, (0, 0));
        }
        self.pieces.truncate(self.first.0);
        self.bytes = self.first.1;
    }

    fn new() -> Self {
        Self {
            header: [0; HEADER],
            headers: None,
            pieces: Vec::new(),
            bytes: 0,
            first: (0, 0),
            chains: Vec::new(),
        }
    }
}

impl Port {
    /// Passes packets from the guest to the backend. With `give_up`, packets are lost that the backend does not take
    /// now. Returns whether packets may wait for a ring from now on, which the device's thread has to know. While they
    /// may, a part of a datagram waits for the rest.
    pub fn transmit<M: Memory>(&self, link: &Link<M>, give_up: bool) -> bool {
        self.transmit_until(link, give_up, give_up)
    }

    /// Like [`Port::transmit`]; with `all`, nothing waits.
    fn transmit_until<M: Memory>(&self, link: &Link<M>, give_up: bool, all: bool) -> bool {
        let mut began = false;
        for _ in 0..ROUNDS {
            let progress = link.serve(TRANSMIT, |ring, memory| {
                let (progress, wake, now) = self.transmit_some(ring, memory, give_up, all);
                began |= now;
                self.blocked.store(progress != Progress::Done, SeqCst);
                (progress, wake)
            });
            match progress {
                Some(Progress::More) => {}
                Some(_) => break,
                None => {
                    self.blocked.store(false, SeqCst);
                    break;
                }
            }
        }
        began
    }

    /// States the number of the guest's pauses so far: a guest that pauses rings for each packet.
    pub fn set_turn(&self, turn: u64) {
        self.turn.store(turn, Relaxed);
    }

    /// Whether packets may wait for a ring.
    pub fn is_holding(&self) -> bool {
        self.pace.is_holding()
    }

    /// A thread of the guest is going to wait: passes on what waits for a ring. The result is that of
    /// [`Port::transmit`].
    pub fn pause<M: Memory>(&self, link: &Link<M>) -> bool {
        self.pace.pause() && self.transmit_until(link, false, true)
    }

    /// Passes on what has waited for a ring since the last tick. Returns whether the guest was quiet meanwhile: then
    /// nobody looked for packets for it.
    pub fn tick<M: Memory>(&self, link: &Link<M>) -> bool {
        let quiet = self.pace.tick();
        if quiet {
            self.transmit_until(link, false, true);
        }
        quiet
    }

    fn transmit_some<M: Memory>(
        &self,
        ring: &mut Ring,
        memory: &M,
        give_up: bool,
        mut all: bool,
    ) -> (Progress, bool, bool) {
        let mut out = lock(&self.out);
        let mut group = Group::new();
        let holding = self.pace.is_holding();
        let (mut progress, mut count, mut began) = (Progress::More, 0, false);
        // Since the last decision of the pace.
        let (mut packets, mut bytes) = (0, 0);
        for _ in 0..ring.size() {
            let flushed = self.flush(&mut out, give_up);
            if !flushed && !give_up {
                progress = Progress::Blocked;
                break;
            }
            let Some((head, mut chain)) = ring.next(memory) else {
                let waits = holding && !all && group.is_partial();
                if waits {
                    group.give_back(ring, 0);
                } else if !group.chains.is_empty() {
                    self.send(&mut out, ring, memory, &mut group);
                    continue;
                }
                // Before the guest learns for how many packets it has to ring.
                let turn = self.turn.load(Relaxed);
                began |= self.pace.passed_on(
                    std::mem::take(&mut packets),
                    std::mem::take(&mut bytes),
                    turn,
                );
                // Nothing waits any more, and neither a pause nor a tick would pass it on.
                if waits && !self.pace.is_holding() {
                    all = true;
                    continue;
                }
                if !ring.listen_for(memory, self.pace.packets(ring.size())) {
                    progress = if flushed { Progress::Done } else { Progress::Blocked };
                    break;
                }
                continue;
            };
            let size = chain.to_read();
            // Otherwise the backend has a part of another packet.
            let taken = if flushed {
                self.take(memory, &mut chain, holding)
            } else {
                counted(&self.counters.lost_out).map(|()| None)
            };
            let taken = taken.and_then(|taken| {
                let Some((header, headers)) = taken else {
                    ring.put(memory, head, chain, 0);
                    return Ok(true);
                };
                // A small packet that nothing follows is copied: that costs less than to collect pieces.
                if !holding && (size as usize) < LARGE {
                    out.length = size as usize;
                    out.bytes[..HEADER].copy_from_slice(&header);
                    chain.read(memory, &mut out.bytes[HEADER..size as usize])?;
                    ring.put(memory, head, chain, 0);
                    return Ok(true);
                }
                let joined = match (&mut group.headers, &headers) {
                    (Some(first), Some(headers)) => first.append(headers),
                    _ => false,
                };
                if !joined && !group.chains.is_empty() {
                    chain.rewind();
                    ring.unget(head, chain);
                    self.send(&mut out, ring, memory, &mut group);
                    return Ok(false);
                }
                let frame = chain.to_read() as usize;
                chain.read_with(memory, frame, |slice| {
                    group.pieces.push(slice);
                    Ok::<_, Bad>(())
                })?;
                group.bytes += frame;
                group.chains.push((head, chain));
                if !joined {
                    (group.header, group.headers) = (header, headers);
                    group.first = (group.pieces.len(), group.bytes);
                }
                Ok(true)
            });
            match taken {
                Ok(true) => {
                    count += 1;
                    if size as usize >= DATA {
                        (packets, bytes) = (packets + 1, bytes + size as usize);
                    }
                }
                Ok(false) => {}
                Err(bad) => {
                    ring.fail(bad);
                    progress = Progress::Done;
                    break;
                }
            }
        }
        self.send(&mut out, ring, memory, &mut group);
        if progress == Progress::More && !self.flush(&mut out, give_up) {
            progress = Progress::Blocked;
        }
        (progress, count > 0 && ring.wants_wake(memory), began)
    }

    /// Looks at a packet from the guest: returns its checked header, and the frame's headers if it can be merged with
    /// others. Those are consumed. Drops a packet that breaks a rule.
    #[allow(clippy::type_complexity)]
    fn take<M: Memory>(
        &self,
        memory: &M,
        chain: &mut Chain,
        merge: bool,
    ) -> std::result::Result<Option<([u8; HEADER], Option<Headers>)>, Bad> {
        if chain.to_write() > 0 {
            return Err(Bad::Kind);
        }
        let bytes = chain.to_read();
        if bytes < HEADER as u64 {
            return Err(Bad::Short);
        }
        let dropped = |counter| counted(counter).map(|()| None);
        if bytes < (HEADER + ETHERNET) as u64 || bytes > MAX_PACKET as u64 {
            return dropped(&self.counters.refused);
        }
        if !self.is_up() {
            return dropped(&self.counters.lost_out);
        }
        let frame = bytes as usize - HEADER;
        let mut checked = [0; HEADER];
        chain.read(memory, &mut checked)?;
        let (offloads, max) = (Offloads::from_guest(self.accepted.load(SeqCst)), self.max_frame());
        if !matches!(check_header(&mut checked, frame, offloads, max, true), Ok(None)) {
            return dropped(&self.counters.refused);
        }
        let fragments = self.backend.takes_datagrams() && checked[0] == 0;
        if !merge || !(offloads.large() && checked[0] != 0 || fragments) {
            return Ok(Some((checked, None)));
        }
        let mut start = [0; MAX_HEADERS];
        let start = &mut start[..frame.min(MAX_HEADERS)];
        chain.read(memory, start)?;
        let headers = if fragments {
            Headers::of_fragment(&checked, start, frame)
        } else {
            Headers::new(&checked, start, frame, offloads)
        };
        chain.rewind();
        chain.skip_reads(HEADER + headers.as_ref().map_or(0, Headers::length));
        Ok(Some((checked, headers)))
    }

    /// Sends a group of packets, or holds a copy of it. The guest gets its memory back. Of a group that is not whole,
    /// only the first packet is sent, and the others are the next ones again.
    fn send<'a, M: Memory>(
        &self,
        out: &mut Held,
        ring: &mut Ring,
        memory: &'a M,
        group: &mut Group<'a>,
    ) {
        if group.chains.is_empty() {
            return;
        }
        if group.is_partial() {
            group.give_back(ring, 1);
        }
        let count = group.chains.len();
        let mut headers = group.headers.take();
        let (header, start) = match &mut headers {
            None => (group.header, &mut [][..]),
            Some(headers) if count > 1 => headers.finish(),
            Some(headers) => (group.header, headers.bytes()),
        };
        let bytes = HEADER + start.len() + group.bytes;
        let sent = if bytes < LARGE {
            None
        } else {
            let mut pieces = Vec::with_capacity(group.pieces.len() + 1);
            pieces.extend((!start.is_empty()).then(|| VolatileSlice::from(&mut *start)));
            pieces.extend_from_slice(&group.pieces);
            self.backend.send_pieces(&header, &pieces)
        };
        match sent {
            Some(Ok(())) => {
                self.counters.sent.fetch_add(count as u64, Relaxed);
            }
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => {
                self.counters.lost_out.fetch_add(count as u64, Relaxed);
            }
            _ => {
                let mut done = HEADER + start.len();
                out.bytes[..HEADER].copy_from_slice(&header);
                out.bytes[HEADER..done].copy_from_slice(start);
                for piece in &group.pieces {
                    done += piece.copy_to(&mut out.bytes[done..bytes]);
                }
                (out.length, out.packets) = (bytes, count as u64);
                self.flush(out, false);
            }
        }
        (group.bytes, group.headers) = (0, None);
        group.pieces.clear();
        for (head, chain) in group.chains.drain(..) {
            ring.put(memory, head, chain, 0);
        }
    }

    /// Sends the held packet. Returns whether there is none any more.
    fn flush(&self, out: &mut Held, give_up: bool) -> bool {
        let Held { bytes, length, sent, packets } = out;
        if *length == 0 {
            return true;
        }
        let counter = match self.backend.send(&bytes[..*length], sent) {
            Ok(()) => &self.counters.sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock && (!give_up || *sent > 0) => {
                return false;
            }
            // Among others: the other end is gone, or the host refuses this packet.
            Err(_) => &self.counters.lost_out,
        };
        counter.fetch_add(*packets, Relaxed);
        out.clear();
        true
    }
}

/// Counts a packet that nothing else happens to.
fn counted(counter: &AtomicU64) -> std::result::Result<(), Bad> {
    counter.fetch_add(1, Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests;
