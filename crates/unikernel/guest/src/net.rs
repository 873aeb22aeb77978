//! Ports of networks (Virtual I/O Device (VIRTIO) version 1.2, section 5.1): Ethernet frames there and back.

use crate::device::Device;
use crate::queue::{Queue, Shared};
use crate::{clock, sleep, Result};
use kyozon_abi::unikernel::DEVICE_NET;

/// Bytes before a frame.
const HEADER: usize = 12;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Entries of each queue, at most: frames that can be on their way.
const ENTRIES: u16 = 256;

const RECEIVE: u64 = 0;
const TRANSMIT: u64 = 1;

/// A queue whose entry `n` is of buffer `n`.
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

    /// Makes the buffer that comes next available, with so many bytes.
    fn add(&mut self, bytes: usize, write: bool) {
        let address = self.at(self.queue.next_entry()) as u64;
        // SAFETY: the buffer of an entry that is free; it is looked at only when it is free again.
        unsafe { self.queue.add(&[(address, bytes as u32, write)]) };
    }

    fn leak(self) {
        self.queue.leak();
        core::mem::forget(self.memory);
    }
}

/// A port.
#[derive(Debug)]
pub struct Port {
    device: Device,
    /// None once they were stopped.
    receive: Option<Buffers>,
    transmit: Option<Buffers>,
    /// Frames of which the device was not told.
    quiet: bool,
}

impl Port {
    /// The port on the network of this name, or with an empty name on the first.
    pub fn open(name: &str) -> Result<Self> {
        let device = Device::find(DEVICE_NET, name)?;
        let size = device.size(ENTRIES);
        let mut port = Self { device, receive: None, transmit: None, quiet: false };
        let bytes = (HEADER + port.most()).next_multiple_of(64);
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

    /// Its address.
    pub fn mac(&self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.device.info().config;
        [a, b, c, d, e, f]
    }

    /// Bytes of a frame behind its Ethernet header, at most.
    pub fn mtu(&self) -> usize {
        usize::from(u16::from_le_bytes([
            self.device.info().config[10],
            self.device.info().config[11],
        ]))
    }

    /// Bytes of a frame, at most.
    pub fn most(&self) -> usize {
        ETHERNET + self.mtu()
    }

    /// The next frame that came, to `with`.
    pub fn receive<R>(&mut self, with: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let buffers = self.receive.as_mut()?;
        let (number, bytes) = buffers.queue.take()?;
        let bytes = (bytes as usize).clamp(HEADER, buffers.bytes);
        // SAFETY: the device gave the buffer back, and wrote at most all of it, which was zero before.
        let frame = unsafe { core::slice::from_raw_parts(buffers.at(number), bytes) };
        let done = with(&frame[HEADER..]);
        let all = buffers.bytes;
        buffers.add(all, true);
        Some(done)
    }

    /// Whether a frame can be sent.
    pub fn can_send(&mut self) -> bool {
        let Some(buffers) = &mut self.transmit else { return false };
        while buffers.queue.take().is_some() {}
        buffers.queue.room() > 0
    }

    /// Sends a frame of so many bytes, at most [`Port::most`], which `fill` writes. `None`: not now, as all are on
    /// their way, or not at all.
    pub fn send<R>(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let done = self.send_quietly(bytes, fill);
        self.notify();
        done
    }

    /// As [`Port::send`], but the device may not see it before [`Port::notify`], which is called after the last frame.
    pub fn send_quietly<R>(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> R,
    ) -> Option<R> {
        if bytes > self.most() || !self.can_send() {
            return None;
        }
        let buffers = self.transmit.as_mut()?;
        let buffer = buffers.at(buffers.queue.next_entry());
        // SAFETY: the buffer of an entry that is free, which has room for that, and holds what was sent before, or
        // zeros. The header in front of it stays zero.
        let frame = unsafe { core::slice::from_raw_parts_mut(buffer.add(HEADER), bytes) };
        let done = fill(frame);
        buffers.add(HEADER + bytes, false);
        self.quiet = true;
        Some(done)
    }

    /// Says that there are frames to be sent, where the device wants that said.
    pub fn notify(&mut self) {
        if let (true, Some(buffers)) = (core::mem::take(&mut self.quiet), &mut self.transmit) {
            self.device.ring(TRANSMIT as u32, &mut buffers.queue);
        }
    }

    /// Sleeps until a frame came or the deadline, in nanoseconds of [`clock::now`](crate::clock::now), has passed. May
    /// return early.
    pub fn wait(&mut self, deadline: Option<u64>) {
        let queues = || [&self.receive, &self.transmit].into_iter().flatten().map(|b| &b.queue);
        // For frames to be sent, only where there is no room.
        let nothing = queues().enumerate().fold(true, |nothing, (number, queue)| {
            let wanted = number == 0 || queue.room() == 0;
            (!wanted || queue.listen()) && nothing
        });
        if nothing {
            sleep::park(deadline);
        }
        queues().for_each(Queue::ignore);
    }

    /// Whether the device takes and gives frames: it does not where it found something bad.
    pub fn runs(&self) -> bool {
        self.device.runs(RECEIVE) && self.device.runs(TRANSMIT)
    }
}

impl Port {
    /// Waits until the frames that were sent are the network's, or a second has passed: a device that is stopped takes
    /// no more of them, and a guest that ends has none.
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
            // A queue that was never started is nobody's.
            let Some(started) = buffers.take() else { continue };
            if !self.device.stop(number) {
                started.leak();
            }
        }
    }
}
