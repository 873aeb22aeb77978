//! Discards and writes of zeros: requests whose data names ranges of sectors (section 5.2.6).

use super::{Block, Failed, SENSELESS, UNSUPPORTED};
use crate::chain::Chain;
use crate::disk::SECTOR;
use crate::Memory;
use std::io::{Error, ErrorKind};
use virtio_bindings::virtio_blk::VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;

/// Bytes of a range: sector, number of sectors, flags.
const RANGE: usize = 16;
/// Maximum number of ranges of a discard. A write of zeros has one.
const MAX_RANGES: usize = 32;
/// Maximum number of sectors of a range to discard: 1 GiB.
const MAX_DISCARD: u32 = 1 << 21;
/// Maximum number of sectors of a range of zeros: 32 MiB, because a file system may make the disk write them.
const MAX_ZEROS: u32 = 1 << 16;

/// The last fields of the configuration space.
pub(super) fn config(physical: u32) -> Vec<u8> {
    let alignment = physical / SECTOR as u32;
    let words = [MAX_DISCARD, MAX_RANGES as u32, alignment, MAX_ZEROS, 1];
    let mut bytes = words.map(u32::to_le_bytes).concat();
    // A write of zeros may free storage.
    bytes.extend([1, 0, 0, 0]);
    bytes
}

/// A checked range.
struct Range {
    at: u64,
    bytes: u64,
    unmap: bool,
}

impl Block {
    /// Reads and checks all ranges, before anything is done with the first.
    fn ranges<M: Memory>(
        &self,
        memory: &M,
        chain: &mut Chain,
        (max_ranges, max_sectors): (usize, u32),
        flags_allowed: u32,
    ) -> Result<Vec<Range>, Failed> {
        if self.read_only {
            return Err(SENSELESS);
        }
        let count = (chain.to_read() / RANGE as u64) as usize;
        if count == 0 || count > max_ranges || !chain.to_read().is_multiple_of(RANGE as u64) {
            return Err(SENSELESS);
        }
        let mut ranges = Vec::with_capacity(count);
        for _ in 0..count {
            let mut range = [0; RANGE];
            chain.read(memory, &mut range)?;
            let range = u128::from_le_bytes(range);
            let (sector, sectors, flags) =
                (range as u64, (range >> 64) as u32, (range >> 96) as u32);
            // Section 5.2.6.2: a discard has no flags, and other flags are reserved.
            if flags & !flags_allowed != 0 {
                return Err(UNSUPPORTED);
            }
            let bytes = u64::from(sectors) * SECTOR;
            let at = self.inside(sector, bytes).filter(|_| sectors <= max_sectors);
            let unmap = flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0;
            ranges.push(Range { at: at.ok_or(SENSELESS)?, bytes, unmap });
        }
        // `fallocate` refuses empty ranges.
        ranges.retain(|range| range.bytes > 0);
        Ok(ranges)
    }

    pub(super) fn discard<M: Memory>(
        &mut self,
        memory: &M,
        chain: &mut Chain,
    ) -> Result<(), Failed> {
        for Range { at, bytes, .. } in self.ranges(memory, chain, (MAX_RANGES, MAX_DISCARD), 0)? {
            let done = self.disk.discard(at, bytes);
            self.errors.check("discard", at, bytes, done)?;
        }
        Ok(())
    }

    pub(super) fn write_zeros<M: Memory>(
        &mut self,
        memory: &M,
        chain: &mut Chain,
    ) -> Result<(), Failed> {
        let flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
        for Range { at, bytes, unmap } in self.ranges(memory, chain, (1, MAX_ZEROS), flags)? {
            let done = self.disk.write_zeros(at, bytes, unmap);
            let unsupported = |error: &Error| error.kind() == ErrorKind::Unsupported;
            self.ended |= self.ends_at_error && done.as_ref().is_err_and(|e| !unsupported(e));
            self.errors.check("write of zeros", at, bytes, done)?;
            if !self.has(virtio_bindings::virtio_blk::VIRTIO_BLK_F_FLUSH) {
                self.flush()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
