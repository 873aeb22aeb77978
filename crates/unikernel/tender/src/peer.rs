//! One guest of this run, as other threads see it.

use crate::backend::{Kick, Mapping, Space};
use crate::device::Devices;
use crate::error::Result;
use crate::layout::PAGE;
use crate::memory::Memory;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// One guest, as the others' threads see it.
pub struct Peer {
    /// Its address space, which goes before its memory does.
    pub space: Arc<dyn Space>,
    /// Its memory.
    pub memory: Arc<Memory>,
    /// Interrupts its processor, once that has a thread.
    pub kick: OnceLock<Box<dyn Kick>>,
    /// It has to end, for no fault of its own.
    pub lost: AtomicBool,
    /// The guest that was there at the start with whose end it ends; its own number, where it was there.
    pub family: usize,
    /// Which of those that had its number it is, from 1 on.
    pub generation: u32,
    /// Number and generation of the peer that it does not outlive.
    pub bound: Option<(usize, u32)>,
    /// Its devices; a spawned peer has none.
    pub devices: Devices,
}

impl Peer {
    /// Maps a region.
    pub fn map(&self, mapping: &Mapping) -> Result<()> {
        let Mapping { address, bytes, write, ref block, .. } = *mapping;
        self.space.map(mapping)?;
        self.memory.add_window(address, block, 0, PAGE, false);
        self.memory.add_window(address + PAGE, block, PAGE, bytes - PAGE, write);
        Ok(())
    }

    /// Takes a region away; a guest that cannot lose it has to end.
    pub fn unmap(&self, mapping: &Mapping) -> Result<()> {
        self.memory.remove_windows(mapping.address, mapping.bytes);
        if !self.space.unmap(mapping)? {
            self.lost.store(true, Ordering::SeqCst);
            if let Some(kick) = self.kick.get() {
                kick.kick();
            }
        }
        Ok(())
    }
}
