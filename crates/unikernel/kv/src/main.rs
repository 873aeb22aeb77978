//! A key-value store that speaks the Redis protocol over TCP. Arguments: its address, such as 10.0.0.2/24, a port, the
//! number of workers, and `debug` if clients may end a worker by DEBUG PANIC. As a program of host threads it also
//! takes `tap=DEVICE` or `socket=PATH`, as in `kyozon run --net`, before these.
#![cfg_attr(feature = "image", no_std, no_main)]

extern crate alloc;

use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::park::Park;
use kyozon_channel::spsc::{Reader, Writer};
use kyozon_kv::brief::Brief;
use kyozon_kv::command::Store;
use kyozon_kv::front::Front;
use kyozon_kv::serve::{serve, CLIENTS};
use kyozon_kv::table::Table;
use kyozon_kv::work::{work, Bell};
use kyozon_kv::RING;
use kyozon_portable::{machine, program, Rings};
use kyozon_unikernel::tcp::smoltcp::wire::IpCidr;
use kyozon_unikernel::tcp::Stack;

program!(run);

/// Maximum bytes of the table: a quarter of a guest's memory by default.
const TABLE: usize = 16 << 20;
/// Maximum number of workers.
const WORKERS: usize = 32;

fn run() -> u8 {
    let words: Vec<String> = machine::arguments().collect();
    let address: Option<IpCidr> = words.first().and_then(|word| word.parse().ok());
    let tcp: Option<u16> = words.get(1).and_then(|word| word.parse().ok()).filter(|tcp| *tcp > 0);
    let workers: Option<usize> = words.get(2).map_or(Some(2), |word| word.parse().ok());
    let workers = workers.filter(|workers| (1..=WORKERS).contains(workers));
    let (Some(address), Some(tcp), Some(workers)) = (address, tcp, workers) else {
        machine::print_line(format_args!(
            "arguments: an address, such as 10.0.0.2/24, a port, and 1 to {WORKERS} workers"
        ));
        return 2;
    };
    let stack = match machine::port() {
        Ok(port) => match Stack::new(port, address, None) {
            Ok(stack) => stack,
            Err(error) => return fail(format_args!("no network: {error}")),
        },
        Err(error) => return fail(format_args!("{error}")),
    };
    let debug = words.get(3).is_some_and(|word| word == "debug");
    let table = Table::new(TABLE, machine::random());
    let store = Store { table, debug };
    machine::with_member(|me| start(stack, store, tcp, workers, &address, Brief(me)))
}

/// Prints an error. Returns the exit status.
fn fail(error: fmt::Arguments<'_>) -> u8 {
    machine::print_line(error);
    1
}

/// Starts the workers, and serves clients until one of them ends the store. Workers borrow nothing, so that one can die
/// alone: what they share lives as long as the program.
fn start<G: TrustedGroup>(
    mut stack: Stack<machine::Port>,
    store: Store,
    tcp: u16,
    workers: usize,
    address: &IpCidr,
    me: Brief<G>,
) -> u8 {
    let store: &'static Store = Box::leak(Box::new(store));
    let rings: &'static Rings = Box::leak(Box::new(Rings::new(2 * workers, RING)));
    let bell: &'static Bell = Box::leak(Box::new(Bell::new(me.me().number())));
    let mut ends = Vec::new();
    let mut threads = Vec::new();
    for worker in 0..workers {
        let (to, from) = (rings.ring(2 * worker), rings.ring(2 * worker + 1));
        let attached = (Writer::attach(to.0, to.1, &me), Reader::attach(from.0, from.1, &me));
        let (Ok(batches), Ok(answers)) = attached else { return 1 };
        ends.push((batches, answers));
        threads.push(machine::thread::spawn(move || {
            machine::with_member(|me| {
                let me = Brief(me);
                let attached =
                    (Reader::attach(to.0, to.1, &me), Writer::attach(from.0, from.1, &me));
                let (Ok(batches), Ok(answers)) = attached else { return false };
                work(batches, answers, store, bell, &me).is_ok()
            })
        }));
    }
    let mut front = Front::new(CLIENTS, ends, &me);
    let ready = front.meet();
    machine::print_line(format_args!("kv at {address}, port {tcp}, {ready} workers"));
    serve(&mut stack, &mut front, bell, tcp, &me);
    front.close();
    let fine = threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|fine| *fine);
    u8::from(fine.count() != workers)
}
