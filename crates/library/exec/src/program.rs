//! What the threads of a program share, besides the process: its heap's end. The process's own `brk` belongs to our C
//! library, which must not find the program's memory there.

use std::io;
use std::sync::Mutex;

/// Bytes of address space for the program's heap. Memory is taken when the program touches it.
const HEAP: u64 = 16 << 30;

/// A program in this process.
pub struct Program {
    /// Its file's absolute path.
    pub path: std::ffi::CString,
    heap: u64,
    end: Mutex<u64>,
}

impl Program {
    /// A program of the file at `path`, with an empty heap.
    pub fn new(path: std::ffi::CString) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping; the address is a hint.
        let heap = unsafe {
            libc::mmap(
                crate::area::hint(HEAP) as *mut _,
                HEAP as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if heap == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { path, heap: heap as u64, end: Mutex::new(heap as u64) })
    }

    /// brk(2), as the kernel's call: returns the heap's end, which has not changed if the address is impossible.
    pub fn brk(&self, address: u64) -> u64 {
        let mut end = self.end.lock().expect("no panic while locked");
        if (self.heap..=self.heap + HEAP).contains(&address) {
            if address < *end {
                // What the heap gives back reads as zeros when it grows again.
                let first = address.next_multiple_of(4096);
                let bytes = (*end).saturating_sub(first) as usize;
                // SAFETY: the range is the program's heap, which it gives back.
                unsafe {
                    let tail = (first.min(*end) - address) as usize;
                    std::ptr::write_bytes(address as *mut u8, 0, tail);
                    libc::madvise(first as *mut _, bytes, libc::MADV_DONTNEED);
                }
            }
            *end = address;
        }
        *end
    }
}
