//! The file of a qcow2 image for the library: `preadv`, `pwritev` and `fdatasync` on one descriptor, nothing else.
//!
//! The library writes the entry of a new L2 table into the L1 table before the table's reference count. A crash between
//! both would leave a table that is in use and free. So entries of the L1 table wait here until everything else is
//! written.

use imago::io_buffers::{IoVector, IoVectorMut};
use imago::storage::drivers::CommonStorageHelper;
use imago::Storage;
use rustix::io::{preadv, pwritev, Errno};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of an entry.
const ENTRY: u64 = 8;

#[derive(Debug)]
struct Inner {
    file: File,
    /// Where the file ends.
    end: AtomicU64,
    l1: Range<u64>,
    waiting: Mutex<BTreeMap<u64, Vec<u8>>>,
    /// All writes fail.
    stopped: AtomicBool,
    helper: CommonStorageHelper,
    /// Number of writes before all others fail, as if the process had been killed.
    #[cfg(test)]
    writes_left: AtomicU64,
}

/// The file. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Descriptor(Arc<Inner>);

impl Descriptor {
    /// A file of `end` bytes whose L1 table is `l1`.
    pub fn new(file: File, end: u64, l1: Range<u64>) -> Self {
        let (end, waiting, helper) = (end.into(), Mutex::default(), CommonStorageHelper::default());
        Self(Arc::new(Inner {
            file,
            end,
            l1,
            waiting,
            stopped: AtomicBool::new(false),
            helper,
            #[cfg(test)]
            writes_left: u64::MAX.into(),
        }))
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<u8>>> {
        self.0.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether entries of the L1 table wait.
    pub fn waits(&self) -> bool {
        !self.waiting().is_empty()
    }

    /// Writes the entries. Everything that they lead to must have been written.
    pub fn commit(&self) -> Result<()> {
        let mut waiting = self.waiting();
        while let Some((at, entry)) = waiting.first_key_value() {
            self.write_all(*at, &mut [IoSlice::new(entry)])?;
            waiting.pop_first();
        }
        Ok(())
    }

    /// Writes nothing any more.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Makes all writes but the next `writes` fail.
    #[cfg(test)]
    pub fn fail_after(&self, writes: u64) {
        self.0.writes_left.store(writes, Ordering::Relaxed);
    }

    #[cfg(test)]
    fn count(&self) -> Result<()> {
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let left = self.0.writes_left.fetch_update(set, get, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Error::other("no writes are left"))
    }

    fn write_all(&self, mut at: u64, mut from: &mut [IoSlice<'_>]) -> Result<()> {
        IoSlice::advance_slices(&mut from, 0);
        if self.0.stopped.load(Ordering::Relaxed) {
            return Err(Error::other("an error before left its tables unwritten"));
        }
        #[cfg(test)]
        self.count()?;
        while !from.is_empty() {
            match pwritev(&self.0.file, from, at) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    at += bytes as u64;
                    IoSlice::advance_slices(&mut from, bytes);
                }
                Err(Errno::INTR) => (),
                Err(errno) => return Err(errno.into()),
            }
        }
        self.0.end.fetch_max(at, Ordering::Relaxed);
        Ok(())
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("qcow2 image")
    }
}

impl Storage for Descriptor {
    fn size(&self) -> Result<u64> {
        Ok(self.0.end.load(Ordering::Relaxed))
    }

    unsafe fn pure_readv(&self, to: IoVectorMut<'_>, mut at: u64) -> Result<()> {
        let mut slices: Vec<IoSliceMut<'_>> = to.into_inner();
        let mut rest = &mut slices[..];
        IoSliceMut::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            // An offset that is no `off_t` is an error of the call.
            match preadv(&self.0.file, rest, at) {
                // Behind the end are zeros.
                Ok(0) => {
                    rest.iter_mut().for_each(|slice| slice.fill(0));
                    break;
                }
                Ok(bytes) => {
                    at = at.checked_add(bytes as u64).ok_or(ErrorKind::InvalidInput)?;
                    IoSliceMut::advance_slices(&mut rest, bytes);
                }
                Err(Errno::INTR) => (),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    unsafe fn pure_writev(&self, from: IoVector<'_>, at: u64) -> Result<()> {
        let mut slices = from.into_inner();
        let bytes: u64 = slices.iter().map(|slice| slice.len() as u64).sum();
        let end = at.checked_add(bytes).ok_or(ErrorKind::InvalidInput)?;
        if bytes == ENTRY && self.0.l1.start <= at && end <= self.0.l1.end {
            let entry = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            self.waiting().insert(at, entry);
            return Ok(());
        }
        self.write_all(at, &mut slices)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.0.file.sync_data()
    }

    unsafe fn invalidate_cache(&self) -> Result<()> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    fn get_storage_helper(&self) -> &CommonStorageHelper {
        &self.0.helper
    }
}
