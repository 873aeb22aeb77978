//! Messages with descriptors, over a `SOCK_SEQPACKET` socket (unix(7)): one message is one packet, JSON.

use crate::error::Context;
use crate::message::MESSAGE_BYTES;
use crate::{Error, Result};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::time::Timespec;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum descriptors of a message: all tokens and all regions.
const DESCRIPTORS: usize = 96;

/// One end of a connection.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl Socket {
    /// Sends a message, without waiting for room.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`]: the other end is closed. [`Error::System`]: there is no room, or the call failed.
    pub fn send<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let bytes =
            serde_json::to_vec(message).map_err(io::Error::from).context("write a message")?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut room);
        if !descriptors.is_empty() {
            let fits = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            fits.then_some(()).ok_or(io::Error::other("too many descriptors")).context("send")?;
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut ancillary, flags) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    return Err(Error::Gone);
                }
                Err(error) => return Err(error).context("send a message to the group"),
            }
        }
    }

    /// Receives the next message and its descriptors, within `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`]: the other end is closed. [`Error::System`]: the time is over, the packet is no message, or a
    /// call failed.
    pub fn receive_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
    ) -> Result<(T, Vec<OwnedFd>)> {
        if !self.readable(Some(limit))? {
            return Err(io::Error::from(io::ErrorKind::TimedOut)).context("reach the group");
        }
        self.receive()
    }

    /// Waits until a message or the end can be received. Returns false if `limit` passes first.
    ///
    /// # Errors
    ///
    /// [`Error::System`]: the call failed.
    pub fn readable(&self, limit: Option<Duration>) -> Result<bool> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let time = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, time.as_ref()) {
                Ok(ready) => return Ok(ready != 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("wait for the group"),
            }
        }
    }

    /// Waits for the next message, and receives it with its descriptors.
    ///
    /// # Errors
    ///
    /// Those of [`Socket::receive_within`], without a limit.
    pub fn receive<T: DeserializeOwned>(&self) -> Result<(T, Vec<OwnedFd>)> {
        let mut bytes = vec![0; MESSAGE_BYTES];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut room);
        let got = loop {
            let to = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, to, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Ok(got) => break got,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Err(Error::Gone),
                Err(error) => return Err(error).context("receive from the group"),
            }
        };
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                descriptors.extend(fds);
            }
        }
        if got.bytes == 0 {
            return Err(Error::Gone);
        }
        if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::other("too long, or too many open files"))
                .context("read a message");
        }
        let message = serde_json::from_slice(&bytes[..got.bytes]);
        Ok((message.map_err(io::Error::from).context("read a message")?, descriptors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToKeeper;
    use rustix::net::{send, socketpair, AddressFamily, SocketFlags, SocketType};

    fn pair() -> (Socket, Socket) {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        (a.into(), b.into())
    }

    #[test]
    fn messages_and_descriptors_arrive() {
        let (a, b) = pair();
        let (x, _y) = pair();
        a.send(&ToKeeper::Taken { serial: 7 }, &[x.as_fd(), a.as_fd()]).unwrap();
        a.send(&ToKeeper::List, &[]).unwrap();
        let (first, fds) = b.receive::<ToKeeper>().unwrap();
        assert_eq!((first, fds.len()), (ToKeeper::Taken { serial: 7 }, 2));
        assert_eq!(b.receive::<ToKeeper>().unwrap().0, ToKeeper::List);
        assert!(b.receive_within::<ToKeeper>(Duration::from_millis(1)).is_err());
        drop((a, fds));
        assert!(matches!(b.receive::<ToKeeper>(), Err(Error::Gone)));
    }

    #[test]
    fn invalid_packets_are_errors() {
        let (a, b) = pair();
        for bytes in [&b"{"[..], b"\"Nothing\"", b"\xff", &[b' '; MESSAGE_BYTES + 1]] {
            send(a.as_fd(), bytes, SendFlags::DONTWAIT).unwrap();
            assert!(matches!(b.receive::<ToKeeper>(), Err(Error::System(..))));
        }
    }
}
