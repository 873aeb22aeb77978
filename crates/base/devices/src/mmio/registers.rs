//! The registers of a device, and the order in which a driver may write them (sections 3.1.1 and 4.2.2).
//!
//! A write out of order has no effect.

use super::Link;
use crate::ring::{Place, FEATURES, MAX_SIZE};
use crate::Memory;
use virtio_bindings::virtio_config::*;
use virtio_bindings::virtio_mmio::*;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

/// "virt", the first register.
const MAGIC: u32 = u32::from_le_bytes(*b"virt");
/// The version without legacy registers.
const VERSION: u32 = 2;
/// No vendor's number is registered for this transport.
const VENDOR: u32 = u32::from_le_bytes(*b"KYZN");
/// `QueueReset` (section 4.2.2), which `virtio-bindings` does not have.
pub(super) const VIRTIO_MMIO_QUEUE_RESET: u32 = 0x0c0;

/// Feature bits of the transport and its queues.
pub(super) const TRANSPORT: u64 =
    FEATURES | 1 << VIRTIO_RING_F_INDIRECT_DESC | 1 << VIRTIO_F_RING_RESET;

const ACKNOWLEDGE: u32 = VIRTIO_CONFIG_S_ACKNOWLEDGE;
const DRIVER: u32 = VIRTIO_CONFIG_S_DRIVER;
const FEATURES_OK: u32 = VIRTIO_CONFIG_S_FEATURES_OK;
const DRIVER_OK: u32 = VIRTIO_CONFIG_S_DRIVER_OK;
const FAILED: u32 = VIRTIO_CONFIG_S_FAILED;

/// Values that the driver wrote.
#[derive(Debug)]
pub(super) struct Registers {
    offered: u64,
    accepted: u64,
    status: u32,
    device_half: u32,
    driver_half: u32,
    selected: usize,
    queues: Vec<Queue>,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    place: Place,
    ready: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { place: Place { size: MAX_SIZE, ..Place::default() }, ready: false }
    }
}

/// One half of a word with 64 bits.
fn half(word: u64, half: u32) -> u32 {
    match half {
        0 => word as u32,
        1 => (word >> 32) as u32,
        _ => 0,
    }
}

fn set_half(word: &mut u64, half: u32, value: u32) {
    let value = u64::from(value);
    match half {
        0 => *word = *word >> 32 << 32 | value,
        1 => *word = *word << 32 >> 32 | value << 32,
        _ => {}
    }
}

