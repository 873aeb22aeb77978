//! A pass: walks every view, one node at a time, and records the tasks in it.

use super::layout::{CgroupLayout, TaskLayout};
use super::list_cursor::{ListCursor, DAMAGED_WALKS};
use super::seen::SeenTasks;
use super::task::{Stamp, TaskState, MAX_PID};
use super::view;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::random::Random;
use crate::walk::{HashWalk, WalkError, XArrayEntry};
use alloc::vec;
use alloc::vec::Vec;

/// Bit in [`SeenTasks`]: the threads of this process were walked.
const WALKED: u8 = 128;
/// Maximum number of tasks of one type at a PID; Linux has one.
pub const MAX_TASKS_PER_PID: u32 = 8;
/// Maximum number of `css_set` structures in one list of the hash table.
const MAX_SETS_PER_BUCKET: u32 = 256;
/// Maximum number of nodes per pass: several for each PID, so the pass ends whatever the memory holds. Of so many PIDs
/// as there were in the last pass, and of some more, a pass visits this many for each: long lists of what is no task
/// keep nothing from being judged.
const MAX_NODES: u32 = 8 * MAX_PID as u32;
const NODES_PER_PID: u32 = 32;
const MORE_NODES: u32 = 1 << 15;
/// Maximum number of processes whose threads a pass knows that it did not walk to the end.
const MAX_BROKEN: usize = 64;
/// Maximum number of damaged lists that a pass records.
const MAX_DAMAGES: usize = 16;
/// Maximum number of processes of a process group or session that are visited; new ones come first.
const MAX_MEMBERS: u32 = 128;

/// Whether a pass has more to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    Done,
}

/// A list that cannot be walked to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The view that the list belongs to.
    pub view: u8,
    /// Address of the list's head.
    pub head: u64,
    /// The first thread of the process, if it is a list of threads.
    pub process: Option<u64>,
    pub error: WalkError,
}

/// The view that is being walked.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Processes(ListCursor),
    /// The PID index: the next PID, the one to stop at, and the one at which the walk began. It goes on at 1.
    Pids {
        next: u64,
        stop: u64,
        first: u64,
    },
    Cgroups(GroupPosition),
    /// The run queues: the next CPU.
    Queues(u64),
}

/// A position in the cgroup hash table.
#[derive(Clone, Copy, Debug)]
struct GroupPosition {
    /// The first bucket, chosen at random, and the number of buckets from it on that are done.
    first: u64,
    done: u64,
    /// Number of sets of the bucket that are done.
    set: u32,
    /// Number of lists of the current set that are done.
    list: usize,
    cursor: Option<ListCursor>,
    /// Walks of the bucket that ended at damage.
    damaged: u32,
}

impl GroupPosition {
    /// The beginning of the bucket that follows on `done` others.
    fn bucket(first: u64, done: u64) -> Self {
        Self { first, done, set: 0, list: 0, cursor: None, damaged: 0 }
    }

    /// The beginning of this bucket.
    fn again(self) -> Self {
        Self { damaged: self.damaged, ..Self::bucket(self.first, self.done) }
    }
}

/// A pass over all views, in random order: an attacker who takes a task in and out again cannot foresee when each view
/// is looked at.
pub struct Pass {
    /// The stages that remain, the current one last.
    stages: Vec<Stage>,
    /// Walks over the threads of `process`; they come before the current stage continues.
    threads: [Option<ListCursor>; 2],
    process: Option<(u64, Stamp)>,
    /// The walk over the children of a thread, which comes before all else.
    children: Option<ListCursor>,
    /// The pass walks the children of one in `1 << sample` tasks, and so many process groups and sessions.
    sample: u32,
    /// Nodes that the pass may still visit.
    remaining_nodes: u32,
    /// Views that this pass could not walk completely; no task counts as unreached by them.
    pub incomplete: u8,
    /// First threads of the processes whose threads were not walked to the end.
    broken: Vec<u64>,
    /// Number of PIDs that the walk over the index has met, and whether it is over.
    pids: u32,
    has_all_pids: bool,
    /// The lists that could not be walked to their end.
    pub damages: Vec<Damage>,
    /// Tasks of the PID index that the pass left out, and walks that began again.
    pub unjudged: u64,
    pub restarts: u64,
    /// The highest PID in the index.
    pub highest_pid: u64,
}

