//! Walks over `list_head` and `hlist` lists (`include/linux/types.h` of Linux).

use super::{offset, WalkError};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};

/// Byte offsets of the pointers in list heads and nodes.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    /// `list_head.next`.
    pub next: u64,
    /// `list_head.prev`.
    pub prev: u64,
    /// `hlist_head.first`.
    pub first: u64,
    /// `hlist_node.next`.
    pub hash_next: u64,
    /// `hlist_node.pprev`.
    pub hash_prev: u64,
}

impl Lists {
    /// Looks the offsets up in `profile`.
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        Ok(Self {
            next: offset(profile, "list_head", "next")?,
            prev: offset(profile, "list_head", "prev")?,
            first: offset(profile, "hlist_head", "first")?,
            hash_next: offset(profile, "hlist_node", "next")?,
            hash_prev: offset(profile, "hlist_node", "pprev")?,
        })
    }

    /// The `next` pointer of the node at `node`.
    pub fn next<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, node: u64) -> Option<u64> {
        kernel.u64(node.wrapping_add(self.next))
    }

    /// The `prev` pointer of the node at `node`.
    pub fn prev<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, node: u64) -> Option<u64> {
        kernel.u64(node.wrapping_add(self.prev))
    }

    /// Whether the node at `node` has neighbours, and both point back to it.
    pub fn is_linked<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, node: u64) -> bool {
        let (Some(next), Some(prev)) = (self.next(kernel, node), self.prev(kernel, node)) else {
            return false;
        };
        next != node
            && self.prev(kernel, next) == Some(node)
            && self.next(kernel, prev) == Some(node)
    }
}

/// A walk over a circular `list_head` list.
#[derive(Clone, Copy, Debug)]
pub struct ListWalk {
    head: u64,
    node: u64,
    left: u32,
}

impl ListWalk {
    /// Starts at `head`, which is not an element itself; at most `limit` elements.
    pub fn new(head: u64, limit: u32) -> Self {
        Self { head, node: head, left: limit }
    }

    /// The node that `next` returned last; initially the head.
    pub fn position(&self) -> u64 {
        self.node
    }

    /// The list's head.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The next node; `None` at the end.
    pub fn next<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        lists: &Lists,
    ) -> Result<Option<u64>, WalkError> {
        let next = lists.next(kernel, self.node).ok_or(WalkError::WildPointer(self.node))?;
        if next == self.head {
            return Ok(None);
        }
        if next % 8 != 0 {
            return Err(WalkError::WildPointer(next));
        }
        self.left = self.left.checked_sub(1).ok_or(WalkError::TooLong)?;
        self.node = next;
        Ok(Some(next))
    }
}

/// A walk over a `hlist` list.
#[derive(Clone, Copy, Debug)]
pub struct HashWalk {
    /// The address of the pointer to the next node.
    link: u64,
    left: u32,
}

impl HashWalk {
    /// Starts at the `hlist_head` at `head`; at most `limit` elements.
    pub fn new(head: u64, lists: &Lists, limit: u32) -> Self {
        Self { link: head.wrapping_add(lists.first), left: limit }
    }

    /// The next node; `None` at the end.
    pub fn next<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        lists: &Lists,
    ) -> Result<Option<u64>, WalkError> {
        let node = kernel.u64(self.link).ok_or(WalkError::WildPointer(self.link))?;
        if node == 0 {
            return Ok(None);
        }
        if node % 8 != 0 {
            return Err(WalkError::WildPointer(node));
        }
        self.left = self.left.checked_sub(1).ok_or(WalkError::TooLong)?;
        self.link = node.wrapping_add(lists.hash_next);
        Ok(Some(node))
    }
}
