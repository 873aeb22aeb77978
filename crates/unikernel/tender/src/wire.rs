//! Reads and writes structures of `abi::unikernel` in memory that is shared with a guest.

use crate::error::Result;
use crate::memory::Block;
use kyozon_abi::unikernel::{CallBlock, GuestBoot, RegionHeader};
use vm_memory::{ByteValued, VolatileMemory};

/// A structure of `abi::unikernel`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Wire<T>(T);

// SAFETY: `repr(C)`, only integers, no padding: `abi::unikernel` asserts that its size is the sum of its fields' sizes.
unsafe impl ByteValued for Wire<GuestBoot> {}
// SAFETY: as above.
unsafe impl ByteValued for Wire<CallBlock> {}
// SAFETY: as above.
unsafe impl ByteValued for Wire<RegionHeader> {}

/// Writes a boot block.
pub fn put_boot(block: &Block, offset: u64, boot: GuestBoot) -> Result<()> {
    block.get_ref(offset as usize)?.store(Wire(boot));
    Ok(())
}

/// Writes a region's header.
pub fn put_header(block: &Block, header: RegionHeader) -> Result<()> {
    block.get_ref(0)?.store(Wire(header));
    Ok(())
}

/// Copies a call block. The caller checks and uses only the copy: the guest can change the original at any time.
pub fn get_call(block: &Block, offset: u64) -> Result<CallBlock> {
    Ok(block.get_ref::<Wire<CallBlock>>(offset as usize)?.load().0)
}

/// Writes a call's result into the call block.
pub fn put_result(block: &Block, offset: u64, result: i64) -> Result<()> {
    let at = offset as usize + std::mem::offset_of!(CallBlock, result);
    block.get_ref::<i64>(at)?.store(result);
    Ok(())
}
