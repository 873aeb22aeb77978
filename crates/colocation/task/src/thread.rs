//! Threads of a task. The kernel has a stack for each, with an unmapped page below it.

use crate::raw;
use crate::Result;
use kyozon_abi::task::{EXIT_THREAD, PRIORITY, THREAD, YIELD};

/// Starts a thread that runs `body` with `argument`, and returns its number in this task. `body` ends with [`exit`].
pub fn start(body: extern "C" fn(u64) -> !, argument: u64, priority: u64) -> Result<u64> {
    // SAFETY: `body` has the entry's type, and the kernel gives the thread its own stack.
    unsafe { raw::simple(THREAD, body as *const () as u64, argument, priority) }
}

/// Ends the calling thread.
pub fn exit() -> ! {
    loop {
        // SAFETY: the call ends all code of this thread; borrows on its stack never end.
        let _ = unsafe { raw::simple(EXIT_THREAD, 0, 0, 0) };
    }
}

/// Lets other threads of the same priority run.
pub fn yield_now() -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(YIELD, 0, 0, 0) }.map(drop)
}

/// Sets the calling thread's priority; the highest priority runs first.
pub fn set_priority(priority: u64) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(PRIORITY, priority, 0, 0) }.map(drop)
}
