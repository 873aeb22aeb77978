//! Disks (Virtual I/O Device (VIRTIO) version 1.2, section 5.2).

use crate::device::Device;
use crate::queue::{Queue, Shared};
use crate::start::own_boot;
use crate::{sleep, Error, Result};
use kyozon_abi::unikernel::DEVICE_BLOCK;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Maximum bytes of one request.
const REQUEST: usize = 1 << 20;
/// Bytes of the buffer for data outside the heap, which the device cannot reach.
const BOUNCE: usize = 64 << 10;
/// Offsets of the status and of that buffer in a request's memory; the header is at 0.
const STATUS: usize = 16;
const DATA: usize = 512;

const FEATURE_READ_ONLY: u32 = 5;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;

/// Checks of the queue before the guest sleeps.
const SPINS: u32 = 200;

/// A disk. It makes one request at a time.
#[derive(Debug)]
pub struct Disk {
    device: Device,
    /// `None` after it was stopped.
    queue: Option<Queue>,
    request: Option<Shared>,
}

impl Disk {
    /// Opens the disk of this name; if the name is empty, the first disk.
    ///
    /// # Errors
    ///
    /// [`Error::Name`]: there is no such disk. [`Error::Exists`]: it is open already. [`Error::Full`]: no memory.
    pub fn open(name: &str) -> Result<Self> {
        let device = Device::find(DEVICE_BLOCK, name)?;
        let queue = Queue::new(device.queue_size(4).max(4))?;
        let request = Some(Shared::new(DATA + BOUNCE)?);
        queue.ignore();
        device.start(0, &queue)?;
        Ok(Self { device, queue: Some(queue), request })
    }

    /// The number of sectors.
    pub fn sectors(&self) -> u64 {
        u64::from_le_bytes(*self.device.info().config.first_chunk().unwrap_or(&[0; 8]))
    }

    /// Whether the disk is read-only.
    pub fn is_read_only(&self) -> bool {
        self.device.has(FEATURE_READ_ONLY)
    }

    /// Reads whole sectors, from sector `sector` on.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`]: the buffer is not of whole sectors, the disk has no such sectors, or the host reports an
    /// error.
    pub fn read(&mut self, sector: u64, to: &mut [u8]) -> Result<()> {
        let mut sector = sector;
        let max = if in_heap(to) { REQUEST } else { BOUNCE };
        for piece in to.chunks_mut(max) {
            let bytes = piece.len();
            if in_heap(piece) {
                let address = piece.as_mut_ptr() as u64;
                // SAFETY: only the caller has the piece until the request is over.
                unsafe { self.request(READ, sector, Some((address, bytes as u32, true))) }?;
            } else {
                let bounce = self.bounce()?;
                // SAFETY: memory of this disk without references to it, which does not overlap `piece`.
                unsafe {
                    self.request(READ, sector, Some((bounce as u64, bytes as u32, true)))?;
                    core::ptr::copy_nonoverlapping(bounce, piece.as_mut_ptr(), bytes);
                }
            }
            sector += (bytes / SECTOR) as u64;
        }
        Ok(())
    }

    /// Writes whole sectors, from sector `sector` on. They may reach the disk as late as in [`Disk::flush`].
    ///
    /// # Errors
    ///
    /// Those of [`Disk::read`]; [`Error::Right`]: the disk is read-only.
    pub fn write(&mut self, sector: u64, from: &[u8]) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::Right);
        }
        let mut sector = sector;
        let max = if in_heap(from) { REQUEST } else { BOUNCE };
        for piece in from.chunks(max) {
            let bytes = piece.len() as u32;
            let mut address = piece.as_ptr() as u64;
            if !in_heap(piece) {
                let bounce = self.bounce()?;
                // SAFETY: memory of this disk without references to it, which does not overlap `piece`.
                unsafe { core::ptr::copy_nonoverlapping(piece.as_ptr(), bounce, piece.len()) };
                address = bounce as u64;
            }
            // SAFETY: the device only reads, and no code writes to the data meanwhile.
            unsafe { self.request(WRITE, sector, Some((address, bytes, false))) }?;
            sector += u64::from(bytes) / SECTOR as u64;
        }
        Ok(())
    }

    /// Waits until all earlier writes are on the disk.
    ///
    /// # Errors
    ///
    /// The host reports an error.
    pub fn flush(&mut self) -> Result<()> {
        // SAFETY: the request uses only the disk's own memory.
        unsafe { self.request(FLUSH, 0, None) }
    }

    fn bounce(&self) -> Result<*mut u8> {
        Ok(self.request.as_ref().ok_or(Error::Unsupported)?.at(DATA))
    }

    /// Makes a request, and waits until it is over. `data` is an address, its bytes, and whether the device writes
    /// there.
    ///
    /// # Safety
    ///
    /// The data belongs to the device until this returns.
    unsafe fn request(
        &mut self,
        kind: u32,
        sector: u64,
        data: Option<(u64, u32, bool)>,
    ) -> Result<()> {
        let queue = self.queue.as_mut().ok_or(Error::Unsupported)?;
        let request = self.request.as_ref().ok_or(Error::Unsupported)?;
        let status = request.at(STATUS);
        let pieces = [(request.at(0) as u64, 16, false), (status as u64, 1, true)];
        let pieces = match data {
            Some(data) => &[pieces[0], data, pieces[1]][..],
            None => &pieces[..],
        };
        // SAFETY: the request's memory belongs to this disk, which has no other request; the data is the caller's
        // promise.
        unsafe {
            request.at(0).cast::<u32>().write_volatile(kind);
            request.at(8).cast::<u64>().write_volatile(sector);
            status.write_volatile(0xff);
            queue.add(pieces).ok_or(Error::Full)?;
        }
        self.device.ring(0, queue);
        self.wait()?;
        // SAFETY: the device has completed the request.
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
                // The queue was stopped, so the device touches none of its memory any more.
                return Err(Error::Unsupported);
            }
        }
        Ok(())
    }
}

/// Whether the bytes lie in the heap, where devices can reach them.
fn in_heap(bytes: &[u8]) -> bool {
    let heap = own_boot().heap;
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
