//! The device interface: `/dev/kyozon`.
//!
//! **Sides.** The kernel module, and the `kyozon` command.
//!
//! **Version.** [`DEVICE_VERSION`]. The module refuses a [`Load`] with another version. [`Status`] starts with it, too.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field changes. New wording
//! or a renamed item does not change the version.

use crate::assert_size;
use crate::vmm::EXIT_REASONS;
use core::mem::size_of;

/// Version of this interface.
pub const DEVICE_VERSION: u32 = 3;

/// Maximum number of images in one load: the layer, the cokernel and its tasks.
pub const MAX_IMAGES: usize = 8;
/// Bytes of the line that explains why a request failed, including the closing zero.
pub const MESSAGE_BYTES: usize = 256;

/// `ioctl` request: [`Load`], `_IOWR('K', 1, struct kyozon_load)`.
pub const IOCTL_LOAD: u32 = 0xc1e8_4b01;
/// `ioctl` request: [`Unload`], `_IOW('K', 2, struct kyozon_unload)`.
pub const IOCTL_UNLOAD: u32 = 0x4018_4b02;
/// `ioctl` request: [`Status`], `_IOR('K', 3, struct kyozon_status)`.
pub const IOCTL_STATUS: u32 = 0x81e0_4b03;

/// [`Load::tick_source`]: the module probes the sources below in the order of their numbers.
pub const TICK_AUTO: u32 = 0;
/// [`Load::tick_source`]: HPET timer 2, delivered by message (MSI).
pub const TICK_HPET_MSI: u32 = 1;
/// [`Load::tick_source`]: HPET timer 2, delivered through an IO-APIC pin that the timer advertises.
pub const TICK_HPET_IOAPIC: u32 = 2;
/// [`Load::tick_source`]: the real-time clock's periodic interrupt.
pub const TICK_RTC: u32 = 3;

/// [`Load::flags`]: load even if this kernel is outside the tested range.
pub const LOAD_UNTESTED_KERNEL: u32 = 1;
/// [`Load::flags`]: load even if this machine is not one of the emulators that the tests run on.
pub const LOAD_UNTESTED_HARDWARE: u32 = 2;
/// [`Load::flags`]: the cokernel outlives a panic of Linux that would wait for ever: no crash kernel is loaded, and
/// `kernel.panic` is 0.
pub const LOAD_OUTLIVES_PANIC: u32 = 4;

/// [`Status::state`]: nothing is loaded.
pub const STATE_EMPTY: u32 = 0;
/// [`Status::state`]: the cokernel receives ticks.
pub const STATE_RUNNING: u32 = 1;
/// [`Status::state`]: the cokernel was stopped because it faulted or ran away; `message` has the reason.
pub const STATE_STOPPED: u32 = 2;

/// [`Status::iommu`]: the firmware's tables describe none: every device can access all memory.
pub const IOMMU_NONE: u32 = 0;
/// [`Status::iommu`]: the firmware's tables describe one, and Linux uses it.
pub const IOMMU_LINUX: u32 = 1;
/// [`Status::iommu`]: the hypervisor drives the described ones: no device can access the cokernel's memory.
pub const IOMMU_DRIVEN: u32 = 2;
/// [`Status::iommu`]: one is described that Linux does not use and the hypervisor cannot drive.
pub const IOMMU_UNUSED: u32 = 3;

/// One image, in the caller's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Image {
    /// Virtual address in the calling process.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}
assert_size!(Image, 16);

