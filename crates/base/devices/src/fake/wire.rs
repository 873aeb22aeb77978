//! A backend in memory.

use crate::net::backend::{Backend, MAX_PACKET};
use crate::net::header::OFFLOADS;
use crate::net::HEADER;
use crate::worker::Bell;
use std::collections::VecDeque;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use vm_memory::VolatileSlice;

/// What the wire has.
#[derive(Debug, Default)]
pub struct State {
    /// Packets for the device.
    pub to_device: VecDeque<Vec<u8>>,
    /// Packets from the device.
    pub from_device: Vec<Vec<u8>>,
    /// The number of bytes that it takes before it blocks; `None` for any number.
    pub room: Option<usize>,
    /// It takes frames from the guest's memory, and gives them there.
    pub direct: bool,
    /// It takes datagrams that IP has to divide.
    pub datagrams: bool,
    /// Number of packets that it took from there.
    pub taken_directly: usize,
    /// Number of packets that it gave there.
    pub given_directly: usize,
    /// Number of calls that asked for a packet.
    pub asked: usize,
    /// No more packets will come.
    pub closed: bool,
}

/// A wire. Clones share its state.
#[derive(Clone, Debug)]
pub struct Wire(Arc<(Mutex<State>, Bell)>);

impl Wire {
    /// An empty wire.
    ///
    /// # Errors
    /// Linux refuses another descriptor.
    pub fn new() -> Result<Self> {
        Ok(Self(Arc::new((Mutex::default(), Bell::new()?))))
    }

    /// Its state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0 .0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Gives the device a packet, and wakes its thread.
    pub fn give(&self, packet: &[u8]) {
        self.state().to_device.push_back(packet.to_vec());
        self.0 .1.ring();
    }
}

impl Backend for Wire {
    fn offloads(&self) -> u64 {
        OFFLOADS
    }

    fn takes_datagrams(&self) -> bool {
        self.state().datagrams
    }

    fn send(&self, packet: &[u8], sent: &mut usize) -> Result<()> {
        let mut state = self.state();
        if state.closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if let Some(room) = &mut state.room {
            let taken = (*room).min(packet.len() - *sent);
            (*room, *sent) = (*room - taken, *sent + taken);
            if *sent < packet.len() {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        state.from_device.push(packet.to_vec());
        Ok(())
    }

    fn send_pieces(
        &self,
        header: &[u8; HEADER],
        frame: &[VolatileSlice<'_>],
    ) -> Option<Result<()>> {
        let mut state = self.state();
        if !state.direct {
            return None;
        }
        if state.closed {
            return Some(Err(ErrorKind::BrokenPipe.into()));
        }
        let mut packet = header.to_vec();
        for piece in frame {
            let at = packet.len();
            packet.resize(at + piece.len(), 0);
            piece.copy_to(&mut packet[at..]);
        }
        if state.room.is_some_and(|room| room < packet.len()) {
            return Some(Err(ErrorKind::WouldBlock.into()));
        }
        state.from_device.push(packet);
        state.taken_directly += 1;
        Some(Ok(()))
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        let mut state = self.state();
        state.asked += 1;
        if let Some(packet) = state.to_device.pop_front() {
            to[..packet.len()].copy_from_slice(&packet);
            return Ok(packet.len());
        }
        if state.closed {
            return Ok(0);
        }
        self.0 .1.clear();
        Err(ErrorKind::WouldBlock.into())
    }

    fn receive_pieces(
        &self,
        header: &mut [u8; HEADER],
        frame: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Option<Result<usize>> {
        if !self.state().direct {
            return None;
        }
        let mut packet = vec![0; MAX_PACKET];
        let bytes = match self.receive(&mut packet) {
            Ok(bytes) if bytes >= HEADER => bytes,
            other => return Some(other),
        };
        let (head, mut left) = packet[..bytes].split_at(HEADER);
        header.copy_from_slice(head);
        for piece in frame {
            let (now, later) = left.split_at(piece.len().min(left.len()));
            piece.copy_from(now);
            left = later;
        }
        rest[..left.len()].copy_from_slice(left);
        self.state().given_directly += 1;
        Some(Ok(bytes))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0 .1.as_fd()
    }
}
