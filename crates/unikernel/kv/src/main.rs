//! A key-value store that speaks the Redis protocol over TCP. Arguments: its address, as 10.0.0.2/24, a port, workers,
//! and `debug` where clients may end a worker by DEBUG PANIC. As a program of the host's threads: before these
//! `tap=DEVICE` or `socket=PATH`, as with `kyozon run --net`.
#![cfg_attr(feature = "image", no_std, no_main)]

extern crate alloc;

use alloc::{string::String, vec::Vec};
use kyozon_channel::park::Park;
use kyozon_channel::spsc::{Reader, Writer};
use kyozon_kv::brief::Brief;
use kyozon_kv::command::Store;
use kyozon_kv::front::Front;
use kyozon_kv::serve::{serve, CLIENTS};
use kyozon_kv::table::Table;
use kyozon_kv::work::{work, Bell};
use kyozon_kv::RING;
use kyozon_portable::{machine, program, Memory};
use kyozon_unikernel::tcp::smoltcp::wire::IpCidr;
use kyozon_unikernel::tcp::Stack;

program!(run);

/// Bytes of the table, at most: a quarter of what a guest has where nobody says otherwise.
const TABLE: usize = 16 << 20;
/// Workers, at most.
const WORKERS: usize = 32;

fn run() -> u8 {
    let words: Vec<String> = machine::arguments().collect();
    let address: Option<IpCidr> = words.first().and_then(|word| word.parse().ok());
    let tcp: Option<u16> = words.get(1).and_then(|word| word.parse().ok()).filter(|tcp| *tcp > 0);
    let workers: Option<usize> = words.get(2).map_or(Some(2), |word| word.parse().ok());
    let workers = workers.filter(|workers| (1..=WORKERS).contains(workers));
    let (Some(address), Some(tcp), Some(workers)) = (address, tcp, workers) else {
        machine::say(format_args!(
            "arguments: an address, such as 10.0.0.2/24, a port, and 1 to {WORKERS} workers"
        ));
        return 2;
    };
    let stack = match machine::port().map(|port| Stack::new(port, address, None)) {
        Ok(Ok(stack)) => stack,
        Ok(Err(error)) => {
            machine::say(format_args!("no network: {error}"));
            return 1;
        }
        Err(why) => {
            machine::say(format_args!("no network: {why}"));
            return 1;
        }
    };
    let debug = words.get(3).is_some_and(|word| word == "debug");
    let table = Table::new(TABLE, machine::random());
    start(stack, &Store { table, debug }, tcp, workers, &address)
}

fn start(
    mut stack: Stack<machine::Port>,
    store: &Store,
    tcp: u16,
    workers: usize,
    address: &IpCidr,
) -> u8 {
    let memory = Memory::new(2 * workers, RING);
    let me = Brief(machine::member());
    let bell = Bell::new(me.me().number());
    machine::thread::scope(|scope| {
        let mut rings = Vec::new();
        let mut threads = Vec::new();
        for worker in 0..workers {
            let (to, from) = (memory.ring(2 * worker), memory.ring(2 * worker + 1));
            let ends = (Writer::attach(to.0, to.1, &me), Reader::attach(from.0, from.1, &me));
            let (Ok(batches), Ok(answers)) = ends else { return 1 };
            rings.push((batches, answers));
            let bell = &bell;
            threads.push(scope.spawn(move || {
                let me = Brief(machine::member());
                let ends = (Reader::attach(to.0, to.1, &me), Writer::attach(from.0, from.1, &me));
                let (Ok(batches), Ok(answers)) = ends else { return false };
                work(batches, answers, store, bell, &me).is_ok()
            }));
        }
        let mut front = Front::new(CLIENTS, rings, &me);
        let met = front.meet();
        machine::say(format_args!("kv at {address}, port {tcp}, {met} workers"));
        serve(&mut stack, &mut front, &bell, tcp, &me);
        front.close();
        let fine = threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|fine| *fine);
        u8::from(fine.count() != workers)
    })
}
