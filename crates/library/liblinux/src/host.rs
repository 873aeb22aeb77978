//! The host's own system calls, in the form of the library's: the same code then uses both kernels.

use crate::calls::{words, Arg, Calls, Fd, Result};
use crate::Errno;
use std::ffi::{CStr, CString};

/// The kernel that runs this process.
pub struct Host;

impl Calls for Host {
    fn call(&self, number: i64, arguments: &mut [Arg<'_>]) -> Result<u64> {
        let [a, b, c, d, e, f] = words(arguments);
        // SAFETY: sizes belong to the addresses, as Calls::call demands.
        let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            Err(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
        } else {
            Ok(result as u64)
        }
    }

    /// The working directory of a process is not one thread's.
    fn entry(&self, folder: Fd, name: &CStr) -> Result<CString> {
        let folder = format!("/proc/self/fd/{}/", folder.0);
        CString::new([folder.as_bytes(), name.to_bytes()].concat()).map_err(|_| Errno(libc::EINVAL))
    }
}
