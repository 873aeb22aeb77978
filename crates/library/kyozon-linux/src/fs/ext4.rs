//! What an ext4 has recorded about itself, read before anything mounts it: to mount it would change the record.

use liblinux::calls::Calls;
use std::path::Path;

// Documentation/filesystems/ext4/super.rst: the superblock, and the byte of it where each field begins.
const SUPERBLOCK: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const LOG_BLOCK_SIZE: usize = 0x18;
const MAGIC: usize = 0x38;
const STATE: usize = 0x3a;
const FEATURES_COMPATIBLE: usize = 0x5c;
const JOURNAL_BACKUP_TYPE: usize = 0xfd;
const JOURNAL_BLOCKS: usize = 0x10c;

const EXT4_MAGIC: u16 = 0xef53;
/// Blocks have at most 64 KiB.
const MAX_LOG_BLOCK_SIZE: u32 = 6;
const STATE_ERROR: u16 = 2;
const HAS_JOURNAL: u32 = 4;
/// The superblock has a copy of the journal's map of blocks.
const BACKUP_OF_BLOCKS: u8 = 1;

// Documentation/filesystems/ext4/ifork.rst: the head of an extent tree's node is followed by entries of as many bytes.
const EXTENT_MAGIC: u16 = 0xf30a;
const EXTENT_BYTES: usize = 12;
const MAX_DEPTH: usize = 5;

// Documentation/filesystems/ext4/journal.rst: numbers have their high byte first.
const JOURNAL_MAGIC: u32 = 0xc03b_3998;
const JOURNAL_ERRNO: usize = 32;
const JOURNAL_HEAD_BYTES: usize = 36;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn big_u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a number of bytes of a disk from an offset on, if it has all of them.
type Read<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// The block that the first entry of an extent tree's node names, and whether that has data and no other node.
fn first_extent(node: &[u8]) -> Option<(u64, bool)> {
    let entry = node.get(EXTENT_BYTES..2 * EXTENT_BYTES)?;
    if u16_at(node, 0)? != EXTENT_MAGIC || u16_at(node, 2)? == 0 {
        return None;
    }
    let leaf = u16_at(node, 6)? == 0;
    let (low, high) = if leaf { (8, 6) } else { (4, 8) };
    Some((u64::from(u32_at(entry, low)?) | u64::from(u16_at(entry, high)?) << 32, leaf))
}

/// The number of the error that the journal has recorded, 0 for none. `None` if there is no journal, or if it is not
/// found: the driver will say so.
fn journal_error(read: Read<'_>, superblock: &[u8]) -> Option<u32> {
    let shift = u32_at(superblock, LOG_BLOCK_SIZE)?;
    let backup = *superblock.get(JOURNAL_BACKUP_TYPE)?;
    let journal = u32_at(superblock, FEATURES_COMPATIBLE)? & HAS_JOURNAL != 0;
    if !journal || backup != BACKUP_OF_BLOCKS || shift > MAX_LOG_BLOCK_SIZE {
        return None;
    }
    let map = superblock.get(JOURNAL_BLOCKS..)?;
    let bytes = 1024_u64 << shift;
    let head = if u16_at(map, 0)? == EXTENT_MAGIC {
        let mut node = map.to_vec();
        let mut depths = 0..=MAX_DEPTH;
        loop {
            depths.next()?;
            let (block, leaf) = first_extent(&node)?;
            let at = block.checked_mul(bytes)?;
            if leaf {
                break at;
            }
            node = read(at, 2 * EXTENT_BYTES)?;
        }
    } else {
        // As ext2 and ext3 have it: the numbers of the blocks.
        u64::from(u32_at(map, 0)?) * bytes
    };
    let head = read(head, JOURNAL_HEAD_BYTES)?;
    (big_u32_at(&head, 0)? == JOURNAL_MAGIC).then_some(big_u32_at(&head, JOURNAL_ERRNO)?)
}

fn recorded(read: Read<'_>) -> Option<bool> {
    let superblock = read(SUPERBLOCK, SUPERBLOCK_BYTES)?;
    if u16_at(&superblock, MAGIC)? != EXT4_MAGIC {
        return None;
    }
    let marked = u16_at(&superblock, STATE)? & STATE_ERROR != 0;
    Some(marked || journal_error(read, &superblock).is_some_and(|number| number != 0))
}

/// Whether Linux has recorded an error in the ext4 of a disk or partition, in its superblock (`EXT4_ERROR_FS`) or in
/// its journal. False if there is no ext4, or no record can be read.
pub fn has_recorded_error(calls: &dyn Calls, device: &str) -> bool {
    let Ok(file) = calls.open(Path::new(device), libc::O_RDONLY, 0) else { return false };
    let found = recorded(&|offset, bytes| {
        let mut buffer = vec![0; bytes];
        (calls.pread(file, &mut buffer, offset) == Ok(bytes)).then_some(buffer)
    });
    let _ = calls.close(file);
    found.unwrap_or(false)
}

#[cfg(test)]
mod tests;
