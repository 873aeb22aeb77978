//! Two threads send 8192 numbers back and forth through two rings in shared memory. Arguments: rounds, `time`.
#![cfg_attr(feature = "image", no_std, no_main)]

extern crate alloc;

use alloc::vec;
use kyozon_channel::park::{Group, Park};
use kyozon_channel::spsc::{Reader, Writer};
use kyozon_portable::{fingerprint, machine, program, Arguments, Rings, Xorshift};

program!(run);

const NUMBERS: usize = 8192;
const BYTES: usize = NUMBERS * 4;
/// Bytes of a ring, more than twice those of a record.
const RING: usize = 128 << 10;

/// Maximum nanoseconds to wait for a record.
const TIMEOUT: u64 = 10_000_000_000;

fn run() -> u8 {
    let arguments = Arguments::new();
    let rounds = arguments.number(0, 1 << 30, 100);
    let rings = Rings::new(2, RING);
    let (there, back) = (rings.ring(0), rings.ring(1));
    machine::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let me = &machine::member();
            answer(there, back, rounds, me)
        });
        let me = &machine::member();
        let began = machine::now();
        let (Ok(mut to), Ok(mut from)) =
            (Writer::attach(there.0, there.1, me), Reader::attach(back.0, back.1, me))
        else {
            return 2;
        };
        let mut numbers: vec::Vec<u8> =
            Xorshift::new(7).take(NUMBERS).flat_map(u32::to_le_bytes).collect();
        for _ in 0..rounds {
            let limit = Some(me.now() + TIMEOUT);
            let sent = to.send(&numbers, me, limit);
            if sent.is_err() || from.recv(&mut numbers, me, limit) != Ok(BYTES) {
                return 3;
            }
        }
        let took = machine::now() - began;
        let words =
            numbers.chunks(4).map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        let print = fingerprint(words);
        machine::print_line(format_args!("{rounds} rounds of {NUMBERS} numbers: {print:016x}"));
        arguments.print_time(took);
        if other.join().is_ok_and(|answered| answered) {
            0
        } else {
            4
        }
    })
}

type Ring<'a> = (&'a kyozon_channel::spsc::Control, kyozon_channel::border::Bytes<'a>);

/// Sends every record back, with each number incremented. Returns whether all rounds succeeded.
fn answer<G: Group>(from: Ring<'_>, to: Ring<'_>, rounds: usize, me: &G) -> bool {
    let (Ok(mut from), Ok(mut to)) =
        (Reader::attach(from.0, from.1, me), Writer::attach(to.0, to.1, me))
    else {
        return false;
    };
    let mut bytes = vec![0_u8; BYTES];
    (0..rounds).all(|_| {
        let limit = Some(me.now() + TIMEOUT);
        let got = from.recv(&mut bytes, me, limit) == Ok(BYTES);
        for word in bytes.chunks_exact_mut(4) {
            let number = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            word.copy_from_slice(&number.wrapping_add(1).to_le_bytes());
        }
        got && to.send(&bytes, me, limit).is_ok()
    })
}
