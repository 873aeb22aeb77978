//! The registers and ports that a guest may use. AMD APM 2, 15.10 and 15.11.

use super::entry::{at, entry};
use super::tables::Tables;
use super::vmcb::{msr_bit, MAPPED};
use crate::vmm::nested::PAGE;
use crate::vmm::ports::serial;
use crate::vmm::registers;

/// FS, GS and KernelGS base: switched with the guest.
const COKERNELS: [u32; 3] = [0xc000_0100, 0xc000_0101, 0xc000_0102];

/// Fills the module's ten pages: a map of ports has three, a map of registers two.
pub fn fill(tables: &Tables) {
    let map = |address: u64, pages: usize| {
        // SAFETY: the module's pages.
        unsafe { core::slice::from_raw_parts_mut(at::<u8>(address), pages * PAGE as usize) }
    };
    map(tables.ports, 3).fill(0xff);
    let ports = map(tables.linux_ports, 3);
    ports.fill(0);
    // Both bytes of each control register.
    let controls = entry().sleep_ports.into_iter().filter(|port| (1..0xffff).contains(port));
    let controls = controls.flat_map(|port| [port, port + 1]);
    for port in controls.chain(serial(entry().serial_port)) {
        ports[port as usize / 8] |= 1 << (port % 8);
    }
    let linux = map(tables.linux_registers, 2);
    linux.fill(0);
    let exits = |msr: &u32| registers::is_guarded(*msr) || registers::is_watched(*msr);
    let guarded = MAPPED.into_iter().flatten().filter(exits);
    for bit in guarded.filter_map(msr_bit) {
        linux[(bit + 1) / 8] |= 1 << ((bit + 1) % 8);
    }
    let cokernel = map(tables.cokernel_registers, 2);
    cokernel.fill(0xff);
    for bit in COKERNELS.iter().filter_map(|msr| msr_bit(*msr)) {
        cokernel[bit / 8] &= !(3 << (bit % 8));
    }
}