/// What to load. If the request fails, nothing has changed and `message` explains why in one line.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// [`DEVICE_VERSION`].
    pub version: u32,
    /// [`MODE_NONE`](crate::layer::MODE_NONE) or [`MODE_VMM`](crate::layer::MODE_VMM).
    pub mode: u32,
    /// Ticks per second, 1..=2000.
    pub tick_hz: u32,
    /// Microseconds that one trip may take, that is how long it may interrupt Linux.
    pub budget_us: u32,
    /// Linux's logical number of the cokernel's CPU.
    pub cpu: u32,
    /// `TICK_*`.
    pub tick_source: u32,
    /// `LOAD_*`.
    pub flags: u32,
    /// I/O port of the cokernel's serial line, 0 for none.
    pub serial_port: u32,
    /// Bytes of memory for the cokernel, in addition to its images.
    pub memory_bytes: u64,
    /// Number of valid entries in `images`.
    pub image_count: u64,
    /// The images: 0 is the layer, 1 the cokernel, the others are tasks.
    pub images: [Image; MAX_IMAGES],
    /// Out: why the request failed, a C string.
    pub message: [u8; MESSAGE_BYTES],
    /// The operator's parameter, for the cokernel's boot block.
    pub parameter: u64,
    /// The operator's data for the cokernel, 0 bytes for none. It is not hashed; the cokernel has to check it.
    pub data: Image,
    /// The hypervisor's image for mode vmm, 0 bytes for none.
    pub hypervisor: Image,
    /// Mode vmm: the operator's key, [`KEY_BYTES_MIN`] to [`KEY_BYTES_MAX`] bytes, without which the wall does not
    /// open; or 0 bytes: then the module makes a key and keeps it in its memory. The module wipes its copies.
    pub key: Image,
}
assert_size!(Load, 488);

/// Minimum bytes of a key.
pub const KEY_BYTES_MIN: u64 = 16;
/// Maximum bytes of a key.
pub const KEY_BYTES_MAX: u64 = 4096;

/// A request to unload. If it fails, nothing has changed. Errors: `ENOKEY`, the load had a key and this has none;
/// `EKEYREJECTED`, the key is another; `ENODEV`, nothing is loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Unload {
    /// [`DEVICE_VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// The key of the load, 0 bytes for none.
    pub key: Image,
}
assert_size!(Unload, 24);

/// What is loaded, and its overhead.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// [`DEVICE_VERSION`].
    pub version: u32,
    /// `STATE_*`.
    pub state: u32,
    /// The same as in [`Load`].
    pub mode: u32,
    /// The same as in [`Load`].
    pub tick_hz: u32,
    /// The same as in [`Load`].
    pub budget_us: u32,
    /// The same as in [`Load`].
    pub cpu: u32,
    /// `TICK_*`: the source that probing found.
    pub tick_source: u32,
    /// Mode vmm: 1 if an unload needs the operator's key.
    pub locked: u32,
    /// Ticks delivered to the cokernel.
    pub ticks: u64,
    /// Ticks that were not delivered one by one: a later event counted them.
    pub missed: u64,
    /// Number of times that the cokernel was cut off.
    pub overruns: u64,
    /// Longest trip, in nanoseconds.
    pub longest_ns: u64,
    /// 99th percentile of the duration of trips in nanoseconds, rounded up to a power of two of time-stamp counter
    /// ticks.
    pub p99_ns: u64,
    /// Bytes taken from Linux.
    pub reserve_bytes: u64,
    /// Bytes of the event ring, which `/dev/kyozon` offers for a read-only `mmap` at offset 0.
    pub events_bytes: u64,
    /// Pieces of Linux's state that a trip changed and did not restore; counted if the module's `check` is set.
    pub differences: u64,
    /// Why the cokernel was stopped, a C string.
    pub message: [u8; 232],
    /// Mode vmm: exits of Linux to the hypervisor on all CPUs, indexed by `vmm::EXIT_*`.
    pub exits: [u64; EXIT_REASONS],
    /// Mode vmm: attempts of Linux that nested paging, the wall, stopped.
    pub wall_findings: u64,
    /// Mode vmm: bytes of nested page tables.
    pub nested_bytes: u64,
    /// Mode vmm: `IOMMU_*`.
    pub iommu: u32,
    /// Zero.
    pub reserved2: u32,
}
assert_size!(Status, 480);

const _: () = {
    const fn ioc(direction: u32, number: u32, bytes: usize) -> u32 {
        (direction << 30) | ((bytes as u32) << 16) | (0x4b << 8) | number
    }
    assert!(IOCTL_LOAD == ioc(3, 1, size_of::<Load>()));
    assert!(IOCTL_UNLOAD == ioc(1, 2, size_of::<Unload>()));
    assert!(IOCTL_STATUS == ioc(2, 3, size_of::<Status>()));
};
