//! The machine and the layer as the kernel's logic sees them. Tests on the host have another implementation.

use kyozon_abi::events::StatusWords;
use kyozon_abi::layer::{LinuxRegisters, Range, RepairRequest, TickEvent, Window, Writes};

/// Words of a page.
pub const WORDS: usize = 512;

/// The cokernel's memory, by physical page.
pub trait Frames {
    /// The page at `physical`, a multiple of 4096; `None` if it is not in the cokernel's memory.
    fn page(&mut self, physical: u64) -> Option<&mut [u64; WORDS]>;
}

/// The CPU, and the services of the boot block.
pub trait Machine: Frames {
    /// Makes the address space with this CR3 the live one.
    fn enter(&mut self, root: u64);
    /// Drops the translation of the page at `address` in the live address space.
    fn forget(&mut self, address: u64);
    /// The address of the last page fault.
    fn fault_address(&mut self) -> u64;
    /// The newest tick since the last call, if any.
    fn tick(&mut self) -> Option<TickEvent>;
    /// Gives the CPU back; returns at a later tick.
    fn idle(&mut self);
    /// The image of `task`, as it was loaded.
    fn task_image(&self, task: usize) -> Option<&'static [u8]>;
    /// Writes a line of at most `REPORT_BYTES` to the event ring and the serial line. Returns 0 or `SERVICE_*`.
    fn report(&mut self, kind: u32, code: u32, line: &[u8]) -> i64;
    /// Publishes the status with `index`. Returns 0 or `SERVICE_*`.
    fn publish(&mut self, index: u64, status: &StatusWords) -> i64;
    /// Carries out a repair transaction. Returns `REPAIR_*` or `SERVICE_*`.
    fn repair(&mut self, request: &RepairRequest) -> i64;
    /// The time-stamp counter.
    fn clock(&mut self) -> u64;
    /// Copies words from Linux's physical address `from` to the page `to` of the cokernel, from word `at` on. False if
    /// not all of them are in a readable range and in the page.
    fn copy_linux(&mut self, from: u64, to: u64, at: usize, words: usize) -> bool;
    /// Fills in Linux's registers on this CPU. Returns 0 or `SERVICE_*`.
    fn linux_registers(&mut self, registers: &mut LinuxRegisters) -> i64;
    /// Starts Linux's crash kernel, or resets the machine; `how`: see [`RESET`](kyozon_abi::task::RESET). Returns only
    /// if there is no Linux: `SERVICE_*`.
    fn reset(&mut self, how: u64) -> i64;
    /// Watches Linux's writes to `range`, whole pages, from now on. `space`: where Linux patches it, see
    /// [`BootBlock::watch`](kyozon_abi::layer::BootBlock::watch). Returns 0 or `SERVICE_*`.
    fn watch(&mut self, range: Range, space: u64) -> i64;
    /// Fetches watched writes. Returns 0 or `SERVICE_*`.
    fn writes(&mut self, writes: &mut Writes) -> i64;
    /// Reports the registers of another CPU, if one has shown them.
    fn other_registers(&mut self, registers: &mut LinuxRegisters) -> i64;
    /// Gives the running task the x87 unit and the vector registers until the end of the trip, or until another task's
    /// address space is [entered](Self::enter). False if that is impossible.
    fn give_vectors(&mut self) -> bool;
    /// Fills in the readable ranges of Linux's memory. Returns 0 or `SERVICE_*`.
    fn window(&mut self, window: &mut Window) -> i64;
}
