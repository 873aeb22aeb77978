//! A split queue of a guest's, and when it ends.
//!
//! `virtio-queue` reads and writes the three rings. Where a chain of descriptors is bad, it gives a shorter one; here
//! that ends the queue.

use crate::chain::Chain;
use crate::Memory;
use std::fmt;
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use virtio_queue::desc::split::Descriptor;
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::GuestAddress;

/// Feature bits of every device (section 6): each side says for which entry it wants to be told, by its index.
pub const FEATURES: u64 = 1 << VIRTIO_F_VERSION_1 | 1 << VIRTIO_RING_F_EVENT_IDX;

/// Entries of a queue, at most.
pub const MAX_SIZE: u16 = 256;

/// Why a queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The index of available entries jumped.
    Index,
    /// A descriptor that is not there, a circle, or more descriptors than the queue has entries.
    Descriptor,
    /// A descriptor that the device reads behind one that it writes.
    Order,
    /// An address that is not the guest's.
    Address,
    /// Fewer bytes than such a request has.
    Short,
    /// A kind of memory that such a request has not.
    Kind,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "the index of available entries jumped",
            Self::Descriptor => "descriptors lead nowhere, in a circle, or are too many",
            Self::Order => "a descriptor to read stands behind one to write",
            Self::Address => "an address is not the guest's",
            Self::Short => "a request is too short",
            Self::Kind => "a request has memory of the wrong kind",
        })
    }
}

/// Where a queue lies, as the guest says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Entries: a power of two, at most [`MAX_SIZE`].
    pub size: u16,
    /// The descriptor table, at a multiple of 16.
    pub descriptors: u64,
    /// The ring of available entries, at a multiple of 2.
    pub available: u64,
    /// The ring of used entries, at a multiple of 4.
    pub used: u64,
}

/// Why a queue does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It runs.
    Running,
    /// No power of two, or too large.
    Size,
    /// Not aligned, or not the guest's.
    Address,
}

/// What has become of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was not started, or was stopped.
    Stopped,
    /// The device takes entries.
    Running,
    /// It ended.
    Ended(Bad),
}

/// What [`Ring::serve`] leaves to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Entries that were used.
    pub count: usize,
    /// The guest wants to be woken.
    pub wake: bool,
    /// There may be more entries: the guest need not ring for them.
    pub more: bool,
}

/// A queue. Its driver keeps calls apart: it is used by one thread at a time.
#[derive(Debug)]
pub struct Ring {
    queue: Queue,
    state: State,
    chain: Chain,
}

impl Default for Ring {
    fn default() -> Self {
        // `MAX_SIZE` is a power of two.
        let Ok(queue) = Queue::new(MAX_SIZE) else { unreachable!("a size that queues can have") };
        Self { queue, state: State::Stopped, chain: Chain::default() }
    }
}

impl From<Error> for Bad {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidAvailRingIndex => Self::Index,
            _ => Self::Address,
        }
    }
}

impl Ring {
    /// What has become of it.
    pub fn state(&self) -> State {
        self.state
    }

    /// Starts it, with no entries used.
    pub fn start<M: Memory>(&mut self, memory: &M, place: Place) -> Result<(), Refused> {
        if self.state == State::Running {
            return Err(Refused::Running);
        }
        let queue = &mut self.queue;
        queue.reset();
        let placed = queue.try_set_size(place.size).map_err(|_| Refused::Size).and_then(|()| {
            queue
                .try_set_desc_table_address(GuestAddress(place.descriptors))
                .and_then(|()| queue.try_set_avail_ring_address(GuestAddress(place.available)))
                .and_then(|()| queue.try_set_used_ring_address(GuestAddress(place.used)))
                .map_err(|_| Refused::Address)
        });
        queue.set_event_idx(true);
        queue.set_ready(true);
        let placed =
            placed.and(if queue.is_valid(memory) { Ok(()) } else { Err(Refused::Address) });
        self.state = if placed.is_ok() { State::Running } else { State::Stopped };
        // What the guest wrote there may say otherwise, and is made what it is.
        self.listen(memory);
        placed
    }

