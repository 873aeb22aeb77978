//! The group's table of peers: one page with the state and the generation of each number, and with the count of deaths,
//! at [`GuestBoot::peer_table`](kyozon_abi::unikernel::GuestBoot::peer_table) in every guest.
//!
//! The keeper writes the table of a group that several runs can join, and a run writes its own otherwise. All others
//! map the page and can only read it, so there is one answer to the question whether a peer lives.

use crate::error::{Context, Result};
use crate::layout::PAGE;
use crate::memory::{block, memory_file, Block};
use crate::process::read_only;
use kyozon_abi::unikernel::{RegionPeer, MAX_PEERS, PEER_DEAD};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use vm_memory::VolatileMemory;

/// Offset of the count of deaths.
const DEATHS: usize = MAX_PEERS * size_of::<RegionPeer>();
const _: () = assert!(DEATHS + 4 <= PAGE as usize);

/// The table, as its writer or a reader has it.
#[derive(Clone, Debug)]
pub struct Lives {
    /// The page, if this process writes it.
    own: Option<Block>,
    /// A descriptor of the page.
    file: Arc<File>,
}

impl Lives {
    /// An empty table that this process writes.
    ///
    /// # Errors
    ///
    /// Linux refuses the memory.
    pub fn new() -> Result<Self> {
        let file = memory_file(c"kyozon-peers", PAGE)?;
        let own = block(PAGE, Some(file.try_clone().context("too many open files")?))?;
        Ok(Self { own: Some(own), file: Arc::new(file) })
    }

    /// The table that another process writes.
    pub fn of(file: OwnedFd) -> Self {
        Self { own: None, file: Arc::new(file.into()) }
    }

    /// The page's file.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// The page's file for another process, which can only read it.
    ///
    /// # Errors
    ///
    /// `/proc` is not mounted, or Linux refuses another descriptor.
    pub fn reader(&self) -> Result<OwnedFd> {
        Ok(read_only(self.file.as_fd())?.into())
    }

    /// Writes a number's row, if this process writes the table: the generation first, so that a reader that sees a peer
    /// present sees the right generation.
    pub fn set(&self, number: usize, row: RegionPeer) {
        let Some(block) = &self.own else { return };
        for (field, value) in [(4, row.generation), (0, row.state)] {
            let at = number * size_of::<RegionPeer>() + field;
            if let Ok(word) = block.get_atomic_ref::<AtomicU32>(at) {
                word.store(value, Ordering::Release);
            }
        }
        if let (PEER_DEAD, Ok(deaths)) = (row.state, block.get_atomic_ref::<AtomicU32>(DEATHS)) {
            deaths.fetch_add(1, Ordering::Release);
        }
    }
}
