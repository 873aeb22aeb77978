//! `/dev/kyozon`: the kernel module on one side, the `kyozon` command on the other.

use crate::assert_size;
use crate::vmm::EXIT_REASONS;
use core::mem::size_of;

/// Version of everything in this module.
pub const DEVICE_VERSION: u32 = 2;

/// Most images of one load: the layer, the cokernel and its tasks.
pub const MAX_IMAGES: usize = 8;
/// Bytes of the one line that says why a request failed, with the closing zero.
pub const MESSAGE_BYTES: usize = 256;

/// `ioctl` request: [`Load`], `_IOWR('K', 1, struct kyozon_load)`.
pub const IOCTL_LOAD: u32 = 0xc1d8_4b01;
/// `ioctl` request without argument, `_IO('K', 2)`.
pub const IOCTL_UNLOAD: u32 = 0x4b02;
/// `ioctl` request: [`Status`], `_IOR('K', 3, struct kyozon_status)`.
pub const IOCTL_STATUS: u32 = 0x81e0_4b03;

/// [`Load::tick_source`]: the module probes in the order of the numbers.
pub const TICK_AUTO: u32 = 0;
/// HPET timer 2, delivered by message.
pub const TICK_HPET_MSI: u32 = 1;
/// HPET timer 2, delivered through an IO-APIC pin that the timer advertises.
pub const TICK_HPET_IOAPIC: u32 = 2;
/// The real-time clock's periodic interrupt.
pub const TICK_RTC: u32 = 3;

/// [`Load::flags`]: go on although this kernel is outside the tested range.
pub const LOAD_UNTESTED_KERNEL: u32 = 1;
/// [`Load::flags`]: go on although this is no emulator that the tests run on.
pub const LOAD_UNTESTED_HARDWARE: u32 = 2;

/// [`Status::state`]: nothing is loaded.
pub const STATE_EMPTY: u32 = 0;
/// [`Status::state`]: the cokernel gets its ticks.
pub const STATE_RUNNING: u32 = 1;
/// [`Status::state`]: the cokernel was stopped after a fault or an overstay; the reason is in `message`.
pub const STATE_STOPPED: u32 = 2;

/// [`Status::iommu`]: none in the firmware's tables: every device can reach all memory.
pub const IOMMU_NONE: u32 = 0;
/// [`Status::iommu`]: one is described; it is Linux's.
pub const IOMMU_LINUX: u32 = 1;
/// [`Status::iommu`]: what is described is driven by the hypervisor: no device reaches the cokernel's memory.
pub const IOMMU_DRIVEN: u32 = 2;
/// [`Status::iommu`]: one is described that nobody uses, and it is of a kind that the hypervisor does not drive.
pub const IOMMU_UNUSED: u32 = 3;

/// One image in the caller's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Image {
    /// Address in the caller.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}
assert_size!(Image, 16);

/// What to load. On failure nothing has changed and `message` says why in one line.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// [`DEVICE_VERSION`].
    pub version: u32,
    /// `MODE_*` of the layer module: none or vmm.
    pub mode: u32,
    /// Ticks a second, 1..=2000.
    pub tick_hz: u32,
    /// Microseconds that one stop of Linux may last.
    pub budget_us: u32,
    /// Logical number of the cokernel's CPU.
    pub cpu: u32,
    /// `TICK_*`.
    pub tick_source: u32,
    /// `LOAD_*`.
    pub flags: u32,
    /// I/O port of the cokernel's serial line, 0 for none.
    pub serial_port: u32,
    /// Bytes of memory for the cokernel beside its images.
    pub memory_bytes: u64,
    /// How many of `images` are set; 0 is the layer, 1 the cokernel, then tasks.
    pub image_count: u64,
    /// The images.
    pub images: [Image; MAX_IMAGES],
    /// Why the request failed, a C string.
    pub message: [u8; MESSAGE_BYTES],
    /// A number that the cokernel finds in its boot block.
    pub parameter: u64,
    /// Data for the cokernel, without a hash: what it makes of it is its own affair. 0 bytes for none.
    pub data: Image,
    /// The hypervisor's image, for mode vmm. 0 bytes for none.
    pub hypervisor: Image,
}
assert_size!(Load, 472);

/// What is loaded and what it costs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// [`DEVICE_VERSION`].
    pub version: u32,
    /// `STATE_*`.
    pub state: u32,
    /// As in [`Load`].
    pub mode: u32,
    /// As in [`Load`].
    pub tick_hz: u32,
    /// As in [`Load`].
    pub budget_us: u32,
    /// As in [`Load`].
    pub cpu: u32,
    /// The source that probing found.
    pub tick_source: u32,
    /// Must be zero.
    pub reserved: u32,
    /// Ticks delivered to the cokernel.
    pub ticks: u64,
    /// Ticks that fell together with another.
    pub missed: u64,
    /// Times that the cokernel was cut off.
    pub overruns: u64,
    /// Longest stop of Linux, nanoseconds.
    pub longest_ns: u64,
    /// 99th percentile of the stops of Linux, nanoseconds, rounded up to a power of two of the time-stamp counter.
    pub p99_ns: u64,
    /// Bytes taken from Linux.
    pub reserve_bytes: u64,
    /// Bytes of the event ring, for a read-only `mmap` of `/dev/kyozon` at offset 0.
    pub events_bytes: u64,
    /// Pieces of Linux's state that a trip changed and did not put back; counted when the module's `check` is set.
    pub differences: u64,
    /// Why the cokernel stopped, a C string.
    pub message: [u8; 232],
    /// Mode vmm: exits of Linux to the hypervisor on all CPUs, `vmm::EXIT_*`.
    pub exits: [u64; EXIT_REASONS],
    /// Mode vmm: attempts of Linux that the wall stopped.
    pub wall_findings: u64,
    /// Mode vmm: bytes of nested page tables.
    pub nested_bytes: u64,
    /// Mode vmm: `IOMMU_*`.
    pub iommu: u32,
    /// Must be zero.
    pub reserved2: u32,
}
assert_size!(Status, 480);

const _: () = {
    const fn ioc(direction: u32, number: u32, bytes: usize) -> u32 {
        (direction << 30) | ((bytes as u32) << 16) | (0x4b << 8) | number
    }
    assert!(IOCTL_LOAD == ioc(3, 1, size_of::<Load>()));
    assert!(IOCTL_UNLOAD == ioc(0, 2, 0));
    assert!(IOCTL_STATUS == ioc(2, 3, size_of::<Status>()));
};
