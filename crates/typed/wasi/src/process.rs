//! Calls on the process: arguments, environment, clocks, random bytes, signals.

use crate::host::Host;
use crate::memory::{check, write_u32, write_u64, Memory};
use crate::types::{Clock, Errno, Signal};
use crate::wasi::{Exit, Wasi};

/// A shell adds this to the number of the signal that ended a program.
const SIGNALLED: u32 = 128;

/// Bytes of strings, each with its terminating zero.
fn size(strings: &[&[u8]]) -> Result<u32, Errno> {
    let bytes: u64 = strings.iter().map(|string| string.len() as u64 + 1).sum();
    u32::try_from(bytes).map_err(|_| Errno::Overflow)
}

/// Delivers a signal with its default action, as programs have no handlers. The host does not send it: its process is
/// not the program's alone.
///
/// # Errors
///
/// The signal ends the program.
pub(crate) fn proc_raise(signal: u32) -> Result<Result<(), Errno>, Exit> {
    if signal == 0 {
        return Ok(Ok(()));
    }
    match Signal::from_number(signal) {
        None => Ok(Err(Errno::Inval)),
        Some(Signal::Chld | Signal::Cont | Signal::Urg | Signal::Winch) => Ok(Ok(())),
        Some(Signal::Stop | Signal::Tstp | Signal::Ttin | Signal::Ttou) => Ok(Err(Errno::Notsup)),
        Some(signal) => Err(Exit(SIGNALLED + signal.to_linux() as u32)),
    }
}

impl<H: Host> Wasi<'_, H> {
    pub(crate) fn strings_get(
        &self,
        strings: &[&[u8]],
        pointers: u32,
        buffer: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        check(memory, pointers, strings.len() as u32, 4)?;
        check(memory, buffer, size(strings)?, 1)?;
        let (mut pointer, mut at) = (pointers, buffer);
        for string in strings {
            write_u32(memory, pointer, at)?;
            memory.write(at, string)?;
            let end = at.wrapping_add(string.len() as u32);
            memory.write(end, &[0])?;
            at = end.wrapping_add(1);
            pointer = pointer.wrapping_add(4);
        }
        Ok(())
    }

    pub(crate) fn sizes_get(
        &self,
        strings: &[&[u8]],
        count: u32,
        bytes: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        write_u32(memory, count, strings.len() as u32)?;
        write_u32(memory, bytes, size(strings)?)
    }

    pub(crate) fn clock_res_get(
        &mut self,
        clock: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let clock = Clock::from_number(clock).ok_or(Errno::Inval)?;
        write_u64(memory, result, self.host.clock_resolution(clock)?)
    }

    /// Reads a clock. The precision that a program asks for may always be exceeded.
    pub(crate) fn clock_time_get(
        &mut self,
        clock: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let clock = Clock::from_number(clock).ok_or(Errno::Inval)?;
        write_u64(memory, result, self.host.clock_time(clock)?)
    }

    pub(crate) fn random_get(
        &mut self,
        mut at: u32,
        mut bytes: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        check(memory, at, bytes, 1)?;
        let mut chunk = [0; 256];
        while bytes > 0 {
            let length = bytes.min(chunk.len() as u32);
            let part = &mut chunk[..length as usize];
            self.host.random(part)?;
            memory.write(at, part)?;
            at = at.wrapping_add(length);
            bytes -= length;
        }
        Ok(())
    }
}
