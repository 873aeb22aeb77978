//! Measures the library's network stack over a TAP device against the host's own over a veth pair, for the table `net`.
//!
//! The peer is the host's stack in both cases, in a network namespace of its own. Both variants run the same code. In
//! each round every variant takes every sample once; odd rounds reverse the order.
//!
//!     net-speed IMAGE ROUNDS MILLISECONDS [CONDITION]
//!
//! takes the samples whose path, test, size and variant contain the condition, `direct TCP_RR 1 library`, and prints a
//! line for each: path, test, bytes of a message, variant, MB/s (of TCP_RR microseconds per request), and nanoseconds
//! of CPU time per KiB (of TCP_RR per request) of this process, which is both ends: all, and those outside the host's
//! kernel, in programs and the library. Of the library two figures follow, for the same unit: calls of the TAP device,
//! and nanoseconds in them.

mod cpu;
mod meter;
mod place;
mod sample;

use place::{Place, PATHS};
use sample::Test;
use std::env;
use std::time::Duration;

/// Tests with their sizes in bytes. A datagram of UDP has at most 65507.
const TESTS: [(Test, &[usize]); 5] = [
    (Test::TcpStream, &[64, 1024, 16384, 65536]),
    (Test::TcpMaerts, &[64, 65536]),
    (Test::UdpStream, &[64, 1024, 65507]),
    (Test::TcpRr, &[1, 1024]),
    (Test::TcpRrOneCpu, &[1, 1024]),
];

fn main() -> place::Result<()> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [image, rounds, ms, wanted @ ..] = &arguments[..] else {
        return Err("usage: net-speed IMAGE ROUNDS MILLISECONDS [CONDITION]".into());
    };
    let wanted = wanted.first().map_or("", String::as_str);
    let (rounds, time): (usize, _) = (rounds.parse()?, Duration::from_millis(ms.parse()?));
    let place = Place::new(image)?;
    for round in 0..=rounds {
        for path in PATHS {
            for (test, sizes) in TESTS {
                for &size in sizes {
                    let condition = format!("{path} {test} {size}");
                    let mut variants = place.variants();
                    variants.retain(|(name, _)| format!("{condition} {name}").contains(wanted));
                    if round % 2 == 1 {
                        variants.reverse();
                    }
                    for (name, side) in variants {
                        let to = place.peer_address(path, name);
                        let result =
                            sample::take(test, size, time, side, place.peer(), to, place.meter())?;
                        // The first round warms caches and neighbours' addresses, and is not counted.
                        if round > 0 {
                            let figures = result.map(|figure| format!("{figure:.4}")).join(" ");
                            println!("{condition} {name} {figures}");
                        }
                    }
                }
            }
        }
    }
    place.end()
}
