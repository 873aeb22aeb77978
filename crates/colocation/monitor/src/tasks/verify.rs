//! A look at the links that a repair wrote.
//!
//! The code that hid a task may link it again after the repair. Then the task is in the list twice: a walk over the
//! list never ends, or the task's exit leaves a pointer to freed memory. Taking the repair back removes one of the two
//! places, the repair's, and leaves the task linked once. The words that the task itself had before the repair are not
//! written back: it is linked now, and Linux could not unlink it with them.

use super::layout::TaskLayout;
use super::pass::MAX_TASKS_PER_PID;
use super::repair::Transaction;
use super::task::TaskState;
use super::view;
use crate::finding::{Links, Repair, Verdict};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// Looks at `links`.
pub fn verify<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    links: &Links,
) -> Verdict {
    let look = Look { kernel, layout, links };
    if !look.is_at_rest() {
        return Verdict::Unknown;
    }
    let verdict = match look.is_torn() {
        true => Verdict::Torn(look.take_back()),
        false => Verdict::Consistent,
    };
    // Linux may have changed the links during the look.
    if look.is_at_rest() {
        verdict
    } else {
        Verdict::Unknown
    }
}

struct Look<'a, M> {
    kernel: &'a Kernel<'a, M>,
    layout: &'a TaskLayout,
    links: &'a Links,
}

