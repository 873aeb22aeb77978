//! The x87 unit's and the vector registers while the cokernel's user mode has them.
//!
//! They are exchanged when the cokernel asks for them, and again at the end of that trip. FXSAVE holds all of them but
//! the upper halves of the vector registers. CR4.OSXSAVE is clear meanwhile, so that user mode has no instruction that
//! names an upper half, and those of SSE leave them alone.

use super::user_state::{cr0, cr4, set_cr0, CR0_TS};
use core::arch::asm;

const CR4_OSXSAVE: u64 = 1 << 18;
/// Byte of FXSAVE's memory with the x87 control word, and its value after FINIT.
const CONTROL: (usize, u16) = (0, 0x37f);
/// Byte with MXCSR, and its value after a reset: all exceptions are masked. Intel SDM 1, 10.5.1 and 11.6.4.
const MXCSR: (usize, u16) = (24, 0x1f80);

/// What FXSAVE stores.
#[repr(C, align(16))]
struct Registers([u8; 512]);

impl Registers {
    const INITIAL: Self = {
        let mut bytes = [0; 512];
        let mut rest: &[(usize, u16)] = &[CONTROL, MXCSR];
        while let [(at, value), others @ ..] = rest {
            [bytes[*at], bytes[*at + 1]] = value.to_le_bytes();
            rest = others;
        }
        Self(bytes)
    };
}

/// The registers of both sides.
pub struct Vectors {
    linux: Registers,
    cokernel: Registers,
    /// They are the cokernel's now.
    are_given: bool,
    /// Linux's CR4.OSXSAVE, if they are.
    osxsave: u64,
}

impl Vectors {
    /// Linux has its registers; the cokernel will find the initial ones.
    pub const NEW: Self = Self {
        linux: Registers::INITIAL,
        cokernel: Registers::INITIAL,
        are_given: false,
        osxsave: 0,
    };

    /// Gives user mode the registers until [`take_back`](Self::take_back).
    ///
    /// # Safety
    ///
    /// On the cokernel's CPU, in its world. No code but user mode's uses these registers until they are taken back.
    pub unsafe fn give(&mut self) {
        // SAFETY: the caller's promise. With TS clear none of these faults: CR4.OSFXSR is set in every mode.
        unsafe {
            asm!("clts", options(nostack, preserves_flags));
            if !self.are_given {
                exchange(&mut self.linux, &self.cokernel);
                self.are_given = true;
                let cr4 = cr4();
                self.osxsave = cr4 & CR4_OSXSAVE;
                set_cr4(cr4 & !CR4_OSXSAVE);
            }
        }
    }

    /// Lets the next use of the registers trap, and puts Linux's back if user mode had its own.
    ///
    /// # Safety
    ///
    /// On the cokernel's CPU, in its world.
    pub unsafe fn take_back(&mut self) {
        if !self.are_given {
            return;
        }
        // SAFETY: the memory has what FXSAVE stored.
        unsafe {
            asm!("clts", options(nostack, preserves_flags));
            set_cr4(cr4() | self.osxsave);
            exchange(&mut self.cokernel, &self.linux);
            set_cr0(cr0() | CR0_TS);
        }
        self.are_given = false;
    }

    /// Linux's CR4, where the CPU's is `cr4`.
    pub fn linux_cr4(&self, cr4: u64) -> u64 {
        if self.are_given {
            cr4 | self.osxsave
        } else {
            cr4
        }
    }
}

/// Stores the registers to `old`, and loads `new`.
///
/// # Safety
///
/// CR0.TS is clear, and `new` has what FXSAVE stored, or [`Registers::INITIAL`].
unsafe fn exchange(old: &mut Registers, new: &Registers) {
    // SAFETY: the caller's promise; 512 bytes each, aligned to 16.
    unsafe {
        asm!("fxsave64 [{}]", "fxrstor64 [{}]", in(reg) old, in(reg) new, options(nostack, preserves_flags));
    }
}

/// # Safety
///
/// Only OSXSAVE may differ from the present value.
unsafe fn set_cr4(value: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) };
}
