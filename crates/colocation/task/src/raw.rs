//! The system call instruction.

use crate::{Error, Result};

/// Registers of a message call; see `abi::task`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Handle, then badge.
    pub rdi: u64,
    /// Transfer.
    pub rcx: u64,
    /// Words.
    pub words: [u64; 6],
}

/// Makes a system call, with every register that a call may change.
///
/// # Safety
///
/// The caller must own the memory that the call affects: `WINDOW` writes to memory, `UNMAP` and a granted page remove
/// it, `THREAD` runs code.
#[inline]
pub unsafe fn call(number: u64, r: &mut Registers) -> i64 {
    let answer: u64;
    let [a, b, c, d, e, f] = &mut r.words;
    // SAFETY: the kernel preserves every other register and the stack; memory is the caller's promise.
    #[cfg(target_os = "none")]
    unsafe {
        core::arch::asm!(
            "int 0x80",
            inlateout("rax") number => answer,
            inlateout("rdi") r.rdi,
            inlateout("rcx") r.rcx,
            inlateout("rsi") *a,
            inlateout("rdx") *b,
            inlateout("r8") *c,
            inlateout("r9") *d,
            inlateout("r10") *e,
            inlateout("r11") *f,
            options(nostack)
        );
    }
    #[cfg(not(target_os = "none"))]
    {
        // On the host there is no microkernel.
        let _ = (number, a, b, c, d, e, f);
        answer = kyozon_abi::task::E_CALL as u64;
    }
    answer as i64
}

/// Makes a system call with up to three arguments.
///
/// # Safety
///
/// As for [`call`].
#[inline]
pub unsafe fn simple(number: u64, a: u64, b: u64, c: u64) -> Result<u64> {
    let mut r = Registers { rdi: a, rcx: 0, words: [b, c, 0, 0, 0, 0] };
    // SAFETY: the caller's promise.
    Error::check(unsafe { call(number, &mut r) })
}
