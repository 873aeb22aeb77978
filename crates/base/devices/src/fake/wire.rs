//! A backend in memory.

use crate::net::backend::Backend;
use crate::net::header::OFFLOADS;
use crate::worker::Bell;
use std::collections::VecDeque;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the wire has.
#[derive(Debug, Default)]
pub struct State {
    /// Packets for the device.
    pub to_device: VecDeque<Vec<u8>>,
    /// Packets from the device.
    pub from_device: Vec<Vec<u8>>,
    /// The number of bytes that it takes before it blocks; `None` for any number.
    pub room: Option<usize>,
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

    fn fd(&self) -> BorrowedFd<'_> {
        self.0 .1.as_fd()
    }
}
