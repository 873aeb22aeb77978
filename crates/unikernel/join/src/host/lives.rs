//! The group's table of peers: which of them live, as the keeper says.

use crate::error::Context;
use crate::{Error, Result};
use kyozon_abi::unikernel::*;
use kyozon_channel::park::Life;
use rustix::fs::fstat;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the table.
const BYTES: usize = MAX_PEERS * size_of::<RegionPeer>();

/// The table's mapping.
#[derive(Debug)]
pub(super) struct Lives(*mut c_void);

impl Lives {
    /// Maps the table.
    pub fn new(file: &OwnedFd) -> Result<Self> {
        // An access behind a file's end would kill this program.
        let about = fstat(file).context("inspect the table of peers")?;
        if (about.st_size as u64) < BYTES as u64 {
            return Err(Error::Gone);
        }
        #[allow(unsafe_code)]
        // SAFETY: a new mapping. The file is sealed, so no process can shrink it.
        let base = unsafe { mmap(null_mut(), BYTES, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        Ok(Self(base.context("map the table of peers")?))
    }

    /// The state of a peer number.
    pub fn life(&self, number: usize) -> Life {
        if number >= MAX_PEERS {
            return Life::NotYet;
        }
        #[allow(unsafe_code)]
        // SAFETY: the row is inside the mapping, and its words are written by atomic stores; a load is allowed on
        // read-only pages.
        let (state, generation) = unsafe {
            let row = self.0.cast::<RegionPeer>().add(number);
            let load = |word: *mut u32| AtomicU32::from_ptr(word).load(Ordering::Acquire);
            (load(&raw mut (*row).state), load(&raw mut (*row).generation))
        };
        match state {
            PEER_PRESENT => Life::Alive(generation),
            PEER_LEFT | PEER_DEAD => Life::Dead,
            _ => Life::NotYet,
        }
    }
}

impl Drop for Lives {
    fn drop(&mut self) {
        #[allow(unsafe_code)]
        // SAFETY: the mapping is this value's.
        let _ = unsafe { munmap(self.0, BYTES) };
    }
}
