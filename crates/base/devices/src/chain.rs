//! One checked entry of a queue: a guest's request.

use crate::ring::Bad;
use crate::Memory;
use vm_memory::{GuestAddress, Permissions, VolatileSlice};

/// A piece of the guest's memory: address and bytes.
type Piece = (GuestAddress, usize);

/// One entry: memory that the device reads and memory that it writes. Both are consumed from the front.
#[derive(Debug, Default)]
pub struct Chain {
    reads: Cursor,
    writes: Cursor,
}

/// Pieces, of which a part is consumed.
#[derive(Debug, Default)]
struct Cursor {
    pieces: Vec<Piece>,
    /// Index of the first piece that is not consumed completely.
    piece: usize,
    /// Bytes of this piece that are consumed.
    used: usize,
    /// Bytes of all pieces that are not consumed.
    left: u64,
}

impl Cursor {
    fn clear(&mut self) {
        self.pieces.clear();
        (self.piece, self.used, self.left) = (0, 0, 0);
    }

    /// Consumes at most `max` contiguous bytes.
    fn next(&mut self, max: usize) -> Option<Piece> {
        loop {
            let (address, bytes) = *self.pieces.get(self.piece)?;
            if self.used == bytes {
                (self.piece, self.used) = (self.piece + 1, 0);
                continue;
            }
            let count = max.min(bytes - self.used);
            // In the range that was checked when the piece was added.
            let at = GuestAddress(address.0 + self.used as u64);
            self.used += count;
            self.left -= count as u64;
            return Some((at, count));
        }
    }

    /// Consumes the next `bytes` bytes and calls `with` on their slices, in order.
    fn walk<'a, M: Memory, E: From<Bad>>(
        &mut self,
        memory: &'a M,
        bytes: usize,
        right: Permissions,
        mut with: impl FnMut(VolatileSlice<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = bytes;
        while left > 0 {
            let (address, count) = self.next(left).ok_or(Bad::Short)?;
            for slice in memory.get_slices(address, count, right).map_err(|_| Bad::Address)? {
                with(slice.map_err(|_| Bad::Address)?)?;
            }
            left -= count;
        }
        Ok(())
    }
}

