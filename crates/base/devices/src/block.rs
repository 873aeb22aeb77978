//! A block device (section 5.2).

mod device;
mod errors;
mod ranges;

pub use device::BlockDevice;
pub use errors::{Errors, Failure};

use crate::chain::Chain;
use crate::disk::{Disk, SECTOR};
use crate::ring::{Bad, Ring, Served, FEATURES, MAX_SIZE};
use crate::Memory;
use std::sync::Arc;
use virtio_bindings::virtio_blk::*;

/// Maximum bytes of one request's data; a longer request fails. An extended device takes [`Block::max_request`].
pub const MAX_REQUEST: u64 = 4 << 20;
/// Bytes of a request's header (section 5.2.6).
const HEADER: usize = 16;
/// Maximum number of pieces of data that an extended device asks for: a queue's entries without header and status.
const PIECES: u32 = MAX_SIZE as u32 - 2;
/// Maximum bytes of such a piece.
const PIECE_BYTES: u32 = 256 << 10;

/// A block device on top of a disk.
pub struct Block {
    disk: Box<dyn Disk>,
    read_only: bool,
    id: [u8; VIRTIO_BLK_ID_BYTES as usize],
    extended: bool,
    /// The features that the guest accepted.
    accepted: u64,
    errors: Arc<Errors>,
    /// See [`Block::ends_at_error`].
    ends_at_error: bool,
    /// Nothing is written any more.
    ended: bool,
}

/// Why a request fails. With [`Failed::Status`] its queue continues.
enum Failed {
    Bad(Bad),
    Status(u32),
}

/// A request that makes no sense.
const SENSELESS: Failed = Failed::Status(VIRTIO_BLK_S_IOERR);
/// A request of a kind that was not offered.
const UNSUPPORTED: Failed = Failed::Status(VIRTIO_BLK_S_UNSUPP);

