//! Records the frames of another backend in a file that tcpdump and Wireshark read.

use super::super::HEADER;
use super::Backend;
use std::fs::File;
use std::io::{Result, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file's magic number for times in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The version of the format.
const VERSION: [u16; 2] = [2, 4];
/// The maximum length of a frame in the file.
const SNAPSHOT: u32 = 1 << 18;
/// The link type of Ethernet.
const ETHERNET: u32 = 1;

/// A backend whose frames are recorded.
#[derive(Debug)]
pub struct Pcap<B> {
    backend: B,
    file: Mutex<File>,
    unrecorded: AtomicU64,
}

impl<B: Backend> Pcap<B> {
    /// Records the frames of `backend` in `file`, which is empty. Those that their receiver divides are recorded as a
    /// whole, with the checksums that they have.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(backend: B, mut file: File) -> Result<Self> {
        let [major, minor] = VERSION;
        let version = u32::from(major) | u32::from(minor) << 16;
        let header = [MAGIC, version, 0, 0, SNAPSHOT, ETHERNET];
        file.write_all(&header.map(u32::to_le_bytes).concat())?;
        Ok(Self { backend, file: Mutex::new(file), unrecorded: AtomicU64::new(0) })
    }

    /// Number of frames that the file did not take.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Ordering::Relaxed)
    }

    fn record(&self, packet: &[u8]) {
        let Some(frame) = packet.get(HEADER..) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let length = frame.len() as u32;
        let header = [now.as_secs() as u32, now.subsec_nanos(), length, length];
        let record = [&header.map(u32::to_le_bytes).concat(), frame].concat();
        let mut file = self.file.lock().unwrap_or_else(|e| e.into_inner());
        // The network works on if the disk is full.
        if file.write_all(&record).is_err() {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<B: Backend> Backend for Pcap<B> {
    fn offloads(&self) -> u64 {
        self.backend.offloads()
    }

    fn accept(&self, features: u64) -> Result<()> {
        self.backend.accept(features)
    }

    fn send(&self, packet: &[u8], sent: &mut usize) -> Result<()> {
        self.backend.send(packet, sent)?;
        self.record(packet);
        Ok(())
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        let bytes = self.backend.receive(to)?;
        self.record(&to[..bytes]);
        Ok(bytes)
    }

    fn holds_packets(&self) -> bool {
        self.backend.holds_packets()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.backend.fd()
    }
}

#[cfg(test)]
mod tests;
