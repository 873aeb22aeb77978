//! Devices that the tender gave: which there are, and starting and stopping their queues.

use crate::queue::Queue;
use crate::{raw, Error, Result};
use kyozon_abi::unikernel::*;

/// A device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    number: u64,
    info: DeviceInfo,
}

/// All devices of this guest, in order.
pub fn all() -> impl Iterator<Item = Device> {
    (0..).map_while(|number| Device::get(number).ok())
}

impl Device {
    fn get(number: u64) -> Result<Self> {
        let zero = core::mem::MaybeUninit::<DeviceInfo>::zeroed();
        // SAFETY: integers only, for which zero is a value.
        let mut info = unsafe { zero.assume_init() };
        // SAFETY: the tender writes a structure of this type to memory of this function's.
        unsafe { raw::ask(ASK_DEVICE, &[number, &raw mut info as u64]) }?;
        // What the tender wrote is not to be read from a register.
        // SAFETY: initialized above.
        Ok(Self { number, info: unsafe { (&raw const info).read_volatile() } })
    }

    /// The device of this kind and name, or with an empty name the first of its kind.
    pub(crate) fn find(kind: u32, name: &str) -> Result<Self> {
        let mut found = all().filter(|device| device.info.kind == kind);
        found.find(|device| name.is_empty() || device.name() == name).ok_or(Error::Name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        let name = &self.info.name;
        let bytes = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        core::str::from_utf8(&name[..bytes]).unwrap_or("")
    }

    /// What the tender says of it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Whether it has a feature bit.
    pub fn has(&self, bit: u32) -> bool {
        self.info.features >> bit & 1 != 0
    }

    /// Entries of a queue, of which `most` are wanted: a power of two.
    pub(crate) fn size(&self, most: u16) -> u16 {
        let size = u16::try_from(self.info.max_size).unwrap_or(most).clamp(1, most);
        1 << size.ilog2()
    }

    /// Starts a queue, which was not started before.
    pub(crate) fn start(&self, index: u64, queue: &Queue) -> Result<()> {
        let [size, descriptors, available, used] = queue.place();
        let arguments = [self.number, index, size, descriptors, available, used];
        // SAFETY: from now on the device reads and writes the queue's memory, and what its descriptors name, as the
        // queue expects.
        unsafe { raw::ask(ASK_QUEUE_START, &arguments) }.map(drop)
    }

    /// Stops a queue: on return the device touches none of its memory. Whether that is so.
    pub(crate) fn stop(&self, index: u64) -> bool {
        // SAFETY: the call touches no memory.
        unsafe { raw::ask(ASK_QUEUE_STOP, &[self.number, index]) }.is_ok()
    }

    /// Whether a queue takes entries; it does not where one was bad.
    pub(crate) fn runs(&self, index: u64) -> bool {
        // SAFETY: the call touches no memory.
        let state = unsafe { raw::ask(ASK_QUEUE_STATE, &[self.number, index]) };
        state == Ok(QUEUE_RUNNING)
    }

    /// Says that there are entries in a queue, where the device wants that said.
    pub(crate) fn ring(&self, index: u32, queue: &mut Queue) {
        if queue.wants_ring() {
            raw::ring(self.info.doorbell + index);
        }
    }
}