impl Registers {
    pub(super) fn new(features: u64, queues: usize) -> Self {
        Self {
            offered: features | TRANSPORT,
            accepted: 0,
            status: 0,
            device_half: 0,
            driver_half: 0,
            selected: 0,
            queues: vec![Queue::default(); queues],
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new(self.offered, self.queues.len());
    }

    pub(super) fn status(&self) -> u32 {
        self.status
    }

    pub(super) fn features(&self) -> u64 {
        self.accepted
    }

    fn has(&self, bit: u32) -> bool {
        self.status & bit != 0
    }

    /// Sets bits in the order of section 3.1.1, as far as the driver kept it. Returns whether the device starts.
    pub(super) fn set_status(&mut self, value: u32) -> bool {
        let before = self.status;
        // A driver that clears a bit must reset the device (section 2.1.1).
        if before & !value != 0 || before & FAILED != 0 {
            self.status |= value & FAILED;
            return false;
        }
        self.status |= value & (FAILED | ACKNOWLEDGE);
        for (bit, after) in [(DRIVER, ACKNOWLEDGE), (FEATURES_OK, DRIVER), (DRIVER_OK, FEATURES_OK)]
        {
            let valid = bit != FEATURES_OK || self.valid_features();
            if self.has(after) && valid {
                self.status |= value & bit;
            }
        }
        self.status & !before & DRIVER_OK != 0
    }

    fn valid_features(&self) -> bool {
        self.accepted & !self.offered == 0 && self.accepted >> VIRTIO_F_VERSION_1 & 1 != 0
    }

    pub(super) fn read(&self, register: u32) -> u32 {
        let queue = self.queues.get(self.selected);
        match register {
            VIRTIO_MMIO_MAGIC_VALUE => MAGIC,
            VIRTIO_MMIO_VERSION => VERSION,
            VIRTIO_MMIO_VENDOR_ID => VENDOR,
            VIRTIO_MMIO_DEVICE_FEATURES => half(self.offered, self.device_half),
            VIRTIO_MMIO_QUEUE_NUM_MAX => queue.map_or(0, |_| u32::from(MAX_SIZE)),
            VIRTIO_MMIO_QUEUE_READY => queue.map_or(0, |queue| u32::from(queue.ready)),
            // There is no shared memory: each length is -1 (section 4.2.2.1).
            VIRTIO_MMIO_SHM_LEN_LOW | VIRTIO_MMIO_SHM_LEN_HIGH => u32::MAX,
            VIRTIO_MMIO_SHM_BASE_LOW | VIRTIO_MMIO_SHM_BASE_HIGH => u32::MAX,
            // A queue's reset is complete when its write returns.
            _ => 0,
        }
    }

    /// Writes a register. Returns `false` if a queue could not start.
    pub(super) fn write<M: Memory>(&mut self, register: u32, value: u32, link: &Link<M>) -> bool {
        match register {
            VIRTIO_MMIO_DEVICE_FEATURES_SEL => self.device_half = value,
            VIRTIO_MMIO_DRIVER_FEATURES_SEL => self.driver_half = value,
            VIRTIO_MMIO_DRIVER_FEATURES if self.has(DRIVER) && !self.has(FEATURES_OK) => {
                set_half(&mut self.accepted, self.driver_half, value);
            }
            VIRTIO_MMIO_QUEUE_SEL => self.selected = value as usize,
            // Section 3.1.1: queues are set up after the features.
            _ if self.has(FEATURES_OK) && !self.has(FAILED) => {
                return self.write_queue(register, value, link);
            }
            _ => {}
        }
        true
    }

    fn write_queue<M: Memory>(&mut self, register: u32, value: u32, link: &Link<M>) -> bool {
        let (selected, features) = (self.selected, self.accepted);
        let accepted = |feature: u32| features >> feature & 1 != 0;
        let Some(queue) = self.queues.get_mut(selected) else { return true };
        let place = &mut queue.place;
        match register {
            VIRTIO_MMIO_QUEUE_RESET if value == 1 && accepted(VIRTIO_F_RING_RESET) => {
                link.stop_queue(selected);
                *queue = Queue::default();
            }
            VIRTIO_MMIO_QUEUE_READY if value == 0 => {
                link.stop_queue(selected);
                queue.ready = false;
            }
            // Section 4.2.2.2: the driver does not write the other registers of a queue that is ready.
            _ if queue.ready => {}
            VIRTIO_MMIO_QUEUE_READY => {
                let events = accepted(VIRTIO_RING_F_EVENT_IDX);
                queue.ready = value == 1 && link.start_queue(selected, *place, events);
                return queue.ready || value != 1;
            }
            // A size that does not fit is refused when the queue starts.
            VIRTIO_MMIO_QUEUE_NUM => place.size = u16::try_from(value).unwrap_or(u16::MAX),
            VIRTIO_MMIO_QUEUE_DESC_LOW => set_half(&mut place.descriptors, 0, value),
            VIRTIO_MMIO_QUEUE_DESC_HIGH => set_half(&mut place.descriptors, 1, value),
            VIRTIO_MMIO_QUEUE_AVAIL_LOW => set_half(&mut place.available, 0, value),
            VIRTIO_MMIO_QUEUE_AVAIL_HIGH => set_half(&mut place.available, 1, value),
            VIRTIO_MMIO_QUEUE_USED_LOW => set_half(&mut place.used, 0, value),
            VIRTIO_MMIO_QUEUE_USED_HIGH => set_half(&mut place.used, 1, value),
            _ => {}
        }
        true
    }
}
