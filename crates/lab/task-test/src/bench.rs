//! Costs of the kernel's calls, as histograms of time-stamp ticks.

use crate::peer;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt::Write;
use kyozon_task::clock::tsc;
use kyozon_task::ipc::Endpoint;
use kyozon_task::{linux, report, task};

type Histogram = BTreeMap<u64, u64>;

/// Samples that fit one tick in the shortest budget.
const BATCH: usize = 50;

/// Takes `samples` of each call and reports them.
pub fn run(samples: usize) {
    let peer = Endpoint::of_task(1);
    let (mut nothing, mut call, mut tick) = (Histogram::new(), Histogram::new(), Histogram::new());
    // The cost of reading the counter twice is subtracted.
    let empty = (0..100).map(|_| (tsc(), tsc())).map(|(a, b)| b - a).min().unwrap_or(0);
    let mut failed = u32::from(peer.call([peer::SERVE; 6]).is_err());
    for n in 0..samples {
        if n % BATCH == 0 {
            // A slice that begins at its tick ends before the next one.
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
    report_histogram("nothing", &nothing);
    report_histogram("call", &call);
    report_histogram("tick", &tick);
    let _ = report!("test bench: done {samples} failed {failed}");
}

fn report_histogram(name: &str, histogram: &Histogram) {
    let mut line = String::new();
    for (value, count) in histogram {
        let _ = write!(line, " {value}x{count}");
        if line.len() > 130 {
            send(name, &mut line);
        }
    }
    send(name, &mut line);
}

/// Reports `line` and waits: the serial line transmits only some bytes per tick.
fn send(name: &str, line: &mut String) {
    let _ = report!("test bench {name}:{line}");
    line.clear();
    for _ in 0..20 {
        let _ = linux::wait_tick();
    }
}