impl Pass {
    /// A pass whose order depends on `random`; `highest_pid` is that of the pass before. It visits the relatives of one
    /// in `1 << sample` tasks, and expects some `population` PIDs.
    pub fn new(
        layout: &TaskLayout,
        random: &mut Random,
        highest_pid: u64,
        sample: u32,
        population: u32,
    ) -> Self {
        let cursor =
            ListCursor::new(layout.init_task.wrapping_add(layout.tasks), layout.tasks, view::TASKS);
        let from = 1 + random.below(highest_pid);
        let mut stages = vec![
            Stage::Processes(cursor),
            Stage::Pids { next: from, stop: MAX_PID + 1, first: from },
        ];
        if let Some(groups) = layout.groups.filter(|groups| groups.buckets > 0) {
            let first = random.below(groups.buckets);
            stages.push(Stage::Cgroups(GroupPosition::bucket(first, 0)));
        }
        if layout.queues.is_some() {
            stages.push(Stage::Queues(0));
        }
        random.shuffle(&mut stages);
        Self {
            stages,
            threads: [None; 2],
            process: None,
            children: None,
            sample,
            remaining_nodes: population
                .saturating_mul(NODES_PER_PID)
                .saturating_add(MORE_NODES)
                .min(MAX_NODES),
            incomplete: 0,
            broken: Vec::new(),
            pids: 0,
            has_all_pids: false,
            damages: Vec::new(),
            unjudged: 0,
            restarts: 0,
            highest_pid: 0,
        }
    }

    /// The population for the next pass, after a pass that expected `population`: one that was too short for the
    /// index is followed by a longer one.
    pub fn population(&self, population: u32) -> u32 {
        match (self.has_all_pids, self.remaining_nodes) {
            (true, _) => self.pids,
            (false, 0) => population.saturating_mul(2),
            (false, _) => population,
        }
    }

    /// The views that this pass could not walk completely for the process of `task`.
    pub fn incomplete_for<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> u8 {
        let leader = || kernel.u64(task.wrapping_add(layout.group_leader));
        let is_broken =
            !self.broken.is_empty() && leader().is_some_and(|leader| self.broken.contains(&leader));
        self.incomplete | if is_broken { view::THREADS | view::GROUP } else { 0 }
    }

    /// Records that the threads of `process` are not walked to the end.
    fn leave_threads(&mut self) {
        let Some((leader, _)) = self.process else { return };
        match self.broken.len() < MAX_BROKEN {
            true => self.broken.push(leader),
            false => self.incomplete |= view::THREADS | view::GROUP,
        }
    }

