//! Network ports, which send and receive Ethernet frames (Virtual I/O Device (VIRTIO) version 1.2, section 5.1).

use crate::device::Device;
use crate::queue::{Queue, Shared};
use crate::{clock, sleep, Result};
use kyozon_abi::unikernel::DEVICE_NET;

/// Bytes of the VIRTIO header before a frame.
const HEADER: usize = 12;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Maximum entries of each queue, one for each frame in transit.
const ENTRIES: u16 = 256;

const RECEIVE: u64 = 0;
const TRANSMIT: u64 = 1;

/// A queue whose entry `n` uses buffer `n`.
#[derive(Debug)]
struct Buffers {
    queue: Queue,
    memory: Shared,
    bytes: usize,
    size: u16,
}

impl Buffers {
    fn new(size: u16, bytes: usize) -> Result<Self> {
        let memory = Shared::new(bytes * usize::from(size))?;
        Ok(Self { queue: Queue::new(size)?, memory, bytes, size })
    }

    fn at(&self, number: u16) -> *mut u8 {
        self.memory.at(usize::from(number) * self.bytes)
    }

    /// Makes the next buffer available to the device, with `bytes` bytes; `write` if the device writes to it.
    fn add(&mut self, bytes: usize, write: bool) {
        let address = self.at(self.queue.next_entry()) as u64;
        // SAFETY: the buffer belongs to a free entry; it is accessed only when that is free again.
        unsafe { self.queue.add(&[(address, bytes as u32, write)]) };
    }

    fn leak(self) {
        self.queue.leak();
        core::mem::forget(self.memory);
    }
}

/// A port on a network.
#[derive(Debug)]
pub struct Port {
    device: Device,
    /// `None` after they were stopped.
    receive: Option<Buffers>,
    transmit: Option<Buffers>,
    /// There are frames of which the device was not notified.
    unnotified: bool,
}

impl Port {
    /// Opens the port on the network of this name; if the name is empty, on the first network.
    ///
    /// # Errors
    ///
    /// [`Error::Name`](crate::Error::Name): there is no such network. [`Error::Exists`](crate::Error::Exists): the port
    /// is open already. [`Error::Full`](crate::Error::Full): no memory.
    pub fn open(name: &str) -> Result<Self> {
        let device = Device::find(DEVICE_NET, name)?;
        let size = device.queue_size(ENTRIES);
        let mut port = Self { device, receive: None, transmit: None, unnotified: false };
        let bytes = (HEADER + port.max_frame()).next_multiple_of(64);
        let mut receive = Buffers::new(size, bytes)?;
        let transmit = Buffers::new(size, bytes)?;
        transmit.queue.ignore();
        receive.queue.ignore();
        port.device.start(RECEIVE, &receive.queue)?;
        while receive.queue.room() > 0 {
            receive.add(bytes, true);
        }
        port.receive = Some(receive);
        port.device.start(TRANSMIT, &transmit.queue)?;
        port.transmit = Some(transmit);
        Ok(port)
    }

    /// The port's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.device.info().config;
        [a, b, c, d, e, f]
    }

    /// Maximum bytes of a frame after its Ethernet header.
    pub fn mtu(&self) -> usize {
        usize::from(u16::from_le_bytes([
            self.device.info().config[10],
            self.device.info().config[11],
        ]))
    }

    /// Maximum bytes of a frame.
    pub fn max_frame(&self) -> usize {
        ETHERNET + self.mtu()
    }

    /// Passes the next received frame to `with`. `None` if there is none.
    pub fn receive<R>(&mut self, with: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let buffers = self.receive.as_mut()?;
        let (number, bytes) = buffers.queue.take()?;
        let bytes = (bytes as usize).clamp(HEADER, buffers.bytes);
        // SAFETY: the device returned the buffer, wrote no more than its length, and it was zero before.
        let frame = unsafe { core::slice::from_raw_parts(buffers.at(number), bytes) };
        let done = with(&frame[HEADER..]);
        let all = buffers.bytes;
        buffers.add(all, true);
        Some(done)
    }

    /// Whether there is room for a frame to send.
    pub fn can_send(&mut self) -> bool {
        let Some(buffers) = &mut self.transmit else { return false };
        while buffers.queue.take().is_some() {}
        buffers.queue.room() > 0
    }

    /// Sends a frame of `bytes` bytes, at most [`Port::max_frame`], which `fill` writes. `None` if the frame is too
    /// long, or if all buffers are in transit.
    pub fn send<R>(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let done = self.send_quietly(bytes, fill);
        self.notify();
        done
    }

    /// [`Port::send`] without notifying the device: call [`Port::notify`] after the last frame.
    pub fn send_quietly<R>(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> R,
    ) -> Option<R> {
        if bytes > self.max_frame() || !self.can_send() {
            return None;
        }
        let buffers = self.transmit.as_mut()?;
        let buffer = buffers.at(buffers.queue.next_entry());
        // SAFETY: the buffer belongs to a free entry, has room for the frame, and holds zeros or an earlier frame. The
        // header before it stays zero.
        let frame = unsafe { core::slice::from_raw_parts_mut(buffer.add(HEADER), bytes) };
        let done = fill(frame);
        buffers.add(HEADER + bytes, false);
        self.unnotified = true;
        Some(done)
    }

    /// Notifies the device of frames to send, if it wants that.
    pub fn notify(&mut self) {
        if let (true, Some(buffers)) = (core::mem::take(&mut self.unnotified), &mut self.transmit) {
            self.device.ring(TRANSMIT as u32, &mut buffers.queue);
        }
    }

    /// Sleeps until a frame is received, or until the deadline in nanoseconds of [`clock::now`](crate::clock::now) has
    /// passed. May return early.
    pub fn wait(&mut self, deadline: Option<u64>) {
        let queues = || [&self.receive, &self.transmit].into_iter().flatten().map(|b| &b.queue);
        // The transmit queue counts only if it has no room.
        let nothing = queues().enumerate().fold(true, |nothing, (number, queue)| {
            let wanted = number == 0 || queue.room() == 0;
            (!wanted || queue.listen()) && nothing
        });
        if nothing {
            sleep::park(deadline);
        }
        queues().for_each(Queue::ignore);
    }

    /// Whether both queues run. The device stops a queue in which it finds a bad entry.
    pub fn runs(&self) -> bool {
        self.device.runs(RECEIVE) && self.device.runs(TRANSMIT)
    }
}

impl Port {
    /// Waits until the device has taken all sent frames, or a second has passed. A device that is stopped takes no more
    /// frames.
    pub fn flush(&mut self) {
        self.notify();
        let end = clock::now() + 1_000_000_000;
        let Some(buffers) = &mut self.transmit else { return };
        while buffers.queue.room() < buffers.size && clock::now() < end {
            if buffers.queue.listen() {
                sleep::park(Some(end));
            }
            while buffers.queue.take().is_some() {}
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.flush();
        for (number, buffers) in [(RECEIVE, &mut self.receive), (TRANSMIT, &mut self.transmit)] {
            // This queue was never started.
            let Some(started) = buffers.take() else { continue };
            if !self.device.stop(number) {
                started.leak();
            }
        }
    }
}
