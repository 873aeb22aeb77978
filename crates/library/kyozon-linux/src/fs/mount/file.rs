//! Requests about open files.

use super::server::Server;
use super::worker::Worker;
use liblinux::calls::inodes::Inodes;
use liblinux::calls::Result;
use liblinux::Errno;

/// Bytes of the largest read or write.
pub const MOST: u32 = 1 << 20;
/// Bytes that one request copies from file to file. More would keep the kernel busy for too long.
const MOST_COPIED: u64 = 64 << 20;

/// What the kernel has to know of how the host opens a file. The host does the rest: it knows the offset at which a
/// file is appended to, and reads and writes without its cache.
pub fn flags(how: i32) -> i32 {
    how & (libc::O_ACCMODE | libc::O_SYNC | libc::O_DSYNC | libc::O_NOATIME)
}

impl Server {
    /// open
    pub fn open_file(&self, worker: &Worker, node: u64, how: i32) -> Result<u64> {
        let inode = self.inode(worker, node)?;
        let fd = worker.open_again(inode.fd, flags(how) | libc::O_NONBLOCK)?;
        Ok(self.handles.add(fd))
    }

    /// opendir
    pub fn open_folder(&self, worker: &Worker, node: u64) -> Result<u64> {
        let inode = self.inode(worker, node)?;
        let fd = worker.open_again(inode.fd, libc::O_RDONLY | libc::O_DIRECTORY)?;
        Ok(self.handles.add(fd))
    }

    /// read: fills the worker's buffer, unless the file ends. Returns how many bytes are there.
    pub fn read(&self, worker: &Worker, file: u64, offset: u64, bytes: u32) -> Result<usize> {
        let open = self.handles.get(file)?;
        let mut buffer = worker.buffer.borrow_mut();
        let bytes = bytes.min(MOST) as usize;
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let mut have = 0;
        while have < bytes {
            let at = offset.saturating_add(have as u64);
            match worker.calls.pread(open.fd(), &mut buffer[have..bytes], at) {
                Ok(0) => break,
                Ok(count) => have += count,
                Err(_) if have > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }

    /// write. Returns how many bytes were written.
    pub fn write(&self, worker: &Worker, file: u64, offset: u64, data: &[u8]) -> Result<usize> {
        let open = self.handles.get(file)?;
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            let write = || worker.calls.pwrite(open.fd(), &data[done..], at);
            match self.closing.with_room(&*worker.calls, write) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// flush: what close(2) reports
    pub fn flush(&self, worker: &Worker, file: u64) -> Result<()> {
        let open = self.handles.get(file)?;
        let again = worker.calls.duplicate(open.fd())?;
        worker.calls.close(again)
    }

    /// fsync and fsyncdir
    pub fn sync(&self, worker: &Worker, file: u64, only_data: bool) -> Result<()> {
        let open = self.handles.get(file)?;
        if only_data {
            worker.calls.sync_data(open.fd())
        } else {
            worker.calls.fsync(open.fd())
        }
    }

    /// fallocate
    pub fn allocate(
        &self,
        worker: &Worker,
        file: u64,
        how: i32,
        at: u64,
        bytes: u64,
    ) -> Result<()> {
        let open = self.handles.get(file)?;
        let allocate = || worker.calls.allocate(open.fd(), how, at, bytes);
        self.closing.with_room(&*worker.calls, allocate)
    }

    /// lseek: where data or a hole is
    pub fn seek(&self, worker: &Worker, file: u64, offset: i64, whence: i32) -> Result<i64> {
        if !matches!(whence, libc::SEEK_DATA | libc::SEEK_HOLE) {
            return Err(Errno(libc::EINVAL));
        }
        let open = self.handles.get(file)?;
        let found = worker.calls.seek(open.fd(), offset, whence)?;
        i64::try_from(found).map_err(|_| Errno(libc::EIO))
    }

    /// copy_file_range. Returns how many bytes were copied.
    pub fn copy(
        &self,
        worker: &Worker,
        (from, at): (u64, u64),
        (to, target): (u64, u64),
        bytes: u64,
    ) -> Result<u32> {
        let (from, to) = (self.handles.get(from)?, self.handles.get(to)?);
        let bytes = bytes.min(MOST_COPIED);
        let copied = worker.calls.copy_range(from.fd(), at, to.fd(), target, bytes)?;
        Ok(copied as u32)
    }
}
