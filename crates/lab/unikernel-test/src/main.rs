//! A unikernel that uses, and misuses, everything the tender offers. Its first argument is the name of a case; what
//! is expected of each stands in `tests/unikernel/cases.txt`.
//!
//! | module | what it does |
//! |---|---|
//! | [`good`] | cases that end with status 0, or what they say |
//! | [`hostile`] | cases that crash, or try to |
//! | [`meet`] | cases of guests that different commands run, and of host programs |
//! | [`peers`] | cases of several guests |
//! | [`threads`] | cases of guests that spawn others |
//! | [`devices`] | disks and networks |
//! | [`rings`] | hostile queues |
#![no_std]
#![no_main]

extern crate alloc;

mod crowd;
mod devices;
mod good;
mod hostile;
mod meet;
mod peers;
mod rings;
mod threads;

use kyozon_unikernel::{arguments, main, println};

main!(run);

/// A case: its name, and what it does.
type Case = (&'static str, fn());

fn run() -> u8 {
    let mut words = arguments::strings();
    let Some(name) = words.next() else {
        println!("a case is the first argument");
        return 2;
    };
    if name == "status" {
        return words.next().and_then(|word| word.parse().ok()).unwrap_or(2);
    }
    let all = [
        good::CASES,
        hostile::CASES,
        peers::CASES,
        meet::CASES,
        threads::CASES,
        crowd::CASES,
        devices::CASES,
        rings::CASES,
    ];
    match all.iter().flat_map(|cases| cases.iter()).find(|case| case.0 == name) {
        Some((_, case)) => {
            case();
            println!("{name}: done");
            0
        }
        None => {
            println!("there is no case {name}");
            2
        }
    }
}
