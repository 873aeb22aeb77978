//! Calls on whole tasks.

use crate::ipc::Endpoint;
use crate::raw;
use crate::Result;
use kyozon_abi::task::{
    EXIT, FAULT_HANDLER, GIVE_RIGHTS, NO_HANDLE, NO_OPERATION, STOP, SUPERVISE,
};

/// Ends this task.
pub fn exit(code: u64) -> ! {
    loop {
        // SAFETY: the call ends all code of this task.
        let _ = unsafe { raw::simple(EXIT, code, 0, 0) };
    }
}

/// Asks the kernel to start this task again when it fails, also if it waits for no tick for more than `patience` ticks
/// (0 for no limit).
pub fn supervise(patience: u64) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(SUPERVISE, patience, 0, 0) }.map(drop)
}

/// Sets the endpoint that receives the faults of `task`'s threads. With `None`, a fault is reported and ends the task.
pub fn set_fault_handler(task: u32, endpoint: Option<Endpoint>) -> Result<()> {
    let handle = endpoint.map_or(NO_HANDLE, |e| e.0);
    // SAFETY: no memory is touched.
    unsafe { raw::simple(FAULT_HANDLER, u64::from(task), handle, 0) }.map(drop)
}

/// Ends another task, or this one.
pub fn stop(task: u32) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(STOP, u64::from(task), 0, 0) }.map(drop)
}

/// Replaces another task's rights by `rights` (`RIGHT_*`), which this task must have.
pub fn give_rights(task: u32, rights: u64) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(GIVE_RIGHTS, u64::from(task), rights, 0) }.map(drop)
}

/// Enters the kernel, and does nothing there.
pub fn nothing() -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(NO_OPERATION, 0, 0, 0) }.map(drop)
}

/// Makes any system call with any arguments, for tests of the kernel.
///
/// # Safety
///
/// Depends on the call: `WINDOW` writes to memory, `UNMAP` and a granted page remove it, `THREAD` runs code.
pub unsafe fn any_call(number: u64, rdi: u64, rcx: u64, words: [u64; 6]) -> i64 {
    let mut r = raw::Registers { rdi, rcx, words };
    // SAFETY: the caller's promise.
    unsafe { raw::call(number, &mut r) }
}
