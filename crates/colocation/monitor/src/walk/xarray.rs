//! Walks over xarrays, and IDRs as a kind of them (`include/linux/xarray.h` of Linux).

use super::{offset, WalkError};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};

/// Maximum depth of an xarray: 64 bits of index at 4 bits per level (a kernel configured for small size; others have
/// 6).
const MAX_LEVELS: usize = 16;
/// Maximum number of descents from the root in one search for the next entry.
const MAX_DESCENTS: usize = 16;

/// Byte offsets of an xarray's members. An IDR is an xarray in which mark 0 flags the free slots.
#[derive(Clone, Copy, Debug)]
pub struct XArrays {
    head: u64,
    shift: u64,
    /// `xa_node.count`, one byte: the number of slots in use.
    pub count: u64,
    slots: u64,
    /// `xa_node.marks`: the words of mark 0.
    pub marks: u64,
    /// Binary logarithm of the number of slots in a node.
    bits: u32,
}

/// The result of a search for the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XArrayEntry {
    /// An index and the pointer stored there.
    Found(u64, u64),
    /// No entry below this index; the search stopped at its bound.
    Gap(u64),
    /// No further entry.
    End,
}

/// The path from the root to a slot.
#[derive(Clone, Copy, Debug)]
pub struct SlotPath {
    /// Each node on the path and the slot taken in it, from the root down.
    pub steps: [(u64, u32); MAX_LEVELS],
    /// Number of valid elements in `steps`.
    pub levels: usize,
    /// Address of the slot.
    pub slot: u64,
    /// The slot's contents.
    pub value: u64,
}

/// The node that `entry` points to (`xa_to_node` in Linux's xarray.h).
fn node_of(entry: u64) -> Option<u64> {
    (entry & 3 == 2 && entry > 4096).then(|| entry - 2)
}

impl XArrays {
    /// Looks the offsets up in `profile`.
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        let slots = profile.field("xa_node", "slots").map_or(0, |field| field.bytes / 8);
        if !matches!(slots, 16 | 64) {
            return Err(ProfileError::Malformed("an xarray node has neither 16 nor 64 slots"));
        }
        Ok(Self {
            head: offset(profile, "xarray", "xa_head")?,
            shift: offset(profile, "xa_node", "shift")?,
            count: offset(profile, "xa_node", "count")?,
            slots: offset(profile, "xa_node", "slots")?,
            marks: offset(profile, "xa_node", "marks")?,
            bits: slots.trailing_zeros(),
        })
    }

    /// Number of slots in a node.
    pub fn slots(&self) -> u32 {
        1 << self.bits
    }

    /// The address of slot `number` of the node at `node`.
    pub fn slot(&self, node: u64, number: u32) -> u64 {
        node.wrapping_add(self.slots).wrapping_add(u64::from(number) * 8)
    }

    /// The shift of the node at `node`; `above` is its parent's shift, `None` for the root.
    fn node_shift<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        node: u64,
        above: Option<u32>,
    ) -> Result<u32, WalkError> {
        let shift = kernel
            .u8(node.wrapping_add(self.shift))
            .map(u32::from)
            .ok_or(WalkError::WildPointer(node))?;
        let fits = match above {
            Some(above) => shift + self.bits == above,
            None => shift % self.bits == 0 && shift < u64::BITS,
        };
        fits.then_some(shift).ok_or(WalkError::WildPointer(node))
    }

    /// The first plain pointer at `index` or above in the xarray at address `xarray`.
    pub fn next<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        xarray: u64,
        index: u64,
    ) -> Result<XArrayEntry, WalkError> {
        let place = xarray.wrapping_add(self.head);
        let head = kernel.u64(place).ok_or(WalkError::WildPointer(place))?;
        let Some(top) = node_of(head) else {
            return Ok(if head != 0 && head & 3 == 0 && index == 0 {
                XArrayEntry::Found(0, head)
            } else {
                XArrayEntry::End
            });
        };
        let mut index = index;
        'descent: for _ in 0..MAX_DESCENTS {
            let (mut node, mut above) = (top, None);
            loop {
                let shift = self.node_shift(kernel, node, above)?;
                if above.is_none() && shift + self.bits < 64 && index >> (shift + self.bits) != 0 {
                    return Ok(XArrayEntry::End);
                }
                let mask = u64::from(self.slots() - 1);
                let found = loop {
                    let slot = self.slot(node, (index >> shift & mask) as u32);
                    let entry = kernel.u64(slot).ok_or(WalkError::WildPointer(slot))?;
                    match node_of(entry) {
                        Some(below) if shift > 0 => break below,
                        None if shift == 0 && entry != 0 && entry & 3 == 0 => {
                            return Ok(XArrayEntry::Found(index, entry))
                        }
                        _ => {}
                    }
                    // Empty: continue at the first index of the next slot.
                    index = match (index >> shift)
                        .checked_add(1)
                        .and_then(|next| next.checked_mul(1 << shift))
                    {
                        Some(next) => next,
                        None => return Ok(XArrayEntry::End),
                    };
                    if index >> shift & mask == 0 {
                        continue 'descent;
                    }
                };
                (node, above) = (found, Some(shift));
            }
        }
        Ok(XArrayEntry::Gap(index))
    }

    /// The path to the slot of `index`; `None` if there is no such slot.
    pub fn path_to<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        xarray: u64,
        index: u64,
    ) -> Option<SlotPath> {
        let mut node = node_of(kernel.u64(xarray.wrapping_add(self.head))?)?;
        let mut path = SlotPath { steps: [(0, 0); MAX_LEVELS], levels: 0, slot: 0, value: 0 };
        let mut above = None;
        loop {
            let shift = self.node_shift(kernel, node, above).ok()?;
            if above.is_none() && shift + self.bits < 64 && index >> (shift + self.bits) != 0 {
                return None;
            }
            let number = (index >> shift) as u32 & (self.slots() - 1);
            *path.steps.get_mut(path.levels)? = (node, number);
            path.levels += 1;
            path.slot = self.slot(node, number);
            path.value = kernel.u64(path.slot)?;
            if shift == 0 {
                return Some(path);
            }
            node = node_of(path.value)?;
            above = Some(shift);
        }
    }
}
