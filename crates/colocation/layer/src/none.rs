//! Mode none: nothing stands between Linux and the cokernel. The layer itself writes Linux's memory and the event ring.

use crate::arch::x86_64::{self as arch, user_state::Saved};
use crate::cokernel::services::{linux_window, publish, repair_with, report, Services};
use crate::cokernel::state::entry;
use kyozon_abi::layer::RepairRequest;

/// The services of mode none.
pub(crate) static SERVICES: Services =
    Services { window: linux_window, repair, report, publish, user_state: Some(Saved::NONE) };

extern "C" fn repair(request: *const RepairRequest) -> i64 {
    repair_with(write, request)
}

/// Writes the word at physical address `address`, in System RAM, through the repair slot.
fn write(address: u64, value: u64) {
    const PAGE: u64 = 0xfff;
    /// Present, writable, accessed, dirty, no execution.
    const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 63;
    let e = entry();
    // SAFETY: the repair slot is ours alone; it maps the page of this word for this write.
    unsafe {
        (e.poke_entry as *mut u64).write_volatile(address & !PAGE | FLAGS);
        arch::forget_translation(e.poke);
        ((e.poke | address & PAGE) as *mut u64).write_volatile(value);
        (e.poke_entry as *mut u64).write_volatile(0);
    }
    arch::forget_translation(e.poke);
}
