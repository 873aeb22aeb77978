//! A pass: walks every view, one node at a time, and records the tasks in it.

use super::layout::{CgroupLayout, TaskLayout};
use super::list_cursor::ListCursor;
use super::seen::SeenTasks;
use super::task::{Identity, TaskState, MAX_PID};
use super::{view, MAX_TASKS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::{HashWalk, WalkError, XArrayEntry};

/// Bit in [`SeenTasks`]: the threads of this process were walked.
const WALKED: u8 = 128;
/// Maximum number of tasks of one type at a PID; Linux has one.
pub const MAX_TASKS_PER_PID: u32 = 8;
/// Maximum number of `css_set` structures in one list of the hash table.
const MAX_SETS_PER_BUCKET: u32 = 256;
/// Maximum number of nodes per pass: several for each task, so the pass ends whatever the memory holds.
const MAX_NODES: u32 = 16 * MAX_TASKS as u32;

/// Whether a pass has more to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    Done,
}

/// The view that is being walked.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Processes(ListCursor),
    /// The PID index, from this PID on.
    Pids(u64),
    Cgroups(GroupPosition),
    Done,
}

/// A position in the cgroup hash table.
#[derive(Clone, Copy, Debug)]
struct GroupPosition {
    bucket: u64,
    /// Number of sets of the bucket that are done.
    set: u32,
    /// Number of lists of the current set that are done.
    list: usize,
    cursor: Option<ListCursor>,
}

/// A pass over all views.
pub struct Pass {
    stage: Stage,
    /// Walks over the threads of `process`; they come before the current stage continues.
    threads: [Option<ListCursor>; 2],
    process: Option<Identity>,
    /// Nodes that the pass may still visit.
    remaining_nodes: u32,
    /// Views that this pass could not walk completely; no task counts as missing from them.
    pub incomplete: u8,
    /// Why the process list could not be walked.
    pub list_error: Option<WalkError>,
}

impl Pass {
    pub fn new(layout: &TaskLayout) -> Self {
        let cursor =
            ListCursor::new(layout.init_task.wrapping_add(layout.tasks), layout.tasks, view::TASKS);
        Self {
            stage: Stage::Processes(cursor),
            threads: [None; 2],
            process: None,
            remaining_nodes: MAX_NODES,
            incomplete: 0,
            list_error: None,
        }
    }