impl<M: KernelMemory> Look<'_, M> {
    /// Whether it is the `hlist` of a PID, in which `before` is the address of the first pointer.
    fn is_chain(&self) -> bool {
        self.links.list & (view::PID | view::TGID) != 0
    }

    /// The view whose locks guard the list. Those of `TGID` guard both lists at a PID.
    fn guarded(&self) -> u8 {
        if self.is_chain() {
            view::TGID
        } else {
            self.links.list
        }
    }

    /// Whether the chain still belongs to the task: an `exec` exchanges the PIDs of two threads.
    fn is_own_chain(&self, task: &TaskState) -> bool {
        let layout = self.layout;
        let (kind, pid) = match self.links.list {
            view::PID => (0, Some(task.pid_struct)),
            _ => (1, self.kernel.u64(task.signal.wrapping_add(layout.signal_tgid))),
        };
        let first =
            |pid: u64| pid.wrapping_add(layout.pid_tasks[kind]).wrapping_add(layout.lists.first);
        pid.map(first) == Some(self.links.before)
    }

    /// Whether it is still the same task, is not dead, and no writer holds a lock of its list.
    fn is_at_rest(&self) -> bool {
        let Self { kernel, layout, links } = self;
        let stamp = kernel.u64(links.object.wrapping_add(layout.start_time));
        let task = TaskState::read(kernel, layout, links.object);
        stamp == Some(links.stamp)
            && task.is_some_and(|task| {
                task.is_in_use(kernel, layout)
                    && !task.is_dead()
                    && (!self.is_chain() || self.is_own_chain(&task))
            })
            && layout.locks(self.guarded()).all(|lock| lock.has_no_writer(kernel))
    }

    fn is_torn(&self) -> bool {
        if self.is_chain() {
            self.chain_is_torn()
        } else {
            self.leads_here() || self.leads_back() || self.neighbours_are_torn()
        }
    }

    fn take_back(&self) -> Option<Repair> {
        if self.is_chain() {
            self.leave_chain()
        } else {
            self.leave_list()
        }
    }

    fn next(&self, node: u64) -> Option<u64> {
        self.layout.lists.next(self.kernel, node)
    }

    fn prev(&self, node: u64) -> Option<u64> {
        self.layout.lists.prev(self.kernel, node)
    }

    /// Whether the repair's `before` leads to the node, is still in the list itself, and the node does not lead back.
    /// What Linux has unlinked meanwhile keeps its pointers.
    fn leads_here(&self) -> bool {
        let Links { node, before, .. } = *self.links;
        self.prev(node) != Some(before) && self.holds_before()
    }

    /// The same for `behind`.
    fn leads_back(&self) -> bool {
        let Links { node, behind, .. } = *self.links;
        self.next(node) != Some(behind) && self.holds_behind()
    }

    /// Whether the repair's `before` leads to the node and is in the list.
    fn holds_before(&self) -> bool {
        let Links { node, before, .. } = *self.links;
        let is_in = |prev| prev == node || self.next(prev) == Some(before);
        self.next(before) == Some(node) && self.prev(before).is_some_and(is_in)
    }

    /// Whether the repair's `behind` leads back to the node and is in the list.
    fn holds_behind(&self) -> bool {
        let Links { node, behind, .. } = *self.links;
        let is_in = |next| next == node || self.prev(next) == Some(behind);
        self.prev(behind) == Some(node) && self.next(behind).is_some_and(is_in)
    }

    /// Whether the node is linked, and one of its neighbours is not linked on its other side.
    fn neighbours_are_torn(&self) -> bool {
        let node = self.links.node;
        let (Some(next), Some(prev)) = (self.next(node), self.prev(node)) else { return false };
        let far = self.prev(prev).and_then(|far| self.next(far));
        let near = self.next(next).and_then(|near| self.prev(near));
        self.layout.lists.is_linked(self.kernel, node) && (far, near) != (Some(prev), Some(next))
    }

    /// Whether a node of the chain does not point back to what leads to it. A node that is in it twice cannot point
    /// back to both.
    fn chain_is_torn(&self) -> bool {
        let lists = &self.layout.lists;
        let mut link = self.links.before;
        for _ in 0..=MAX_TASKS_PER_PID {
            match self.kernel.u64(link) {
                Some(0) => return false,
                Some(node) if self.points_back(node, link) => {
                    link = node.wrapping_add(lists.hash_next);
                }
                _ => return true,
            }
        }
        true
    }

    fn points_back(&self, node: u64, link: u64) -> bool {
        self.kernel.u64(node.wrapping_add(self.layout.lists.hash_prev)) == Some(link)
    }

    /// A transaction that requires the locks to be free, and the task to be the same.
    fn transaction(&self) -> Option<Transaction<'_, M>> {
        let mut transaction = Transaction::new(self.kernel);
        for lock in self.layout.locks(self.guarded()) {
            transaction.require_free(lock)?;
        }
        let Links { object, stamp, .. } = *self.links;
        transaction.push(object.wrapping_add(self.layout.start_time), stamp, stamp)?;
        Some(transaction)
    }

    /// Joins the neighbours that the repair had given to the node, if the node is linked elsewhere. If it was linked a
    /// second time in the same place, it leads to itself: it gets these neighbours again.
    fn leave_list(&self) -> Option<Repair> {
        let Links { node, before, behind, .. } = *self.links;
        let lists = &self.layout.lists;
        let next_of = |node: u64| node.wrapping_add(lists.next);
        let prev_of = |node: u64| node.wrapping_add(lists.prev);
        let (next, prev) = (self.next(node)?, self.prev(node)?);
        if !self.holds_before() || !self.holds_behind() {
            return None;
        }
        let mut transaction = self.transaction()?;
        let leads_to_itself =
            (next == node && [node, before].contains(&prev)) || (prev == node && next == behind);
        if leads_to_itself {
            transaction.push(next_of(before), node, node)?;
            transaction.push(prev_of(behind), node, node)?;
            transaction.push(next_of(node), next, behind)?;
            transaction.push(prev_of(node), prev, before)?;
            return transaction.finish(None);
        }
        if prev == before || next == behind || !lists.is_linked(self.kernel, node) {
            return None;
        }
        transaction.push(next_of(before), node, behind)?;
        transaction.push(prev_of(behind), node, before)?;
        for (at, value) in [
            (next_of(node), next),
            (prev_of(node), prev),
            (next_of(prev), node),
            (prev_of(next), node),
        ] {
            transaction.push(at, value, value)?;
        }
        transaction.finish(None)
    }

    /// The same for a chain, in which a second `hlist_add_head` lets the node lead to itself.
    fn leave_chain(&self) -> Option<Repair> {
        let Links { node, before: first, behind, .. } = *self.links;
        let lists = &self.layout.lists;
        let next_at = node.wrapping_add(lists.hash_next);
        let prev_at = node.wrapping_add(lists.hash_prev);
        let behind_at = behind.wrapping_add(lists.hash_prev);
        let (next, prev) = (self.kernel.u64(next_at)?, self.kernel.u64(prev_at)?);
        let is_held = self.kernel.u64(first) == Some(node)
            && (behind == 0 || self.points_back(behind, next_at));
        if !is_held {
            return None;
        }
        let mut transaction = self.transaction()?;
        if next == node && prev == next_at {
            transaction.push(first, node, node)?;
            transaction.push(next_at, node, behind)?;
            transaction.push(prev_at, prev, first)?;
            if behind != 0 {
                transaction.push(behind_at, next_at, next_at)?;
            }
            return transaction.finish(None);
        }
        let is_elsewhere = prev != first
            && self.kernel.u64(prev) == Some(node)
            && (next == 0 || next != behind && self.points_back(next, next_at));
        if !is_elsewhere {
            return None;
        }
        transaction.push(first, node, behind)?;
        if behind != 0 {
            transaction.push(behind_at, next_at, first)?;
        }
        for (at, value) in [(next_at, next), (prev_at, prev), (prev, node)] {
            transaction.push(at, value, value)?;
        }
        transaction.finish(None)
    }
}
