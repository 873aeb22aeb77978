//! Repairs of hidden tasks: one transaction per structure, each of which leaves Linux consistent on its own.
//!
//! Each word states its current value. If one has changed when the transaction runs, or a lock is held, nothing is
//! written.

use super::layout::{Lock, TaskLayout};
use super::suspect::{indexed_pid, is_listed};
use super::task::{pid_number, Identity, TaskState, PF_EXITING};
use super::view;
use crate::finding::{Links, Repair};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
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
            if task.is_leader() {
                repairs.push(repairer.restore_pid_list(pid, 1));
            }
        }
    }
    if views & view::TASKS != 0 {
        let head = layout.init_task.wrapping_add(layout.tasks);
        repairs.push(repairer.relink(view::TASKS, at(layout.tasks), head));
    }
    if views & view::THREADS != 0 {
        let head = task.signal.wrapping_add(layout.thread_head);
        repairs.push(repairer.relink(view::THREADS, at(layout.thread_node), head));
    }
    if let Some(ring) = layout.thread_group.filter(|_| views & view::GROUP != 0) {
        let head = task.leader.wrapping_add(ring);
        repairs.push(repairer.relink(view::GROUP, at(ring), head));
    }
    if let Some(groups) = layout.groups.filter(|_| views & view::CGROUP != 0) {
        let head = kernel.u64(at(groups.of_task)).map(|set| set.wrapping_add(groups.lists[0]));
        repairs.push(head.and_then(|head| repairer.relink(view::CGROUP, at(groups.node), head)));
    }
    repairs.into_iter().flatten().collect()
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

struct TaskRepairer<'a, M> {
    kernel: &'a Kernel<'a, M>,
    layout: &'a TaskLayout,
    identity: Identity,
    task: TaskState,
}

impl<'a, M: KernelMemory> TaskRepairer<'a, M> {
    /// An empty transaction that fails if the task exits before it runs: `do_exit` sets PF_EXITING before anything of
    /// the task is unlinked, and the exit of a task that is already unlinked may change no other word. Memory that is a
    /// new task has another start time.
    fn transaction(&self) -> Option<Transaction<'a, M>> {
        let Self { kernel, layout, identity, .. } = self;
        let mut transaction = Transaction::new(*kernel);
        let flags = identity.task.wrapping_add(layout.flags);
        let word = kernel.u64(flags & !7)?;
        if (word >> (8 * (flags % 8))) as u32 & PF_EXITING != 0 {
            return None;
        }
        transaction.push(flags & !7, word, word)?;
        let start = identity.task.wrapping_add(layout.start_time);
        let value = kernel.u64(start)?;
        transaction.push(start, value, value)?;
        Some(transaction)
    }

    /// The task's node at `node` in the list `view`, between `before` and `behind`.
    fn links(&self, view: u8, node: u64, before: u64, behind: u64) -> Option<Links> {
        let object = self.identity.task;
        let stamp = self.kernel.u64(object.wrapping_add(self.layout.start_time))?;
        Some(Links { object, stamp, list: view, node, before, behind })
    }

    /// Links the node at `node` of the list `view` back between the neighbours it still points to, if these are
    /// adjacent, else at the end of the list at `head`.
    fn relink(&self, view: u8, node: u64, head: u64) -> Option<Repair> {
        let lists = &self.layout.lists;
        let next = |node| lists.next(self.kernel, node);
        let prev = |node| lists.prev(self.kernel, node);
        let remembered = || {
            let (before, behind) = (prev(node)?, next(node)?);
            let apart = before != node && behind != node;
            let joined =
                [behind, node].contains(&next(before)?) && [before, node].contains(&prev(behind)?);
            (apart && joined).then_some((before, behind))
        };
        let end = || {
            let last = prev(head)?;
            (next(last)? == head && last != node).then_some((last, head))
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
        indexed.is_none_or(|indexed| indexed == found).then_some(found)
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
        let (node, _) = path.steps[path.levels - 1];
        let mut used = 1;
        for number in 0..xarrays.slots() {
            used += u64::from(kernel.u64(xarrays.slot(node, number))? != 0);
        }
        let count = node.wrapping_add(xarrays.count);
        let (word, shift) = (count & !7, 8 * (count % 8));
        let value = kernel.u64(word)?;
        transaction.put(word, (value & !(0xff << shift)) | (used.min(0xff) << shift))?;
        // Mark 0 of an IDR flags slots with free entries below. The root always has a free entry.
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
