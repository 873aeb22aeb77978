//! How late ticks come: every one of a number of ticks, as three histograms, told over the serial line.
//!
//! T0 is the scheduled expiry of the timer, T1 the first instruction of the tick handler. *entry* is T0 until the first
//! instruction that is ours (beside Linux: the module's NMI handler), *path* from there to T1, *late* the sum.

use crate::layer::{idle, say, tsc};
use core::cell::UnsafeCell;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::TickEvent;
use kyozon_abi::line::Line;

/// Time-stamp ticks that have a bin of their own; what is longer is told one by one.
const BINS: usize = 8192;
/// How many longer ones are told.
const LONG: usize = 512;
/// Ticks between two lines: the serial line gets 16 bytes a tick.
const REST: u32 = 20;

struct Histogram {
    bins: [u32; BINS],
    long: [u64; LONG],
    longs: usize,
}

struct Samples(UnsafeCell<[Histogram; 3]>);

// SAFETY: one CPU; the tick handler writes while `WANTED` is above `TAKEN`, the script reads after that.
unsafe impl Sync for Samples {}

const EMPTY: Histogram = Histogram { bins: [0; BINS], long: [0; LONG], longs: 0 };
static SAMPLES: Samples = Samples(UnsafeCell::new([EMPTY; 3]));
static WANTED: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Called by the tick handler with the time of its first instruction.
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

/// Takes `wanted` samples and tells them.
pub fn run(wanted: u64) {
    for _ in 0..REST {
        idle(); // the first ticks warm the path
    }
    let begin = tsc();
    WANTED.store(wanted, Relaxed);
    while TAKEN.load(Relaxed) < wanted {
        idle();
    }
    let end = tsc();
    // SAFETY: see `Samples`: nobody writes any more.
    let histograms = unsafe { &*SAMPLES.0.get() };
    for (histogram, name) in histograms.iter().zip(["entry", "path", "late"]) {
        tell(histogram, name);
    }
    say(format_args!("test latency: done {wanted} in {}", end - begin));
}

fn tell(histogram: &Histogram, name: &str) {
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
    say(format_args!("test latency {name}:{text}"));
    *line = Line::EMPTY;
    for _ in 0..REST {
        idle();
    }
}
