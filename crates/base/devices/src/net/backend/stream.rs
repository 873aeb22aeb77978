//! A stream of frames as passt and QEMU (`-netdev stream`) use it: a length of 4 bytes, big-endian, before each frame.
//! It has no headers, so nothing is left to the receiver.

use super::super::HEADER;
use super::{Backend, MAX_PACKET};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use rustix::net::{recv, sendmsg, RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;

/// Bytes of a length.
const LENGTH: usize = 4;

/// A connected stream.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
    received: Mutex<Received>,
}

/// Received bytes that are not passed on yet: those from `start` to `end`.
#[derive(Debug)]
struct Received {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for Received {
    fn default() -> Self {
        // Room for several frames, so that one call receives them.
        Self { bytes: vec![0; 4 * MAX_PACKET], start: 0, end: 0 }
    }
}

impl Received {
    /// The next complete frame; `None` if more bytes must come.
    fn frame(&mut self) -> Result<Option<&[u8]>> {
        let rest = &self.bytes[self.start..self.end];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_PACKET - HEADER {
            let text = format!("the other end announces a frame of {length} bytes");
            return Err(Error::new(ErrorKind::InvalidData, text));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let at = self.start + LENGTH;
        self.start = at + length;
        Ok(Some(&self.bytes[at..at + length]))
    }

    /// Room for more bytes, of which an incomplete frame leaves enough.
    fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        &mut self.bytes[self.end..]
    }
}

impl Stream {
    /// Connects to a UNIX socket that a process listens on.
    ///
    /// # Errors
    /// There is no such socket, or nobody listens.
    pub fn connect(path: &Path) -> Result<Self> {
        Self::new(UnixStream::connect(path)?.into())
    }

    /// A connected stream socket.
    ///
    /// # Errors
    /// It is no descriptor of a file whose flags can be set.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        fcntl_setfl(&socket, fcntl_getfl(&socket)? | OFlags::NONBLOCK)?;
        Ok(Self { socket, received: Mutex::default() })
    }
}

impl Backend for Stream {
    fn send(&self, packet: &[u8], sent: &mut usize) -> Result<()> {
        let frame = packet.get(HEADER..).ok_or(ErrorKind::InvalidInput)?;
        let length = (frame.len() as u32).to_be_bytes();
        while *sent < LENGTH + frame.len() {
            let pieces = [
                IoSlice::new(length.get(*sent..).unwrap_or(&[])),
                IoSlice::new(&frame[sent.saturating_sub(LENGTH)..]),
            ];
            let mut ancillary = SendAncillaryBuffer::default();
            *sent += sendmsg(&self.socket, &pieces, &mut ancillary, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        let mut received = self.received.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(frame) = received.frame()? {
                let bytes = HEADER + frame.len();
                let to = to.get_mut(..bytes).ok_or(ErrorKind::InvalidInput)?;
                to[..HEADER].fill(0);
                to[HEADER..].copy_from_slice(frame);
                return Ok(bytes);
            }
            let (count, _) = recv(&self.socket, received.room(), RecvFlags::empty())?;
            if count == 0 {
                return Ok(0);
            }
            received.end += count;
        }
    }

    fn holds_packets(&self) -> bool {
        true
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
