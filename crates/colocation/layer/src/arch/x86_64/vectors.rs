//! The x87 unit's and the vector registers while the cokernel's user mode has them.
//!
//! They are exchanged when the cokernel asks for them, and again at the end of that trip. FXSAVE holds all of them but
//! the upper halves of the vector registers. User mode runs with CR4.OSXSAVE clear, so that it has no instruction that
//! names an upper half, and those of SSE leave them alone.

use super::user_state::{cr0, set_cr0};
use super::CR0_TS;
use core::arch::asm;

/// What FXSAVE stores.
#[repr(C, align(16))]
struct Registers([u8; 512]);

impl Registers {
    /// The x87 control word after FINIT and MXCSR after a reset, which mask all exceptions, in their places. Intel SDM
    /// 1, 10.5.1 and 11.6.4.
    const INITIAL: Self = {
        let mut bytes = [0; 512];
        [bytes[0], bytes[1]] = 0x37f_u16.to_le_bytes();
        [bytes[24], bytes[25]] = 0x1f80_u16.to_le_bytes();
        Self(bytes)
    };

    /// # Safety
    ///
    /// CR0.TS and CR0.EM are clear, CR4.OSFXSR is set, EFER.FFXSR is clear.
    unsafe fn store(&mut self) {
        // SAFETY: the caller's promise; 512 bytes, aligned to 16.
        unsafe { asm!("fxsave64 [{}]", in(reg) self, options(nostack, preserves_flags)) };
    }

    /// # Safety
    ///
    /// As for [`store`](Self::store).
    unsafe fn load(&self) {
        // SAFETY: the caller's promise; the memory has what FXSAVE stored, or the initial values.
        unsafe {
            asm!("fxrstor64 [{}]", in(reg) self, options(nostack, readonly, preserves_flags))
        };
    }
}

/// The registers of both sides.
pub struct Vectors {
    linux: Registers,
    cokernel: Registers,
    /// Linux's are stored.
    are_given: bool,
}

impl Vectors {
    /// Linux has its registers; the cokernel will find the initial ones.
    pub const NEW: Self =
        Self { linux: Registers::INITIAL, cokernel: Registers::INITIAL, are_given: false };

    /// Gives user mode the registers until [`take_back`](Self::take_back).
    ///
    /// # Safety
    ///
    /// On the cokernel's CPU, in its world, with its user state (see [`user_state`](super::user_state)). No code but
    /// user mode's uses these registers until they are taken back.
    pub unsafe fn give(&mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("clts", options(nostack, preserves_flags));
            if !self.are_given {
                self.linux.store();
                self.are_given = true;
                self.cokernel.load();
            }
        }
    }

    /// Lets the next use of the registers trap, and puts Linux's back if user mode had its own.
    ///
    /// # Safety
    ///
    /// As for [`give`](Self::give).
    pub unsafe fn take_back(&mut self) {
        if !self.are_given {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            asm!("clts", options(nostack, preserves_flags));
            self.cokernel.store();
            self.linux.load();
            set_cr0(cr0() | CR0_TS);
        }
        self.are_given = false;
    }
}
