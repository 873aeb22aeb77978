//! One guest of this run, as the threads of other guests and devices use it.

use crate::backend::{Kick, Mapping, Space};
use crate::bond::Bond;
use crate::device::Devices;
use crate::error::Result;
use crate::layout::PAGE;
use crate::memory::Memory;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// One guest.
pub struct Peer {
    /// Its address space. The field comes before `memory`, so that it is dropped first.
    pub space: Arc<dyn Space>,
    /// Its memory.
    pub memory: Arc<Memory>,
    /// Interrupts its processor; not set before its thread runs.
    pub kick: OnceLock<Box<dyn Kick>>,
    /// Whether it must end although it neither exited nor crashed.
    pub must_end: AtomicBool,
    /// Number of the family's first peer, which existed at the run's start, and with which the family ends. For that
    /// peer itself, its own number.
    pub family: usize,
    /// Generation of its number: 1 for the number's first peer, one more for each later one.
    pub generation: u32,
    /// Number and generation of the peer with which it ends, if it is bound to one.
    pub bound: Option<(usize, u32)>,
    /// How its end and those of the peers bound to it are joined.
    pub bond: Bond,
    /// Its devices; a spawned peer has none.
    pub devices: Devices,
}

impl Peer {
    /// Maps a region into the address space, and makes it known to the tender's memory accesses.
    pub fn map(&self, mapping: &Mapping) -> Result<()> {
        let Mapping { address, bytes, write, ref block, .. } = *mapping;
        self.space.map(mapping)?;
        self.memory.add_window(address, block, 0, PAGE, false);
        self.memory.add_window(address + PAGE, block, PAGE, bytes - PAGE, write);
        Ok(())
    }

    /// Unmaps a region. A guest whose backend cannot unmap it must end.
    pub fn unmap(&self, mapping: &Mapping) -> Result<()> {
        self.memory.remove_windows(mapping.address, mapping.bytes);
        if !self.space.unmap(mapping)? {
            self.must_end.store(true, Ordering::SeqCst);
            if let Some(kick) = self.kick.get() {
                kick.kick();
            }
        }
        Ok(())
    }
}
