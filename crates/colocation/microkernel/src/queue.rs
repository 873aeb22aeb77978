//! Queues of threads. A thread is in one queue at most: the links are its own.

/// Number of a thread.
pub type ThreadId = u8;
/// No thread.
pub const NOBODY: ThreadId = u8::MAX;

/// Links of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    next: ThreadId,
    previous: ThreadId,
}

impl Link {
    /// In no queue.
    pub const NONE: Self = Self { next: NOBODY, previous: NOBODY };
}

/// What has links for each of its threads.
pub trait Links {
    /// Those of one thread, which exists.
    fn link(&mut self, thread: ThreadId) -> &mut Link;
}

/// First in, first out.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: ThreadId,
    tail: ThreadId,
}

impl Queue {
    /// Nobody waits.
    pub const EMPTY: Self = Self { head: NOBODY, tail: NOBODY };

    /// The first, or [`NOBODY`].
    #[inline]
    pub fn head(&self) -> ThreadId {
        self.head
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NOBODY
    }

    /// Adds `thread`, which is in no queue, as the last.
    #[inline]
    pub fn push_back(&mut self, links: &mut impl Links, thread: ThreadId) {
        *links.link(thread) = Link { next: NOBODY, previous: self.tail };
        match self.tail {
            NOBODY => self.head = thread,
            tail => links.link(tail).next = thread,
        }
        self.tail = thread;
    }

    /// Adds `thread`, which is in no queue, as the first.
    pub fn push_front(&mut self, links: &mut impl Links, thread: ThreadId) {
        *links.link(thread) = Link { next: self.head, previous: NOBODY };
        match self.head {
            NOBODY => self.tail = thread,
            head => links.link(head).previous = thread,
        }
        self.head = thread;
    }

    /// Takes `thread`, which is in this queue, out of it.
    #[inline]
    pub fn remove(&mut self, links: &mut impl Links, thread: ThreadId) {
        let Link { next, previous } = core::mem::replace(links.link(thread), Link::NONE);
        match previous {
            NOBODY => self.head = next,
            p => links.link(p).next = next,
        }
        match next {
            NOBODY => self.tail = previous,
            n => links.link(n).previous = previous,
        }
    }

    /// Takes the first.
    pub fn pop(&mut self, links: &mut impl Links) -> Option<ThreadId> {
        let head = self.head;
        if head == NOBODY {
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
    fn anyone_can_leave() {
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