    /// After a pause: restarts or ends walks whose position has left its list.
    pub fn resume<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        retries: &mut u64,
    ) {
        // The first thread of a process may end before the others; its start time may be rewritten.
        let process_gone = self.process.is_some_and(|(leader, stamp)| {
            !Stamp::read(kernel, layout, leader).is_some_and(|now| now.resembles(&stamp))
                || TaskState::read(kernel, layout, leader).is_none_or(|task| task.is_released())
        });
        let (mut restarts, mut is_left) = (0, false);
        for thread in &mut self.threads {
            let Some(cursor) = thread else { continue };
            let mut ends = process_gone;
            if !ends && !cursor.is_valid(kernel, layout) {
                restarts += 1;
                ends = !cursor.restart();
            }
            if ends {
                is_left = true;
                *thread = None;
            }
        }
        if is_left {
            self.leave_threads();
        }
        // The parent may have ended: no cursor leads back to its list.
        if let Some(cursor) = self.children.take_if(|cursor| !cursor.is_valid(kernel, layout)) {
            restarts += 1;
            self.restart_children(kernel, layout, cursor);
        }
        match self.stages.last_mut() {
            Some(Stage::Processes(cursor)) if !cursor.is_valid(kernel, layout) => {
                restarts += 1;
                if !cursor.restart() {
                    self.incomplete |= view::TASKS;
                    self.stages.pop();
                }
            }
            // The set may be freed as well: restart at the first set of the bucket.
            Some(Stage::Cgroups(position))
                if position.cursor.is_some_and(|cursor| !cursor.is_valid(kernel, layout)) =>
            {
                restarts += 1;
                *position = position.again();
            }
            _ => {}
        }
        *retries += restarts;
        self.restarts += restarts;
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
            self.unjudged += 1;
            return Progress::Done;
        };
        self.remaining_nodes = remaining;
        if self.children.is_some() {
            self.next_child(kernel, layout, seen);
            return Progress::More;
        }
        if let Some(at) = self.threads.iter().position(Option::is_some) {
            self.next_thread(kernel, layout, seen, at);
            return Progress::More;
        }
        let Some(stage) = self.stages.pop() else { return Progress::Done };
        let next = match stage {
            Stage::Processes(mut cursor) => {
                match self.next_process(kernel, layout, seen, &mut cursor) {
                    Ok(true) => Some(Stage::Processes(cursor)),
                    Ok(false) => None,
                    Err(_) if cursor.retry() => Some(Stage::Processes(cursor)),
                    Err(error) => {
                        self.damaged(cursor.view, cursor.head(), error);
                        None
                    }
                }
            }
            Stage::Pids { next, stop, first } => {
                self.next_pid(kernel, layout, seen, next, stop, first)
            }
            Stage::Cgroups(position) => layout.groups.as_ref().and_then(|groups| {
                let next = self.next_in_group(kernel, layout, groups, seen, position);
                (next.done < groups.buckets).then_some(Stage::Cgroups(next))
            }),
            Stage::Queues(cpu) => layout.queues.and_then(|queues| {
                let mut found = |task| meet(kernel, layout, seen, task, view::QUEUE);
                let is_more = queues.visit(kernel, &layout.lists, cpu, &mut found);
                is_more.then_some(Stage::Queues(cpu + 1))
            }),
        };
        self.stages.extend(next);
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
        // Most tasks are the first of their process, which has been met in another view.
        if seen.add_if(task, WALKED, view) {
            return;
        }
        let Some(leader) = kernel.u64(task.wrapping_add(layout.group_leader)) else { return };
        // A task is once in the PID index: counted there, it is counted once.
        let counted = u64::from(view == view::PID);
        if !seen.covers(leader) {
            self.unjudged += counted;
            return;
        }
        if seen.add(task, view).is_none() {
            self.unjudged += counted;
        }
        // Memory that is no task any more may lead anywhere.
        if kernel.u64(leader.wrapping_add(layout.group_leader)) != Some(leader) {
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
        let stamp = Stamp::read(kernel, layout, leader);
        self.process = stamp.map(|stamp| (leader, stamp));
        let Some(signal) = stamp.map(|stamp| stamp.signal).filter(|signal| *signal != 0) else {
            return;
        };
        let head = signal.wrapping_add(layout.thread_head);
        self.threads[0] = Some(ListCursor::new(head, layout.thread_node, view::THREADS));
        self.threads[1] = layout
            .thread_group
            .map(|ring| ListCursor::new(leader.wrapping_add(ring), ring, view::GROUP));
    }

    /// Records that `view` has `task`, unless that began a walk in the place of one that is about to begin: then it is
    /// only met.
    fn record_another<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        task: u64,
        view: u8,
    ) {
        let leader = kernel.u64(task.wrapping_add(layout.group_leader));
        let is_walking = self.threads.iter().any(Option::is_some);
        if is_walking && self.process.map(|(leader, _)| leader) != leader {
            meet(kernel, layout, seen, task, view);
        } else {
            self.record(kernel, layout, seen, task, view);
        }
    }

    /// Records that a list cannot be walked to its end.
    fn damaged(&mut self, view: u8, head: u64, error: WalkError) {
        // In a list of one process or control group, the looks at the tasks that it does not reach decide.
        self.incomplete |= view & (view::TASKS | view::PID);
        if self.damages.len() < MAX_DAMAGES {
            let process = self.process.filter(|_| view & (view::THREADS | view::GROUP) != 0);
            let process = process.map(|(leader, _)| leader);
            self.damages.push(Damage { view, head, process, error });
        }
    }

    /// Visits the next task of a list; returns whether there was one.
    fn next_process<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        cursor: &mut ListCursor,
    ) -> Result<bool, WalkError> {
        let task = cursor.next(kernel, layout)?;
        task.iter().for_each(|&task| self.record(kernel, layout, seen, task, cursor.view));
        Ok(task.is_some())
    }

    fn next_thread<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        at: usize,
    ) {
        let Some(mut cursor) = self.threads[at] else { return };
        self.threads[at] = match cursor.next(kernel, layout) {
            Ok(Some(task)) if self.is_of_process(kernel, layout, task) => {
                seen.add(task, cursor.view);
                if cursor.view == view::THREADS && seen.samples(task, self.sample) {
                    self.children = children(kernel, layout, task);
                }
                Some(cursor)
            }
            Ok(None) => None,
            Ok(Some(_)) | Err(_) if cursor.retry() => Some(cursor),
            other => {
                let error = match other {
                    Ok(task) => WalkError::WildPointer(task.unwrap_or(0)),
                    Err(error) => error,
                };
                self.damaged(cursor.view, cursor.head(), error);
                None
            }
        };
    }

    /// Whether the task at `task` has the signal structure of the process whose threads are walked.
    fn is_of_process<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> bool {
        let signal = kernel.u64(task.wrapping_add(layout.signal));
        self.process.is_some_and(|(_, stamp)| signal == Some(stamp.signal))
    }

    /// Visits the next child of a thread.
    fn next_child<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
    ) {
        let Some(mut cursor) = self.children.take() else { return };
        match cursor.next(kernel, layout) {
            // A child is a process. What is none was in the list before its memory became another thing's.
            Ok(Some(child)) if is_leader(kernel, layout, child) => {
                meet(kernel, layout, seen, child, 0);
                self.children = Some(cursor);
            }
            Ok(None) => {}
            _ => self.restart_children(kernel, layout, cursor),
        }
    }

    /// Begins the walk over a thread's children once more, unless that happened too often or the thread has ended.
    fn restart_children<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        mut cursor: ListCursor,
    ) {
        let parent =
            layout.relatives.map(|relatives| cursor.head().wrapping_sub(relatives.children));
        let state = parent.and_then(|parent| TaskState::read(kernel, layout, parent));
        let lives =
            state.is_some_and(|state| state.is_in_use(kernel, layout) && !state.is_exiting());
        self.children = (lives && cursor.retry()).then_some(cursor);
    }

    /// Visits the process group and the session whose number `pid` is.
    fn visit_members<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        pid: u64,
    ) {
        let Some(relatives) = layout.relatives.filter(|_| seen.samples(pid, self.sample)) else {
            return;
        };
        for (list, link) in relatives.lists.into_iter().zip(relatives.links) {
            let mut walk = HashWalk::new(pid.wrapping_add(list), &layout.lists, MAX_MEMBERS);
            while let Ok(Some(node)) = walk.next(kernel, &layout.lists) {
                let task = node.wrapping_sub(link);
                if is_leader(kernel, layout, task) {
                    meet(kernel, layout, seen, task, 0);
                }
            }
        }
    }

    fn next_pid<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        seen: &mut SeenTasks,
        index: u64,
        stop: u64,
        first: u64,
    ) -> Option<Stage> {
        // The second part, up to where the first one began.
        let wrapped = (stop != first).then_some(Stage::Pids { next: 1, stop: first, first });
        if index >= stop {
            self.has_all_pids |= wrapped.is_none();
            return wrapped;
        }
        match layout.xarrays.next(kernel, layout.pid_index, index) {
            Ok(XArrayEntry::Found(index, pid)) if index < stop => {
                self.highest_pid = self.highest_pid.max(index);
                self.pids = self.pids.saturating_add(1);
                // What shows another number than the index is not listed under its own.
                let is_it =
                    kernel.u32(pid.wrapping_add(layout.pid_number)).map(u64::from) == Some(index);
                for (kind, view) in [view::PID, view::TGID].into_iter().enumerate() {
                    let head = pid.wrapping_add(layout.pid_tasks[kind]);
                    let mut walk = HashWalk::new(head, &layout.lists, MAX_TASKS_PER_PID);
                    let mut view = if is_it { view } else { 0 };
                    while let Ok(Some(node)) = walk.next(kernel, &layout.lists) {
                        let task = node.wrapping_sub(layout.pid_links[kind]);
                        if Stamp::read(kernel, layout, task).is_some() {
                            let own = kernel.u64(task.wrapping_add(layout.thread_pid));
                            let view = if own == Some(pid) { view } else { 0 };
                            self.record_another(kernel, layout, seen, task, view);
                        }
                        // Linux looks at the first one only.
                        view = 0;
                    }
                }
                self.visit_members(kernel, layout, seen, pid);
                Some(Stage::Pids { next: index + 1, stop, first })
            }
            Ok(XArrayEntry::Gap(index)) => Some(Stage::Pids { next: index, stop, first }),
            Ok(_) => {
                self.has_all_pids |= wrapped.is_none();
                wrapped
            }
            Err(error) => {
                self.damaged(view::PID, layout.pid_index, error);
                self.incomplete |= view::TGID;
                wrapped
            }
        }
    }

    /// Visits the next node in the cgroup hash table.
    fn next_in_group<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        groups: &CgroupLayout,
        seen: &mut SeenTasks,
        mut position: GroupPosition,
    ) -> GroupPosition {
        let next_bucket = GroupPosition::bucket(position.first, position.done + 1);
        if let Some(mut cursor) = position.cursor {
            match self.next_process(kernel, layout, seen, &mut cursor) {
                Ok(true) => position.cursor = Some(cursor),
                Ok(false) => (position.cursor, position.list) = (None, position.list + 1),
                // The set may be freed as well.
                Err(_) if position.damaged + 1 < DAMAGED_WALKS => {
                    position.damaged += 1;
                    return position.again();
                }
                Err(error) => {
                    self.damaged(cursor.view, cursor.head(), error);
                    (position.cursor, position.list) = (None, position.list + 1);
                }
            }
            return position;
        }
        if position.list == groups.lists.len() {
            (position.list, position.set) = (0, position.set + 1);
        }
        if position.set > MAX_SETS_PER_BUCKET {
            return next_bucket;
        }
        let bucket = (position.first + position.done) % groups.buckets;
        let mut walk =
            HashWalk::new(groups.table.wrapping_add(8 * bucket), &layout.lists, position.set + 1);
        for _ in 0..position.set {
            if !matches!(walk.next(kernel, &layout.lists), Ok(Some(_))) {
                return next_bucket;
            }
        }
        match walk.next(kernel, &layout.lists) {
            Ok(Some(node)) => {
                let head =
                    node.wrapping_sub(groups.hlist).wrapping_add(groups.lists[position.list]);
                position.cursor = Some(ListCursor::new(head, groups.node, view::CGROUP));
                position
            }
            Ok(None) | Err(_) => next_bucket,
        }
    }
}

/// Records a task that was met in the view `bits`, or, with 0, by way of another task, and the process of a thread. The
/// threads of a process that no view has are found when it is put back.
fn meet<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    seen: &mut SeenTasks,
    task: u64,
    bits: u8,
) {
    // Linux runs meanwhile: what is in a task's place may be anything.
    if Stamp::read(kernel, layout, task).is_none() {
        return;
    }
    let Some(leader) = kernel.u64(task.wrapping_add(layout.group_leader)) else { return };
    if !seen.covers(leader) {
        return;
    }
    seen.add(task, bits);
    if leader != task && is_leader(kernel, layout, leader) {
        seen.add(leader, 0);
    }
}

/// Whether the task at `task` is the first thread of a process.
fn is_leader<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &TaskLayout, task: u64) -> bool {
    kernel.u64(task.wrapping_add(layout.group_leader)) == Some(task)
}

/// A cursor on the children of the thread at `task`, if it has some.
fn children<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
) -> Option<ListCursor> {
    let relatives = layout.relatives?;
    let head = task.wrapping_add(relatives.children);
    let first = layout.lists.next(kernel, head)?;
    (first != head).then(|| ListCursor::new(head, relatives.sibling, 0))
}