    /// Stops it: nothing of it is read or written any more.
    pub fn stop(&mut self) {
        self.state = State::Stopped;
    }

    fn end<T>(&mut self, bad: Bad) -> Option<T> {
        self.state = State::Ended(bad);
        None
    }

    /// The next entry of a queue that runs: its number for [`Ring::put`], and what the guest asks.
    pub fn next<M: Memory>(&mut self, memory: &M) -> Option<(u16, Chain)> {
        if self.state != State::Running {
            return None;
        }
        let mut chain = std::mem::take(&mut self.chain);
        chain.clear();
        let most = usize::from(self.queue.size());
        let descriptors = match self.queue.iter(memory) {
            Ok(mut entries) => entries.next(),
            Err(error) => return self.end(error.into()),
        };
        let Some(descriptors) = descriptors else {
            self.chain = chain;
            return None;
        };
        let head = descriptors.head_index();
        let mut last: Option<Descriptor> = None;
        for descriptor in descriptors {
            let (address, write) = (descriptor.addr(), descriptor.is_write_only());
            if let Err(bad) = chain.push(memory, address, descriptor.len(), write) {
                return self.end(bad);
            }
            if chain.pieces() > most {
                return self.end(Bad::Descriptor);
            }
            last = Some(descriptor);
        }
        // The iterator stops where it cannot go on: a chain that is whole ends with a descriptor without a next.
        if last.is_none_or(|last| last.has_next()) {
            return self.end(Bad::Descriptor);
        }
        Some((head, chain))
    }

    /// Ends it: a device found something bad in an entry.
    pub fn fail(&mut self, bad: Bad) {
        self.state = State::Ended(bad);
    }

    /// Gives an entry back to the guest, with so many bytes written.
    pub fn put<M: Memory>(&mut self, memory: &M, head: u16, chain: Chain, written: u32) {
        self.chain = chain;
        if self.state == State::Running {
            if let Err(error) = self.queue.add_used(memory, head, written) {
                self.state = State::Ended(error.into());
            }
        }
    }

    /// Whether the guest wants to be woken for what was given back since this was asked last.
    pub fn wants_wake<M: Memory>(&mut self, memory: &M) -> bool {
        if self.state != State::Running {
            return false;
        }
        match self.queue.needs_notification(memory) {
            Ok(wake) => wake,
            Err(error) => self.end::<()>(error.into()).is_some(),
        }
    }

    /// Asks the guest to ring for its next entry. Whether that is there already, and no ring will come.
    pub fn listen<M: Memory>(&mut self, memory: &M) -> bool {
        if self.state != State::Running {
            return false;
        }
        match self.queue.enable_notification(memory) {
            Ok(more) => more,
            Err(error) => self.end::<()>(error.into()).is_some(),
        }
    }

    /// Serves entries by `with`, which says how many bytes it wrote, or what is bad. At most as many as the queue has,
    /// so that a guest that goes on asking does not hold the device for ever.
    pub fn serve<M: Memory>(
        &mut self,
        memory: &M,
        mut with: impl FnMut(&M, &mut Chain) -> Result<u32, Bad>,
    ) -> Served {
        if self.state != State::Running {
            return Served::default();
        }
        let most = usize::from(self.queue.size());
        let mut count = 0;
        let mut more = true;
        while more && count < most {
            match self.next(memory) {
                Some((head, mut chain)) => match with(memory, &mut chain) {
                    Ok(written) => {
                        count += 1;
                        self.put(memory, head, chain, written);
                    }
                    Err(bad) => return self.ended(count, bad),
                },
                None => more = self.listen(memory),
            }
        }
        let ended = matches!(self.state, State::Ended(_));
        let wake = ended || count > 0 && self.wants_wake(memory);
        Served { count, wake, more: more && !ended }
    }

    fn ended(&mut self, count: usize, bad: Bad) -> Served {
        self.state = State::Ended(bad);
        Served { count, wake: true, more: false }
    }
}

#[cfg(test)]
mod tests;
