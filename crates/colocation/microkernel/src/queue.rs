//! Queues of threads. A thread is in at most one queue, so it holds the links.

/// Number of a thread.
pub type ThreadId = u8;
/// No thread.
pub const NO_THREAD: ThreadId = u8::MAX;

/// Links of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    next: ThreadId,
    previous: ThreadId,
}

impl Link {
    /// In no queue.
    pub const NONE: Self = Self { next: NO_THREAD, previous: NO_THREAD };
}

/// A collection with the links of each thread.
pub trait Links {
    /// Links of an existing thread.
    fn link(&mut self, thread: ThreadId) -> &mut Link;
}

/// First in, first out.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: ThreadId,
    tail: ThreadId,
}

impl Queue {
    /// A queue without threads.
    pub const EMPTY: Self = Self { head: NO_THREAD, tail: NO_THREAD };

    /// The first, or [`NO_THREAD`].
    #[inline]
    pub fn head(&self) -> ThreadId {
        self.head
    }

    /// Whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NO_THREAD
    }

    /// Adds `thread`, which is in no queue, as the last.
    #[inline]
    pub fn push_back(&mut self, links: &mut impl Links, thread: ThreadId) {
        *links.link(thread) = Link { next: NO_THREAD, previous: self.tail };
        match self.tail {
            NO_THREAD => self.head = thread,
            tail => links.link(tail).next = thread,
        }
        self.tail = thread;
    }

    /// Adds `thread`, which is in no queue, as the first.
    pub fn push_front(&mut self, links: &mut impl Links, thread: ThreadId) {
        *links.link(thread) = Link { next: self.head, previous: NO_THREAD };
        match self.head {
            NO_THREAD => self.tail = thread,
            head => links.link(head).previous = thread,
        }
        self.head = thread;
    }

    /// Removes `thread`, which is in this queue.
    #[inline]
    pub fn remove(&mut self, links: &mut impl Links, thread: ThreadId) {
        let Link { next, previous } = core::mem::replace(links.link(thread), Link::NONE);
        match previous {
            NO_THREAD => self.head = next,
            p => links.link(p).next = next,
        }
        match next {
            NO_THREAD => self.tail = previous,
            n => links.link(n).previous = previous,
        }
    }

    /// Removes and returns the first.
    pub fn pop(&mut self, links: &mut impl Links) -> Option<ThreadId> {
        let head = self.head;
        if head == NO_THREAD {
            return None;
        }
        self.remove(links, head);
        Some(head)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) struct Fake(pub [Link; 8]);

    impl Links for Fake {
        fn link(&mut self, thread: ThreadId) -> &mut Link {
            &mut self.0[usize::from(thread)]
        }
    }

    fn all(queue: &mut Queue, links: &mut Fake) -> Vec<ThreadId> {
        std::iter::from_fn(|| queue.pop(links)).collect()
    }

    #[test]
    fn first_in_first_out() {
        let (mut q, mut l) = (Queue::EMPTY, Fake([Link::NONE; 8]));
        for t in [3, 1, 2] {
            q.push_back(&mut l, t);
        }
        q.push_front(&mut l, 7);
        assert_eq!((q.head(), q.is_empty()), (7, false));
        assert_eq!(all(&mut q, &mut l), [7, 3, 1, 2]);
        assert!(q.is_empty());
        q.push_front(&mut l, 5);
        q.push_back(&mut l, 6);
        assert_eq!(all(&mut q, &mut l), [5, 6]);
    }

    #[test]
    fn any_thread_can_be_removed() {
        for (gone, rest) in [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])] {
            let (mut q, mut l) = (Queue::EMPTY, Fake([Link::NONE; 8]));
            for t in 0..3 {
                q.push_back(&mut l, t);
            }
            q.remove(&mut l, gone);
            assert_eq!(all(&mut q, &mut l), rest);
            q.push_back(&mut l, gone);
            assert_eq!(all(&mut q, &mut l), [gone]);
        }
    }
}
