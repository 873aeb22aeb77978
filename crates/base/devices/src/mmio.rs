//! The transport virtio-mmio, version 2 (section 4.2): a device as 4 KiB of registers.
//!
//! | module | contents |
//! |---|---|
//! | [`link`] | what a device shares with its transport: queues, the guest's memory, interrupts |
//! | `registers` | the registers, and the order in which a driver may write them |
//!
//! A guest reads and writes registers by function calls on any thread. An access never waits for a device's thread,
//! except when the guest stops a queue: then it waits until the thread no longer uses the guest's memory. No lock is
//! held while an interrupt is raised, so that the function may run the guest's handler, which accesses registers.

pub mod link;
mod registers;

pub use link::{Link, Raise};
use registers::Registers;

use crate::poller::Poller;
use crate::Memory;
use std::io::Result;
use std::sync::{Arc, Mutex};
use virtio_bindings::virtio_mmio::*;

/// Bytes of a device's registers, including its configuration space.
pub const WINDOW: u64 = 4096;

/// A kind of device, behind any transport.
pub trait Device<M>: Send + Sync {
    /// The device's number (section 5).
    fn kind(&self) -> u32;
    /// Feature bits of the device. The transport adds those of queues.
    fn features(&self) -> u64;
    /// Number of queues.
    fn queues(&self) -> usize;
    /// The configuration space.
    fn config(&self) -> Vec<u8>;
    /// Takes over the link to the transport, before the guest's first access. A device with a thread starts it here,
    /// and may let pollers do the thread's work.
    ///
    /// # Errors
    /// Linux refuses a thread.
    fn attach(&mut self, link: &Arc<Link<M>>, poller: &Arc<Poller>) -> Result<()> {
        let _ = (link, poller);
        Ok(())
    }
    /// The guest's driver starts with these features.
    ///
    /// # Errors
    /// The host cannot provide a feature. The guest learns that the device needs a reset.
    fn activate(&self, features: u64) -> Result<()>;
    /// The guest rang for a queue.
    fn notify(&self, link: &Link<M>, queue: usize);
    /// The guest reset the device. Its queues have stopped.
    fn reset(&self);
}

/// Registers that a bus can place.
pub trait Window: Send + Sync {
    /// Reads `size` bytes at `offset`. What cannot be read is 0.
    fn read(&self, offset: u64, size: u8) -> u64;
    /// Writes `size` bytes at `offset`. What cannot be written has no effect.
    fn write(&self, offset: u64, size: u8, value: u64);
}

/// A device's registers.
pub struct Transport<M, D> {
    // Dropped before the link's memory: it stops the device's threads.
    device: D,
    link: Arc<Link<M>>,
    registers: Mutex<Registers>,
}

impl<M: Memory, D: Device<M>> Transport<M, D> {
    /// A transport for `device`, which reaches `memory` and calls `raise` for an interrupt.
    ///
    /// # Errors
    /// Those of [`Device::attach`].
    pub fn new(device: D, memory: M, raise: Raise) -> Result<Self> {
        Self::with_poller(device, memory, raise, &Arc::default())
    }

    /// Like [`Transport::new`], of a device that pollers may serve.
    ///
    /// # Errors
    /// Those of [`Device::attach`].
    pub fn with_poller(
        mut device: D,
        memory: M,
        raise: Raise,
        poller: &Arc<Poller>,
    ) -> Result<Self> {
        let link = Arc::new(Link::new(memory, device.queues(), raise));
        device.attach(&link, poller)?;
        let registers = Mutex::new(Registers::new(device.features(), device.queues()));
        Ok(Self { device, link, registers })
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The link between both.
    pub fn link(&self) -> &Link<M> {
        &self.link
    }

    fn with<T>(&self, with: impl FnOnce(&mut Registers) -> T) -> T {
        with(&mut self.registers.lock().unwrap_or_else(|e| e.into_inner()))
    }

    fn config(&self, offset: u64, size: u8) -> u64 {
        let config = self.device.config();
        let mut bytes = [0; 8];
        let at = (offset - u64::from(VIRTIO_MMIO_CONFIG)) as usize;
        let present = config.iter().skip(at).take(usize::from(size));
        for (to, from) in bytes.iter_mut().zip(present) {
            *to = *from;
        }
        u64::from_le_bytes(bytes)
    }

    fn set_status(&self, value: u32) {
        let start = self.with(|registers| {
            if value == 0 {
                self.link.stop();
                registers.reset();
                self.device.reset();
                return None;
            }
            registers.set_status(value).then(|| registers.features())
        });
        if let Some(features) = start {
            // The device runs before the guest can ring: the guest is in this access.
            match self.device.activate(features) {
                Ok(()) => self.link.start(),
                Err(_) => self.link.need_reset(),
            }
            for queue in 0..self.device.queues() {
                self.device.notify(&self.link, queue);
            }
        }
    }
}

/// Whether an access of this size at this offset is one that section 4.2.2.2 allows.
fn allowed(offset: u64, size: u8) -> bool {
    match offset {
        _ if !matches!(size, 1 | 2 | 4 | 8) || offset >= WINDOW => false,
        offset if offset >= u64::from(VIRTIO_MMIO_CONFIG) => true,
        _ => size == 4 && offset.is_multiple_of(4),
    }
}

impl<M: Memory + Send + Sync, D: Device<M>> Window for Transport<M, D> {
    fn read(&self, offset: u64, size: u8) -> u64 {
        if !allowed(offset, size) {
            return 0;
        }
        if offset >= u64::from(VIRTIO_MMIO_CONFIG) {
            return self.config(offset, size);
        }
        let value = match offset as u32 {
            VIRTIO_MMIO_DEVICE_ID => self.device.kind(),
            VIRTIO_MMIO_INTERRUPT_STATUS => self.link.pending(),
            VIRTIO_MMIO_CONFIG_GENERATION => self.link.generation(),
            VIRTIO_MMIO_STATUS => self.with(|registers| registers.status()) | self.link.status(),
            register => self.with(|registers| registers.read(register)),
        };
        u64::from(value)
    }

    fn write(&self, offset: u64, size: u8, value: u64) {
        // No device has a configuration space that a driver may write.
        if !allowed(offset, size) || offset >= u64::from(VIRTIO_MMIO_CONFIG) {
            return;
        }
        let value = value as u32;
        match offset as u32 {
            VIRTIO_MMIO_QUEUE_NOTIFY => {
                let queue = value as usize;
                if queue < self.device.queues() && self.link.is_live() {
                    self.device.notify(&self.link, queue);
                }
            }
            VIRTIO_MMIO_INTERRUPT_ACK => self.link.acknowledge(value),
            VIRTIO_MMIO_STATUS => self.set_status(value),
            register => {
                if !self.with(|registers| registers.write(register, value, &self.link)) {
                    self.link.need_reset();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
