//! The memory that each guest reaches.

use super::entry::{entry, iommus, list, status};
use super::memory::{Pool, POOL};
use super::permissions;
use crate::owned::Owned;
use crate::vmm::nested::{Nested, Rights, PAGE};
use kyozon_abi::layer::Range;
use kyozon_abi::vmm::VMM_VERSION;

/// Written by the first CPU before there is another.
static TABLES: Owned<Option<Tables>> = Owned::new(None);

/// The guests' nested tables, and their permission maps.
pub struct Tables {
    /// Linux's view before the seal and after the unload has opened it.
    pub open: Nested,
    /// Linux's view while the reserve is hidden.
    pub sealed: Nested,
    /// The cokernel's view.
    pub cokernel: Nested,
    /// Physical address of the map of ports: all ones, the cokernel may use none.
    pub ports: u64,
    /// Physical address of the ports that Linux may not use freely.
    pub linux_ports: u64,
    /// Physical address of the registers that Linux may not write.
    pub linux_registers: u64,
    /// Physical address of the registers that the cokernel may use.
    pub cokernel_registers: u64,
}

/// The tables that [`make`] made.
pub fn tables() -> &'static Tables {
    // SAFETY: written once, before there is a second CPU.
    unsafe { TABLES.get() }.as_ref().expect("made at the first launch")
}

/// Makes the tables that all CPUs share. `None` if memory ran out.
pub fn make() -> Option<()> {
    let e = entry();
    let mut pool = POOL.lock();
    let nested = |pool: &mut Pool| Nested::new(pool, e.paging_levels, e.largest_leaf);
    let (open, sealed, cokernel) = (nested(&mut pool)?, nested(&mut pool)?, nested(&mut pool)?);
    let ram = list(&e.ram, e.ram_count);
    let end = ram.iter().map(|r| r.base + r.bytes).max()?.max(4 << 30);
    let all = Range { base: 0, bytes: end.next_multiple_of(1 << 30) };
    open.map(&mut *pool, all, Some(Rights::ALL))?;
    sealed.map(&mut *pool, all, Some(Rights::ALL))?;
    for range in list(&e.guest, e.guest_count).iter().chain(list(&e.host, e.host_count)) {
        sealed.map(&mut *pool, *range, None)?;
    }
    for range in iommus() {
        sealed.map(&mut *pool, range, None)?;
    }
    for range in list(&e.read_only, e.read_only_count) {
        sealed.map(&mut *pool, *range, Some(Rights::READ))?;
    }
    let page = |address: u64| Range { base: address & !(PAGE - 1), bytes: PAGE };
    for device in [e.timer.registers, e.timer.ioapic] {
        if device != 0 {
            sealed.map(&mut *pool, page(device), Some(Rights::READ))?;
        }
    }
    for range in ram {
        cokernel.map(&mut *pool, *range, Some(Rights::READ))?;
    }
    for range in list(&e.guest, e.guest_count) {
        cokernel.map(&mut *pool, *range, Some(Rights::ALL))?;
    }
    cokernel.map(&mut *pool, page(e.timer.registers), Some(Rights::DATA))?;
    let tables = Tables {
        open,
        sealed,
        cokernel,
        ports: e.permissions,
        linux_registers: e.permissions + 3 * PAGE,
        cokernel_registers: e.permissions + 5 * PAGE,
        linux_ports: e.permissions + 7 * PAGE,
    };
    permissions::fill(&tables);
    // SAFETY: the first CPU's first entry: no other code runs here. The ring is the module's; Linux may only read it.
    unsafe {
        *TABLES.get() = Some(tables);
        (&raw mut (*status()).version).write_volatile(VMM_VERSION);
        (&raw mut (*status()).nested_bytes).write_volatile(pool.bytes());
    }
    Some(())
}
