//! Memory: mappings, the region, and the stack.

use std::io;
use std::ptr::NonNull;

use kyozon_typed_checker::program::Host;
use kyozon_typed_checker::STACK;

/// A mapping that ends with its owner.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps zeros, at this address or anywhere. A mapping at an address fails if something is there.
    pub fn new(address: usize, bytes: usize, protection: i32) -> io::Result<Mapping> {
        let bytes = bytes.next_multiple_of(4096);
        let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
        // SAFETY: a new mapping, which replaces none.
        let start =
            unsafe { libc::mmap(address as *mut libc::c_void, bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast::<u8>())
            .map(|start| Mapping { start, bytes })
            .ok_or(io::ErrorKind::OutOfMemory.into())
    }

    /// Changes the protection of a part, whose start and length are multiples of a page.
    pub fn protect(&mut self, at: usize, bytes: usize, protection: i32) -> io::Result<()> {
        assert!(
            at.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            "outside of the mapping"
        );
        // SAFETY: the part belongs to this mapping, of which no references are kept.
        let result =
            unsafe { libc::mprotect(self.start.as_ptr().add(at).cast(), bytes, protection) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Its length, a multiple of a page.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies bytes into a part that is writable.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes),
            "outside of the mapping"
        );
        // SAFETY: within the mapping, which does not overlap a slice of Rust's. The caller keeps it writable.
        unsafe { self.start.as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Copies bytes from a part that is readable.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(
            at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes),
            "outside of the mapping"
        );
        // SAFETY: within the mapping, which does not overlap a slice of Rust's. The caller keeps it readable.
        unsafe {
            self.start.as_ptr().add(at).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len())
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(result, 0);
    }
}

/// The region with its guard, and a stack.
pub struct Space {
    region: Mapping,
    stack: Mapping,
    host: Host,
}

impl Space {
    /// Reserves the region that `host` describes; its first `accessible` bytes, a multiple of a page, are memory.
    ///
    /// # Errors
    ///
    /// The address is taken (a program that is not position independent can have its heap there), or memory is short.
    pub fn new(host: Host, accessible: usize) -> io::Result<Space> {
        let mut region =
            Mapping::new(host.region as usize, host.reserved as usize, libc::PROT_NONE)?;
        region.protect(0, accessible, libc::PROT_READ | libc::PROT_WRITE)?;
        let stack = Mapping::new(0, 3 * STACK as usize, libc::PROT_NONE)?;
        let mut space = Space { region, stack, host };
        let start = space.stack_start();
        space.stack.protect(start, STACK as usize, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(space)
    }

    /// Where the stack lies in its mapping: the first multiple of its size that leaves a guard below.
    fn stack_start(&self) -> usize {
        let size = STACK as usize;
        size + (size - self.stack.start() as usize % size) % size
    }

    /// The end of the stack, where an empty one begins.
    pub(crate) fn stack_top(&self) -> *mut u8 {
        self.stack.start().wrapping_add(self.stack_start() + STACK as usize)
    }

    /// What the region is.
    pub fn host(&self) -> Host {
        self.host
    }

    /// Makes a part of the region memory; its start and length are multiples of a page.
    ///
    /// # Errors
    ///
    /// Memory is short.
    pub fn open(&mut self, at: usize, bytes: usize) -> io::Result<()> {
        self.region.protect(at, bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// The address of a place in the region.
    pub(crate) fn address(&mut self, at: usize) -> *mut u8 {
        self.region.start().wrapping_add(at)
    }

    /// Copies bytes from the accessible part of the region.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        self.region.read(at, bytes);
    }

    /// Copies bytes into the accessible part of the region.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.region.write(at, bytes);
    }
}
