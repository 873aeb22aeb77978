//! One pin of the IO-APIC, which delivers NMIs to the first CPU. Intel 82093AA data sheet, 3.2.4.

/// Physical address of the registers, at which they must also be mapped.
const REGISTERS: u64 = 0xfec0_0000;
const WINDOW: u64 = 0x10;
const VERSION: u32 = 1;
const MASKED: u32 = 1 << 16;
/// Physical destination, edge, active high.
const DELIVER_NMI: u32 = 4 << 8;

/// # Safety
///
/// The registers must be mapped at their physical address.
unsafe fn get(index: u32) -> u32 {
    // SAFETY: the caller's promise; no other code uses the index register.
    unsafe {
        (REGISTERS as *mut u32).write_volatile(index);
        ((REGISTERS + WINDOW) as *const u32).read_volatile()
    }
}

/// # Safety
///
/// As for [`get`].
unsafe fn set(index: u32, value: u32) {
    // SAFETY: as in `get`.
    unsafe {
        (REGISTERS as *mut u32).write_volatile(index);
        ((REGISTERS + WINDOW) as *mut u32).write_volatile(value);
    }
}

/// Programs the highest pin of `candidates` that is masked: low pins are ISA's. The module chooses in the same way.
///
/// # Safety
///
/// The registers must be mapped at their physical address.
pub unsafe fn take(candidates: u32) -> Option<u32> {
    // SAFETY: the caller's promise.
    unsafe {
        let pins = ((get(VERSION) >> 16 & 0xff) + 1).min(32);
        let free = |pin: &u32| candidates & 1 << pin != 0 && get(0x10 + 2 * pin) & MASKED != 0;
        let pin = (0..pins).rev().find(free)?;
        set(0x11 + 2 * pin, 0);
        set(0x10 + 2 * pin, DELIVER_NMI);
        Some(pin)
    }
}
