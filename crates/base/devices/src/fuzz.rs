//! A fuzzer's input as a hostile guest. A cargo-fuzz target is one line:
//! `fuzz_target!(|input: &[u8]| { kyozon_devices::fuzz::block(input); });`
//!
//! The guest makes requests like an honest guest, and in between overwrites any part of its memory. [`registers`] also
//! writes any register.

mod registers;

pub use registers::registers;

use crate::block::Block;
use crate::disk::{Disk, Limits, MemoryDisk, SECTOR};
use crate::fake::{Guest, AVAILABLE, BASE, BYTES, DESCRIPTORS, FREE, SIZE, USED};
use crate::net::{Given, Net};
use crate::ring::{Place, Ring, State};
use std::io::Result;
use vm_memory::VolatileSlice;

/// Size of the disk in bytes.
const DISK: u64 = 64 * SECTOR;

/// The input, byte by byte. Zeros follow its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// An address: inside the guest's memory, at its ends, or anywhere.
    fn address(&mut self) -> u64 {
        let offset = u64::from(self.half());
        match self.byte() % 8 {
            0 => BASE + BYTES as u64 - offset % 64,
            1 => BASE.wrapping_sub(offset % 64),
            2 => u64::MAX - offset,
            3 => offset << 48 | offset,
            _ => BASE + offset,
        }
    }

    /// A number that is small, large, or an address.
    fn number(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => u64::from(self.byte() % 16),
            1 => u64::MAX - u64::from(self.byte()),
            2 => u64::from(self.half()) << (self.byte() % 48),
            _ => self.address(),
        }
    }

    /// Overwrites a part of the queue or of other memory.
    fn poke(&mut self, guest: &Guest) {
        let place = u64::from(self.byte());
        let slot = place % u64::from(SIZE);
        let (at, bytes) = match self.byte() % 8 {
            0 => (DESCRIPTORS + 16 * slot, 8),
            1 => (DESCRIPTORS + 16 * slot + 8, 4),
            2 => (DESCRIPTORS + 16 * slot + 12, 2),
            3 => (DESCRIPTORS + 16 * slot + 14, 2),
            // Each 16-bit half of the rings, including the event index after the entries.
            4 => (AVAILABLE + 2 * (place % u64::from(SIZE + 3)), 2),
            5 => (USED + 2 * (place % u64::from(4 * SIZE + 3)), 2),
            6 => (FREE + slot, 8),
            _ => (self.address(), 4),
        };
        guest.poke(at, &self.number().to_le_bytes()[..bytes]);
    }

    /// Size and addresses of a queue, mostly the right ones.
    fn place(&mut self, guest: &Guest) -> Place {
        let mut place = guest.place();
        match self.byte() % 16 {
            0 => place.size = self.half(),
            1 => place.descriptors = self.address(),
            2 => place.available = self.address(),
            3 => place.used = self.address(),
            _ => {}
        }
        place
    }
}

/// A disk that checks whether its device keeps the rules.
struct Watched {
    disk: MemoryDisk,
    read_only: bool,
}

impl Watched {
    fn check(&self, at: u64, bytes: usize) {
        let end = at.checked_add(bytes as u64);
        assert!(end.is_some_and(|end| end <= DISK), "{at:#x} and {bytes} bytes are outside");
    }
}

impl Disk for Watched {
    fn bytes(&self) -> u64 {
        DISK
    }