impl Chain {
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }

    /// Number of pieces so far.
    pub(crate) fn pieces(&self) -> usize {
        self.reads.pieces.len() + self.writes.pieces.len()
    }

    /// Adds a piece as the guest described it.
    pub(crate) fn push<M: Memory>(
        &mut self,
        memory: &M,
        address: GuestAddress,
        bytes: u32,
        write: bool,
    ) -> Result<(), Bad> {
        let (cursor, right) = if write {
            (&mut self.writes, Permissions::Write)
        } else {
            // Section 2.7.4.2: the memory to write follows the memory to read.
            if !self.writes.pieces.is_empty() {
                return Err(Bad::Order);
            }
            (&mut self.reads, Permissions::Read)
        };
        if bytes > 0 && !memory.check_range(address, bytes as usize, right) {
            return Err(Bad::Address);
        }
        cursor.pieces.push((address, bytes as usize));
        // A chain has fewer than 2^16 pieces of fewer than 2^32 bytes.
        cursor.left += u64::from(bytes);
        Ok(())
    }

    /// Bytes left to read.
    pub fn to_read(&self) -> u64 {
        self.reads.left
    }

    /// Bytes left to write.
    pub fn to_write(&self) -> u64 {
        self.writes.left
    }

    /// Fills `to` with the next bytes that the guest wrote.
    ///
    /// # Errors
    /// [`Bad::Short`] if fewer bytes are left.
    pub fn read<M: Memory>(&mut self, memory: &M, to: &mut [u8]) -> Result<(), Bad> {
        let mut done = 0;
        let bytes = to.len();
        self.read_with(memory, bytes, |slice| {
            done += slice.copy_to(&mut to[done..]);
            Ok(())
        })
    }

    /// Copies `from` to the next memory that the device may write.
    ///
    /// # Errors
    /// [`Bad::Short`] if fewer bytes are left.
    pub fn write<M: Memory>(&mut self, memory: &M, from: &[u8]) -> Result<(), Bad> {
        let mut done = 0;
        self.write_with(memory, from.len(), |slice| {
            slice.copy_from(&from[done..done + slice.len()]);
            done += slice.len();
            Ok(())
        })
    }

    /// Calls `with` on slices of the next `bytes` bytes that the guest wrote.
    ///
    /// # Errors
    /// Those of `with`; [`Bad::Short`] if fewer bytes are left.
    pub fn read_with<'a, M: Memory, E: From<Bad>>(
        &mut self,
        memory: &'a M,
        bytes: usize,
        with: impl FnMut(VolatileSlice<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.reads.walk(memory, bytes, Permissions::Read, with)
    }

    /// Calls `with` on slices of the next `bytes` bytes that the device may write.
    ///
    /// # Errors
    /// Those of `with`; [`Bad::Short`] if fewer bytes are left.
    pub fn write_with<'a, M: Memory, E: From<Bad>>(
        &mut self,
        memory: &'a M,
        bytes: usize,
        with: impl FnMut(VolatileSlice<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.writes.walk(memory, bytes, Permissions::Write, with)
    }

    /// The next `bytes` bytes that the guest wrote, for a system call that takes several pieces.
    ///
    /// # Errors
    /// [`Bad::Short`] if fewer bytes are left.
    pub fn readable<'a, M: Memory>(
        &mut self,
        memory: &'a M,
        bytes: u64,
    ) -> Result<Vec<VolatileSlice<'a>>, Bad> {
        let mut slices = Vec::new();
        let bytes = usize::try_from(bytes).map_err(|_| Bad::Short)?;
        self.read_with(memory, bytes, |slice| {
            slices.push(slice);
            Ok::<_, Bad>(())
        })?;
        Ok(slices)
    }

    /// The next `bytes` bytes that the device may write, for a system call that takes several pieces.
    ///
    /// # Errors
    /// [`Bad::Short`] if fewer bytes are left.
    pub fn writable<'a, M: Memory>(
        &mut self,
        memory: &'a M,
        bytes: u64,
    ) -> Result<Vec<VolatileSlice<'a>>, Bad> {
        let mut slices = Vec::new();
        let bytes = usize::try_from(bytes).map_err(|_| Bad::Short)?;
        self.write_with(memory, bytes, |slice| {
            slices.push(slice);
            Ok::<_, Bad>(())
        })?;
        Ok(slices)
    }

    /// Appends all memory that the device may write to `slices`. Nothing is consumed.
    ///
    /// # Errors
    /// [`Bad::Address`] never: the addresses were checked when the pieces were added.
    pub fn show_writable<'a, M: Memory>(
        &self,
        memory: &'a M,
        slices: &mut Vec<VolatileSlice<'a>>,
    ) -> Result<(), Bad> {
        let Cursor { pieces, piece, used, .. } = &self.writes;
        let mut used = *used;
        for (address, bytes) in pieces.iter().skip(*piece) {
            let (at, count) = (GuestAddress(address.0 + used as u64), bytes - used);
            used = 0;
            if count == 0 {
                continue;
            }
            let found = memory.get_slices(at, count, Permissions::Write);
            for slice in found.map_err(|_| Bad::Address)? {
                slices.push(slice.map_err(|_| Bad::Address)?);
            }
        }
        Ok(())
    }

    /// Makes all memory to read unread again.
    pub fn rewind(&mut self) {
        let Cursor { pieces, piece, used, left } = &mut self.reads;
        (*piece, *used) = (0, 0);
        *left = pieces.iter().map(|(_, bytes)| *bytes as u64).sum();
    }

    /// Skips memory to read.
    pub fn skip_reads(&mut self, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let Some((_, count)) = self.reads.next(left) else { return };
            left -= count;
        }
    }

    /// Skips memory to write, except the last `bytes` bytes.
    pub fn skip_writes_but(&mut self, bytes: u64) {
        while self.writes.left > bytes {
            let max = usize::try_from(self.writes.left - bytes).unwrap_or(usize::MAX);
            if self.writes.next(max).is_none() {
                return;
            }
        }
    }
}
