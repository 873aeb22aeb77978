//! The BPF programs of which Linux tells user space.

use anyhow::{bail, Result};
use std::collections::BTreeSet;
use std::io;
use std::mem::size_of;

/// `BPF_PROG_GET_NEXT_ID` in Linux's `bpf.h`.
const PROG_GET_NEXT_ID: libc::c_int = 11;

/// Maximum number of programs: whoever forges the answers can invent any.
const MAX_PROGRAMS: usize = 1 << 20;

/// The part of `union bpf_attr` for that command.
#[repr(C)]
struct NextId {
    start: u32,
    next: u32,
    open_flags: u32,
}

/// The IDs that bpf(2) tells one after the other.
///
/// # Errors
///
/// Linux refuses: it wants CAP_SYS_ADMIN.
pub(super) fn told() -> Result<BTreeSet<u64>> {
    let mut ids = BTreeSet::new();
    let mut request = NextId { start: 0, next: 0, open_flags: 0 };
    loop {
        match next(&mut request) {
            // Whoever filters the answers can repeat one.
            Ok(()) if request.next > request.start && ids.len() < MAX_PROGRAMS => {
                ids.insert(u64::from(request.next));
                request.start = request.next;
            }
            Ok(()) => bail!("bpf(2) tells of program {} after {}", request.next, request.start),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(ids),
            // A kernel without BPF has no programs.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => return Ok(ids),
            Err(error) => bail!("bpf(2) does not list programs: {error}"),
        }
    }
}

#[allow(unsafe_code)]
fn next(request: &mut NextId) -> io::Result<()> {
    let bytes = size_of::<NextId>();
    // SAFETY: Linux reads and writes `bytes` bytes at the address, which are `request`'s.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, PROG_GET_NEXT_ID, std::ptr::from_mut(request), bytes)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
