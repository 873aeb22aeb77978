//! Repairs of hidden tasks: one transaction per structure, each of which leaves Linux consistent on its own. And what
//! ends a process.
//!
//! Each word states its current value. If one has changed when the transaction runs, or a lock is held, nothing is
//! written.

use super::layout::{CgroupLayout, Lock, TaskLayout};
use super::suspect::{indexed_pid, is_listed};
use super::task::{pid_number, Identity, TaskState, PF_EXITING};
use super::view;
use crate::finding::{Links, MarkedWord, Marking, Repair};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::ListWalk;
use alloc::vec::Vec;
use kyozon_abi::layer::{RepairWord, MAX_REPAIR_WORDS};

/// The transactions that put a task back into `views`, in order. Views that cannot be repaired are left out.
pub fn repairs<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: &Identity,
    views: u8,
) -> Vec<Repair> {
    let Some(task) = TaskState::read(kernel, layout, identity.task) else { return Vec::new() };
    let repairer = TaskRepairer { kernel, layout, identity: *identity, task };
    let at = |offset: u64| identity.task.wrapping_add(offset);
    let mut repairs = Vec::new();
    if views & (view::PID | view::TGID) != 0 {
        if let Some(pid) = repairer.find_pid() {
            repairs.push(repairer.restore_index(pid));
            repairs.push(repairer.restore_pid_list(pid, 0));
            if repairer.leads() {
                repairs.push(repairer.restore_pid_list(pid, 1));
            }
        }
    }
    if views & view::TASKS != 0 && repairer.leads() {
        let head = layout.init_task.wrapping_add(layout.tasks);
        repairs.push(repairer.relink(view::TASKS, at(layout.tasks), head, None));
    }
    if views & view::THREADS != 0 {
        let head = task.signal.wrapping_add(layout.thread_head);
        repairs.push(repairer.relink(view::THREADS, at(layout.thread_node), head, None));
    }
    if let Some(ring) = layout.thread_group.filter(|_| views & view::GROUP != 0) {
        let head = task.leader.wrapping_add(ring);
        repairs.push(repairer.relink(view::GROUP, at(ring), head, None));
    }
    if let Some(groups) = layout.groups.filter(|_| views & view::CGROUP != 0) {
        let set = kernel.u64(at(groups.of_task));
        repairs.push(set.and_then(|set| repairer.relink_in_group(&groups, set)));
    }
    repairs.into_iter().flatten().collect()
}

/// The bit of SIGKILL among signals that wait.
const KILL: u64 = 1 << 8;
/// The bit that says that a signal waits (`TIF_SIGPENDING` in Linux's `thread_info.h`).
const SIGNAL_WAITS: u64 = 1 << 2;
/// The first process, without which Linux panics.
const FIRST: u32 = 1;
/// Maximum number of threads that get a signal: Linux ends all threads of a process when the first one takes it.
const MAX_THREADS: u32 = 64;

/// What has Linux end the process of `task`, which started at `start`: a SIGKILL waits for each thread, as if it had
/// been sent to that thread (tgkill(2)), but wakes none. One for the process would keep Linux from sending another.
/// Nothing for the first process, the kernel's own tasks, and one that ends.
pub fn stop<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
    start: u64,
) -> Vec<Marking> {
    let is_it = kernel.u64(task.wrapping_add(layout.start_time)) == Some(start);
    let Some(state) = TaskState::read(kernel, layout, task).filter(|_| is_it) else {
        return Vec::new();
    };
    let process = kernel.u32(task.wrapping_add(layout.tgid));
    let number = kernel.u32(task.wrapping_add(layout.pid));
    // A thread that serves io_uring or vhost takes the signal, and its process goes on.
    let is_kernels = state.is_kernel_thread() || state.is_worker();
    if is_kernels || [process, number].iter().any(|number| number.is_none_or(|it| it == FIRST)) {
        return Vec::new();
    }
    let head = state.signal.wrapping_add(layout.thread_head);
    let mut walk = ListWalk::new(head, MAX_THREADS);
    let nodes = core::iter::from_fn(|| walk.next(kernel, &layout.lists).ok().flatten());
    let others = nodes.map(|node| node.wrapping_sub(layout.thread_node)).filter(|it| *it != task);
    let is_in_process = |thread: &u64| {
        let signal = kernel.u64(thread.wrapping_add(layout.signal));
        *thread == task || signal == Some(state.signal)
    };
    let threads = core::iter::once(task).chain(others).filter(is_in_process);
    threads.filter_map(|thread| kill(kernel, layout, thread)).collect()
}

