//! A bus: places devices' registers at addresses, and finds the device of an access.

use crate::mmio::{Device, Transport, Window, WINDOW};
use crate::poller::Poller;
use crate::Memory;
use std::fmt::Write;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Raises the interrupt with this number. Any thread calls it, without a lock of this crate.
pub type RaiseNumber = Arc<dyn Fn(u32) + Send + Sync>;

/// The place of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// First address of its registers, which have [`WINDOW`] bytes.
    pub address: u64,
    /// Number of its interrupt.
    pub irq: u32,
}

/// Devices one after the other, from an address and an interrupt number on.
///
/// Dropping it stops the devices' threads. From then on nothing uses the guest's memory or raises an interrupt.
pub struct Bus<M> {
    windows: Vec<Box<dyn Window>>,
    memory: M,
    first: Slot,
    raise: RaiseNumber,
    poller: Arc<Poller>,
}

impl<M: Memory + Clone + Send + Sync + 'static> Bus<M> {
    /// An empty bus. Its devices reach `memory`. The first device gets the place `first`, whose address should be one
    /// that `memory` does not have.
    ///
    /// # Errors
    /// The address is not a multiple of [`WINDOW`].
    pub fn new(memory: M, first: Slot, raise: RaiseNumber) -> Result<Self> {
        if !first.address.is_multiple_of(WINDOW) {
            let text = format!("the address {:#x} is not a multiple of 4 KiB", first.address);
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(Self { windows: Vec::new(), memory, first, raise, poller: Arc::default() })
    }

    /// Adds a device. The guest finds it if it is on the command line at boot.
    ///
    /// # Errors
    /// There is no address or interrupt number left, or Linux refuses the device's thread.
    pub fn add<D: Device<M> + 'static>(&mut self, device: D) -> Result<Slot> {
        let slot = self.slot(self.windows.len()).ok_or(ErrorKind::InvalidInput)?;
        let raise = self.raise.clone();
        let raise = Box::new(move || raise(slot.irq));
        let memory = self.memory.clone();
        let transport = Transport::with_poller(device, memory, raise, &self.poller)?;
        self.windows.push(Box::new(transport));
        Ok(slot)
    }

    /// Lets threads of the guest serve its devices while they wait.
    pub fn poller(&self) -> &Arc<Poller> {
        &self.poller
    }

    fn slot(&self, number: usize) -> Option<Slot> {
        let address = self.first.address.checked_add(WINDOW.checked_mul(number as u64)?)?;
        // All of the window has addresses.
        address.checked_add(WINDOW)?;
        Some(Slot { address, irq: self.first.irq.checked_add(u32::try_from(number).ok()?)? })
    }

    /// The places of all devices.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.windows.len()).filter_map(|number| self.slot(number))
    }

    /// The device of an address, and the offset in its registers.
    fn find(&self, address: u64) -> Option<(&dyn Window, u64)> {
        let offset = address.checked_sub(self.first.address)?;
        let window = self.windows.get(usize::try_from(offset / WINDOW).ok()?)?;
        Some((window.as_ref(), offset % WINDOW))
    }

    /// Reads `size` bytes; `None` if no device is there.
    pub fn read(&self, address: u64, size: u8) -> Option<u64> {
        self.find(address).map(|(window, offset)| window.read(offset, size))
    }

    /// Writes `size` bytes. Returns whether a device is there.
    pub fn write(&self, address: u64, size: u8, value: u64) -> bool {
        self.find(address).map(|(window, offset)| window.write(offset, size, value)).is_some()
    }

    /// One access: writes `value`, or reads. A read where no device is returns all ones, as on a real bus.
    pub fn access(&self, address: u64, size: u8, write: bool, value: u64) -> u64 {
        if write {
            self.write(address, size, value);
            return 0;
        }
        self.read(address, size).unwrap_or(u64::MAX)
    }

    /// The parameters of Linux's command line that name all devices, separated by spaces.
    pub fn command_line(&self) -> String {
        let mut line = String::new();
        for Slot { address, irq } in self.slots() {
            let space = if line.is_empty() { "" } else { " " };
            // A string takes every write.
            let _ = write!(line, "{space}virtio_mmio.device=4K@{address:#x}:{irq}");
        }
        line
    }
}

#[cfg(test)]
mod tests;
