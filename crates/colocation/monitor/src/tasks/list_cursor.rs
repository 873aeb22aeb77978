//! A walk over a task list that survives the pause between two slices.

use super::layout::TaskLayout;
use super::task::Identity;
use super::MAX_TASKS;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::{ListWalk, WalkError};

/// Maximum length of a list.
const MAX_LENGTH: u32 = MAX_TASKS as u32 + 1;
/// Steps of a walk beyond twice the number of tasks seen, before it counts as cyclic.
const SLACK_STEPS: usize = 64;
/// Maximum restarts of a walk whose position left the list; then the pass does without the view.
const MAX_RESTARTS: u32 = 16;

/// A walk over a task list that can pause.
#[derive(Clone, Copy, Debug)]
pub struct ListCursor {
    walk: ListWalk,
    /// Offset of the list node in `task_struct`.
    node_offset: u64,
    pub view: u8,
    /// The task at the current position.
    current: Option<Identity>,
    /// Nodes visited since the last start.
    steps: usize,
    restarts: u32,
}

impl ListCursor {
    /// A cursor on the list at `head`, whose nodes lie at `node_offset` in their tasks.
    pub fn new(head: u64, node_offset: u64, view: u8) -> Self {
        Self {
            walk: ListWalk::new(head, MAX_LENGTH),
            node_offset,
            view,
            current: None,
            steps: 0,
            restarts: 0,
        }
    }

    /// The next task; `count` is the number of tasks that the pass has seen. A walk with more than twice as many steps
    /// is cyclic: each step adds a task, except where memory was another task's a moment ago.
    pub fn next<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        count: usize,
    ) -> Result<Option<u64>, WalkError> {
        let Some(node) = self.walk.next(kernel, &layout.lists)? else { return Ok(None) };
        self.steps += 1;
        if self.steps > 2 * count + SLACK_STEPS {
            return Err(WalkError::TooLong);
        }
        let task = node.wrapping_sub(self.node_offset);
        self.current =
            Some(Identity::read(kernel, layout, task).ok_or(WalkError::WildPointer(task))?);
        Ok(Some(task))
    }

    /// After a pause: whether the current position is still in the list.
    pub fn is_valid<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &TaskLayout) -> bool {
        self.current.is_none_or(|task| {
            task.is_current(kernel, layout) && layout.lists.is_linked(kernel, self.walk.position())
        })
    }

    /// Starts again; false if that happened too often.
    pub fn restart(&mut self) -> bool {
        self.restarts += 1;
        self.walk = ListWalk::new(self.walk.head(), MAX_LENGTH);
        self.current = None;
        self.steps = 0;
        self.restarts <= MAX_RESTARTS
    }
}
