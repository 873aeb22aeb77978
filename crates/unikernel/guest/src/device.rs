//! The guest's devices: finding them, and starting and stopping their queues.

use crate::queue::Queue;
use crate::{raw, Error, Result};
use kyozon_abi::unikernel::*;

/// A device that the tender gave to this guest.
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
        // SAFETY: the tender writes a structure of this type to this function's variable.
        unsafe { raw::hypercall(ASK_DEVICE, &[number, &raw mut info as u64]) }?;
        // Volatile, as the compiler does not see the tender's write.
        // SAFETY: initialized above.
        Ok(Self { number, info: unsafe { (&raw const info).read_volatile() } })
    }

    /// The device of this kind and name; if the name is empty, the first of its kind.
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

    /// The tender's description of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Whether the device has a feature bit.
    pub fn has(&self, bit: u32) -> bool {
        self.info.features >> bit & 1 != 0
    }

    /// Entries of a queue: the largest power of two that the device takes, at most `max`.
    pub(crate) fn queue_size(&self, max: u16) -> u16 {
        let size = u16::try_from(self.info.max_size).unwrap_or(max).clamp(1, max);
        1 << size.ilog2()
    }

    /// Starts a queue that is not running.
    pub(crate) fn start(&self, index: u64, queue: &Queue) -> Result<()> {
        let [size, descriptors, available, used] = queue.layout();
        let arguments = [self.number, index, size, descriptors, available, used];
        // SAFETY: from now on the device reads and writes the queue's memory, and what its descriptors name, as the
        // queue expects.
        unsafe { raw::hypercall(ASK_QUEUE_START, &arguments) }.map(drop)
    }

    /// Stops a queue. If it returns true, the device touches none of the queue's memory any more.
    pub(crate) fn stop(&self, index: u64) -> bool {
        // SAFETY: the call touches no memory.
        unsafe { raw::hypercall(ASK_QUEUE_STOP, &[self.number, index]) }.is_ok()
    }

    /// Whether a queue runs; a bad entry stops it.
    pub(crate) fn runs(&self, index: u64) -> bool {
        // SAFETY: the call touches no memory.
        let state = unsafe { raw::hypercall(ASK_QUEUE_STATE, &[self.number, index]) };
        state == Ok(QUEUE_RUNNING)
    }

    /// Notifies the device of new entries in a queue, if it wants that.
    pub(crate) fn ring(&self, index: u32, queue: &mut Queue) {
        if queue.wants_ring() {
            raw::ring(self.info.doorbell + index);
        }
    }
}
