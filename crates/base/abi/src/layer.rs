//! The colocation interface: the kernel module, the layer and the cokernel.
//!
//! **Sides.** The kernel module loads the images and enters the layer; the layer starts and serves the cokernel. The
//! module and the layer share [`LayerEntry`] and [`Trip`]; the layer and the cokernel share [`BootBlock`] and the
//! structures of the services. The same structures serve the three modes: *alone* (booted by PVH, no Linux), *none*
//! (beside Linux without isolation) and *vmm* (beside Linux, behind nested paging).
//!
//! **Version.** [`LAYER_VERSION`]. A loader (the module or, in mode alone, the layer) refuses an image whose
//! [`ImageHeader`] has another version. [`LayerEntry`] and [`BootBlock`] start with it, too.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field changes. New wording
//! or a renamed item does not change the version.

mod cokernel;
mod entry;
mod image;
mod service;
mod trip;

pub use cokernel::{
    BootBlock, Frame, Handlers, TickEvent, KERNEL_CODE_SELECTOR, USER_CODE_SELECTOR,
    USER_DATA_SELECTOR, WORK_TICK,
};
pub use entry::LayerEntry;
pub use image::{
    ImageHeader, IMAGE_COKERNEL, IMAGE_HYPERVISOR, IMAGE_LAYER, IMAGE_MAGIC, IMAGE_TASK,
};
pub use service::{
    LinuxRegisters, RepairRequest, RepairWord, Report, Window, Write, Writes, MAX_REPAIR_WORDS,
    MAX_WRITES, REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE, REPAIR_INVALID, REPORT_BYTES,
    SERVICE_BAD_ADDRESS, SERVICE_UNAVAILABLE, TABLE_DESCRIPTORS, TABLE_INTERRUPTS, TABLE_TASK,
    WRITE_CONTROL, WRITE_MEMORY, WRITE_REGISTER, WRITE_TABLE, WRITE_WORDS,
};
pub use trip::{
    Fault, Trip, UserState, FAULT_CALL, FAULT_EXCEPTION, FAULT_LAYER, FAULT_LOST_CPU,
    FAULT_PROCESSOR, FAULT_RETURNED, FAULT_RUNAWAY, FAULT_WALL, LOOK_ASKED, LOOK_CPU_SHIFT,
    LOOK_NONE, LOOK_SHOWN, LOOK_STATE, LOOK_STORING, LOOK_WANTED, PARKED_FREE, PARKED_STANDING,
    PARKED_STATE, PARKED_WRITING, SLACK_DIVISOR, SLACK_US, TRIP_CRASH, TRIP_CUT_OFF, TRIP_IDLE,
    TRIP_MACHINE_CHECK, TRIP_PARK, TRIP_STOPPED, USER_GATE, USER_SWITCHED,
};

use crate::assert_size;

/// Version of this interface.
pub const LAYER_VERSION: u32 = 10;

/// Virtual address at which the layer is linked: below 2 GiB, where Linux keeps no global translations.
pub const LAYER_BASE: u64 = 0x1000_0000;
/// Virtual address at which the cokernel is linked.
pub const COKERNEL_BASE: u64 = 0x2000_0000;
/// Virtual address of the task images. They are mapped read-only, one after the other, each from a page boundary on.
pub const TASKS_BASE: u64 = 0x3000_0000;
/// From this virtual address up to [`MEMORY_BASE`], the layer maps nothing: a cokernel may map its own there.
pub const FREE_BASE: u64 = 0x4000_0000;
/// Virtual address of the cokernel's own memory. It is contiguous there, even if the reserve consists of several
/// physical pieces.
pub const MEMORY_BASE: u64 = 0x10_0000_0000;
/// Linux's physical address `p` can be read at `WINDOW_BASE + p` if `p` lies in System RAM.
///
/// The window's level-4 entries forbid access from user mode, the tables below them allow it: a cokernel that wants a
/// task to read Linux's memory copies the level-4 entries and sets the user bit in its copies.
pub const WINDOW_BASE: u64 = 0x4000_0000_0000;

/// [`BootBlock::mode`]: the cokernel runs alone, without Linux.
pub const MODE_ALONE: u32 = 0;
/// [`BootBlock::mode`]: beside Linux, without isolation.
pub const MODE_NONE: u32 = 1;
/// [`BootBlock::mode`]: beside Linux, isolated by nested paging.
pub const MODE_VMM: u32 = 2;

/// Maximum number of pieces in a reserve, and of ranges in a list of RAM ranges.
pub const MAX_RANGES: usize = 64;
/// Maximum number of tasks of a cokernel.
pub const MAX_TASKS: usize = 6;

/// A range of addresses: physical, unless the field that holds it says otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First address, a multiple of 4096.
    pub base: u64,
    /// Bytes; a multiple of 4096 if the range is physical.
    pub bytes: u64,
}
assert_size!(Range, 16);