/// Has a SIGKILL wait for `thread`, while its process's signals are not locked.
fn kill<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    thread: u64,
) -> Option<Marking> {
    let signals = layout.signals?;
    let state = TaskState::read(kernel, layout, thread)?;
    if state.is_kernel_thread() || state.is_worker() || state.is_exiting() {
        return None;
    }
    let at = |offset: u64| thread.wrapping_add(offset);
    let handlers = kernel.u64(at(layout.sighand)).filter(|handlers| *handlers != 0)?;
    let start = kernel.u64(at(layout.start_time))?;
    let lock = handlers.wrapping_add(signals.lock);
    // The bits of a member in its word: flags share one with a count that changes.
    let bits = |address: u64, mask: u32| u64::from(mask) << (8 * (address % 8));
    let flags = at(layout.flags);
    let words = [
        (flags & !7, bits(flags, PF_EXITING), 0, 0),
        (at(layout.start_time), u64::MAX, start, 0),
        // An exit takes them from the thread before it frees anything.
        (at(layout.sighand), u64::MAX, handlers, 0),
        (lock & !7, bits(lock, u32::MAX), 0, 0),
        (at(signals.waiting), 0, 0, KILL),
        (at(signals.work), 0, 0, SIGNAL_WAITS),
    ];
    let word = |(address, mask, expected, set)| {
        let address = kernel.physical(address).filter(|address| address % 8 == 0)?;
        Some(MarkedWord { address, mask, expected, set })
    };
    Some(Marking { words: words.into_iter().map(word).collect::<Option<_>>()? })
}

/// An empty transaction that fails if the task exits before it runs: `do_exit` sets PF_EXITING before anything of
/// the task is unlinked, and the exit of a task that is already unlinked may change no other word. Memory that is a
/// new task has another start time.
fn living<'a, M: KernelMemory>(
    kernel: &'a Kernel<'a, M>,
    layout: &TaskLayout,
    task: u64,
) -> Option<Transaction<'a, M>> {
    let mut transaction = Transaction::new(kernel);
    let flags = task.wrapping_add(layout.flags);
    let word = kernel.u64(flags & !7)?;
    if (word >> (8 * (flags % 8))) as u32 & PF_EXITING != 0 {
        return None;
    }
    transaction.push(flags & !7, word, word)?;
    let start = task.wrapping_add(layout.start_time);
    let value = kernel.u64(start)?;
    transaction.push(start, value, value)?;
    Some(transaction)
}

/// A transaction under construction.
pub struct Transaction<'a, M> {
    kernel: &'a Kernel<'a, M>,
    words: Vec<RepairWord>,
}

impl<'a, M: KernelMemory> Transaction<'a, M> {
    /// An empty transaction.
    pub fn new(kernel: &'a Kernel<'a, M>) -> Self {
        Self { kernel, words: Vec::new() }
    }

    /// Changes the word at `address` to `value`.
    fn put(&mut self, address: u64, value: u64) -> Option<()> {
        let expected = self.kernel.u64(address)?;
        self.push(address, expected, value)
    }

    /// Requires `lock` to be free.
    pub fn require_free(&mut self, lock: Lock) -> Option<()> {
        let (address, value, mask) = lock.word(self.kernel)?;
        self.push(address, value & !mask, value & !mask)
    }

    /// Changes the word at `address` from `expected` to `value`; both may be the same.
    pub fn push(&mut self, address: u64, expected: u64, value: u64) -> Option<()> {
        let physical = self.kernel.physical(address)?;
        let fits = physical % 8 == 0 && self.words.len() < MAX_REPAIR_WORDS;
        if !fits || self.words.iter().any(|word| word.address == physical) {
            return None;
        }
        self.words.push(RepairWord { address: physical, expected, value });
        Some(())
    }

    /// The finished transaction; `None` if it changes nothing.
    pub fn finish(self, links: Option<Links>) -> Option<Repair> {
        let changes = self.words.iter().any(|word| word.expected != word.value);
        changes.then_some(Repair { words: self.words, links })
    }
}

/// A member that all tasks of a list have the same value of.
#[derive(Clone, Copy)]
struct Common {
    /// Its offset from a node, and the value.
    member: u64,
    value: u64,
    /// The heads of such lists, which are no nodes.
    heads: [u64; 3],
}

impl Common {
    /// Address of the member at the node `at`; `None` for a head.
    fn place(&self, at: u64) -> Option<u64> {
        (!self.heads.contains(&at)).then(|| at.wrapping_add(self.member))
    }
}

