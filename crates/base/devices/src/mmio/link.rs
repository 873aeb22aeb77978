//! What a device shares with its transport: queues, the guest's memory, interrupts.

use crate::ring::{Place, Ring, State};
use crate::Memory;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use virtio_bindings::virtio_config::VIRTIO_CONFIG_S_NEEDS_RESET;
use virtio_bindings::virtio_mmio::{VIRTIO_MMIO_INT_CONFIG, VIRTIO_MMIO_INT_VRING};

/// Raises the device's interrupt. Any thread calls it, without a lock of this crate.
pub type Raise = Box<dyn Fn() + Send + Sync>;

/// The link between a device and its transport.
pub struct Link<M> {
    memory: M,
    queues: Vec<Mutex<Ring>>,
    /// The driver has started the device.
    live: AtomicBool,
    /// A queue ended or could not start: only a reset helps.
    broken: AtomicBool,
    /// Reasons of interrupts that the guest did not acknowledge.
    pending: AtomicU32,
    generation: AtomicU32,
    raise: Raise,
}

impl<M: Memory> Link<M> {
    pub(crate) fn new(memory: M, queues: usize, raise: Raise) -> Self {
        Self {
            memory,
            queues: (0..queues).map(|_| Mutex::default()).collect(),
            live: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            pending: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            raise,
        }
    }

    fn ring(&self, queue: usize) -> Option<MutexGuard<'_, Ring>> {
        Some(self.queues.get(queue)?.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// Calls `serve` with a queue, if the guest has started the device and the queue runs. `serve` returns its result,
    /// and whether the guest wants to be woken. It must not wait for long: a guest that stops the queue waits for it.
    pub fn serve<T>(
        &self,
        queue: usize,
        serve: impl FnOnce(&mut Ring, &M) -> (T, bool),
    ) -> Option<T> {
        let mut ring = self.ring(queue)?;
        if !self.is_live() || ring.state() != State::Running {
            return None;
        }
        let (result, wake) = serve(&mut ring, &self.memory);
        let ended = ring.state() != State::Running;
        let mut reasons = if wake { VIRTIO_MMIO_INT_VRING } else { 0 };
        if ended && !self.broken.swap(true, SeqCst) {
            reasons |= VIRTIO_MMIO_INT_CONFIG;
        }
        // Before the lock is given up: after a reset, no reason may be left.
        self.pending.fetch_or(reasons, SeqCst);
        drop(ring);
        if reasons != 0 {
            (self.raise)();
        }
        Some(result)
    }

    /// Asks the guest to ring for the queue's next entry.
    pub fn listen(&self, queue: usize) {
        self.serve(queue, |ring, memory| (ring.listen(memory), false));
    }

    /// Whether the guest has started the device.
    pub fn is_live(&self) -> bool {
        self.live.load(SeqCst)
    }

    /// Reports a change of the configuration space to the guest.
    pub fn config_changed(&self) {
        self.generation.fetch_add(1, SeqCst);
        if self.is_live() {
            self.interrupt(VIRTIO_MMIO_INT_CONFIG);
        }
    }

    fn interrupt(&self, reason: u32) {
        self.pending.fetch_or(reason, SeqCst);
        (self.raise)();
    }

    /// Reports that the device works again only after a reset (section 2.1.2).
    pub(super) fn need_reset(&self) {
        let before = self.broken.swap(true, SeqCst);
        if !before && self.is_live() {
            self.interrupt(VIRTIO_MMIO_INT_CONFIG);
        }
    }

    pub(crate) fn start(&self) {
        self.live.store(true, SeqCst);
    }

    /// Stops all queues. No thread uses the guest's memory afterwards.
    pub(crate) fn stop(&self) {
        self.live.store(false, SeqCst);
        (0..self.queues.len()).for_each(|queue| self.stop_queue(queue));
        self.broken.store(false, SeqCst);
        self.pending.store(0, SeqCst);
    }

    /// Stops a queue. No thread uses its memory afterwards.
    pub(crate) fn stop_queue(&self, queue: usize) {
        if let Some(mut ring) = self.ring(queue) {
            ring.stop();
        }
    }

    /// Starts a queue. Returns whether its size and addresses are valid.
    pub(crate) fn start_queue(&self, queue: usize, place: Place, events: bool) -> bool {
        let started = |mut ring: MutexGuard<'_, Ring>| ring.start_with(&self.memory, place, events);
        self.ring(queue).is_some_and(|ring| started(ring).is_ok())
    }

    pub(super) fn status(&self) -> u32 {
        if self.broken.load(SeqCst) {
            VIRTIO_CONFIG_S_NEEDS_RESET
        } else {
            0
        }
    }

    pub(crate) fn pending(&self) -> u32 {
        self.pending.load(SeqCst)
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation.load(SeqCst)
    }

    pub(super) fn acknowledge(&self, reasons: u32) {
        self.pending.fetch_and(!reasons, SeqCst);
    }
}
