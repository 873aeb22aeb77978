//! The thread that reads and writes a qcow2 image.

use super::header::Header;
use super::storage::Descriptor;
use imago::qcow2::Qcow2;
use imago::{DenyImplicitOpenGate, FormatAccess, FormatDriverBuilder};
use std::fs::File;
use std::io::{Error, Result};
use std::sync::mpsc::{channel, Receiver, SyncSender};
use std::thread::Builder;

/// Bytes of its stack.
const STACK: usize = 1 << 20;

/// What the thread does.
#[derive(Debug)]
pub enum Job {
    /// Reads the image's tables.
    Open,
    /// Reads this number of bytes from a byte of the disk on.
    Read(u64, usize),
    /// Writes bytes to the disk.
    Write(u64, Vec<u8>),
    /// Writes zeros. With `unmap` it frees what it can.
    Zeros {
        /// The disk's byte.
        at: u64,
        /// How many.
        bytes: u64,
        /// Storage is not needed.
        unmap: bool,
    },
    /// Gives everything to the host.
    WriteBack,
    /// The same, and waits until it survives a loss of power.
    Flush,
}

/// An image that is open.
struct Opened {
    access: FormatAccess<Descriptor>,
    file: Descriptor,
    cluster: u64,
}

impl Opened {
    fn new(file: Descriptor, header: Header, write: bool) -> Result<Self> {
        let image = Qcow2::<Descriptor>::builder(file.clone()).write(write).backing(None);
        let image = image.open(DenyImplicitOpenGate::default())?;
        Ok(Self { access: FormatAccess::new(image), file, cluster: header.cluster() })
    }

    fn run(&mut self, job: Job) -> Result<Vec<u8>> {
        match job {
            Job::Open => Ok(()),
            Job::Read(at, bytes) => {
                let mut data = vec![0; bytes];
                return self.access.read(&mut data[..], at).map(|()| data);
            }
            Job::Write(at, data) => self.settle(|image| image.write(at, &data)),
            Job::Zeros { at, bytes, unmap: true } => {
                self.settle(|image| image.access.discard_to_zero(at, bytes))
            }
            Job::Zeros { at, bytes, unmap: false } => {
                self.settle(|image| image.access.write_zeroes(at, bytes))
            }
            Job::WriteBack => self.flush(),
            Job::Flush => self.flush().and_then(|()| self.access.sync()),
        }
        .map(|()| Vec::new())
    }

    /// Writes cluster by cluster. For more, the library could take clusters that are not the first free ones, then a
    /// new block of reference counts, and put this where it is not counted yet.
    fn write(&self, mut at: u64, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let room = self.cluster - at % self.cluster;
            let (now, later) = data.split_at(data.len().min(room as usize));
            self.access.write(now, at)?;
            (at, data) = (at + now.len() as u64, later);
        }
        Ok(())
    }

    /// Writes the tables. If that fails, what they lead to may be lost, and nothing more is written.
    fn flush(&self) -> Result<()> {
        let done = self.access.flush().and_then(|()| self.file.commit());
        done.inspect_err(|_| self.file.stop())
    }

    /// Does something, and writes entries of the L1 table that wait then.
    fn settle(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let done = work(self);
        if self.file.waits() {
            self.flush()?;
        }
        done
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Whoever waits for the result has flushed before.
        let _ = self.flush();
    }
}

/// What it gets: jobs, and where the answers go.
type Queue = Receiver<(Job, SyncSender<Result<Vec<u8>>>)>;

fn serve(file: &Descriptor, header: Header, write: bool, queue: &Queue) {
    let mut image = None;
    for (job, answer) in queue {
        let opened = match image.take() {
            Some(opened) => Ok(opened),
            None => Opened::new(file.clone(), header, write),
        };
        let result = opened.and_then(|opened| image.insert(opened).run(job));
        let text = |error: Error| match error.raw_os_error() {
            Some(_) => error,
            None => Error::new(error.kind(), format!("the qcow2 image: {error}")),
        };
        // Nobody waits any more if the asking thread has ended.
        let _ = answer.send(result.map_err(text));
    }
}

/// Starts the thread, and waits until it has all that it needs from the system.
pub fn start(file: File, end: u64, header: Header, write: bool, queue: Queue) -> Result<()> {
    let file = Descriptor::new(file, end, header.l1());
    // Its first allocation, which the message makes, prepares the thread's heap.
    let (ready, started) = channel();
    Builder::new().name("qcow2".into()).stack_size(STACK).spawn(move || {
        // The receiver waits for it.
        let _ = ready.send(());
        serve(&file, header, write, &queue);
    })?;
    started.recv().map_err(Error::other)
}

#[cfg(test)]
mod tests;
