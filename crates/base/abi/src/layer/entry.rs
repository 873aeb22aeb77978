//! The structure that the module passes to the layer once.

use super::{Range, MAX_RANGES, MAX_TASKS};
use crate::assert_size;

/// The module's description of the machine and of the images, complete before the layer is entered for the first time.
/// It lies in the layer's own memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LayerEntry {
    /// [`LAYER_VERSION`](super::LAYER_VERSION).
    pub version: u32,
    /// `MODE_*`.
    pub mode: u32,
    /// Time-stamp counter ticks per millisecond.
    pub tsc_khz: u64,
    /// Ticks per second, 1..=2000.
    pub tick_hz: u32,
    /// Microseconds that one trip may take before the layer cuts the cokernel off.
    pub budget_us: u32,
    /// Linux's logical number of the cokernel's CPU.
    pub cpu: u32,
    /// Levels of the page tables that are active while the cokernel runs: 4 or 5.
    pub paging_levels: u32,
    /// Virtual address of the cokernel's image: [`COKERNEL_BASE`](super::COKERNEL_BASE).
    pub cokernel: u64,
    /// Virtual address of the cokernel's free memory: [`MEMORY_BASE`](super::MEMORY_BASE).
    pub memory: u64,
    /// Bytes of `memory`.
    pub memory_bytes: u64,
    /// CR3 of the cokernel's world.
    pub page_table: u64,
    /// The same as [`BootBlock::tables`](super::BootBlock::tables).
    pub tables: u64,
    /// Virtual address of the trampoline's task state segment. The layer sets its ring-0 stack.
    pub tss: u64,
    /// Virtual address of the trampoline's interrupt descriptor table. The layer fills in the gates.
    pub idt: u64,
    /// Virtual address of the event ring, 0 for none.
    pub events: u64,
    /// Bytes of the event ring.
    pub events_bytes: u64,
    /// I/O port of the serial line for events and reports, 0 for none.
    pub serial_port: u32,
    /// Number of valid entries in `ram`.
    pub ram_count: u32,
    /// System RAM of the machine without the reserve, and what Linux may add to it, in ascending order.
    pub ram: [Range; MAX_RANGES],
    /// Virtual address, the same in both worlds, of the [`Trip`](super::Trip) that module and layer share.
    pub trip: u64,
    /// Virtual address of the last-level page-table entry that maps `poke`. The layer points this entry at the page
    /// that it repairs.
    pub poke_entry: u64,
    /// Virtual address of one page that has no translation of its own.
    pub poke: u64,
    /// Virtual address of the registers of the timer that guards the budget, 0 if the tick source has no such timer.
    pub guard: u64,
    /// Byte offset of the guard's comparator in these registers.
    pub guard_comparator: u32,
    /// Byte offset of the main counter in these registers.
    pub guard_counter: u32,
    /// Ticks of the main counter per tick of the time-stamp counter, times 2^32.
    pub guard_per_tsc: u64,
    /// Bytes of text of the cokernel's image. Kernel-mode code can be cut off only there.
    pub cokernel_text_bytes: u64,
    /// Bytes of the cokernel's image including its data.
    pub cokernel_bytes: u64,
    /// Number of valid entries in `pieces`.
    pub piece_count: u64,
    /// Physical pieces of the cokernel's memory, in the order of their virtual addresses.
    pub pieces: [Range; MAX_RANGES],
    /// Number of valid entries in `tasks`.
    pub task_count: u64,
    /// Task images: virtual address, and bytes before rounding up to pages.
    pub tasks: [Range; MAX_TASKS],
    /// The operator's parameter for the cokernel.
    pub parameter: u64,
    /// 1 if the real-time clock is the tick source: its interrupt must be acknowledged before it raises the next one.
    pub acknowledge: u64,
    /// The operator's data for the cokernel: virtual address, and bytes before rounding up to pages.
    pub data: Range,
    /// Virtual address of the `vmm::Mailbox`, 0 if there is no hypervisor.
    pub mailbox: u64,
    /// Zero.
    pub reserved: u64,
}
assert_size!(LayerEntry, 240 + 32 * MAX_RANGES + 16 * MAX_TASKS);
