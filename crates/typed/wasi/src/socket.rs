//! Calls on sockets. Preview 1 cannot make any: a program is given them, or accepts them from one that listens.

use crate::descriptor::load_buffers;
use crate::host::Host;
use crate::memory::{check, write_u32, Memory};
use crate::table::Entry;
use crate::types::{Errno, FdFlags, ReceiveFlags, Rights, ShutdownFlags};
use crate::wasi::Wasi;

/// The address and number of buffers.
type Buffers = (u32, u32);

/// Flags by which `sock_recv` says that a message was cut off.
const TRUNCATED: u16 = 1;

impl<H: Host> Wasi<'_, H> {
    pub(crate) fn sock_accept(
        &mut self,
        fd: u32,
        flags: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.socket(fd, Rights::SOCK_ACCEPT)?;
        let flags = FdFlags::from_number(flags.into()).ok_or(Errno::Inval)?;
        if !FdFlags::NONBLOCK.contains(flags) {
            return Err(Errno::Inval);
        }
        check(memory, result, 1, 4)?;
        let number = self.table.vacant()?;
        let handle = self.host.accept(&entry.handle, flags)?;
        let rights = entry.inheriting.and(Rights::SOCKET);
        let accepted = Entry { flags, base: rights, ..Entry::new(handle, entry.kind) };
        write_u32(memory, result, number)?;
        self.table.put(number, Entry { inheriting: rights, ..accepted })?;
        Ok(())
    }

    pub(crate) fn sock_recv(
        &mut self,
        fd: u32,
        (buffers, count): Buffers,
        flags: u32,
        result: u32,
        result_flags: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.socket(fd, Rights::FD_READ)?;
        let flags = ReceiveFlags::from_number(flags.into()).ok_or(Errno::Inval)?;
        check(memory, result, 1, 4)?;
        check(memory, result_flags, 1, 2)?;
        let buffers = load_buffers(&mut self.scratch.buffers, buffers, count, memory)?;
        let (bytes, cut) = self.host.receive(&entry.handle, memory, buffers, flags)?;
        let flags = if cut { TRUNCATED } else { 0 };
        memory.write(result_flags, &flags.to_le_bytes())?;
        write_u32(memory, result, bytes)
    }

    pub(crate) fn sock_send(
        &mut self,
        fd: u32,
        (buffers, count): Buffers,
        flags: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let entry = self.table.socket(fd, Rights::FD_WRITE)?;
        // The interface defines none.
        if flags != 0 {
            return Err(Errno::Inval);
        }
        check(memory, result, 1, 4)?;
        let buffers = load_buffers(&mut self.scratch.buffers, buffers, count, memory)?;
        let bytes = self.host.send(&entry.handle, memory, buffers)?;
        write_u32(memory, result, bytes)
    }

    pub(crate) fn sock_shutdown(&mut self, fd: u32, how: u32) -> Result<(), Errno> {
        let entry = self.table.socket(fd, Rights::SOCK_SHUTDOWN)?;
        let how = ShutdownFlags::from_number(how.into()).ok_or(Errno::Inval)?;
        if how == ShutdownFlags(0) {
            return Err(Errno::Inval);
        }
        self.host.shutdown(&entry.handle, how)
    }
}