    fn read(&mut self, at: u64, to: &[VolatileSlice<'_>]) -> Result<()> {
        self.check(at, to.iter().map(VolatileSlice::len).sum());
        self.disk.read(at, to)
    }

    fn write(&mut self, at: u64, from: &[VolatileSlice<'_>]) -> Result<()> {
        self.check(at, from.iter().map(VolatileSlice::len).sum());
        assert!(!self.read_only, "a read-only disk is written");
        self.disk.write(at, from)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn limits(&self) -> Limits {
        self.disk.limits()
    }

    fn discard(&mut self, at: u64, bytes: u64) -> Result<()> {
        self.write_zeros(at, bytes, true)
    }

    fn write_zeros(&mut self, at: u64, bytes: u64, unmap: bool) -> Result<()> {
        self.check(at, bytes as usize);
        assert!(!self.read_only, "a read-only disk is written");
        self.disk.write_zeros(at, bytes, unmap)
    }
}

/// Plays the script on a ring; `serve` is the device. Returns the number of served requests.
fn play(
    input: &[u8],
    mut ask: impl FnMut(&mut Script<'_>, &mut Guest),
    mut serve: impl FnMut(&mut Ring, &Guest) -> usize,
) -> u64 {
    let (mut script, mut guest, mut ring) = (Script(input), Guest::default(), Ring::default());
    let mut total = 0;
    while !script.0.is_empty() {
        match script.byte() % 8 {
            0 => ring.stop(),
            1 => {
                let place = script.place(&guest);
                let running = ring.state() == State::Running;
                if ring.start(&guest.memory, place).is_ok() {
                    assert!(!running && place.size.is_power_of_two());
                    // A guest that starts a queue has emptied its rings.
                    if place == guest.place() {
                        guest.poke(AVAILABLE, &[0; 4]);
                        guest.poke(USED, &[0; 4]);
                        guest = Guest::with_memory(guest.memory);
                    }
                }
            }
            2 | 3 => script.poke(&guest),
            4 | 5 => ask(&mut script, &mut guest),
            _ => {
                let state = ring.state();
                let before: [u8; 256] = guest.peek(USED);
                let count = serve(&mut ring, &guest);
                assert!(count <= usize::from(crate::ring::MAX_SIZE));
                if state != State::Running {
                    assert_eq!((count, guest.peek(USED), ring.state()), (0, before, state));
                }
                total += count as u64;
            }
        }
    }
    total
}

/// Plays `input` as a guest with a disk. Returns the number of served requests. Panics if the device breaks a rule.
pub fn block(input: &[u8]) -> u64 {
    let read_only = input.first().is_some_and(|byte| byte & 1 != 0);
    let disk = Watched { disk: MemoryDisk::new(vec![1; DISK as usize]), read_only };
    let mut block = Block::new(Box::new(disk), read_only, "fuzz");
    let ask = |script: &mut Script<'_>, guest: &mut Guest| {
        let kind = script.byte() % 10;
        guest.poke(
            FREE,
            &[&[kind, 0, 0, 0, 0, 0, 0, 0], &script.number().to_le_bytes()[..]].concat(),
        );
        let bytes = 512 * u32::from(script.byte() % 8);
        guest.ask(&[(FREE, 16, false), (FREE + 512, bytes, kind == 0), (FREE + 256, 1, true)]);
    };
    play(input.get(1..).unwrap_or(&[]), ask, |ring, guest| {
        let served = block.serve(ring, &guest.memory);
        assert!(!served.more || ring.state() == State::Running);
        served.count
    })
}

/// Plays `input` as a guest with a network port and one queue. The first byte decides whether frames go to the guest or
/// come from it. Returns the number of frames. Panics if the device breaks a rule.
pub fn net(input: &[u8]) -> u64 {
    let gives = input.first().is_some_and(|byte| byte & 1 != 0);
    let net = Net::new([2, 0, 0, 0, 0, 1], 1500);
    let ask = |script: &mut Script<'_>, guest: &mut Guest| {
        let bytes = u32::from(script.half() % 2000);
        guest.ask(&[(FREE, 12, gives), (FREE + 64, bytes, gives)]);
    };
    play(input.get(1..).unwrap_or(&[]), ask, |ring, guest| {
        if gives {
            return usize::from(matches!(
                net.give(ring, &guest.memory, &[7; 60]),
                Given::Taken { .. }
            ));
        }
        let check = |frame: &[u8]| assert!((14..=1514).contains(&frame.len()));
        net.take(ring, &guest.memory, check).count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs from a generator, xorshift64*: `KYOZON_FUZZ_ROUNDS` of them, 3000 by default.
    fn inputs(seed: u64) -> impl Iterator<Item = Vec<u8>> {
        let mut state = seed;
        let mut next = move || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let rounds = std::env::var("KYOZON_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
        let rounds = rounds.unwrap_or(3000);
        println!("seed {seed:#x}, {rounds} inputs");
        (0..rounds).map(move |_| (0..next() % 400).map(|_| (next() >> 56) as u8).collect())
    }

    #[test]
    fn no_input_breaks_a_disk() {
        assert!(inputs(0x5eed_0011).map(|input| block(&input)).sum::<u64>() > 1000);
    }

    #[test]
    fn no_input_breaks_a_port() {
        assert!(inputs(0x5eed_0012).map(|input| net(&input)).sum::<u64>() > 1000);
    }

    #[test]
    fn no_input_breaks_registers() {
        assert!(inputs(0x5eed_0013).map(|input| registers(&input)).sum::<u64>() > 1000);
    }
}
