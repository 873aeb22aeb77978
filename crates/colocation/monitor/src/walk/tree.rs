//! Walks over red-black trees (`rb_root`, `include/linux/rbtree_types.h` of Linux).

use super::offset;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};

/// Maximum depth: twice the binary logarithm of the number of nodes of an intact tree.
const MAX_DEPTH: usize = 64;
/// The bits of a parent pointer that are none of the address.
const COLOUR: u64 = 3;

/// Byte offsets of the pointers in a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trees {
    left: u64,
    right: u64,
    parent: u64,
}

impl Trees {
    /// Looks the offsets up in `profile`.
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        Ok(Self {
            left: offset(profile, "rb_node", "rb_left")?,
            right: offset(profile, "rb_node", "rb_right")?,
            parent: offset(profile, "rb_node", "__rb_parent_color")?,
        })
    }

    /// The first node of the tree whose root pointer is at `root`; `None` if it has none.
    pub fn first<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, root: u64) -> Option<u64> {
        self.outermost(kernel, node(kernel, root)?, self.left)
    }

    /// The last node of the tree whose root pointer is at `root`; `None` if it has none.
    pub fn last<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, root: u64) -> Option<u64> {
        self.outermost(kernel, node(kernel, root)?, self.right)
    }

    /// The node after the one at `at`; `None` behind the last one. A tree that changes may show a node twice, or never:
    /// the caller bounds their number.
    pub fn next<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, mut at: u64) -> Option<u64> {
        if let Some(right) = node(kernel, at.wrapping_add(self.right)) {
            return self.outermost(kernel, right, self.left);
        }
        for _ in 0..MAX_DEPTH {
            let parent = kernel.u64(at.wrapping_add(self.parent))? & !COLOUR;
            if parent == 0 || node(kernel, parent.wrapping_add(self.right)) != Some(at) {
                return (parent != 0).then_some(parent);
            }
            at = parent;
        }
        None
    }

    /// The last node from `at` on, by the pointers at `side`.
    fn outermost<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        mut at: u64,
        side: u64,
    ) -> Option<u64> {
        for _ in 0..MAX_DEPTH {
            match node(kernel, at.wrapping_add(side)) {
                Some(next) => at = next,
                None => return Some(at),
            }
        }
        None
    }
}

/// The node that the pointer at `at` leads to.
fn node<M: KernelMemory>(kernel: &Kernel<'_, M>, at: u64) -> Option<u64> {
    kernel.u64(at).filter(|&node| node != 0 && node % 8 == 0)
}
