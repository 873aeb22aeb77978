//! A fuzzer's input as operations on a ring and as writes of a hostile peer. A cargo-fuzz target is one line:
//! `fuzz_target!(|input: &[u8]| { kyozon_channel::fuzz::spsc(input); });`
//!
//! As long as the script breaks no rule, records must arrive whole, once and in order.

use crate::data::{inside, Data};
use crate::error::Error;
use crate::park::{Life, Park, Peer, Peers};
use crate::{mpmc, spsc};
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Peers of which one runs at a time. No peer sleeps: instead, the clock advances to the latest end of the sleep.
#[derive(Debug)]
pub struct FakeGroup {
    now: Cell<u64>,
    /// One bit per dead peer.
    dead: Cell<u64>,
    /// One bit per peer that was woken.
    woken: Cell<u64>,
}

/// One peer of a [`FakeGroup`].
#[derive(Clone, Copy, Debug)]
pub struct FakePeer<'a> {
    group: &'a FakeGroup,
    peer: Peer,
}

impl Default for FakeGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeGroup {
    /// A group of 64 live peers.
    pub fn new() -> Self {
        Self { now: Cell::new(0), dead: Cell::new(0), woken: Cell::new(0) }
    }

    /// Peer `number` (modulo 64), in generation 1.
    pub fn peer(&self, number: u8) -> FakePeer<'_> {
        let Some(peer) = Peer::new(number % 64, 1) else { unreachable!("a number below 64") };
        FakePeer { group: self, peer }
    }

    /// Sets which peers are dead, one bit per peer; the others live.
    pub fn set_dead(&self, dead: u64) {
        self.dead.set(dead);
    }

    /// The peers that were woken since the last call, one bit per peer.
    pub fn take_woken(&self) -> u64 {
        self.woken.take()
    }
}

impl Park for FakePeer<'_> {
    fn me(&self) -> Peer {
        self.peer
    }
    fn now(&self) -> u64 {
        self.group.now.get()
    }
    fn park(&self, deadline: Option<u64>) {
        let beat = self.now() + self.heartbeat();
        self.group.now.set(deadline.map_or(beat, |deadline| deadline.clamp(self.now(), beat)));
    }
    fn unpark(&self, number: u8) {
        assert!(number < 64, "wakes peer {number}");
        self.group.woken.set(self.group.woken.get() | 1 << number);
    }
    fn spins(&self) -> u32 {
        2
    }
    fn heartbeat(&self) -> u64 {
        10
    }
}

impl Peers for FakePeer<'_> {
    fn life(&self, number: u8) -> Life {
        assert!(number < 64, "asks about peer {number}");
        match self.group.dead.get() & 1 << number {
            0 => Life::Alive(1),
            _ => Life::Dead,
        }
    }
}

/// The rest of the input. Zeros follow its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number that is likely to expose an error.
    fn number(&mut self) -> u64 {
        let (kind, byte) = (self.byte(), u64::from(self.byte()));
        match kind % 8 {
            0 => byte,
            1 => byte * 8,
            2 => 1 << (byte % 64),
            3 => u64::MAX - byte,
            4 => byte << 32 | u64::from(self.byte()),
            5 => (byte << 32).wrapping_sub(u64::from(self.byte())),
            6 => 0x8000_0000_0000_0000 | byte,
            _ => (0..8).fold(byte, |number, _| number << 8 | u64::from(self.byte())),
        }
    }
}

/// Data that panics on an access outside.
struct Strict<'a>(&'a [AtomicU64]);

impl Data for Strict<'_> {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn load_word(&self, at: usize) -> u64 {
        assert!(inside(self.bytes(), at, 8) && at.is_multiple_of(8), "loads the word at {at}");
        self.0.load_word(at)
    }
    fn store_word(&self, at: usize, value: u64) {
        assert!(inside(self.bytes(), at, 8) && at.is_multiple_of(8), "stores the word at {at}");
        self.0.store_word(at, value);
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        assert!(inside(self.bytes(), at, to.len()), "reads {} bytes at {at}", to.len());
        self.0.read(at, to);
    }
    fn write(&self, at: usize, from: &[u8]) {
        assert!(inside(self.bytes(), at, from.len()), "writes {} bytes at {at}", from.len());
        self.0.write(at, from);
    }
}

/// Records that went through a ring. The n-th record consists of bytes n.
#[derive(Default)]
struct Count {
    sent: u8,
    received: u8,
    arrived: u64,
    /// A peer has broken the rules.
    rules_broken: bool,
}

impl Count {
    fn sent(&mut self, result: Result<bool, Error>) {
        match result {
            Ok(sent) => self.sent = self.sent.wrapping_add(sent.into()),
            Err(Error::TimedOut | Error::RecordTooLong { .. }) => {}
            Err(error) => assert!(self.rules_broken || error != Error::Corrupt, "sending: {error}"),
        }
    }

    fn received(&mut self, result: Result<Option<usize>, Error>, buffer: &[u8]) {
        match result {
            Ok(Some(len)) => {
                let right = buffer[..len].iter().all(|byte| *byte == self.received);
                assert!(
                    self.rules_broken || (right && self.received != self.sent),
                    "a wrong record"
                );
                self.received = self.received.wrapping_add(1);
                self.arrived += 1;
            }
            Ok(None) => {
                assert!(self.rules_broken || self.sent == self.received, "a record is missing")
            }
            Err(Error::TimedOut) => {
                assert!(self.rules_broken || self.sent == self.received, "a record is missing");
            }
            Err(error) => {
                assert!(self.rules_broken || error != Error::Corrupt, "receiving: {error}")
            }
        }
    }
}

