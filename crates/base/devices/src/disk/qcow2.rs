//! A disk in a qcow2 image. A library reads and writes the format, in a thread of its own: its stack is larger than
//! what a guest's kernel leaves, and its panic is an error of the disk.
//!
//! | module | contents |
//! |---|---|
//! | `header` | what of the format is accepted |
//! | `storage` | the image's file, with as few system calls as possible |
//! | `thread` | the thread |

mod header;
mod storage;
mod thread;

pub use header::Header;

use super::{Disk, Limits, SECTOR};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::sync::mpsc::{channel, sync_channel, Sender, SyncSender};
use thread::Job;
use vm_memory::{Bytes, VolatileSlice};

/// Maximum bytes that one job reads or writes.
const PIECE: usize = 1 << 20;

/// A disk in a qcow2 image. Clones are the same disk; when the last one is dropped, the thread writes back and ends.
#[derive(Clone, Debug)]
pub struct Qcow2Disk {
    jobs: Sender<(Job, SyncSender<Result<Vec<u8>>>)>,
    bytes: u64,
    limits: Limits,
}

impl Qcow2Disk {
    /// The image in `file`, which ends at byte `end`. Starts the thread, and returns when it needs nothing else.
    pub(super) fn new(file: File, end: u64, header: Header, write: bool) -> Result<Self> {
        let (jobs, queue) = channel();
        thread::start(file, end, header, write, queue)?;
        let limits = Limits { holes: write && header.has_zeros(), ..Limits::default() };
        Ok(Self { jobs, bytes: header.bytes() / SECTOR * SECTOR, limits })
    }

    /// Reads the image's tables now.
    ///
    /// # Errors
    /// An I/O error, or why the image cannot be used.
    pub fn check(&self) -> Result<()> {
        self.run(Job::Open).map(drop)
    }

    /// Gives everything to the host, which need not have it on its disk yet.
    ///
    /// # Errors
    /// An I/O error.
    pub fn write_back(&self) -> Result<()> {
        self.run(Job::WriteBack).map(drop)
    }

    fn run(&self, job: Job) -> Result<Vec<u8>> {
        let gone = || Error::other("the driver of the qcow2 image failed");
        let (answer, answered) = sync_channel(1);
        self.jobs.send((job, answer)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())?
    }
}

/// Calls `each` with the disk's byte, the number of a piece's first byte and that of the next piece.
fn pieces(
    at: u64,
    bytes: usize,
    mut each: impl FnMut(u64, usize, usize) -> Result<()>,
) -> Result<()> {
    let mut done = 0;
    while done < bytes {
        let end = (done + PIECE).min(bytes);
        each(at + done as u64, done, end)?;
        done = end;
    }
    Ok(())
}

fn total(slices: &[VolatileSlice<'_>]) -> usize {
    slices.iter().map(VolatileSlice::len).sum()
}

/// Calls `each` with every slice's part in the bytes from `start` to `end` of all slices.
fn parts(
    slices: &[VolatileSlice<'_>],
    start: usize,
    end: usize,
    mut each: impl FnMut(&VolatileSlice<'_>, usize) -> Result<()>,
) -> Result<()> {
    let mut first = 0;
    for slice in slices {
        let (from, to) = (start.max(first), end.min(first + slice.len()));
        if from < to {
            let part = slice.subslice(from - first, to - from).map_err(Error::other)?;
            each(&part, from - start)?;
        }
        first += slice.len();
    }
    Ok(())
}

impl Disk for Qcow2Disk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, at: u64, to: &[VolatileSlice<'_>]) -> Result<()> {
        pieces(at, total(to), |at, start, end| {
            let data = self.run(Job::Read(at, end - start))?;
            let data = data.get(..end - start).ok_or(ErrorKind::UnexpectedEof)?;
            parts(to, start, end, |part, offset| {
                part.write_slice(&data[offset..offset + part.len()], 0).map_err(Error::other)
            })
        })
    }

    fn write(&mut self, at: u64, from: &[VolatileSlice<'_>]) -> Result<()> {
        pieces(at, total(from), |at, start, end| {
            let mut data = vec![0; end - start];
            parts(from, start, end, |part, offset| {
                let bytes = &mut data[offset..offset + part.len()];
                part.read_slice(bytes, 0).map_err(Error::other)
            })?;
            self.run(Job::Write(at, data)).map(drop)
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.run(Job::Flush).map(drop)
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn discard(&mut self, at: u64, bytes: u64) -> Result<()> {
        self.write_zeros(at, bytes, true)
    }

    fn write_zeros(&mut self, at: u64, bytes: u64, unmap: bool) -> Result<()> {
        self.run(Job::Zeros { at, bytes, unmap }).map(drop)
    }
}

#[cfg(test)]
mod tests;
