//! A block device (section 5.2).

use crate::chain::Chain;
use crate::disk::{Disk, SECTOR};
use crate::ring::{Bad, Ring, Served, FEATURES};
use crate::Memory;
use virtio_bindings::virtio_blk::*;

/// Maximum bytes of one request's data; a longer request fails.
pub const MAX_REQUEST: u64 = 4 << 20;
/// Bytes of a request's header (section 5.2.6).
const HEADER: usize = 16;

/// A block device on top of a disk.
pub struct Block {
    disk: Box<dyn Disk>,
    read_only: bool,
    id: [u8; VIRTIO_BLK_ID_BYTES as usize],
}

/// Why a request fails. With [`Failed::Status`] its queue continues.
enum Failed {
    Bad(Bad),
    Status(u32),
}

impl From<Bad> for Failed {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<std::io::Error> for Failed {
    fn from(_: std::io::Error) -> Self {
        Self::Status(VIRTIO_BLK_S_IOERR)
    }
}

impl Block {
    /// Number of queues of the device.
    pub const QUEUES: usize = 1;

    /// A device on `disk` with this name, of which only the first 20 bytes count.
    pub fn new(disk: Box<dyn Disk>, read_only: bool, name: &str) -> Self {
        let mut id = [0; VIRTIO_BLK_ID_BYTES as usize];
        let bytes = name.len().min(id.len());
        id[..bytes].copy_from_slice(&name.as_bytes()[..bytes]);
        Self { disk, read_only, id }
    }

    /// Feature bits (section 5.2.3).
    pub fn features(&self) -> u64 {
        let read_only = if self.read_only { 1 << VIRTIO_BLK_F_RO } else { 0 };
        FEATURES | 1 << VIRTIO_BLK_F_FLUSH | read_only
    }

    /// The configuration space (section 5.2.4): the number of sectors, but no field that needs an absent feature bit.
    pub fn config(&self) -> Vec<u8> {
        (self.disk.bytes() / SECTOR).to_le_bytes().to_vec()
    }

    /// Serves the entries in the queue.
    pub fn serve<M: Memory>(&mut self, ring: &mut Ring, memory: &M) -> Served {
        ring.serve(memory, |memory, chain| self.request(memory, chain))
    }

    /// Serves one request. Returns the bytes written, including the status.
    fn request<M: Memory>(&mut self, memory: &M, chain: &mut Chain) -> Result<u32, Bad> {
        let mut header = [0; HEADER];
        chain.read(memory, &mut header)?;
        let [a, b, c, d, _, _, _, _, sector @ ..] = header;
        let kind = u32::from_le_bytes([a, b, c, d]);
        // The status takes the last byte to write.
        let room = chain.to_write().checked_sub(1).ok_or(Bad::Short)?;
        let done = self.data(memory, chain, kind, u64::from_le_bytes(sector), room);
        let (status, written) = match done {
            Ok(written) => (VIRTIO_BLK_S_OK, written),
            Err(Failed::Status(status)) => (status, 0),
            Err(Failed::Bad(bad)) => return Err(bad),
        };
        chain.skip_writes_but(1);
        chain.write(memory, &[status as u8])?;
        // The length counts bytes written from the first writable byte on without a gap (section 2.7.8): with a gap, it
        // is 0.
        Ok(if written == room { written as u32 + 1 } else { 0 })
    }

    fn data<M: Memory>(
        &mut self,
        memory: &M,
        chain: &mut Chain,
        kind: u32,
        sector: u64,
        room: u64,
    ) -> Result<u64, Failed> {
        let disk = &mut *self.disk;
        let fails = Failed::Status(VIRTIO_BLK_S_IOERR);
        let inside = |bytes: u64| {
            let at = sector.checked_mul(SECTOR)?;
            let fits = at.checked_add(bytes)? <= disk.bytes();
            (fits && bytes.is_multiple_of(SECTOR) && bytes <= MAX_REQUEST).then_some(at)
        };
        match kind {
            VIRTIO_BLK_T_IN => {
                let mut at = inside(room).ok_or(fails)?;
                chain.write_with(memory, room as usize, |mut slice| {
                    disk.read(at, &mut slice)?;
                    at += slice.len() as u64;
                    Ok::<_, Failed>(())
                })?;
                Ok(room)
            }
            // Section 5.2.6.2: a write to a read-only disk fails and writes nothing.
            VIRTIO_BLK_T_OUT if self.read_only => Err(fails),
            VIRTIO_BLK_T_OUT => {
                let bytes = chain.to_read();
                let mut at = inside(bytes).ok_or(fails)?;
                chain.read_with(memory, bytes as usize, |slice| {
                    disk.write(at, &slice)?;
                    at += slice.len() as u64;
                    Ok::<_, Failed>(())
                })?;
                Ok(0)
            }
            VIRTIO_BLK_T_FLUSH => {
                disk.flush()?;
                Ok(0)
            }
            VIRTIO_BLK_T_GET_ID => {
                let bytes = self.id.len().min(room as usize);
                chain.write(memory, &self.id[..bytes])?;
                Ok(bytes as u64)
            }
            _ => Err(Failed::Status(VIRTIO_BLK_S_UNSUPP)),
        }
    }
}

#[cfg(test)]
mod tests;
