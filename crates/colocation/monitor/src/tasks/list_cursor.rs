//! A walk over a list of tasks that survives a pause between slices.

use super::layout::TaskLayout;
use super::task::Identity;
use super::MAX_TASKS;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::{ListWalk, WalkError};

/// Longest list that is followed.
const LONGEST: u32 = MAX_TASKS as u32 + 1;
/// Steps that a walk has more than the tasks that were seen account for.
const SLACK: usize = 64;
/// How often a walk begins anew because its place in the list is gone, before the pass does without.
const MAX_RESTARTS: u32 = 16;

/// A walk over a list of tasks that survives a pause.
#[derive(Clone, Copy, Debug)]
pub struct ListCursor {
    walk: ListWalk,
    /// Offset of the list's node in a task.
    node: u64,
    pub view: u8,
    /// The task where the walk stands.
    standing: Option<Identity>,
    /// Nodes since it began, or began anew.
    steps: usize,
    restarts: u32,
}

impl ListCursor {
    pub fn new(head: u64, node: u64, view: u8) -> Self {
        Self {
            walk: ListWalk::new(head, LONGEST),
            node,
            view,
            standing: None,
            steps: 0,
            restarts: 0,
        }
    }

    /// The next task, where the pass has seen `count` so far. A walk that has taken twice as many steps goes in circles:
    /// each step adds a task, but for those whose memory was another task's a moment ago.
    pub fn next<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        count: usize,
    ) -> Result<Option<u64>, WalkError> {
        let Some(node) = self.walk.next(kernel, &layout.lists)? else { return Ok(None) };
        self.steps += 1;
        if self.steps > 2 * count + SLACK {
            return Err(WalkError::TooLong);
        }
        let task = node.wrapping_sub(self.node);
        self.standing =
            Some(Identity::read(kernel, layout, task).ok_or(WalkError::WildPointer(task))?);
        Ok(Some(task))
    }

    /// After a pause: whether the place where it stands is still in the list.
    pub fn stands<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &TaskLayout) -> bool {
        self.standing.is_none_or(|standing| {
            standing.is_current(kernel, layout) && layout.lists.linked(kernel, self.walk.at())
        })
    }

    /// Begins anew; false where it did too often.
    pub fn restart(&mut self) -> bool {
        self.restarts += 1;
        self.walk = ListWalk::new(self.walk.head(), LONGEST);
        self.standing = None;
        self.steps = 0;
        self.restarts <= MAX_RESTARTS
    }
}
