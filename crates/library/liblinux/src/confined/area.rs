//! The memory that both processes share: the kernel's log, and slots with their data.
//!
//! The file behind it is sealed: the child cannot make it shorter, so access to it never raises SIGBUS.

use super::slot::Slot;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Bytes of a slot's data. Commands copy files in pieces of 1 MiB; names and structures come in addition.
pub const DATA_BYTES: usize = (1 << 20) + (1 << 17);
/// Bytes of the log that are kept.
const LOG_BYTES: usize = 1 << 16;
/// Where the log starts, behind its counter.
const LOG: usize = 4096;
/// Where the first slot starts.
const SLOTS: usize = LOG + LOG_BYTES;
/// Where a slot's data starts.
const DATA: usize = 4096;
/// Bytes of a slot with its data.
const SLOT_BYTES: usize = DATA + DATA_BYTES;
const _: () = assert!(size_of::<Slot>() <= DATA);

/// The mapped memory.
pub struct Area {
    base: *mut u8,
    slots: usize,
}

// SAFETY: the mapping belongs to no thread. Words are accessed as atomics; data by copies that may see any value.
unsafe impl Send for Area {}
// SAFETY: the same.
unsafe impl Sync for Area {}

fn bytes(slots: usize) -> usize {
    SLOTS + slots * SLOT_BYTES
}

impl Area {
    /// New memory for `slots` slots, and its file, which a child inherits.
    pub fn create(slots: usize) -> io::Result<(Self, OwnedFd)> {
        let how = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string.
        let fd = unsafe { libc::memfd_create(c"kyozon-linux".as_ptr(), how) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes(slots) as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: changes only the file.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((Self::map(&file, slots)?, file.into()))
    }

    /// The memory of an inherited file, which is closed.
    pub fn open(file: OwnedFd, slots: usize) -> io::Result<Self> {
        let file = File::from(file);
        if file.metadata()?.len() != bytes(slots) as u64 {
            return Err(io::Error::other("the shared memory has another size"));
        }
        Self::map(&file, slots)
    }

    fn map(file: &File, slots: usize) -> io::Result<Self> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the system's choice.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), bytes(slots), rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), slots })
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of the mapping.
    pub fn bytes(&self) -> usize {
        bytes(self.slots)
    }

    /// A slot's words.
    ///
    /// # Panics
    ///
    /// There is no such slot.
    pub fn slot(&self, number: usize) -> &Slot {
        assert!(number < self.slots, "a slot that does not exist");
        // SAFETY: the slot is in the mapping, page-aligned, and consists of atomics.
        unsafe { &*self.base.add(SLOTS + number * SLOT_BYTES).cast::<Slot>() }
    }

    /// The address of `bytes` bytes at `offset` of a slot's data, if they are in it.
    pub fn data(&self, slot: usize, offset: usize, bytes: usize) -> Option<*mut u8> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= DATA_BYTES);
        (slot < self.slots && fits)
            .then(|| self.base.wrapping_add(SLOTS + slot * SLOT_BYTES + DATA + offset))
    }

    /// Copies `from` into a slot's data. Returns false, and copies nothing, if it does not fit.
    pub fn put(&self, slot: usize, offset: usize, from: &[u8]) -> bool {
        let Some(to) = self.data(slot, offset, from.len()) else { return false };
        // SAFETY: the range was checked. No reference to shared data exists in either process.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        true
    }

    /// Copies a slot's data to `to`. The other process may write meanwhile: any value is possible. Returns false, and
    /// copies nothing, if the range is not in the data.
    pub fn get(&self, slot: usize, offset: usize, to: &mut [u8]) -> bool {
        let Some(from) = self.data(slot, offset, to.len()) else { return false };
        // SAFETY: the range was checked. No reference to shared data exists in either process.
        unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        true
    }

    fn logged(&self) -> &AtomicU64 {
        // SAFETY: the counter is at the start of the mapping.
        unsafe { &*self.base.cast::<AtomicU64>() }
    }

    /// Appends text to the log. One thread at a time.
    pub fn log(&self, text: &[u8]) {
        let mut at = self.logged().load(Acquire);
        for &byte in text {
            // SAFETY: the offset is in the log.
            unsafe { self.base.add(LOG + at as usize % LOG_BYTES).write_volatile(byte) };
            at = at.wrapping_add(1);
        }
        self.logged().store(at, Release);
    }

    /// The end of the log.
    pub fn read_log(&self) -> Vec<u8> {
        let end = self.logged().load(Acquire);
        let start = end.saturating_sub(LOG_BYTES as u64);
        // SAFETY: offsets are in the log.
        let byte = |at| unsafe { self.base.add(LOG + at as usize % LOG_BYTES).read_volatile() };
        (start..end).map(byte).collect()
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.base.cast(), bytes(self.slots)) };
    }
}

#[cfg(test)]
mod tests;
