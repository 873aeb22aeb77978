//! A host thread's task.

use crate::instance::Shared;
use kyozon_library_host::kernel::Record;
use std::sync::Arc;

/// The calling thread's task in a kernel. It cannot leave its thread; it ends when dropped.
pub struct Thread {
    shared: Arc<Shared>,
    record: Record,
}

impl Thread {
    pub(crate) fn attached(shared: Arc<Shared>, record: Record) -> Self {
        Self { shared, record }
    }

    /// Performs a system call of x86-64 Linux. Returns its result, or a negative error number: `-ESHUTDOWN` after the
    /// kernel halted, `-ENOSYS` for calls that concern processes and their memory images (fork, execve, exit).
    ///
    /// # Safety
    ///
    /// The kernel reads and writes the memory that the arguments name, as the system call is specified. Addresses that
    /// are not mapped are no danger: they give `-EFAULT`.
    #[inline]
    pub unsafe fn syscall(&self, number: i64, arguments: [u64; 6]) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { self.shared.kernel.syscall(&self.record, number as u64, arguments) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // A kernel that halted has forgotten its threads.
        let _ = self.shared.kernel.detach(&self.record);
    }
}
