//! x86-64: entries, gates, and the state of Linux that user mode would change.

#[cfg(feature = "alone")]
pub mod alone;
#[cfg(not(feature = "svm"))]
pub mod entry;
#[cfg(not(feature = "svm"))]
pub mod gates;
#[cfg(feature = "alone")]
pub mod pvh;
mod registers;
#[cfg(feature = "svm")]
pub mod svm;
#[cfg(not(feature = "svm"))]
pub mod user_state;
#[cfg(not(feature = "svm"))]
pub mod vectors;

use core::arch::asm;
#[cfg(feature = "alone")]
pub use pvh::power_off;

// Bits of control registers. Intel SDM volume 3, 2.5.
/// CR0: there is no x87 unit, and instructions of SSE are invalid.
pub const CR0_EM: u64 = 1 << 2;
/// CR0: the use of the x87 unit and of the vector registers traps.
pub const CR0_TS: u64 = 1 << 3;
/// CR4: only level 0 may read the time-stamp counter.
pub const CR4_TSD: u64 = 1 << 2;
/// CR4: FXSAVE stores the vector registers, and instructions of SSE are valid.
pub const CR4_OSFXSR: u64 = 1 << 9;
/// CR4: XSAVE, XGETBV and instructions that name the upper halves of vector registers are valid.
pub const CR4_OSXSAVE: u64 = 1 << 18;
/// CR4: protection keys for user pages.
pub const CR4_PKE: u64 = 1 << 22;
/// CR4: shadow stacks and branch tracking.
pub const CR4_CET: u64 = 1 << 23;
/// EFER: at level 0, FXSAVE leaves out the vector registers. AMD APM 2, 3.1.7.
pub const EFER_FFXSR: u64 = 1 << 14;

/// The time-stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Control register 2: the address of the last page fault.
pub fn cr2() -> u64 {
    let value;
    // SAFETY: reads a register that only page faults change.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Control register 3.
pub fn cr3() -> u64 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Debug registers 0 to 3.
pub fn breakpoints() -> [u64; 4] {
    let (a, b, c, d);
    // SAFETY: reads registers.
    unsafe {
        asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3", out(reg) a, out(reg) b, out(reg) c,
             out(reg) d, options(nomem, nostack, preserves_flags));
    }
    [a, b, c, d]
}

/// The stack selector.
pub fn stack_selector() -> u64 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {:e}, ss", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Drops this CPU's translation of the page at `address`.
pub fn forget_translation(address: u64) {
    // SAFETY: a translation that is dropped is made anew from the page tables.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

/// Raises an exception that the CPU cannot deliver, which makes it shut down: the machine resets.
///
/// # Safety
///
/// No code of the machine is to run after this.
pub unsafe fn shut_down() -> ! {
    let none = [0u64; 2];
    // SAFETY: the caller's promise. The table has no entries.
    unsafe { asm!("lidt [{}]", "ud2", in(reg) &raw const none, options(noreturn)) }
}

/// Writes a byte to an I/O port.
///
/// # Safety
///
/// The port must be one whose device the caller owns.
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller owns the device.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    };
}

/// Reads a byte from an I/O port.
///
/// # Safety
///
/// The port must be one whose device the caller owns.
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller owns the device.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    };
    value
}