/// Bytes of data of the spsc ring.
const BYTES: usize = 256;

/// Plays `input` as a script on a ring between two peers. Returns the number of records that arrived.
///
/// # Panics
/// Panics if the ring breaks its rules.
pub fn spsc(input: &[u8]) -> u64 {
    let mut script = Script(input);
    let group = FakeGroup::new();
    let (one, other) = (group.peer(0), group.peer(1));
    let control = spsc::Control::<AtomicU64>::default();
    let words = [const { AtomicU64::new(0) }; BYTES / 8];
    let attach = || {
        let writer = spsc::Writer::attach(&control, Strict(&words), &one)?;
        Ok::<_, Error>((writer, spsc::Reader::attach(&control, Strict(&words), &other)?))
    };
    let Ok((mut writer, mut reader)) = attach() else { unreachable!("zeros are a ring") };
    let mut count = Count::default();
    let limit = writer.limit();
    let mut buffer = [0; BYTES];
    while !script.0.is_empty() {
        let operation = script.byte();
        let record = [count.sent; BYTES];
        let len = usize::from(script.byte()) % (limit + 3);
        match operation % 16 {
            0 | 1 => count.sent(writer.try_send(&record[..len], &one)),
            2 => {
                let result = writer.send(&record[..len], &one, Some(one.now() + 25));
                count.sent(result.map(|()| true));
            }
            3 => {
                let Ok(Some(grant)) = writer.try_reserve(len) else { continue };
                assert!(grant.place().1 + len <= BYTES && grant.place().1 % 8 == 0);
                let part = len / 2;
                assert!(grant.write(part, &record[..len - part]).is_ok());
                assert!(grant.write(len, &[0]).is_err());
                if part % 3 > 0 {
                    assert!(grant.write(0, &record[..part]).is_ok());
                    grant.commit(len - part % 3, &one);
                    count.sent(Ok(true));
                }
            }
            4..=6 => {
                let result = reader.try_recv(&mut buffer[..limit], &other);
                count.received(result, &buffer);
            }
            7 => {
                let result = reader.recv(&mut buffer[..limit], &other, Some(other.now() + 25));
                count.received(result.map(Some), &buffer);
            }
            8 => {
                let Ok(Some(view)) = reader.try_peek() else { continue };
                assert!(view.len() <= limit && view.place().1 + view.len() <= BYTES);
                let short = view.len().saturating_sub(1);
                assert!(view.read(&mut buffer[..short]).is_err() || view.is_empty());
            }
            9 => {
                if let Ok(both) = attach() {
                    (writer, reader) = both;
                } else {
                    assert!(count.rules_broken, "an honest ring is not one");
                }
            }
            10 => group.set_dead(u64::from(script.byte() % 4)),
            11 if len % 4 == 0 => {
                control.words()[len % 6].store(script.number(), Relaxed);
                count.rules_broken = true;
            }
            12 if len % 4 == 0 => {
                words[len % words.len()].store(script.number(), Relaxed);
                count.rules_broken = true;
            }
            _ => {
                group.take_woken();
            }
        }
    }
    count.arrived
}

/// Plays `input` as a script on a ring between many peers. Returns the number of records that arrived.
///
/// # Panics
/// Panics if the ring breaks its rules.
pub fn mpmc(input: &[u8]) -> u64 {
    const SLOTS: usize = 4;
    const ROOM: usize = 16;
    let mut script = Script(input);
    let group = FakeGroup::new();
    let control = mpmc::Control::<AtomicU64>::default();
    let slots: [mpmc::Slot<AtomicU64>; SLOTS] = Default::default();
    let words = [const { AtomicU64::new(0) }; SLOTS * ROOM / 8];
    let Some(ring) = mpmc::Ring::new(&control, &slots[..], Strict(&words)) else {
        unreachable!("four slots are a ring")
    };
    let mut count = Count::default();
    let mut buffer = [0; ROOM];
    while !script.0.is_empty() {
        let operation = script.byte();
        let me = group.peer(operation >> 4);
        let len = usize::from(script.byte()) % (ROOM + 2);
        let record = [count.sent; ROOM + 2];
        match operation % 16 {
            0..=2 => count.sent(ring.try_send(&record[..len], &me)),
            3 => {
                let result = ring.send(&record[..len], &me, Some(me.now() + 25));
                count.sent(result.map(|()| true));
            }
            4..=6 => {
                let result = ring.try_recv(&mut buffer, &me);
                count.received(result, &buffer);
            }
            7 => {
                let result = ring.recv(&mut buffer, &me, Some(me.now() + 25));
                count.received(result.map(Some), &buffer);
            }
            8 => group.set_dead(script.number() & !me.me().bit()),
            9 if len.is_multiple_of(4) => {
                control.words()[len % 4].store(script.number(), Relaxed);
                count.rules_broken = true;
            }
            10 if len.is_multiple_of(2) => {
                slots[len % SLOTS].words()[operation as usize >> 4 & 1]
                    .store(script.number(), Relaxed);
                count.rules_broken = true;
            }
            _ => {
                group.take_woken();
            }
        }
    }
    count.arrived
}

#[cfg(test)]
mod tests;
