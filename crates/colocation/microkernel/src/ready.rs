//! The ready queues, one per priority.

use crate::queue::{Links, Queue, ThreadId};

/// Number of priorities, from 0; the highest goes first.
pub const PRIORITIES: usize = 32;

/// Threads that can run but do not.
pub struct Ready {
    /// Bit `p` is set if a thread of priority `p` is ready.
    waiting: u32,
    queues: [Queue; PRIORITIES],
}

impl Ready {
    /// No ready thread.
    pub const EMPTY: Self = Self { waiting: 0, queues: [Queue::EMPTY; PRIORITIES] };

    /// Whether a thread of a priority above `priority` is ready.
    #[inline]
    pub fn has_above(&self, priority: u8) -> bool {
        self.waiting >> (priority & 31) > 1
    }

    /// Whether a thread of this priority is ready.
    pub fn has(&self, priority: u8) -> bool {
        self.waiting >> (priority & 31) & 1 != 0
    }

    /// Adds a thread after those of its priority.
    pub fn push_back(&mut self, links: &mut impl Links, thread: ThreadId, priority: u8) {
        self.queue(priority).push_back(links, thread);
    }

    /// Adds a thread before those of its priority, for a thread that was preempted within its turn.
    pub fn push_front(&mut self, links: &mut impl Links, thread: ThreadId, priority: u8) {
        self.queue(priority).push_front(links, thread);
    }

    fn queue(&mut self, priority: u8) -> &mut Queue {
        self.waiting |= 1 << (priority & 31);
        &mut self.queues[usize::from(priority & 31)]
    }

    /// Removes a thread, which must be in the queue of `priority`.
    pub fn remove(&mut self, links: &mut impl Links, thread: ThreadId, priority: u8) {
        let queue = &mut self.queues[usize::from(priority & 31)];
        queue.remove(links, thread);
        if queue.is_empty() {
            self.waiting &= !(1 << (priority & 31));
        }
    }

    /// Removes and returns the first thread of the highest priority.
    pub fn pop(&mut self, links: &mut impl Links) -> Option<ThreadId> {
        let highest = self.waiting.checked_ilog2()? as u8;
        let thread = self.queues[usize::from(highest)].head();
        self.remove(links, thread, highest);
        Some(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{tests::Fake, Link};

    #[test]
    fn highest_priority_first_then_arrival_order() {
        let (mut r, mut l) = (Ready::EMPTY, Fake([Link::NONE; 8]));
        for (thread, priority) in [(0, 5), (1, 31), (2, 0), (3, 5)] {
            r.push_back(&mut l, thread, priority);
        }
        r.push_front(&mut l, 4, 5);
        assert!(r.has_above(30) && !r.has_above(31) && r.has(0) && !r.has(1));
        let order: Vec<ThreadId> = std::iter::from_fn(|| r.pop(&mut l)).collect();
        assert_eq!(order, [1, 4, 0, 3, 2]);
        assert!(!r.has_above(0) && !r.has(0));
    }

    #[test]
    fn removed_threads_leave_no_trace() {
        let (mut r, mut l) = (Ready::EMPTY, Fake([Link::NONE; 8]));
        r.push_back(&mut l, 0, 9);
        r.push_back(&mut l, 1, 9);
        r.remove(&mut l, 0, 9);
        assert!(r.has_above(8));
        r.remove(&mut l, 1, 9);
        assert!(!r.has_above(8));
        assert_eq!(r.pop(&mut l), None);
    }
}
