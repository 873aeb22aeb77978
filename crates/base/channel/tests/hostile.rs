//! The event ring beside a peer that writes any value at any time: nothing outside the ring is accessed, every call
//! ends, and results are in range. Seeded; `KYOZON_FUZZ_ROUNDS` rounds, 300 by default.

use kyozon_abi::events::{
    EVENTS_VERSION, EVENT_TEXT_BYTES, MAX_CHECKS, RECORDS_OFFSET, STATUS_WORDS,
};
use kyozon_channel::events::{EventReader, EventWriter};
use kyozon_channel::memory::{Load, Store};
use kyozon_channel::ring::Outcome;
use std::cell::{Cell, RefCell};

const RECORDS: u64 = 8;
const HEAD: usize = RECORDS_OFFSET as usize / 8;
const WORDS: usize = HEAD + 32 * RECORDS as usize;

/// xorshift64*: the same numbers from the same seed.
struct Random(Cell<u64>);

impl Random {
    fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Numbers that are more likely to expose errors than arbitrary ones.
    fn nasty(&self) -> u64 {
        match self.next() % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (self.next() % 64),
            3 => u64::MAX - self.next() % 16,
            4 => self.next() % 32,
            5 => (self.next() % 64) << 32 | u64::from(EVENTS_VERSION),
            _ => self.next(),
        }
    }
}

/// Memory whose other side changes a word before one in `rarity` loads (0: never), often the loaded word itself.
struct Hostile {
    words: RefCell<Vec<u64>>,
    random: Random,
    rarity: Cell<u64>,
    loads: Cell<u64>,
}

impl Hostile {
    fn new(seed: u64) -> Self {
        let words = RefCell::new(vec![0; WORDS]);
        words.borrow_mut()[0] = RECORDS << 32 | u64::from(EVENTS_VERSION);
        let random = Random(Cell::new(seed | 1));
        Self { words, random, rarity: Cell::new(0), loads: Cell::new(0) }
    }

    fn any(&self, likely: usize) -> usize {
        match self.random.next() % 4 {
            0 => likely,
            1 => (self.random.next() % 4) as usize,
            2 => HEAD + 32 * (self.random.next() % RECORDS) as usize,
            _ => self.random.next() as usize % WORDS,
        }
    }
}

impl Load for Hostile {
    fn words(&self) -> usize {
        WORDS
    }
    fn load(&self, at: usize) -> u64 {
        assert!(at < WORDS, "loads word {at}");
        self.loads.set(self.loads.get() + 1);
        if self.rarity.get() > 0 && self.random.next().is_multiple_of(self.rarity.get()) {
            self.words.borrow_mut()[self.any(at)] = self.random.nasty();
        }
        self.words.borrow()[at]
    }
    fn acquire(&self) {}
}

impl Store for Hostile {
    fn store(&self, at: usize, value: u64) {
        assert!(at < WORDS, "stores word {at}");
        self.words.borrow_mut()[at] = value;
    }
    fn release(&self) {}
}

/// Checks that `call` needs no more loads than to read the whole ring, or a status as often as its reader tries.
fn bounded<T>(memory: &Hostile, call: impl FnOnce() -> T) -> T {
    let before = memory.loads.get();
    let result = call();
    let loads = memory.loads.get() - before;
    assert!(loads <= 64 * 17 + 64, "{loads} loads");
    result
}

fn rounds() -> u64 {
    std::env::var("KYOZON_FUZZ_ROUNDS").map_or(300, |text| text.parse().expect("a number"))
}

#[test]
fn a_hostile_peer_only_causes_wrong_data() {
    let mut kinds = [0u64; 4];
    for seed in 1..=rounds() {
        let memory = Hostile::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut writer = EventWriter::new(&memory).unwrap();
        let mut reader = EventReader::new(&memory).unwrap();
        memory.rarity.set([3, 30, 300][seed as usize % 3]);
        for _ in 0..200 {
            let line = vec![memory.random.next() as u8; memory.random.next() as usize % 300];
            if memory.random.next().is_multiple_of(2) {
                bounded(&memory, || writer.write(1, 2, 3, 4, &line));
            }
            let check = memory.random.next() as usize % (MAX_CHECKS + 3);
            bounded(&memory, || writer.publish(check, &[7; STATUS_WORDS]));
            bounded(&memory, || (reader.check(check), reader.monitor()));
            let outcome = bounded(&memory, || reader.read(reader.end()));
            match outcome {
                Outcome::Empty => kinds[0] += 1,
                Outcome::Record(record) => {
                    assert!(record.text_bytes as usize <= EVENT_TEXT_BYTES);
                    kinds[1] += 1;
                }
                Outcome::Lost(records) => {
                    assert!(records > 0);
                    kinds[2] += 1;
                }
                Outcome::Backwards => {
                    kinds[3] += 1;
                    reader = EventReader::from(&memory, memory.random.nasty())
                        .or_else(|_| {
                            memory.store(0, RECORDS << 32 | u64::from(EVENTS_VERSION));
                            memory.rarity.set(0);
                            EventReader::new(&memory)
                        })
                        .unwrap();
                    memory.rarity.set([3, 30, 300][seed as usize % 3]);
                }
            }
            // The header changes while a side attaches.
            bounded(&memory, || EventReader::new(&memory).is_ok());
            bounded(&memory, || EventWriter::new(&memory).is_ok());
        }
    }
    assert!(
        kinds.iter().all(|count| *count > 0),
        "the test did not reach every outcome: {kinds:?}"
    );
}

#[test]
fn a_reader_with_its_own_end_always_finishes() {
    // Like the serial line, which knows the number of records and is done after as many calls.
    for seed in 1..=rounds() {
        let memory = Hostile::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut writer = EventWriter::new(&memory).unwrap();
        let mut reader = EventReader::new(&memory).unwrap();
        memory.rarity.set(5);
        for _ in 0..20 {
            writer.write(1, 0, 0, 0, b"line");
        }
        let mut calls = 0;
        while reader.read(writer.next()) != Outcome::Empty {
            calls += 1;
            assert!(calls <= 2 * RECORDS + 1);
        }
        assert_eq!(reader.cursor(), 20);
    }
}
