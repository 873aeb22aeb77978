//! A guest's split queue, and the rules that end it.
//!
//! `virtio-queue` reads and writes the three rings. For a bad chain of descriptors it returns a shorter chain; this
//! module ends the queue instead.

use crate::chain::Chain;
use crate::Memory;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{fence, Ordering};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VRING_AVAIL_F_NO_INTERRUPT};
use virtio_queue::desc::split::Descriptor;
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress};

/// Feature bits of every device (section 6): among them event indices, by which each side names the entry for which it
/// wants a notification.
pub const FEATURES: u64 = 1 << VIRTIO_F_VERSION_1 | 1 << VIRTIO_RING_F_EVENT_IDX;

/// Maximum number of entries of a queue.
pub const MAX_SIZE: u16 = 256;

/// The broken rule that ended a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The index of available entries jumped.
    Index,
    /// A descriptor outside the table, a cycle, or more descriptors than the queue has entries.
    Descriptor,
    /// A descriptor that the device reads after one that it writes.
    Order,
    /// An address outside the guest's memory.
    Address,
    /// Fewer bytes than a request of this kind needs.
    Short,
    /// Readable or writable memory in a request that has none of that kind.
    Kind,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "the index of available entries jumped",
            Self::Descriptor => {
                "descriptors point outside the table, form a cycle, or are too many"
            }
            Self::Order => "a descriptor to read follows one to write",
            Self::Address => "an address is outside the guest's memory",
            Self::Short => "a request is too short",
            Self::Kind => "a request has readable or writable memory that it must not have",
        })
    }
}

/// Size and addresses of a queue, as the guest states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of entries: a power of two, at most [`MAX_SIZE`].
    pub size: u16,
    /// Address of the descriptor table, a multiple of 16.
    pub descriptors: u64,
    /// Address of the available ring, a multiple of 2.
    pub available: u64,
    /// Address of the used ring, a multiple of 4.
    pub used: u64,
}

/// Why a queue cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is already running.
    Running,
    /// The size is not a power of two, or too large.
    Size,
    /// A part is not aligned, or lies outside the guest's memory.
    Address,
}

/// State of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was not started, or was stopped.
    Stopped,
    /// The device takes entries.
    Running,
    /// It broke a rule.
    Ended(Bad),
}

/// Result of [`Ring::serve`]: what is left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Number of entries that were served.
    pub count: usize,
    /// The guest wants to be woken.
    pub wake: bool,
    /// There may be more entries, for which the guest will not ring.
    pub more: bool,
}

/// A queue. One thread at a time uses it; the driver sees to that.
#[derive(Debug)]
pub struct Ring {
    queue: Queue,
    state: State,
    /// Entries that [`Ring::look_ahead`] took and that are not used yet, in order.
    ahead: VecDeque<(u16, Chain)>,
    /// Chains without an entry, to be used again.
    spare: Vec<Chain>,
    /// Number of entries returned since the last [`Ring::wants_wake`].
    returned: u16,
}

