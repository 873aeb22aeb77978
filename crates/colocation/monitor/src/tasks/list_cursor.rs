//! A walk over a task list that survives the pause between two slices.

use super::layout::TaskLayout;
use super::task::{Stamp, MAX_PID};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::{ListWalk, WalkError};

/// Maximum length of a list: Linux has no more tasks than PIDs.
const MAX_LENGTH: u32 = MAX_PID as u32 + 1;
/// Restarts of a walk after which its position counts as valid although its start time has changed. An attacker could
/// rewrite the start time at each pause.
const STRICT_RESTARTS: u32 = 8;
/// Maximum restarts of a walk whose position left the list; then the pass does without the view.
const MAX_RESTARTS: u32 = 16;
/// Walks of a list that must end at the same damage: between two slices, Linux can have moved the current task to
/// another list, which has another head.
pub(super) const DAMAGED_WALKS: u32 = 4;

/// A task in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    node: u64,
    stamp: Stamp,
}

/// A walk over a task list that can pause.
#[derive(Clone, Copy, Debug)]
pub struct ListCursor {
    walk: ListWalk,
    /// Offset of the list node in `task_struct`.
    node_offset: u64,
    pub view: u8,
    /// The task at the current position.
    current: Option<Position>,
    /// An earlier position. A walk that comes back to it is in a cycle (Brent's algorithm).
    mark: Option<Position>,
    /// Nodes visited since the last start, and the number at which the mark moves on.
    steps: u32,
    mark_at: u32,
    restarts: u32,
    /// Walks of this list that ended at damage.
    damaged: u32,
}

impl ListCursor {
    /// A cursor on the list at `head`, whose nodes lie at `node_offset` in their tasks.
    pub fn new(head: u64, node_offset: u64, view: u8) -> Self {
        Self {
            walk: ListWalk::new(head, MAX_LENGTH),
            node_offset,
            view,
            current: None,
            mark: None,
            steps: 0,
            mark_at: 1,
            restarts: 0,
            damaged: 0,
        }
    }

    /// The list's head.
    pub fn head(&self) -> u64 {
        self.walk.head()
    }

    /// The next task, or whatever is linked in its place.
    pub fn next<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
    ) -> Result<Option<u64>, WalkError> {
        let Some(node) = self.walk.next(kernel, &layout.lists)? else { return Ok(None) };
        let task = node.wrapping_sub(self.node_offset);
        let stamp = Stamp::read(kernel, layout, task).ok_or(WalkError::WildPointer(task))?;
        let position = Some(Position { node, stamp });
        if position == self.mark {
            return Err(WalkError::TooLong);
        }
        self.current = position;
        self.steps += 1;
        if self.steps >= self.mark_at {
            (self.mark, self.mark_at) = (position, self.mark_at.saturating_mul(2));
        }
        Ok(Some(task))
    }

    /// After a pause: whether the current position is still in the list.
    pub fn is_valid<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &TaskLayout) -> bool {
        self.current.is_none_or(|position| {
            let task = position.node.wrapping_sub(self.node_offset);
            let strict = self.restarts < STRICT_RESTARTS;
            let same = Stamp::read(kernel, layout, task).is_some_and(|stamp| {
                stamp == position.stamp || !strict && stamp.resembles(&position.stamp)
            });
            same && layout.lists.is_linked(kernel, position.node)
        })
    }

    /// Starts again; false if that happened too often.
    pub fn restart(&mut self) -> bool {
        let (restarts, damaged) = (self.restarts + 1, self.damaged);
        let new = Self::new(self.walk.head(), self.node_offset, self.view);
        *self = Self { restarts, damaged, ..new };
        restarts <= MAX_RESTARTS
    }

    /// Starts again after damage; false if every walk ends at some.
    pub fn retry(&mut self) -> bool {
        self.damaged += 1;
        self.damaged < DAMAGED_WALKS && self.restart()
    }
}
