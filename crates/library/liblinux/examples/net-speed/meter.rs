//! Counts what a TAP device costs: calls, and the time in them.

use kyozon_devices::net::backend::{Backend, Tap};
use kyozon_devices::net::HEADER;
use std::io::Result;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Instant;
use vm_memory::VolatileSlice;

/// One call of so many is timed, because reading the clock costs time itself.
const TIMED: u64 = 16;

/// Calls of the TAP devices since the start.
#[derive(Debug, Default)]
pub struct Meter {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Meter {
    /// Number of calls, and nanoseconds in them, in which the host's stack takes a packet or gives one.
    pub fn read(&self) -> [f64; 2] {
        [&self.calls, &self.nanoseconds].map(|value| value.load(Relaxed) as f64)
    }

    fn count<T>(&self, call: impl FnOnce() -> T) -> T {
        if !self.calls.fetch_add(1, Relaxed).is_multiple_of(TIMED) {
            return call();
        }
        let start = Instant::now();
        let result = call();
        self.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64 * TIMED, Relaxed);
        result
    }
}

/// A TAP device whose calls are counted.
pub struct Metered {
    pub tap: Tap,
    pub meter: Arc<Meter>,
}

impl Backend for Metered {
    fn offloads(&self) -> u64 {
        self.tap.offloads()
    }

    fn takes_datagrams(&self) -> bool {
        self.tap.takes_datagrams()
    }

    fn accept(&self, features: u64) -> Result<()> {
        self.tap.accept(features)
    }

    fn send(&self, packet: &[u8], sent: &mut usize) -> Result<()> {
        self.meter.count(|| self.tap.send(packet, sent))
    }

    fn send_pieces(
        &self,
        header: &[u8; HEADER],
        frame: &[VolatileSlice<'_>],
    ) -> Option<Result<()>> {
        self.meter.count(|| self.tap.send_pieces(header, frame))
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        self.meter.count(|| self.tap.receive(to))
    }

    fn receive_pieces(
        &self,
        header: &mut [u8; HEADER],
        frame: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Option<Result<usize>> {
        self.meter.count(|| self.tap.receive_pieces(header, frame, rest))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.tap.fd()
    }
}