impl Default for Ring {
    fn default() -> Self {
        // `MAX_SIZE` is a power of two.
        let Ok(queue) = Queue::new(MAX_SIZE) else { unreachable!("a size that queues can have") };
        let (ahead, spare) = (VecDeque::new(), Vec::new());
        Self { queue, state: State::Stopped, ahead, spare, returned: 0 }
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
    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Starts the queue, with both indices 0.
    ///
    /// # Errors
    /// [`Refused`]; the queue is stopped then, unless it was already running.
    pub fn start<M: Memory>(&mut self, memory: &M, place: Place) -> Result<(), Refused> {
        self.start_with(memory, place, true)
    }

    /// Like [`Ring::start`], for a guest that uses event indices if `events`, and the flags of both rings otherwise.
    ///
    /// # Errors
    /// [`Refused`]; the queue is stopped then, unless it was already running.
    pub fn start_with<M: Memory>(
        &mut self,
        memory: &M,
        place: Place,
        events: bool,
    ) -> Result<(), Refused> {
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
        queue.set_event_idx(events);
        queue.set_ready(true);
        let placed =
            placed.and(if queue.is_valid(memory) { Ok(()) } else { Err(Refused::Address) });
        self.state = if placed.is_ok() { State::Running } else { State::Stopped };
        self.returned = 0;
        self.ahead.clear();
        // The guest may have written another event index: set the one that asks for the first entry.
        self.listen(memory);
        placed
    }

    /// Stops the queue: its memory is no longer read or written.
    pub fn stop(&mut self) {
        self.state = State::Stopped;
        self.ahead.clear();
    }

    fn end<T>(&mut self, bad: Bad) -> Option<T> {
        self.state = State::Ended(bad);
        None
    }

    /// The next entry of a running queue: its head for [`Ring::put`], and the guest's request. A bad entry ends the
    /// queue.
    pub fn next<M: Memory>(&mut self, memory: &M) -> Option<(u16, Chain)> {
        if self.state != State::Running {
            return None;
        }
        self.ahead.pop_front().or_else(|| self.next_new(memory))
    }

    /// Makes an entry that [`Ring::next`] returned the next one again.
    pub fn unget(&mut self, head: u16, chain: Chain) {
        self.ahead.push_front((head, chain));
    }

    /// Looks at the next entries of a running queue, until they have `bytes` bytes to write together, or are `max`
    /// entries, or are all that the guest has added. They stay the next ones. A bad entry ends the queue.
    pub fn look_ahead<M: Memory>(
        &mut self,
        memory: &M,
        bytes: u64,
        max: usize,
    ) -> &mut VecDeque<(u16, Chain)> {
        let mut room: u64 = self.ahead.iter().map(|(_, chain)| chain.to_write()).sum();
        while room < bytes && self.ahead.len() < max && self.state == State::Running {
            let Some((head, chain)) = self.next_new(memory) else { break };
            room = room.saturating_add(chain.to_write());
            self.ahead.push_back((head, chain));
        }
        &mut self.ahead
    }

    /// Returns the next entries, which [`Ring::look_ahead`] showed, with as many bytes written as `written` has for
    /// each. The guest sees all of them or none: a driver that finds the first part of a frame expects the other parts.
    pub fn put_ahead<M: Memory>(&mut self, memory: &M, written: &[u32]) {
        let count = written.len().min(self.ahead.len());
        let entries: Vec<_> =
            self.ahead.iter().zip(written).map(|((head, _), written)| (*head, *written)).collect();
        let used = self.ahead.drain(..count).map(|(_, chain)| chain);
        self.spare.extend(used);
        self.put_all(memory, &entries);
    }

    fn next_new<M: Memory>(&mut self, memory: &M) -> Option<(u16, Chain)> {
        let mut chain = self.spare.pop().unwrap_or_default();
        chain.clear();
        let max = usize::from(self.queue.size());
        let descriptors = match self.queue.iter(memory) {
            Ok(mut entries) => entries.next(),
            Err(error) => return self.end(error.into()),
        };
        let Some(descriptors) = descriptors else {
            self.spare.push(chain);
            return None;
        };
        let head = descriptors.head_index();
        let mut last: Option<Descriptor> = None;
        for descriptor in descriptors {
            let (address, write) = (descriptor.addr(), descriptor.is_write_only());
            if let Err(bad) = chain.push(memory, address, descriptor.len(), write) {
                return self.end(bad);
            }
            if chain.pieces() > max {
                return self.end(Bad::Descriptor);
            }
            last = Some(descriptor);
        }
        // The iterator stops early at a bad descriptor: a complete chain ends with a descriptor that has no next.
        if last.is_none_or(|last| last.has_next()) {
            return self.end(Bad::Descriptor);
        }
        Some((head, chain))
    }

    /// Ends the queue, because a device found a broken rule in an entry.
    pub fn fail(&mut self, bad: Bad) {
        self.state = State::Ended(bad);
    }

    /// Returns an entry to the guest, with `written` bytes written.
    pub fn put<M: Memory>(&mut self, memory: &M, head: u16, chain: Chain, written: u32) {
        self.spare.push(chain);
        self.put_all(memory, &[(head, written)]);
    }

    /// Returns several entries, each with the bytes written. The guest sees all of them or none.
    fn put_all<M: Memory>(&mut self, memory: &M, entries: &[(u16, u32)]) {
        if self.state == State::Running && !entries.is_empty() {
            if let Err(bad) = self.try_put(memory, entries) {
                self.state = State::Ended(bad);
            }
        }
    }

    fn try_put<M: Memory>(&mut self, memory: &M, entries: &[(u16, u32)]) -> Result<(), Bad> {
        let (used, size) = (GuestAddress(self.queue.used_ring()), self.queue.size());
        let mut index = self.queue.next_used();
        for (head, written) in entries {
            // Section 2.7.8. The ring was checked when the queue started, so no sum overflows.
            let at = GuestAddress(used.0 + 4 + 8 * u64::from(index % size));
            let element = [u32::from(*head), *written].map(u32::to_le_bytes).concat();
            memory.write_slice(&element, at).map_err(|_| Bad::Address)?;
            index = index.wrapping_add(1);
        }
        self.queue.set_next_used(index);
        self.returned = self.returned.wrapping_add(entries.len() as u16);
        let at = GuestAddress(used.0 + 2);
        memory.store(index.to_le(), at, Ordering::Release).map_err(|_| Bad::Address)
    }

    /// Number of entries of the queue.
    pub fn size(&self) -> usize {
        usize::from(self.queue.size())
    }

    /// Whether the guest wants to be woken for the entries returned since the last call.
    pub fn wants_wake<M: Memory>(&mut self, memory: &M) -> bool {
        if self.state != State::Running {
            return false;
        }
        let (available, size) = (self.queue.avail_ring(), u64::from(self.queue.size()));
        let load = |offset| memory.load(GuestAddress(available + offset), Ordering::Relaxed);
        // The index of returned entries is written before the guest's wish is read (section 2.7.7.2).
        fence(Ordering::SeqCst);
        let returned = std::mem::take(&mut self.returned);
        let wake = if self.queue.event_idx_enabled() {
            load(4 + 2 * size).map(|event| {
                let since = self.queue.next_used().wrapping_sub(u16::from_le(event));
                since.wrapping_sub(1) < returned
            })
        } else {
            load(0).map(|flags| u16::from_le(flags) & VRING_AVAIL_F_NO_INTERRUPT as u16 == 0)
        };
        match wake {
            Ok(wake) => wake,
            Err(_) => self.end::<()>(Bad::Address).is_some(),
        }
    }

    /// Asks the guest to ring for its next entry. Returns whether the entry is already there, so that no ring will
    /// come.
    pub fn listen<M: Memory>(&mut self, memory: &M) -> bool {
        if self.state != State::Running {
            return false;
        }
        match self.queue.enable_notification(memory) {
            Ok(more) => more,
            Err(error) => self.end::<()>(error.into()).is_some(),
        }
    }

    /// Asks the guest to ring when it has added `count` more entries. Returns whether they are already there, so that
    /// no ring will come. A guest without event indices rings for each entry.
    pub fn listen_for<M: Memory>(&mut self, memory: &M, count: usize) -> bool {
        if count < 2 || !self.queue.event_idx_enabled() || self.state != State::Running {
            return self.listen(memory);
        }
        let (count, next) = (count as u16, self.queue.next_avail());
        let at = self.queue.used_ring() + 4 + 8 * u64::from(self.queue.size());
        let event = next.wrapping_add(count - 1).to_le();
        let there =
            memory.store(event, GuestAddress(at), Ordering::Relaxed).map_err(|_| Bad::Address);
        // The wish is written before the guest's index is read (section 2.7.10).
        fence(Ordering::SeqCst);
        let there = there.and_then(|()| Ok(self.queue.avail_idx(memory, Ordering::Acquire)?));
        match there {
            Ok(index) => index.0.wrapping_sub(next) >= count,
            Err(bad) => self.end::<()>(bad).is_some(),
        }
    }

    /// Serves entries by `with`, which returns the number of bytes that it wrote or the broken rule. It serves at most
    /// as many entries as the queue has, so that a guest that keeps adding entries cannot occupy the device for ever.
    pub fn serve<M: Memory>(
        &mut self,
        memory: &M,
        with: impl FnMut(&M, &mut Chain) -> Result<u32, Bad>,
    ) -> Served {
        self.serve_some(memory, self.size(), with)
    }

    /// Like [`Ring::serve`], but serves at most `max` entries.
    pub fn serve_some<M: Memory>(
        &mut self,
        memory: &M,
        max: usize,
        mut with: impl FnMut(&M, &mut Chain) -> Result<u32, Bad>,
    ) -> Served {
        if self.state != State::Running {
            return Served::default();
        }
        let mut count = 0;
        let mut more = true;
        while more && count < max {
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
