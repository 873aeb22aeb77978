//! A unikernel that uses and misuses everything the tender offers. Its first argument is the name of a case;
//! `tests/unikernel/cases.txt` has the expected result of each.
//!
//! | module | cases |
//! |---|---|
//! | [`good`] | valid uses: status 0, or the status that the case asks for |
//! | [`hostile`] | crashes, and attempts at them |
//! | [`meet`] | guests of different commands, and host programs |
//! | [`peers`] | several guests |
//! | [`threads`] | guests that spawn others |
//! | [`crowd`] | threads in a group that several commands share |
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

/// A case: its name and its function.
type Case = (&'static str, fn());

fn run() -> u8 {
    let mut words = arguments::strings();
    let Some(name) = words.next() else {
        println!("the first argument must be the name of a case");
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
            println!("no case {name}");
            2
        }
    }
}