struct TaskRepairer<'a, M> {
    kernel: &'a Kernel<'a, M>,
    layout: &'a TaskLayout,
    identity: Identity,
    task: TaskState,
}

impl<'a, M: KernelMemory> TaskRepairer<'a, M> {
    fn transaction(&self) -> Option<Transaction<'a, M>> {
        living(self.kernel, self.layout, self.identity.task)
    }

    /// Whether Linux takes the task for the first thread of its process too. It removes no other one from the lists of
    /// processes when that ends.
    fn leads(&self) -> bool {
        let signal = self.layout.exit_signal.map(|offset| {
            self.kernel.u32(self.identity.task.wrapping_add(offset)).map(|it| it as i32)
        });
        self.task.is_leader() && signal.is_none_or(|signal| signal.is_some_and(|it| it >= 0))
    }

    /// The task's node at `node` in the list `view`, between `before` and `behind`.
    fn links(&self, view: u8, node: u64, before: u64, behind: u64) -> Option<Links> {
        let object = self.identity.task;
        let stamp = self.kernel.u64(object.wrapping_add(self.layout.start_time))?;
        Some(Links { object, stamp, list: view, node, before, behind })
    }

    /// Puts the task back into the list of its control group: `set` is its `css_set`. Its neighbours may have gone to
    /// another group together.
    fn relink_in_group(&self, groups: &CgroupLayout, set: u64) -> Option<Repair> {
        let heads = groups.lists.map(|list| set.wrapping_add(list));
        let member = groups.of_task.wrapping_sub(groups.node);
        let node = self.identity.task.wrapping_add(groups.node);
        let common = Common { member, value: set, heads };
        self.relink(view::CGROUP, node, heads[0], Some(common))
    }

    /// Links the node at `node` of the list `view` back between the neighbours it still points to, if these are
    /// adjacent, else at the end of the list at `head`. Its neighbours must have what is `common` in the list. The
    /// first thread comes first: Linux takes the one that is last for the only one.
    fn relink(&self, view: u8, node: u64, head: u64, common: Option<Common>) -> Option<Repair> {
        let lists = &self.layout.lists;
        let place = |at: u64| common.and_then(|common| Some((common.place(at)?, common.value)));
        let is_alike =
            |at: u64| place(at).is_none_or(|(at, value)| self.kernel.u64(at) == Some(value));
        let next = |node| lists.next(self.kernel, node);
        let prev = |node| lists.prev(self.kernel, node);
        let is_first = view == view::THREADS && self.task.is_leader();
        let remembered = || {
            let (before, behind) = (prev(node)?, next(node)?);
            let fits = view != view::THREADS || is_first == (before == head);
            let apart = before != node && behind != node && fits;
            let joined =
                [behind, node].contains(&next(before)?) && [before, node].contains(&prev(behind)?);
            (apart && joined && is_alike(before) && is_alike(behind)).then_some((before, behind))
        };
        let end = || {
            let (before, behind) = if is_first { (head, next(head)?) } else { (prev(head)?, head) };
            let is_whole = next(before)? == behind && prev(behind)? == before;
            (is_whole && before != node && behind != node).then_some((before, behind))
        };
        // A neighbour that still leads to the node would keep doing so after a move.
        let is_held = || {
            let holds = |at: Option<u64>| at == Some(node);
            let (before, behind) = (prev(node), next(node));
            before.is_some_and(|before| before != node && holds(next(before)))
                || behind.is_some_and(|behind| behind != node && holds(prev(behind)))
        };
        let (before, behind) = match remembered() {
            None if is_held() => return None,
            found => found.or_else(end)?,
        };
        if next(before) == Some(node) && prev(behind) == Some(node) {
            return None;
        }
        let mut transaction = self.transaction()?;
        for lock in self.layout.locks(view) {
            transaction.require_free(lock)?;
        }
        transaction.put(before.wrapping_add(lists.next), node)?;
        transaction.put(behind.wrapping_add(lists.prev), node)?;
        transaction.put(node.wrapping_add(lists.next), behind)?;
        transaction.put(node.wrapping_add(lists.prev), before)?;
        for (at, value) in [before, behind].into_iter().filter_map(place) {
            transaction.push(at, value, value)?;
        }
        transaction.finish(self.links(view, node, before, behind))
    }

    /// The task's `pid` structure: from the task, from its process, or from the index. `None` if they disagree on the
    /// PID: it may be another task's.
    fn find_pid(&self) -> Option<u64> {
        let Self { kernel, layout, identity, task } = self;
        let own = kernel.u64(identity.task.wrapping_add(layout.thread_pid));
        let process =
            kernel.u64(task.signal.wrapping_add(layout.signal_tgid)).filter(|_| task.is_leader());
        if identity.shows_another_pid() {
            return None;
        }
        let is_it = |pid: &u64| pid_number(kernel, layout, *pid) == Some(identity.pid);
        let indexed = indexed_pid(kernel, layout, identity.pid);
        let found = own.filter(is_it).or(process.filter(is_it)).or(indexed.filter(is_it))?;
        // The index has another structure: the PID was given to another task meanwhile.
        let is_free = indexed.is_none_or(|indexed| indexed == found);
        let is_elsewhere = [0, 1].iter().any(|kind| self.is_elsewhere(found, *kind));
        (is_free && !is_elsewhere).then_some(found)
    }

    /// Whether the task is in another list of type `kind` than that at `pid`. What leads to it there would go on to.
    fn is_elsewhere(&self, pid: u64, kind: usize) -> bool {
        let Self { kernel, layout, identity, .. } = self;
        let first = pid.wrapping_add(layout.pid_tasks[kind]).wrapping_add(layout.lists.first);
        let node = identity.task.wrapping_add(layout.pid_links[kind]);
        let holder = kernel.u64(node.wrapping_add(layout.lists.hash_prev));
        let is_other = |at: &u64| *at != first && *at != node.wrapping_add(layout.lists.hash_next);
        holder.filter(is_other).is_some_and(|at| kernel.u64(at) == Some(node))
    }

    /// Puts `pid` back into the PID index, if the path to its slot still exists.
    fn restore_index(&self, pid: u64) -> Option<Repair> {
        let Self { kernel, layout, identity, .. } = self;
        let xarrays = &layout.xarrays;
        let path = xarrays.path_to(kernel, layout.pid_index, identity.pid.into())?;
        if path.value == pid || path.value != 0 {
            return None;
        }
        let mut transaction = self.transaction()?;
        transaction.require_free(layout.tasklist_lock)?;
        transaction.require_free(layout.pidmap_lock)?;
        transaction.put(path.slot, pid)?;
        // Mark 0 of an IDR flags free slots, and slots with free entries below. A slot that a fork has reserved is
        // neither free nor filled. The root always has a free entry.
        let (node, number) = path.steps[path.levels - 1];
        let free = kernel.u64(node.wrapping_add(xarrays.marks))? & !(1 << number);
        let free = free & (u64::MAX >> (64 - xarrays.slots()));
        let used = u64::from(xarrays.slots() - free.count_ones());
        let count = node.wrapping_add(xarrays.count);
        let (word, shift) = (count & !7, 8 * (count % 8));
        let value = kernel.u64(word)?;
        transaction.put(word, (value & !(0xff << shift)) | (used << shift))?;
        for (node, number) in path.steps[..path.levels].iter().rev() {
            let marks = node.wrapping_add(xarrays.marks);
            let value = kernel.u64(marks)? & !(1 << number);
            transaction.put(marks, value)?;
            if value != 0 {
                return transaction.finish(None);
            }
        }
        None
    }

    /// Puts the task back into the list of type `kind` at its PID. Linux has at most one task in it: if there is one,
    /// the PID is that task's.
    fn restore_pid_list(&self, pid: u64, kind: usize) -> Option<Repair> {
        let Self { kernel, layout, identity, .. } = self;
        let own = identity.task.wrapping_add(layout.thread_pid);
        let pointer_lost = kind == 0 && kernel.u64(own)? != pid;
        let mut links = None;
        let mut transaction = self.transaction()?;
        transaction.require_free(layout.tasklist_lock)?;
        if pointer_lost {
            transaction.put(own, pid)?;
        }
        if !is_listed(kernel, layout, pid, kind, identity.task) {
            let first = pid.wrapping_add(layout.pid_tasks[kind]).wrapping_add(layout.lists.first);
            let node = identity.task.wrapping_add(layout.pid_links[kind]);
            let link = node.wrapping_add(layout.lists.hash_next);
            if kernel.u64(first)? != 0 {
                return None;
            }
            transaction.put(first, node)?;
            transaction.put(link, 0)?;
            transaction.put(node.wrapping_add(layout.lists.hash_prev), first)?;
            links = self.links([view::PID, view::TGID][kind], node, first, 0);
        }
        transaction.finish(links)
    }
}
