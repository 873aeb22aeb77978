//! Disks (Virtual I/O Device (VIRTIO) version 1.2, section 5.2).

use crate::device::Device;
use crate::queue::{Queue, Shared};
use crate::{boot, sleep, Error, Result};
use kyozon_abi::unikernel::DEVICE_BLOCK;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Bytes of one request.
const REQUEST: usize = 1 << 20;
/// Bytes of the memory for data that is not in the heap.
const BOUNCE: usize = 64 << 10;
/// Where the status and that memory lie, behind the header of a request.
const STATUS: usize = 16;
const DATA: usize = 512;

const FEATURE_READ_ONLY: u32 = 5;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;

/// How often it looks before it sleeps.
const SPINS: u32 = 200;

/// A disk. One request is made at a time.
#[derive(Debug)]
pub struct Disk {
    device: Device,
    /// None once it was stopped.
    queue: Option<Queue>,
    request: Option<Shared>,
}

impl Disk {
    /// The disk of this name, or with an empty name the first.
    pub fn open(name: &str) -> Result<Self> {
        let device = Device::find(DEVICE_BLOCK, name)?;
        let queue = Queue::new(device.size(4).max(4))?;
        let request = Some(Shared::new(DATA + BOUNCE)?);
        queue.ignore();
        device.start(0, &queue)?;
        Ok(Self { device, queue: Some(queue), request })
    }

    /// Its sectors.
    pub fn sectors(&self) -> u64 {
        u64::from_le_bytes(*self.device.info().config.first_chunk().unwrap_or(&[0; 8]))
    }

    /// Whether it can only be read.
    pub fn is_read_only(&self) -> bool {
        self.device.has(FEATURE_READ_ONLY)
    }

    /// Reads whole sectors, from this one on. [`Error::Argument`]: not whole ones, or not there, or the host failed.
    pub fn read(&mut self, sector: u64, to: &mut [u8]) -> Result<()> {
        let mut sector = sector;
        let most = if in_heap(to) { REQUEST } else { BOUNCE };
        for piece in to.chunks_mut(most) {
            let bytes = piece.len();
            if in_heap(piece) {
                let address = piece.as_mut_ptr() as u64;
                // SAFETY: the piece is the caller's alone until the request is over.
                unsafe { self.ask(READ, sector, Some((address, bytes as u32, true))) }?;
            } else {
                let bounce = self.bounce()?;
                // SAFETY: memory of this disk's, which nobody has a reference to, and of which `piece` is no part.
                unsafe {
                    self.ask(READ, sector, Some((bounce as u64, bytes as u32, true)))?;
                    core::ptr::copy_nonoverlapping(bounce, piece.as_mut_ptr(), bytes);
                }
            }
            sector += (bytes / SECTOR) as u64;
        }
        Ok(())
    }

    /// Writes whole sectors, from this one on. It may not be on the disk before [`Disk::flush`]. Errors as of
    /// [`Disk::read`]; [`Error::Right`]: the disk can only be read.
    pub fn write(&mut self, sector: u64, from: &[u8]) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::Right);
        }
        let mut sector = sector;
        let most = if in_heap(from) { REQUEST } else { BOUNCE };
        for piece in from.chunks(most) {
            let bytes = piece.len() as u32;
            let mut address = piece.as_ptr() as u64;
            if !in_heap(piece) {
                let bounce = self.bounce()?;
                // SAFETY: memory of this disk's, which nobody has a reference to, and of which `piece` is no part.
                unsafe { core::ptr::copy_nonoverlapping(piece.as_ptr(), bounce, piece.len()) };
                address = bounce as u64;
            }
            // SAFETY: the device only reads, and nobody writes there meanwhile.
            unsafe { self.ask(WRITE, sector, Some((address, bytes, false))) }?;
            sector += u64::from(bytes) / SECTOR as u64;
        }
        Ok(())
    }

    /// Returns when all that was written before is on the disk.
    pub fn flush(&mut self) -> Result<()> {
        // SAFETY: no memory but the disk's own.
        unsafe { self.ask(FLUSH, 0, None) }
    }

    fn bounce(&self) -> Result<*mut u8> {
        Ok(self.request.as_ref().ok_or(Error::Unsupported)?.at(DATA))
    }

    /// Makes a request, and waits until it is over.
    ///
    /// # Safety
    ///
    /// The data is the device's until then.
    unsafe fn ask(&mut self, kind: u32, sector: u64, data: Option<(u64, u32, bool)>) -> Result<()> {
        let queue = self.queue.as_mut().ok_or(Error::Unsupported)?;
        let request = self.request.as_ref().ok_or(Error::Unsupported)?;
        let status = request.at(STATUS);
        let pieces = [(request.at(0) as u64, 16, false), (status as u64, 1, true)];
        let pieces = match data {
            Some(data) => &[pieces[0], data, pieces[1]][..],
            None => &pieces[..],
        };
        // SAFETY: the request's memory is this disk's, and no request is on its way; the data is the caller's promise.
        unsafe {
            request.at(0).cast::<u32>().write_volatile(kind);
            request.at(8).cast::<u64>().write_volatile(sector);
            status.write_volatile(0xff);
            queue.add(pieces).ok_or(Error::Full)?;
        }
        self.device.ring(0, queue);
        self.wait()?;
        // SAFETY: the device gave it back.
        match unsafe { status.read_volatile() } {
            0 => Ok(()),
            2 => Err(Error::Unsupported),
            _ => Err(Error::Argument),
        }
    }

    fn wait(&mut self) -> Result<()> {
        let queue = self.queue.as_mut().ok_or(Error::Unsupported)?;
        for _ in 0..SPINS {
            if queue.take().is_some() {
                return Ok(());
            }
            core::hint::spin_loop();
        }
        while queue.take().is_none() {
            if queue.listen() {
                sleep::park(None);
            }
            if queue.is_empty() && !self.device.runs(0) {
                // Nothing of it is touched any more.
                return Err(Error::Unsupported);
            }
        }
        Ok(())
    }
}

/// Whether all of it lies where devices can reach it.
fn in_heap(bytes: &[u8]) -> bool {
    let heap = boot().heap;
    let offset = (bytes.as_ptr() as u64).checked_sub(heap.base);
    offset.is_some_and(|offset| offset + bytes.len() as u64 <= heap.bytes)
}

impl Drop for Disk {
    fn drop(&mut self) {
        if !self.device.stop(0) {
            if let Some(queue) = self.queue.take() {
                queue.leak();
            }
            core::mem::forget(self.request.take());
        }
    }
}
