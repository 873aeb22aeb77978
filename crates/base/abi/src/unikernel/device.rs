//! A guest's devices. Sections are those of VIRTIO 1.2.

use super::MAX_PEERS;
use crate::assert_size;

/// First doorbell number of queues; lower numbers are peers.
pub const QUEUE_DOORBELL: u32 = MAX_PEERS as u32;
/// Maximum number of queues of all devices of a guest.
pub const MAX_QUEUES: usize = 32;
/// Maximum bytes of a device's name, which consists of the same characters as a region's name.
pub const DEVICE_NAME_BYTES: usize = 32;
/// Maximum bytes of a configuration space.
pub const DEVICE_CONFIG_BYTES: usize = 64;

/// [`DeviceInfo::kind`]: a network device (section 5).
pub const DEVICE_NET: u32 = 1;
/// [`DeviceInfo::kind`]: a block device (section 5).
pub const DEVICE_BLOCK: u32 = 2;

/// Result of [`ASK_QUEUE_STATE`](super::ASK_QUEUE_STATE): the queue was not started, or was stopped.
pub const QUEUE_STOPPED: u64 = 0;
/// Result of [`ASK_QUEUE_STATE`](super::ASK_QUEUE_STATE): the device takes entries.
pub const QUEUE_RUNNING: u64 = 1;
/// Result of [`ASK_QUEUE_STATE`](super::ASK_QUEUE_STATE): the queue broke a rule.
pub const QUEUE_FAILED: u64 = 2;

/// Description of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name, padded with zeros.
    pub name: [u8; DEVICE_NAME_BYTES],
    /// `DEVICE_*`: the device IDs of section 5.
    pub kind: u32,
    /// Number of queues.
    pub queues: u32,
    /// Feature bits of the device's section and of section 6.
    pub features: u64,
    /// Doorbell number of the first queue, for [`GuestBoot::doorbell`](super::GuestBoot::doorbell); those of the other
    /// queues follow.
    pub doorbell: u32,
    /// Maximum number of entries of a queue.
    pub max_size: u32,
    /// Number of valid bytes in `config`.
    pub config_bytes: u64,
    /// The configuration space.
    pub config: [u8; DEVICE_CONFIG_BYTES],
}
assert_size!(DeviceInfo, 128);