impl From<Bad> for Failed {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
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
        let errors = Arc::default();
        let mut block = Self {
            disk,
            read_only,
            id,
            extended: false,
            accepted: 0,
            errors,
            ends_at_error: false,
            ended: false,
        };
        block.accepted = block.features();
        block
    }

    /// The same device, which also states its sizes and takes discards and writes of zeros.
    pub fn extended(mut self) -> Self {
        self.extended = true;
        self.accepted = self.features();
        self
    }

    /// The same device, which writes nothing more after the first write that failed. For file systems that go on: Linux
    /// 6.12's ext4 declares its journal empty when it is unmounted, even if blocks of it have not reached their places.
    /// So the file system is as after a loss of power.
    pub fn ends_at_error(mut self) -> Self {
        self.ends_at_error = true;
        self
    }

    /// Feature bits (section 5.2.3).
    pub fn features(&self) -> u64 {
        let mut features = FEATURES | 1 << VIRTIO_BLK_F_FLUSH;
        if self.read_only {
            features |= 1 << VIRTIO_BLK_F_RO;
        }
        if self.extended {
            features |= 1 << VIRTIO_BLK_F_SIZE_MAX | 1 << VIRTIO_BLK_F_SEG_MAX;
            features |= 1 << VIRTIO_BLK_F_BLK_SIZE | 1 << VIRTIO_BLK_F_TOPOLOGY;
            if self.disk.limits().holes && !self.read_only {
                features |= 1 << VIRTIO_BLK_F_DISCARD | 1 << VIRTIO_BLK_F_WRITE_ZEROES;
            }
        }
        features
    }

    /// Takes over the features that the guest accepted. Without [`VIRTIO_BLK_F_FLUSH`] each write is flushed (section
    /// 5.2.6.2).
    pub fn accept(&mut self, features: u64) {
        self.accepted = features & self.features();
    }

    fn has(&self, feature: u32) -> bool {
        self.accepted >> feature & 1 != 0
    }

    /// Maximum bytes of one request's data.
    pub fn max_request(&self) -> u64 {
        if self.extended {
            u64::from(PIECES) * u64::from(PIECE_BYTES)
        } else {
            MAX_REQUEST
        }
    }

    /// The host's errors, which the guest sees only as failed requests.
    pub fn errors(&self) -> Arc<Errors> {
        self.errors.clone()
    }

    /// The configuration space (section 5.2.4): the number of sectors, but no field that needs an absent feature bit.
    pub fn config(&self) -> Vec<u8> {
        let mut config = (self.disk.bytes() / SECTOR).to_le_bytes().to_vec();
        if self.extended {
            let limits = self.disk.limits();
            let per_block = (limits.physical / limits.block).max(1).ilog2() as u8;
            config.extend(PIECE_BYTES.to_le_bytes());
            config.extend(PIECES.to_le_bytes());
            // No geometry.
            config.extend([0; 4]);
            config.extend(limits.block.to_le_bytes());
            // Topology: blocks per physical block as a power of two, offset, blocks per minimal and optimal request.
            config.extend([per_block, 0, 1 << per_block.min(7), 0, 0, 0, 0, 0]);
            // No choice of a cache's mode, one queue.
            config.extend([0, 0, 1, 0]);
            config.extend(ranges::config(limits.physical));
        }
        config
    }

    /// Serves the entries in the queue.
    pub fn serve<M: Memory>(&mut self, ring: &mut Ring, memory: &M) -> Served {
        ring.serve(memory, |memory, chain| self.request(memory, chain))
    }

    /// Serves at most `max` entries.
    pub fn serve_some<M: Memory>(&mut self, ring: &mut Ring, memory: &M, max: usize) -> Served {
        ring.serve_some(memory, max, |memory, chain| self.request(memory, chain))
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

    /// Byte of a range's first sector, if the disk has the range.
    fn inside(&self, sector: u64, bytes: u64) -> Option<u64> {
        let at = sector.checked_mul(SECTOR)?;
        let fits = at.checked_add(bytes)? <= self.disk.bytes();
        (fits && bytes.is_multiple_of(SECTOR)).then_some(at)
    }

    fn data<M: Memory>(
        &mut self,
        memory: &M,
        chain: &mut Chain,
        kind: u32,
        sector: u64,
        room: u64,
    ) -> Result<u64, Failed> {
        let max = self.max_request();
        let inside = |block: &Self, bytes: u64| {
            block.inside(sector, bytes).filter(|_| bytes <= max).ok_or(SENSELESS)
        };
        match kind {
            VIRTIO_BLK_T_IN => {
                let at = inside(self, room)?;
                let done = self.disk.read(at, &chain.writable(memory, room)?);
                self.errors.check("read", at, room, done)?;
                Ok(room)
            }
            // Section 5.2.6.2: a write to a read-only disk fails and writes nothing.
            VIRTIO_BLK_T_OUT if self.read_only => Err(SENSELESS),
            VIRTIO_BLK_T_OUT
            | VIRTIO_BLK_T_FLUSH
            | VIRTIO_BLK_T_DISCARD
            | VIRTIO_BLK_T_WRITE_ZEROES
                if self.ended =>
            {
                Err(SENSELESS)
            }
            VIRTIO_BLK_T_OUT => {
                let bytes = chain.to_read();
                let at = inside(self, bytes)?;
                let done = self.disk.write(at, &chain.readable(memory, bytes)?);
                self.ended |= self.ends_at_error && done.is_err();
                self.errors.check("write", at, bytes, done)?;
                if !self.has(VIRTIO_BLK_F_FLUSH) {
                    self.flush()?;
                }
                Ok(0)
            }
            VIRTIO_BLK_T_FLUSH => self.flush(),
            VIRTIO_BLK_T_GET_ID => {
                let bytes = self.id.len().min(room as usize);
                chain.write(memory, &self.id[..bytes])?;
                Ok(bytes as u64)
            }
            VIRTIO_BLK_T_DISCARD if self.has(VIRTIO_BLK_F_DISCARD) => {
                self.discard(memory, chain).map(|()| 0)
            }
            VIRTIO_BLK_T_WRITE_ZEROES if self.has(VIRTIO_BLK_F_WRITE_ZEROES) => {
                self.write_zeros(memory, chain).map(|()| 0)
            }
            _ => Err(UNSUPPORTED),
        }
    }

    /// Flushes the disk. If that fails, writes that the guest has been told of may be lost, and the next flush need not
    /// fail. So nothing more is written.
    fn flush(&mut self) -> Result<u64, Failed> {
        let done = self.disk.flush();
        self.ended |= done.is_err();
        self.errors.check("flush", 0, 0, done)?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests;
