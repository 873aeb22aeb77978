//! Tick latency: three histograms over a number of ticks, reported on the serial line.
//!
//! T0 is the timer's scheduled expiry, T1 the first instruction of the tick handler. *entry* is the time from T0 to the
//! first instruction of Kyozon (beside Linux: the module's NMI handler), *path* the time from there to T1, *late* the
//! sum.

use crate::layer::{idle, print, tsc};
use core::cell::UnsafeCell;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::TickEvent;
use kyozon_abi::line::Line;

/// Values in time-stamp ticks that have a bin; longer ones are listed one by one.
const BINS: usize = 8192;
/// Maximum number of listed longer values.
const LONG: usize = 512;
/// Ticks between two lines: the serial line transmits 16 bytes per tick.
const REST: u32 = 20;

struct Histogram {
    bins: [u32; BINS],
    long: [u64; LONG],
    longs: usize,
}

struct Samples(UnsafeCell<[Histogram; 3]>);

// SAFETY: one CPU; the tick handler writes while `TAKEN` is below `WANTED`, and the script reads afterwards.
unsafe impl Sync for Samples {}

const EMPTY: Histogram = Histogram { bins: [0; BINS], long: [0; LONG], longs: 0 };
static SAMPLES: Samples = Samples(UnsafeCell::new([EMPTY; 3]));
static WANTED: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes a sample. The tick handler calls it with the time of its first instruction.
pub fn take(event: &TickEvent, now: u64) {
    if TAKEN.load(Relaxed) >= WANTED.load(Relaxed) {
        return;
    }
    // SAFETY: see `Samples`.
    let histograms = unsafe { &mut *SAMPLES.0.get() };
    let entry = event.entered_tsc.wrapping_sub(event.scheduled_tsc);
    let path = now.wrapping_sub(event.entered_tsc);
    for (histogram, value) in histograms.iter_mut().zip([entry, path, entry.wrapping_add(path)]) {
        match histogram.bins.get_mut(value as usize) {
            Some(bin) => *bin += 1,
            None if histogram.longs < LONG => {
                histogram.long[histogram.longs] = value;
                histogram.longs += 1;
            }
            None => {}
        }
    }
    TAKEN.fetch_add(1, Relaxed);
}

/// Takes `wanted` samples and reports them.
pub fn run(wanted: u64) {
    for _ in 0..REST {
        idle(); // the first ticks warm up the path
    }
    let begin = tsc();
    WANTED.store(wanted, Relaxed);
    while TAKEN.load(Relaxed) < wanted {
        idle();
    }
    let end = tsc();
    // SAFETY: see `Samples`: all samples are taken.
    let histograms = unsafe { &*SAMPLES.0.get() };
    for (histogram, name) in histograms.iter().zip(["entry", "path", "late"]) {
        print_histogram(histogram, name);
    }
    print(format_args!("test latency: done {wanted} in {}", end - begin));
}

fn print_histogram(histogram: &Histogram, name: &str) {
    let mut line = Line::EMPTY;
    let filled = histogram.bins.iter().enumerate().filter(|(_, count)| **count > 0);
    let bins = filled.map(|(value, count)| (value as u64, *count));
    let long = histogram.long[..histogram.longs].iter().map(|value| (*value, 1));
    for (value, count) in bins.chain(long) {
        let _ = write!(line, " {value}x{count}");
        if line.bytes().len() > 130 {
            send(&mut line, name);
        }
    }
    send(&mut line, name);
}

fn send(line: &mut Line<180>, name: &str) {
    let text = core::str::from_utf8(line.bytes()).unwrap_or("?");
    print(format_args!("test latency {name}:{text}"));
    *line = Line::EMPTY;
    for _ in 0..REST {
        idle();
    }
}
