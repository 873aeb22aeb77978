//! A driver that writes a device's registers in the order of section 3.1.1.

use crate::mmio::Window;
use crate::ring::Place;
use virtio_bindings::virtio_config::*;
use virtio_bindings::virtio_mmio::*;

/// All feature bits.
pub const ALL: u64 = u64::MAX;

/// Reads a register.
pub fn get(window: &dyn Window, register: u32) -> u32 {
    window.read(register.into(), 4) as u32
}

/// Writes a register.
pub fn set(window: &dyn Window, register: u32, value: u32) {
    window.write(register.into(), 4, value.into());
}

/// Sets bits of the status.
pub fn add_status(window: &dyn Window, bits: u32) {
    set(window, VIRTIO_MMIO_STATUS, get(window, VIRTIO_MMIO_STATUS) | bits);
}

/// Resets the device, and accepts those of its features that are in `wanted`. Returns them.
pub fn negotiate(window: &dyn Window, wanted: u64) -> u64 {
    set(window, VIRTIO_MMIO_STATUS, 0);
    add_status(window, VIRTIO_CONFIG_S_ACKNOWLEDGE);
    add_status(window, VIRTIO_CONFIG_S_DRIVER);
    let mut accepted = 0;
    for half in 0..2 {
        set(window, VIRTIO_MMIO_DEVICE_FEATURES_SEL, half);
        let features = get(window, VIRTIO_MMIO_DEVICE_FEATURES) & (wanted >> (32 * half)) as u32;
        set(window, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
        set(window, VIRTIO_MMIO_DRIVER_FEATURES, features);
        accepted |= u64::from(features) << (32 * half);
    }
    add_status(window, VIRTIO_CONFIG_S_FEATURES_OK);
    accepted
}

/// Sets up a queue. Returns whether it is ready.
pub fn set_up(window: &dyn Window, queue: u32, place: Place) -> bool {
    set(window, VIRTIO_MMIO_QUEUE_SEL, queue);
    set(window, VIRTIO_MMIO_QUEUE_NUM, place.size.into());
    for (register, address) in [
        (VIRTIO_MMIO_QUEUE_DESC_LOW, place.descriptors),
        (VIRTIO_MMIO_QUEUE_AVAIL_LOW, place.available),
        (VIRTIO_MMIO_QUEUE_USED_LOW, place.used),
    ] {
        set(window, register, address as u32);
        set(window, register + 4, (address >> 32) as u32);
    }
    set(window, VIRTIO_MMIO_QUEUE_READY, 1);
    get(window, VIRTIO_MMIO_QUEUE_READY) == 1
}

/// Starts the device with these queues. Returns the accepted features.
pub fn start(window: &dyn Window, wanted: u64, queues: &[Place]) -> u64 {
    let features = negotiate(window, wanted);
    for (queue, place) in queues.iter().enumerate() {
        set_up(window, queue as u32, *place);
    }
    add_status(window, VIRTIO_CONFIG_S_DRIVER_OK);
    features
}

/// Rings for a queue.
pub fn notify(window: &dyn Window, queue: u32) {
    set(window, VIRTIO_MMIO_QUEUE_NOTIFY, queue);
}
