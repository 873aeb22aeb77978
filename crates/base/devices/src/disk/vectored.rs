//! Reads and writes of a file at an offset, into and from pieces of a guest's memory, without a copy in between.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd};
use vm_memory::VolatileSlice;

/// Maximum number of pieces of one system call (`UIO_MAXIOV` of the kernel).
const MAX_PIECES: usize = 1024;

/// `preadv` or `pwritev`.
type Call = unsafe extern "C" fn(i32, *const libc::iovec, i32, libc::off_t) -> isize;

/// The pieces that are not done yet.
struct Pieces<'a> {
    slices: &'a [VolatileSlice<'a>],
    /// Bytes of the first slice that are done.
    done: usize,
}

impl Pieces<'_> {
    fn vectors(&self) -> Vec<libc::iovec> {
        let mut skip = self.done;
        let pieces = self.slices.iter().take(MAX_PIECES).map(|slice| {
            let (base, bytes) = (slice.ptr_guard_mut().as_ptr(), slice.len());
            let start = std::mem::take(&mut skip).min(bytes);
            libc::iovec { iov_base: base.wrapping_add(start).cast(), iov_len: bytes - start }
        });
        pieces.collect()
    }

    fn advance(&mut self, bytes: usize) {
        self.done += bytes;
        while let Some((first, rest)) = self.slices.split_first() {
            if self.done < first.len() {
                return;
            }
            self.done -= first.len();
            self.slices = rest;
        }
    }
}

fn transfer(
    file: BorrowedFd<'_>,
    mut at: u64,
    slices: &[VolatileSlice<'_>],
    call: Call,
) -> Result<()> {
    let mut pieces = Pieces { slices, done: 0 };
    pieces.advance(0);
    while !pieces.slices.is_empty() {
        let vectors = pieces.vectors();
        let offset = libc::off_t::try_from(at).map_err(|_| ErrorKind::InvalidInput)?;
        // SAFETY: each vector lies in a slice, whose memory is mapped while it is borrowed and is accessed by volatile
        // accesses and system calls only. `vectors` has at most `MAX_PIECES` elements.
        let bytes =
            unsafe { call(file.as_raw_fd(), vectors.as_ptr(), vectors.len() as i32, offset) };
        match usize::try_from(bytes) {
            // The file has become shorter.
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                pieces.advance(bytes);
                at += bytes as u64;
            }
            Err(_) => {
                let error = Error::last_os_error();
                if error.kind() != ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Fills `to` from the file's byte `at` on.
pub fn read(file: BorrowedFd<'_>, at: u64, to: &[VolatileSlice<'_>]) -> Result<()> {
    transfer(file, at, to, libc::preadv)
}

/// Writes `from` to the file from byte `at` on.
pub fn write(file: BorrowedFd<'_>, at: u64, from: &[VolatileSlice<'_>]) -> Result<()> {
    transfer(file, at, from, libc::pwritev)
}

#[cfg(test)]
mod tests;
