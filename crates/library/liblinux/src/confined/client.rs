//! A thread of a confined kernel. The child's answers are hostile: every length is checked here.

use super::area::DATA_BYTES;
use super::slot::{Argument, Kind, Request, ARGUMENTS};
use super::Shared;
use crate::calls::{Arg, Calls, Result};
use crate::Errno;
use std::marker::PhantomData;
use std::sync::Arc;

/// Alignment of each argument's bytes: that of any structure.
const ALIGN: usize = 16;

/// A task of a confined kernel. It ends when dropped.
pub struct Client {
    shared: Arc<Shared>,
    slot: usize,
    /// A slot has one request at a time.
    _one_thread: PhantomData<*mut ()>,
}

/// Calls that may transfer less than they were asked to: descriptor, buffer, length.
fn may_be_short(number: i64) -> bool {
    matches!(number, libc::SYS_read | libc::SYS_write | libc::SYS_pread64 | libc::SYS_pwrite64)
}

/// The argument with the buffer, if a call returns the number of its bytes that it used.
fn counted(number: i64) -> Option<usize> {
    match number {
        libc::SYS_getdents64
        | libc::SYS_flistxattr
        | libc::SYS_listxattr
        | libc::SYS_llistxattr => Some(1),
        libc::SYS_readlinkat | libc::SYS_fgetxattr | libc::SYS_getxattr | libc::SYS_lgetxattr => {
            Some(2)
        }
        _ => may_be_short(number).then_some(1),
    }
}

/// Where the arguments' bytes go. A transfer that does not fit becomes shorter; another call fails.
fn place(number: i64, arguments: &[Arg<'_>]) -> Result<[Argument; ARGUMENTS]> {
    let mut placed = [Argument::Number(0); ARGUMENTS];
    if arguments.len() > ARGUMENTS {
        return Err(Errno(libc::EINVAL));
    }
    let mut used = 0usize;
    for (index, (placed, argument)) in placed.iter_mut().zip(arguments).enumerate() {
        let (bytes, written) = match argument {
            Arg::Number(number) => {
                *placed = Argument::Number(*number);
                continue;
            }
            Arg::In(bytes) => (bytes.len(), false),
            Arg::InOut(bytes) => (bytes.len(), false),
            Arg::Out(bytes) => (bytes.len(), true),
        };
        let bytes = if may_be_short(number) { bytes.min(DATA_BYTES) } else { bytes };
        if bytes > DATA_BYTES - used {
            return Err(Errno(libc::E2BIG));
        }
        *placed = if written && counted(number) != Some(index) {
            Argument::Zeroed(used, bytes)
        } else {
            Argument::Bytes(used, bytes)
        };
        used = (used + bytes).next_multiple_of(ALIGN).min(DATA_BYTES);
    }
    if let (true, Argument::Bytes(_, bytes), Argument::Number(length)) =
        (may_be_short(number), placed[1], placed[2])
    {
        placed[2] = Argument::Number(length.min(bytes as u64));
    }
    Ok(placed)
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>, slot: usize) -> Self {
        Self { shared, slot, _one_thread: PhantomData }
    }

    fn get(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        if self.shared.area.get(self.slot, offset, to) {
            Ok(())
        } else {
            Err(Errno(libc::EIO))
        }
    }

    /// Halts the kernel. A child that halts ends instead of answering.
    pub(super) fn halt(&self) -> Result<u64> {
        self.shared.request(self.slot, &Request::plain(Kind::Halt, 0))
    }

    /// The text of a disk's last error on the host, as the child says it.
    pub fn disk_error(&self, disk: usize) -> Option<String> {
        let request = Request::plain(Kind::DiskError, disk as u64);
        let bytes = self.shared.request(self.slot, &request).ok()?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        let mut text = vec![0; bytes.min(1024)];
        self.get(0, &mut text).ok()?;
        Some(super::text::printable(&text))
    }
}

impl Calls for Client {
    fn call(&self, number: i64, arguments: &mut [Arg<'_>]) -> Result<u64> {
        let placed = place(number, arguments)?;
        for (argument, placed) in arguments.iter().zip(placed) {
            let bytes: &[u8] = match argument {
                Arg::In(bytes) => bytes,
                Arg::InOut(bytes) => bytes,
                Arg::Out(_) | Arg::Number(_) => continue,
            };
            if let Argument::Bytes(offset, count) = placed {
                if !self.shared.area.put(self.slot, offset, &bytes[..count]) {
                    return Err(Errno(libc::E2BIG));
                }
            }
        }
        let request = Request { kind: Kind::Call, number: number as u64, arguments: placed };
        let result = self.shared.request(self.slot, &request)?;
        let buffer = counted(number).map(|index| placed[index]);
        if let Some(Argument::Bytes(_, bytes)) = buffer {
            // With no buffer, a call that reads an attribute returns its size.
            if result > bytes as u64 && (bytes > 0 || may_be_short(number)) {
                return Err(self.shared.distrust());
            }
        }
        for (argument, placed) in arguments.iter_mut().zip(placed) {
            let bytes = match (argument, placed) {
                (Arg::Out(bytes), _) => bytes,
                (Arg::InOut(bytes), Argument::Bytes(offset, _)) => {
                    self.get(offset, bytes)?;
                    continue;
                }
                _ => continue,
            };
            match placed {
                Argument::Bytes(offset, count) => {
                    let count = count.min(usize::try_from(result).unwrap_or(count));
                    self.get(offset, &mut bytes[..count])?;
                }
                Argument::Zeroed(offset, _) => self.get(offset, bytes)?,
                Argument::Number(_) => (),
            }
        }
        Ok(result)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.release(self.slot);
    }
}

#[cfg(test)]
mod tests;
