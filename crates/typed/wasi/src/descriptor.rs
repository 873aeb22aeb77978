//! Calls on descriptors.

use crate::host::{Host, Status, Time};
use crate::memory::{check, write_u32, write_u64, Buffer, Memory};
use crate::table::Entry;
use crate::types::{Advice, Errno, FdFlags, FileType, Rights, TimeFlags, Whence};
use crate::wasi::{Wasi, BUFFERS};

/// Bytes of a directory entry before its name.
const ENTRY: usize = 24;
/// Bytes of a file's attributes.
pub(crate) const STATUS: u32 = 64;

/// Copies the description of buffers, and checks the copy.
pub(crate) fn load_buffers<'s, M: Memory + ?Sized>(
    buffers: &'s mut [Buffer; BUFFERS],
    at: u32,
    count: u32,
    memory: &M,
) -> Result<&'s [Buffer], Errno> {
    let buffers = buffers.get_mut(..count as usize).ok_or(Errno::Inval)?;
    check(memory, at, count, 8)?;
    let mut total = 0;
    for (n, buffer) in (0..).zip(&mut *buffers) {
        let mut bytes = [0; 8];
        memory.read(at.wrapping_add(8 * n), &mut bytes)?;
        let [a, b, c, d, e, f, g, h] = bytes;
        *buffer = Buffer {
            at: u32::from_le_bytes([a, b, c, d]),
            bytes: u32::from_le_bytes([e, f, g, h]),
        };
        check(memory, buffer.at, buffer.bytes, 1)?;
        total += u64::from(buffer.bytes);
    }
    // The result is a 32-bit number.
    if total > u64::from(u32::MAX) {
        return Err(Errno::Inval);
    }
    Ok(buffers)
}

/// What to do with the times of a file.
pub(crate) fn times(accessed: u64, modified: u64, flags: u32) -> Result<(Time, Time), Errno> {
    let flags = TimeFlags::from_number(flags.into()).ok_or(Errno::Inval)?;
    let time = |value, set, now| match (flags.contains(set), flags.contains(now)) {
        (false, false) => Ok(Time::Keep),
        (true, false) => Ok(Time::At(value)),
        (false, true) => Ok(Time::Now),
        (true, true) => Err(Errno::Inval),
    };
    Ok((
        time(accessed, TimeFlags::ATIM, TimeFlags::ATIM_NOW)?,
        time(modified, TimeFlags::MTIM, TimeFlags::MTIM_NOW)?,
    ))
}

/// Writes a file's attributes.
pub(crate) fn write_status<M: Memory + ?Sized>(
    memory: &mut M,
    at: u32,
    status: &Status,
) -> Result<(), Errno> {
    let mut bytes = [0; STATUS as usize];
    let fields = [
        status.device,
        status.inode,
        status.kind as u64,
        status.links,
        status.size,
        status.accessed,
        status.modified,
        status.changed,
    ];
    for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    memory.write(at, &bytes)
}

/// An offset in a file. Hosts count in signed numbers.
fn offset(offset: u64) -> Result<u64, Errno> {
    i64::try_from(offset).map(|_| offset).map_err(|_| Errno::Inval)
}

/// Fails if data cannot be accessed at this offset; without one, the descriptor's own is meant.
fn may_access_at<T>(entry: &Entry<T>, from: Option<u64>) -> Result<(), Errno> {
    if let Some(from) = from {
        seekable(entry.kind)?;
        entry.need(Rights::FD_SEEK)?;
        offset(from)?;
    }
    Ok(())
}

