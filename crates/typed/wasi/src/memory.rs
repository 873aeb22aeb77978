//! The program's memory. Everything in it may change at any time, so the interface copies first and then validates
//! the copy.

use crate::types::Errno;

/// A range of the program's memory. Ranges that a host gets lie within the memory's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The address.
    pub at: u32,
    /// The length in bytes.
    pub bytes: u32,
}

/// A program's memory.
pub trait Memory {
    /// Its size in bytes, at most 2^32. It may grow while a call is made; it never shrinks.
    fn size(&self) -> u64;

    /// Copies bytes out.
    ///
    /// # Errors
    ///
    /// [`Errno::Fault`] if a byte lies outside.
    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno>;

    /// Copies bytes in.
    ///
    /// # Errors
    ///
    /// [`Errno::Fault`] if a byte lies outside. Then nothing was written.
    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno>;
}

/// Memory that nobody else reaches, such as an interpreter's between two instructions.
impl Memory for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        let from = self.get(at as usize..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(from.ok_or(Errno::Fault)?);
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        let to = self.get_mut(at as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
        to.ok_or(Errno::Fault)?.copy_from_slice(bytes);
        Ok(())
    }
}

/// Fails with [`Errno::Fault`] if a byte of `count` elements of `size` bytes lies outside.
pub(crate) fn check<M: Memory + ?Sized>(
    memory: &M,
    at: u32,
    count: u32,
    size: u32,
) -> Result<(), Errno> {
    // No overflow: 2^32 + 2^32 * 2^6.
    if u64::from(at) + u64::from(count) * u64::from(size) <= memory.size() {
        Ok(())
    } else {
        Err(Errno::Fault)
    }
}

pub(crate) fn write_u32<M: Memory + ?Sized>(
    memory: &mut M,
    at: u32,
    value: u32,
) -> Result<(), Errno> {
    memory.write(at, &value.to_le_bytes())
}

pub(crate) fn write_u64<M: Memory + ?Sized>(
    memory: &mut M,
    at: u32,
    value: u64,
) -> Result<(), Errno> {
    memory.write(at, &value.to_le_bytes())
}
