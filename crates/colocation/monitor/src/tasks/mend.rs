//! How a task is put back: one transaction for each structure, each of which leaves Linux no worse than it was.
//!
//! Words are stated as they stand. If one has changed when the transaction runs, or a lock is held, nothing is written.

use super::layout::{Layout, Lock};
use super::look::{indexed, listed};
use super::task::{Identity, Task};
use super::view;
use crate::finding::Repair;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::vec::Vec;
use kyozon_abi::layer::{RepairWord, MAX_REPAIR_WORDS};

/// The transactions that put a task back into `views`, in order. What cannot be put back is left out.
pub fn repairs<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    identity: &Identity,
    views: u8,
) -> Vec<Repair> {
    let Some(task) = Task::read(kernel, layout, identity.task) else { return Vec::new() };
    let mender = Mender { kernel, layout, identity: *identity, task };
    let at = |offset: u64| identity.task.wrapping_add(offset);
    let mut repairs = Vec::new();
    if views & (view::PID | view::TGID) != 0 {
        if let Some(pid) = mender.pid() {
            repairs.push(mender.index(pid));
            repairs.push(mender.number(pid, 0));
            if task.leads() {
                repairs.push(mender.number(pid, 1));
            }
        }
    }
    if views & view::TASKS != 0 {
        repairs.push(mender.link(
            at(layout.tasks),
            layout.init_task.wrapping_add(layout.tasks),
            layout.tasklist_lock,
        ));
    }
    if views & view::THREADS != 0 {
        let head = task.signal.wrapping_add(layout.thread_head);
        repairs.push(mender.link(at(layout.thread_node), head, layout.tasklist_lock));
    }
    if let Some(ring) = layout.thread_group.filter(|_| views & view::GROUP != 0) {
        repairs.push(mender.link(at(ring), task.leader.wrapping_add(ring), layout.tasklist_lock));
    }
    if let Some(groups) = layout.groups.filter(|_| views & view::CGROUP != 0) {
        let head = kernel.u64(at(groups.of_task)).map(|set| set.wrapping_add(groups.lists[0]));
        repairs.push(head.and_then(|head| mender.link(at(groups.node), head, groups.lock)));
    }
    repairs.into_iter().flatten().collect()
}

/// A transaction that is being written.
struct Words<'a, M> {
    kernel: &'a Kernel<'a, M>,
    words: Vec<RepairWord>,
}

impl<M: KernelMemory> Words<'_, M> {
    /// The word at `address` becomes `value`.
    fn put(&mut self, address: u64, value: u64) -> Option<()> {
        let expected = self.kernel.u64(address)?;
        self.push(address, expected, value)
    }

    /// The lock must be free.
    fn free(&mut self, lock: Lock) -> Option<()> {
        let (address, value, mask) = lock.word(self.kernel)?;
        self.push(address, value & !mask, value & !mask)
    }

    fn push(&mut self, address: u64, expected: u64, value: u64) -> Option<()> {
        let physical = self.kernel.physical(address)?;
        let fits = physical % 8 == 0 && self.words.len() < MAX_REPAIR_WORDS;
        if !fits || self.words.iter().any(|word| word.address == physical) {
            return None;
        }
        self.words.push(RepairWord { address: physical, expected, value });
        Some(())
    }

    /// The transaction, if it changes anything.
    fn done(self) -> Option<Repair> {
        let changes = self.words.iter().any(|word| word.expected != word.value);
        changes.then_some(Repair { words: self.words })
    }
}

struct Mender<'a, M> {
    kernel: &'a Kernel<'a, M>,
    layout: &'a Layout,
    identity: Identity,
    task: Task,
}

