//! A socket that keeps packets apart (`SOCK_SEQPACKET`). Its other end is another device, in this process or another
//! one. Packets keep their headers, so that no side computes checksums or divides frames.

use super::super::header::OFFLOADS;
use super::Backend;
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use rustix::net::{
    recv, send, socketpair, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
};
use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One end.
#[derive(Debug)]
pub struct Packet(OwnedFd);

/// Two ends that are connected.
///
/// # Errors
/// Linux refuses another descriptor.
pub fn pair() -> Result<(Packet, Packet)> {
    let flags = SocketFlags::CLOEXEC;
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((Packet::new(a)?, Packet::new(b)?))
}

impl Packet {
    /// An end that another process made.
    ///
    /// # Errors
    /// It is no descriptor of a file whose flags can be set.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        fcntl_setfl(&socket, fcntl_getfl(&socket)? | OFlags::NONBLOCK)?;
        Ok(Self(socket))
    }

    /// The socket, to give it to another process.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl Backend for Packet {
    fn offloads(&self) -> u64 {
        OFFLOADS
    }

    fn send(&self, packet: &[u8], _: &mut usize) -> Result<()> {
        send(&self.0, packet, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        loop {
            // With `TRUNC` Linux returns the length of the packet, even if `to` is shorter.
            let (_, bytes) = recv(&self.0, &mut *to, RecvFlags::TRUNC)?;
            if bytes <= to.len() {
                return Ok(bytes);
            }
            // Another process sent a packet that is too long; it is gone.
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests;
