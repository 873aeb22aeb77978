//! A unikernel that takes as much memory as it gets: threads with much private memory, regions, and the whole heap.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use alloc::vec::Vec;
use kyozon_unikernel::region::{Region, Rights};
use kyozon_unikernel::thread::Builder;
use kyozon_unikernel::{main, println, sleep};

main!(run);

/// Bytes of a page.
const PAGE: usize = 4096;
/// Bytes of each piece that is taken.
const PIECE: usize = 4 << 20;

kyozon_unikernel::private! {
    /// Memory that each thread has for itself. Its image is not zero, so the tender fills it.
    static OWN: [u8; PIECE] = [1; PIECE];
}

fn touch(memory: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: the caller's memory, which has `bytes` bytes and which no other code uses.
        unsafe { memory.add(at).write_volatile(2) };
    }
}

fn hold() {
    touch(OWN.pointer().get().cast(), PIECE);
    loop {
        sleep::park(None);
    }
}

fn run() -> u8 {
    let mut threads = Vec::new();
    while let Ok(thread) = Builder::new().stack_size(64 << 10).spawn(hold) {
        threads.push(thread);
    }
    println!("no more threads");
    for number in 0.. {
        let made = Region::create(&format!("r{number}"), PIECE as u64, None);
        let Ok(mapped) = made.and_then(|region| region.map(Rights::Write)) else { break };
        touch(mapped.data(), mapped.bytes());
    }
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(PIECE / 4).is_err() {
            break;
        }
        touch(piece.as_mut_ptr(), PIECE / 4);
        pieces.push(piece);
    }
    println!("all taken");
    hold();
    0
}
