//! System calls of the host that need neither errno nor TLS. Signal handlers may make them, too, while the selector is
//! `OURS`.

use std::arch::asm;

/// A system call of the host.
///
/// # Safety
///
/// As the system call itself.
#[inline]
pub unsafe fn raw(number: i64, arguments: [u64; 6]) -> i64 {
    let result: i64;
    // SAFETY: the caller's promise; the instruction changes rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        )
    };
    result
}

/// A system call of the host whose arguments are numbers, or addresses that the program passed: a bad one gives EFAULT.
pub fn call(number: i64, arguments: &[u64]) -> i64 {
    let mut six = [0; 6];
    six[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: the kernel checks addresses; what it writes is the program's, or the caller's own.
    unsafe { raw(number, six) }
}

/// The result of a call that was not made, because a signal for the program was pending. Linux uses the number inside
/// the kernel, as ERESTARTNOINTR.
pub const NOT_MADE: i64 = -513;

/// As [`call`], but a signal for the program ends it: with `-EINTR`, or with [`NOT_MADE`].
pub fn wait(number: i64, arguments: &[u64]) -> i64 {
    let mut six = [0; 6];
    six[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: the kernel checks addresses; the dispatcher runs on threads of programs only.
    unsafe { crate::gate::host_call(number, six) }
}

/// Bit of a signal in a mask of the kernel.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Signals that must never be blocked: faults in the library are repaired by handlers, SIGSYS reaches the dispatcher.
pub const NEVER_BLOCKED: u64 = bit(libc::SIGSYS)
    | bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGILL)
    | bit(libc::SIGFPE)
    | bit(libc::SIGTRAP);

/// Sets the calling thread's signal mask and returns the one before.
pub fn set_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    let how = libc::SIG_SETMASK as u64;
    call(libc::SYS_rt_sigprocmask, &[how, &raw const mask as u64, &raw mut before as u64, 8]);
    before
}

/// Reads the program's memory, up to a bad address.
pub fn read(address: u64, buffer: &mut [u8]) -> Result<usize, i64> {
    // SAFETY: the buffer is ours; the address is the program's.
    let missing =
        unsafe { crate::gate::copy(buffer.as_mut_ptr(), address as *const u8, buffer.len()) };
    match buffer.len() - missing {
        0 if missing > 0 => Err(-i64::from(libc::EFAULT)),
        bytes => Ok(bytes),
    }
}

/// Reads a value of the program's memory.
pub fn read_value<T: Copy>(address: u64) -> Result<T, i64> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the bytes are initialized, and nothing else refers to them.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
    if read(address, bytes)? != size_of::<T>() {
        return Err(-i64::from(libc::EFAULT));
    }
    // SAFETY: callers read structures of integers and addresses, for which all bits are valid.
    Ok(unsafe { value.assume_init() })
}

/// Writes a value to the program's memory.
pub fn write_value<T: Copy>(address: u64, value: T) -> Result<(), i64> {
    // SAFETY: the value is ours; the address is the program's.
    let missing = unsafe {
        crate::gate::copy(address as *mut u8, (&raw const value).cast::<u8>(), size_of::<T>())
    };
    if missing == 0 {
        Ok(())
    } else {
        Err(-i64::from(libc::EFAULT))
    }
}
