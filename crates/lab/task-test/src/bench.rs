//! What the kernel costs, as histograms of time-stamp ticks.

use crate::peer;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt::Write;
use kyozon_task::clock::tsc;
use kyozon_task::ipc::Endpoint;
use kyozon_task::{linux, report, task};

type Histogram = BTreeMap<u64, u64>;

/// Samples that one tick leaves room for, in the shortest budget.
const BATCH: usize = 50;

/// Takes `samples` of everything and tells them.
pub fn run(samples: usize) {
    let peer = Endpoint::of_task(1);
    let (mut nothing, mut call, mut tick) = (Histogram::new(), Histogram::new(), Histogram::new());
    // What two readings of the counter cost is no part of what lies between.
    let empty = (0..100).map(|_| (tsc(), tsc())).map(|(a, b)| b - a).min().unwrap_or(0);
    let mut failed = u32::from(peer.call([peer::SERVE; 6]).is_err());
    for n in 0..samples {
        if n % BATCH == 0 {
            // A slice that begins with its tick is not interrupted by the next one.
            let _ = linux::wait_tick();
        }
        let (a, answer, b) = (tsc(), task::nothing(), tsc());
        *nothing.entry(b - a - empty).or_default() += 1;
        failed += u32::from(answer.is_err());
        let (a, answer, b) = (tsc(), peer.call([1, 2, 3, 4, 5, 6]), tsc());
        *call.entry(b - a - empty).or_default() += 1;
        failed += u32::from(answer.map(|m| m.words) != Ok([1, 2, 3, 4, 5, 6]));
    }
    for _ in 0..samples / 10 {
        let event = linux::wait_tick();
        let now = tsc();
        match event {
            Ok(event) => *tick.entry(now - event.entered_tsc).or_default() += 1,
            Err(_) => failed += 1,
        }
    }
    tell("nothing", &nothing);
    tell("call", &call);
    tell("tick", &tick);
    let _ = report!("test bench: done {samples} failed {failed}");
}

fn tell(name: &str, histogram: &Histogram) {
    let mut line = String::new();
    for (value, count) in histogram {
        let _ = write!(line, " {value}x{count}");
        if line.len() > 130 {
            send(name, &mut line);
        }
    }
    send(name, &mut line);
}

/// The serial line gets some bytes a tick.
fn send(name: &str, line: &mut String) {
    let _ = report!("test bench {name}:{line}");
    line.clear();
    for _ in 0..20 {
        let _ = linux::wait_tick();
    }
}