    /// After a pause: restarts or ends walks whose position has left its list.
    pub fn resume<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        retries: &mut u64,
    ) {
        let process_gone = self.process.is_some_and(|process| {
            !process.is_current(kernel, layout)
                || TaskState::read(kernel, layout, process.task).is_none_or(|task| task.is_dead())
        });
        for thread in &mut self.threads {
            let Some(cursor) = thread else { continue };
            if process_gone {
                self.incomplete |= cursor.view;
                *thread = None;
            } else if !cursor.is_valid(kernel, layout) {
                *retries += 1;
                if !cursor.restart() {
                    self.incomplete |= cursor.view;
                    *thread = None;
                }
            }
        }
        match &mut self.stage {
            Stage::Processes(cursor) if !cursor.is_valid(kernel, layout) => {
                *retries += 1;
                if !cursor.restart() {
                    self.incomplete |= view::TASKS;
                    self.stage = Stage::Pids(1);
                }
            }
            // The set may be freed as well: restart at the first set of the bucket.
            Stage::Cgroups(position)
                if position.cursor.is_some_and(|cursor| !cursor.is_valid(kernel, layout)) =>
            {
                *retries += 1;
                *position =
                    GroupPosition { bucket: position.bucket, set: 0, list: 0, cursor: None };
            }
            _ => {}
        }
    }

    /// Visits the next node.
    pub fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
    ) -> Progress {
        let Some(remaining) = self.remaining_nodes.checked_sub(1) else {
            self.incomplete = !0;
            return Progress::Done;
        };
        self.remaining_nodes = remaining;
        if let Some(at) = self.threads.iter().position(Option::is_some) {
            self.next_thread(kernel, layout, seen, at);
            return Progress::More;
        }
        match self.stage {
            Stage::Processes(mut cursor) => {
                self.stage = match cursor.next(kernel, layout, seen.count()) {
                    Ok(Some(task)) => {
                        self.record(kernel, layout, seen, task, cursor.view);
                        Stage::Processes(cursor)
                    }
                    Ok(None) => Stage::Pids(1),
                    Err(error) => {
                        self.incomplete |= cursor.view;
                        self.list_error = Some(error);
                        Stage::Pids(1)
                    }
                }
            }
            Stage::Pids(index) => self.stage = self.next_pid(kernel, layout, seen, index),
            Stage::Cgroups(position) => {
                let next = layout.groups.as_ref().and_then(|groups| {
                    let next = self.next_in_group(kernel, layout, groups, seen, position)?;
                    (next.bucket < groups.buckets).then_some(next)
                });
                self.stage = next.map_or(Stage::Done, Stage::Cgroups);
            }
            Stage::Done => return Progress::Done,
        }
        Progress::More
    }

    /// Records that `view` has `task`, and starts the walk over its process's threads unless they were walked.
    fn record<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        task: u64,
        view: u8,
    ) {
        seen.add(task, view);
        let Some(leader) = kernel.u64(task.wrapping_add(layout.group_leader)) else { return };
        if leader != task && Identity::read(kernel, layout, leader).is_none() {
            return;
        }
        match seen.add(leader, WALKED) {
            Some(bits) if bits & WALKED == 0 => {}
            Some(_) => return,
            None => {
                // No room for the mark: this process's threads are not walked.
                self.incomplete |= view::THREADS | view::GROUP;
                return;
            }
        }
        self.process = Identity::read(kernel, layout, leader);
        let Some(signal) = kernel.u64(task.wrapping_add(layout.signal)) else { return };
        let head = signal.wrapping_add(layout.thread_head);
        self.threads[0] = Some(ListCursor::new(head, layout.thread_node, view::THREADS));
        self.threads[1] = layout
            .thread_group
            .map(|ring| ListCursor::new(leader.wrapping_add(ring), ring, view::GROUP));
    }

    fn next_thread<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        at: usize,
    ) {
        let Some(mut cursor) = self.threads[at] else { return };
        self.threads[at] = match cursor.next(kernel, layout, seen.count()) {
            Ok(Some(task)) => {
                seen.add(task, cursor.view);
                Some(cursor)
            }
            // The list of one process is damaged: the looks at its threads decide.
            Ok(None) | Err(_) => None,
        };
    }

    fn next_pid<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        index: u64,
    ) -> Stage {
        let groups = Stage::Cgroups(GroupPosition { bucket: 0, set: 0, list: 0, cursor: None });
        match layout.xarrays.next(kernel, layout.pid_index, index) {
            Ok(XArrayEntry::Found(index, pid)) if index <= MAX_PID => {
                for (kind, view) in [view::PID, view::TGID].into_iter().enumerate() {
                    let head = pid.wrapping_add(layout.pid_tasks[kind]);
                    let mut walk = HashWalk::new(head, &layout.lists, MAX_TASKS_PER_PID);
                    while let Ok(Some(node)) = walk.next(kernel, &layout.lists) {
                        let task = node.wrapping_sub(layout.pid_links[kind]);
                        if Identity::read(kernel, layout, task).is_some() {
                            self.record(kernel, layout, seen, task, view);
                        }
                    }
                }
                Stage::Pids(index + 1)
            }
            Ok(XArrayEntry::Gap(index)) if index <= MAX_PID => Stage::Pids(index),
            Ok(_) => groups,
            Err(_) => {
                self.incomplete |= view::PID | view::TGID;
                groups
            }
        }
    }

    /// Visits the next node in the cgroup hash table; `None` if it cannot be read.
    fn next_in_group<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        groups: &CgroupLayout,
        seen: &mut SeenTasks,
        mut position: GroupPosition,
    ) -> Option<GroupPosition> {
        let next_bucket =
            GroupPosition { bucket: position.bucket + 1, set: 0, list: 0, cursor: None };
        if let Some(mut cursor) = position.cursor {
            match cursor.next(kernel, layout, seen.count()) {
                Ok(Some(task)) => {
                    self.record(kernel, layout, seen, task, cursor.view);
                    position.cursor = Some(cursor);
                }
                Ok(None) | Err(_) => {
                    position.cursor = None;
                    position.list += 1;
                }
            }
            return Some(position);
        }
        if position.list == groups.lists.len() {
            (position.list, position.set) = (0, position.set + 1);
        }
        if position.set > MAX_SETS_PER_BUCKET {
            return Some(next_bucket);
        }
        let mut walk = HashWalk::new(
            groups.table.wrapping_add(8 * position.bucket),
            &layout.lists,
            position.set + 1,
        );
        for _ in 0..position.set {
            if !matches!(walk.next(kernel, &layout.lists), Ok(Some(_))) {
                return Some(next_bucket);
            }
        }
        match walk.next(kernel, &layout.lists) {
            Ok(Some(node)) => {
                let head =
                    node.wrapping_sub(groups.hlist).wrapping_add(groups.lists[position.list]);
                position.cursor = Some(ListCursor::new(head, groups.node, view::CGROUP));
                Some(position)
            }
            Ok(None) | Err(_) => Some(next_bucket),
        }
    }
}
