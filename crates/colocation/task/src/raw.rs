//! The system call instruction.

use crate::{Error, Result};

/// Registers of a call about messages; see `abi::task`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Handle, then badge.
    pub rdi: u64,
    /// Transfer.
    pub rcx: u64,
    /// Words.
    pub words: [u64; 6],
}

/// Any call, with every register that a call may change.
///
/// # Safety
///
/// What the call does to this task's memory must be what the caller owns: `WINDOW` writes, `UNMAP` and a granted page
/// take memory away, `THREAD` runs code.
#[inline]
pub unsafe fn call(number: u64, r: &mut Registers) -> i64 {
    let answer: u64;
    let [a, b, c, d, e, f] = &mut r.words;
    // SAFETY: the kernel keeps every other register, and the stack; memory is the caller's promise.
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
        // There is no such kernel below a program of the host.
        let _ = (number, a, b, c, d, e, f);
        answer = kyozon_abi::task::E_CALL as u64;
    }
    answer as i64
}

/// A call with up to three arguments.
///
/// # Safety
///
/// As [`call`].
#[inline]
pub unsafe fn simple(number: u64, a: u64, b: u64, c: u64) -> Result<u64> {
    let mut r = Registers { rdi: a, rcx: 0, words: [b, c, 0, 0, 0, 0] };
    // SAFETY: the caller's promise.
    Error::check(unsafe { call(number, &mut r) })
}
