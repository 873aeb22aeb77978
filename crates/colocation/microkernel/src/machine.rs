//! What the kernel's logic asks of the machine and of the layer. Everything else is the same on the host, in tests.

use kyozon_abi::events::CheckStatus;
use kyozon_abi::layer::{RepairRequest, TickEvent, Window};

/// Words of a page.
pub const WORDS: usize = 512;

/// The cokernel's memory, by physical page.
pub trait Frames {
    /// The page at `physical`, a multiple of 4096; `None` where it is not the cokernel's own.
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
    /// The tick that came since the last call, if any: the newest, where there were several.
    fn tick(&mut self) -> Option<TickEvent>;
    /// Gives the CPU back; returns at a later tick.
    fn idle(&mut self);
    /// A line of at most `REPORT_BYTES` for whoever watches. 0, or `SERVICE_*`.
    fn report(&mut self, kind: u32, code: u32, line: &[u8]) -> i64;
    /// What is said of check number `check`. 0, or `SERVICE_*`.
    fn publish(&mut self, check: u64, status: &CheckStatus) -> i64;
    /// `REPAIR_*` or `SERVICE_*`.
    fn repair(&mut self, request: &RepairRequest) -> i64;
    /// 0 or `SERVICE_*`.
    fn window(&mut self, window: &mut Window) -> i64;
}