impl<H: Host> Wasi<'_, H> {
    pub(crate) fn fd_advise(
        &mut self,
        fd: u32,
        from: u64,
        bytes: u64,
        advice: u32,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?;
        let advice = Advice::from_number(advice).ok_or(Errno::Inval)?;
        if matches!(entry.kind, FileType::Unknown) || entry.is_socket() {
            return Err(Errno::Spipe);
        }
        entry.need(Rights::FD_ADVISE)?;
        offset(from)?;
        offset(bytes)?;
        self.host.advise(&entry.handle, from, bytes, advice)
    }

    pub(crate) fn fd_allocate(&mut self, fd: u32, from: u64, bytes: u64) -> Result<(), Errno> {
        let entry = self.table.get(fd)?.need(Rights::FD_ALLOCATE)?;
        if bytes == 0 {
            return Err(Errno::Inval);
        }
        let end = from.checked_add(bytes).ok_or(Errno::Fbig)?;
        offset(end).map_err(|_| Errno::Fbig)?;
        self.host.allocate(&entry.handle, from, bytes)
    }

    pub(crate) fn fd_close(&mut self, fd: u32) -> Result<(), Errno> {
        let entry = self.table.take(fd)?;
        self.host.close(entry.handle)
    }

    pub(crate) fn fd_sync(&mut self, fd: u32, data_only: bool) -> Result<(), Errno> {
        let right = if data_only { Rights::FD_DATASYNC } else { Rights::FD_SYNC };
        let entry = self.table.get(fd)?.need(right)?;
        self.host.sync(&entry.handle, data_only)
    }

    pub(crate) fn fd_fdstat_get(
        &mut self,
        fd: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?;
        let mut bytes = [0; 24];
        bytes[0] = entry.kind as u8;
        bytes[2..4].copy_from_slice(&entry.flags.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&entry.base.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&entry.inheriting.0.to_le_bytes());
        memory.write(result, &bytes)
    }

    pub(crate) fn fd_fdstat_set_flags(&mut self, fd: u32, flags: u32) -> Result<(), Errno> {
        let entry = self.table.get_mut(fd)?;
        let flags = FdFlags::from_number(flags.into()).ok_or(Errno::Inval)?;
        entry.need(Rights::FD_FDSTAT_SET_FLAGS)?;
        let changeable = FdFlags::APPEND.or(FdFlags::NONBLOCK);
        if flags.without(changeable) != entry.flags.without(changeable) {
            return Err(Errno::Notsup);
        }
        self.host.set_flags(&entry.handle, flags)?;
        entry.flags = flags;
        Ok(())
    }

    pub(crate) fn fd_fdstat_set_rights(
        &mut self,
        fd: u32,
        base: u64,
        inheriting: u64,
    ) -> Result<(), Errno> {
        let entry = self.table.get_mut(fd)?;
        let (base, inheriting) = (Rights(base), Rights(inheriting));
        if !entry.base.contains(base) || !entry.inheriting.contains(inheriting) {
            return Err(Errno::Notcapable);
        }
        (entry.base, entry.inheriting) = (base, inheriting);
        Ok(())
    }

    pub(crate) fn fd_filestat_get(
        &mut self,
        fd: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?.need(Rights::FD_FILESTAT_GET)?;
        check(memory, result, 1, STATUS)?;
        let status = self.host.status(&entry.handle)?;
        write_status(memory, result, &status)
    }

    pub(crate) fn fd_filestat_set_size(&mut self, fd: u32, size: u64) -> Result<(), Errno> {
        let entry = self.table.get(fd)?.need(Rights::FD_FILESTAT_SET_SIZE)?;
        offset(size).map_err(|_| Errno::Fbig)?;
        self.host.set_size(&entry.handle, size)
    }

    pub(crate) fn fd_filestat_set_times(
        &mut self,
        fd: u32,
        accessed: u64,
        modified: u64,
        flags: u32,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?.need(Rights::FD_FILESTAT_SET_TIMES)?;
        let (accessed, modified) = times(accessed, modified, flags)?;
        self.host.set_times(&entry.handle, accessed, modified)
    }

    pub(crate) fn fd_read(
        &mut self,
        fd: u32,
        buffers: u32,
        count: u32,
        from: Option<u64>,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?;
        if entry.kind == FileType::Directory {
            return Err(Errno::Isdir);
        }
        entry.need(Rights::FD_READ)?;
        may_access_at(entry, from)?;
        check(memory, result, 1, 4)?;
        let buffers = load_buffers(&mut self.scratch.buffers, buffers, count, memory)?;
        let bytes = self.host.read(&entry.handle, memory, buffers, from)?;
        write_u32(memory, result, bytes)
    }

    pub(crate) fn fd_write(
        &mut self,
        fd: u32,
        buffers: u32,
        count: u32,
        from: Option<u64>,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?.need(Rights::FD_WRITE)?;
        may_access_at(entry, from)?;
        check(memory, result, 1, 4)?;
        let buffers = load_buffers(&mut self.scratch.buffers, buffers, count, memory)?;
        let bytes = self.host.write(&entry.handle, memory, buffers, from)?;
        write_u32(memory, result, bytes)
    }

    /// The name of a directory that the program was given. Programs look for them until they get this error.
    fn preopen(&self, fd: u32) -> Result<&[u8], Errno> {
        let preopen = self.table.get(fd)?.preopen.and_then(|n| self.program.preopens.get(n));
        preopen.copied().ok_or(Errno::Badf)
    }

    pub(crate) fn fd_prestat_get(
        &mut self,
        fd: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let name = self.preopen(fd)?;
        let length = u32::try_from(name.len()).map_err(|_| Errno::Overflow)?;
        // The first byte is the type: a directory is the only one, 0.
        write_u64(memory, result, u64::from(length) << 32)
    }

    pub(crate) fn fd_prestat_dir_name(
        &mut self,
        fd: u32,
        at: u32,
        bytes: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let name = self.preopen(fd)?;
        if name.len() as u64 > u64::from(bytes) {
            return Err(Errno::Nametoolong);
        }
        memory.write(at, name)
    }

    pub(crate) fn fd_readdir(
        &mut self,
        fd: u32,
        buffer: u32,
        bytes: u32,
        cookie: u64,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.directory(fd, Rights::FD_READDIR)?;
        check(memory, buffer, bytes, 1)?;
        check(memory, result, 1, 4)?;
        let mut used = 0;
        let mut written = Ok(());
        // Puts what fits; the last entry may be cut off anywhere.
        let mut put = |memory: &mut H::Memory, data: &[u8]| {
            let room = (bytes - used).min(data.len() as u32);
            memory.write(buffer.wrapping_add(used), &data[..room as usize])?;
            used += room;
            Ok(used < bytes)
        };
        self.host.read_directory(&entry.handle, cookie, &mut |entry| {
            let mut header = [0; ENTRY];
            header[..8].copy_from_slice(&entry.next.to_le_bytes());
            // The parent of a directory may be outside of what the program was given.
            let inode = if entry.name == b".." { 0 } else { entry.inode };
            header[8..16].copy_from_slice(&inode.to_le_bytes());
            header[16..20].copy_from_slice(&(entry.name.len() as u32).to_le_bytes());
            header[20] = entry.kind as u8;
            let more = put(memory, &header).and_then(|more| match more {
                true => put(memory, entry.name),
                false => Ok(false),
            });
            written = more.map(|_| ());
            more.unwrap_or(false)
        })?;
        written?;
        write_u32(memory, result, used)
    }

    pub(crate) fn fd_renumber(&mut self, from: u32, to: u32) -> Result<(), Errno> {
        self.table.get(from)?;
        self.table.get(to)?;
        if from == to {
            return Ok(());
        }
        let entry = self.table.take(from)?;
        match self.table.put(to, entry)? {
            Some(replaced) => self.host.close(replaced.handle),
            None => Ok(()),
        }
    }

    pub(crate) fn fd_seek(
        &mut self,
        fd: u32,
        distance: i64,
        whence: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.get(fd)?;
        let whence = Whence::from_number(whence).ok_or(Errno::Inval)?;
        seekable(entry.kind)?;
        let asks = distance == 0 && whence == Whence::Cur && entry.base.contains(Rights::FD_TELL);
        if !asks {
            entry.need(Rights::FD_SEEK)?;
        }
        check(memory, result, 1, 8)?;
        let offset = self.host.seek(&entry.handle, distance, whence)?;
        write_u64(memory, result, offset)
    }

    pub(crate) fn fd_tell(
        &mut self,
        fd: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        self.fd_seek(fd, 0, Whence::Cur as u32, result, memory)
    }
}

/// Fails for types that have no offset.
fn seekable(kind: FileType) -> Result<(), Errno> {
    match kind {
        FileType::Unknown | FileType::SocketDgram | FileType::SocketStream => Err(Errno::Spipe),
        FileType::Directory => Err(Errno::Isdir),
        _ => Ok(()),
    }
}