impl<'a, M: KernelMemory> Mender<'a, M> {
    fn words(&self) -> Words<'a, M> {
        Words { kernel: self.kernel, words: Vec::new() }
    }

    /// Puts the node at `node` back between the neighbours that it remembers, if they are each other's, or at the
    /// list's end.
    fn link(&self, node: u64, head: u64, lock: Lock) -> Option<Repair> {
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
        let (before, behind) = remembered().or_else(end)?;
        if next(before) == Some(node) && prev(behind) == Some(node) {
            return None;
        }
        let mut words = self.words();
        words.free(lock)?;
        words.put(before.wrapping_add(lists.next), node)?;
        words.put(behind.wrapping_add(lists.prev), node)?;
        words.put(node.wrapping_add(lists.next), behind)?;
        words.put(node.wrapping_add(lists.prev), before)?;
        words.done()
    }

    /// The `pid` structure that is the task's: its own pointer's, its process's, or the index's.
    fn pid(&self) -> Option<u64> {
        let Self { kernel, layout, identity, task } = self;
        let own = kernel.u64(identity.task.wrapping_add(layout.thread_pid));
        let process =
            kernel.u64(task.signal.wrapping_add(layout.signal_tgid)).filter(|_| task.leads());
        let is_it = |pid: &u64| {
            let word = |offset: u64| kernel.u32(pid.wrapping_add(offset));
            // A count of 0: the structure was given up.
            pid % 8 == 0
                && word(layout.pid_count).is_some_and(|count| count != 0)
                && word(layout.pid_number) == Some(identity.pid)
        };
        let indexed = indexed(kernel, layout, identity.pid);
        let found = own.filter(is_it).or(process.filter(is_it)).or(indexed.filter(is_it))?;
        // Another structure at the task's number: the number was given to somebody else meanwhile.
        indexed.is_none_or(|indexed| indexed == found).then_some(found)
    }

    /// Puts `pid` back into the index of numbers, if the way to its slot is still there.
    fn index(&self, pid: u64) -> Option<Repair> {
        let Self { kernel, layout, identity, .. } = self;
        let xarrays = &layout.xarrays;
        let way = xarrays.way(kernel, layout.pids, identity.pid.into())?;
        if way.value == pid || way.value != 0 {
            return None;
        }
        let mut words = self.words();
        words.free(layout.tasklist_lock)?;
        words.free(layout.pidmap_lock)?;
        words.put(way.slot, pid)?;
        let (node, _) = way.steps[way.levels - 1];
        let mut used = 1;
        for number in 0..xarrays.slots() {
            used += u64::from(kernel.u64(xarrays.slot(node, number))? != 0);
        }
        let count = node.wrapping_add(xarrays.count);
        let (word, shift) = (count & !7, 8 * (count % 8));
        let value = kernel.u64(word)?;
        words.put(word, (value & !(0xff << shift)) | (used.min(0xff) << shift))?;
        // Mark 0 of an IDR says that something below a slot is free. The top node always has something free.
        for (node, number) in way.steps[..way.levels].iter().rev() {
            let marks = node.wrapping_add(xarrays.marks);
            let value = kernel.u64(marks)? & !(1 << number);
            words.put(marks, value)?;
            if value != 0 {
                return words.done();
            }
        }
        None
    }

    /// Puts the task back into the list of type `kind` of its number.
    fn number(&self, pid: u64, kind: usize) -> Option<Repair> {
        let Self { kernel, layout, identity, .. } = self;
        let own = identity.task.wrapping_add(layout.thread_pid);
        let own_is_lost = kind == 0 && kernel.u64(own)? != pid;
        let mut words = self.words();
        words.free(layout.tasklist_lock)?;
        if own_is_lost {
            words.put(own, pid)?;
        }
        if !listed(kernel, layout, pid, kind, identity.task) {
            let first = pid.wrapping_add(layout.pid_tasks[kind]).wrapping_add(layout.lists.first);
            let node = identity.task.wrapping_add(layout.links[kind]);
            let link = node.wrapping_add(layout.lists.hash_next);
            let other = kernel.u64(first)?;
            words.put(first, node)?;
            words.put(link, other)?;
            words.put(node.wrapping_add(layout.lists.hash_prev), first)?;
            if other != 0 {
                words.put(other.wrapping_add(layout.lists.hash_prev), link)?;
            }
        }
        words.done()
    }
}
