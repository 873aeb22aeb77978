//! The registers and ports that a guest may use. AMD APM 2, 15.10 and 15.11.

use super::entry::at;
use super::vmcb::msr_bit;
use crate::vmm::nested::PAGE;

/// Registers whose writes could undo the isolation. APM 2, appendix A.
pub const GUARDED: [u32; 14] = [
    APIC_BASE,
    EFER,
    0xc001_0010, // SYSCFG
    0xc001_0015, // HWCR
    0xc001_0016, // IORRBase0, IORRMask0, IORRBase1, IORRMask1
    0xc001_0017,
    0xc001_0018,
    0xc001_0019,
    0xc001_001a, // TOP_MEM
    0xc001_001d, // TOP_MEM2
    0xc001_0112, // SMM_ADDR, SMM_MASK
    0xc001_0113,
    VM_CR,
    VM_HSAVE_PA,
];
#[allow(missing_docs)]
pub const APIC_BASE: u32 = 0x1b;
#[allow(missing_docs)]
pub const EFER: u32 = 0xc000_0080;
#[allow(missing_docs)]
pub const VM_CR: u32 = 0xc001_0114;
#[allow(missing_docs)]
pub const VM_HSAVE_PA: u32 = 0xc001_0117;

/// FS, GS and KernelGS base: switched with the guest.
const COKERNELS: [u32; 3] = [0xc000_0100, 0xc000_0101, 0xc000_0102];

/// Fills the module's seven pages in a row: physical addresses of the map of ports (3 pages), of the registers that
/// Linux may not write (2 pages), and of those that the cokernel may use (2 pages).
pub fn fill(ports: u64, linux: u64, cokernel: u64) {
    let map = |address: u64, pages: usize| {
        // SAFETY: the module's seven pages in a row.
        unsafe { core::slice::from_raw_parts_mut(at::<u8>(address), pages * PAGE as usize) }
    };
    map(ports, 3).fill(0xff);
    let linux = map(linux, 2);
    linux.fill(0);
    for bit in GUARDED.iter().filter_map(|msr| msr_bit(*msr)) {
        linux[(bit + 1) / 8] |= 1 << ((bit + 1) % 8);
    }
    let cokernel = map(cokernel, 2);
    cokernel.fill(0xff);
    for bit in COKERNELS.iter().filter_map(|msr| msr_bit(*msr)) {
        cokernel[bit / 8] &= !(3 << (bit % 8));
    }
}
