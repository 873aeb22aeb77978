//! Bytes through a ring in shared memory, copied in and out, or written and read in place; and the same bytes copied
//! once, for comparison.

use crate::exchange::Apart;
use crate::{deadline, pin, Error, Samples};
use alloc::vec;
use alloc::vec::Vec;
use kyozon_channel::border::{Bytes, Mutex};
use kyozon_channel::data::Data;
use kyozon_channel::spsc::{Control, Reader, Writer};
use kyozon_channel::sync::Semaphore;
use kyozon_portable::machine::{self, Member};
use kyozon_portable::Rings;

/// Bytes of a sample.
pub const VOLUME: usize = 16 << 20;
/// Bytes of a ring: more than a core's private cache, so that one core's writes have moved to a shared cache before the
/// other core reads them. A record takes less than half of the ring.
const RING: usize = 4 << 20;
/// Valid bytes of a record.
const RECORD: core::ops::RangeInclusive<usize> = 64..=1 << 20;

fn fits(record: usize) -> Result<(), Error> {
    let fits = RECORD.contains(&record) && record.is_multiple_of(8);
    fits.then_some(()).ok_or(Error::RecordLength)
}

/// Records copied in and out.
pub fn through(count: usize, record: usize) -> Samples {
    let send = |mut to: To<'_>, me: &Member, records: usize| {
        let mut bytes = vec![0; record];
        (0..records).all(|number| {
            mark(&mut bytes, number);
            to.send(&bytes, me, deadline()).is_ok()
        })
    };
    let receive = |mut from: From<'_>, me: &Member, records: usize| {
        let mut bytes = vec![0; record];
        timed(count, records, |number| {
            from.recv(&mut bytes, me, deadline()) == Ok(record) && is_marked(&bytes, number)
        })
    };
    stream(record, count, send, receive)
}

/// Records of which each word is written and read in the ring itself.
pub fn in_place(count: usize, record: usize) -> Samples {
    let words = record / 8;
    let send = |mut to: To<'_>, me: &Member, records: usize| {
        (0..records as u64).all(|number| {
            let Ok(grant) = to.reserve(record, me, deadline()) else { return false };
            let (data, start) = grant.place();
            for word in 0..words {
                data.store_word(start + 8 * word, number + word as u64);
            }
            grant.commit(record, me);
            true
        })
    };
    // The sum of a record's words: 0 + 1 + 2 + ..., and the record's number once for each word.
    let expected = |number: u64| words as u64 * number + (words as u64 * (words as u64 - 1)) / 2;
    let receive = |mut from: From<'_>, me: &Member, records: usize| {
        timed(count, records, |number| {
            let Ok(view) = from.peek(me, deadline()) else { return false };
            let (data, start) = view.place();
            let sum: u64 = (0..words).map(|word| data.load_word(start + 8 * word)).sum();
            view.release(me);
            sum == expected(number as u64)
        })
    };
    stream(record, count, send, receive)
}

/// The same bytes from one buffer, copied one after another into memory as large as the ring.
pub fn copy(count: usize, record: usize) -> Samples {
    fits(record)?;
    let mut from = vec![0; record];
    let mut to = vec![0; RING];
    let mut slots = (0..RING / record).cycle();
    timed(count, VOLUME / record, |number| {
        mark(&mut from, number);
        let at = slots.next().unwrap_or(0) * record;
        to[at..at + record].copy_from_slice(core::hint::black_box(&from));
        is_marked(core::hint::black_box(&to[at..at + record]), number)
    })
    .ok_or(Error::WrongCopy)
}

/// The same bytes, copied once by one thread out of memory that the other has just written: the lower bound of a
/// message's cost, without a ring.
pub fn across(count: usize, record: usize) -> Samples {
    fits(record)?;
    let shared = &Mutex::new(vec![0; RING]);
    let (full, empty) = (&Apart(Semaphore::new(0)), &Apart(Semaphore::new(1)));
    let turns = count * (VOLUME / RING);
    let send = |me: &_| {
        let mut from = vec![0; record];
        (0..turns).all(|turn| {
            let came = empty.0.acquire(me, deadline()).is_ok();
            let Ok(mut to) = shared.lock(me, deadline()) else { return false };
            for (number, to) in to.chunks_exact_mut(record).enumerate() {
                mark(&mut from, turn + number);
                to.copy_from_slice(core::hint::black_box(&from));
            }
            drop(to);
            full.0.release(me, 1);
            came
        })
    };
    let receive = |me: &_| {
        let mut to = vec![0; record];
        let mut samples = Vec::new();
        for turn in 0..turns {
            full.0.acquire(me, deadline()).map_err(|_| Error::Ring)?;
            let from = shared.lock(me, deadline()).map_err(|_| Error::Ring)?;
            let began = machine::now();
            for (number, from) in from.chunks_exact(record).enumerate() {
                to.copy_from_slice(from);
                if !is_marked(core::hint::black_box(&to), turn + number) {
                    return Err(Error::WrongCopy);
                }
            }
            samples.push(machine::now() - began);
            drop(from);
            empty.0.release(me, 1);
        }
        Ok(samples)
    };
    machine::thread::scope(|scope| {
        let other = scope.spawn(move || {
            pin::to_side(1);
            machine::with_member(send)
        });
        pin::to_side(0);
        let samples = machine::with_member(receive)?;
        let samples: Vec<_> = samples.chunks(VOLUME / RING).map(|s| s.iter().sum()).collect();
        match other.join() {
            Ok(true) => Ok(samples),
            _ => Err(Error::Ring),
        }
    })
}

type To<'a> = Writer<&'a Control, Bytes<'a>>;
type From<'a> = Reader<&'a Control, Bytes<'a>>;

fn mark(bytes: &mut [u8], number: usize) {
    let last = bytes.len() - 1;
    (bytes[0], bytes[last]) = (number as u8, !number as u8);
}

fn is_marked(bytes: &[u8], number: usize) -> bool {
    (bytes[0], bytes[bytes.len() - 1]) == (number as u8, !number as u8)
}

/// Times `count` samples of `records` records each. `None` if a record was wrong.
fn timed(count: usize, records: usize, mut one: impl FnMut(usize) -> bool) -> Option<Vec<u64>> {
    let mut samples = Vec::new();
    for sample in 0..count {
        let began = machine::now();
        if !(0..records).all(|record| one(sample * records + record)) {
            return None;
        }
        samples.push(machine::now() - began);
    }
    Some(samples)
}

/// Runs both sides of a ring, each on its own thread.
fn stream(
    record: usize,
    count: usize,
    send: impl FnOnce(To<'_>, &Member, usize) -> bool + Send,
    receive: impl FnOnce(From<'_>, &Member, usize) -> Option<Vec<u64>>,
) -> Samples {
    fits(record)?;
    let records = VOLUME / record;
    let rings = Rings::new(1, RING);
    let (control, data) = rings.ring(0);
    machine::thread::scope(|scope| {
        let other = scope.spawn(move || {
            pin::to_side(1);
            let me = &machine::member();
            let writer = Writer::attach(control, data, me);
            writer.is_ok_and(|writer| send(writer, me, records * count))
        });
        pin::to_side(0);
        let me = &machine::member();
        let reader = Reader::attach(control, data, me);
        let samples = reader.ok().and_then(|reader| receive(reader, me, records));
        match other.join() {
            Ok(true) => samples.ok_or(Error::Ring),
            _ => Err(Error::Ring),
        }
    })
}
