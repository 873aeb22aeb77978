//! Devices of guests: what `kyozon-devices` models, with a thread each, and what guests ask about them.
//!
//! | module | what it does |
//! |---|---|
//! | [`heap`] | the memory that a device reaches |
//! | [`line`] | a queue and its doorbell |
//! | [`network`] | ports, and where frames go |
//! | [`host`] | a network's port on the host: a UNIX socket or a TAP device |
//! | [`options`] | what the operator asked for |
//!
//! A device is its model, its queues, and a thread that waits for their doorbells; the thread of a network's first port
//! has its port on the host, too. A queue is used by one thread at a time: its lock is held while entries are served,
//! and while the guest starts or stops it.

pub mod heap;
pub mod host;
pub mod line;
pub mod network;
pub mod options;

use crate::error::{ensure, Context, Result};
use crate::region;
use crate::signals::poll_fd;
use heap::Heap;
use host::{Host, Inward};
use kyozon_abi::unikernel::*;
use kyozon_devices::block::Block;
pub use kyozon_devices::net::MTU;
use kyozon_devices::net::{Net, TRANSMIT};
use kyozon_devices::ring::{Place, Refused, Served, State, MAX_SIZE};
use line::Line;
use network::Network;
use rustix::event::poll;
use std::sync::{Arc, Mutex};
use vmm_sys_util::eventfd::EventFd;

/// What a device is.
pub enum Model {
    /// A disk.
    Block(Mutex<Block>),
    /// A port of a network, with its number there.
    Net(Net, Arc<Network>, usize),
}

/// A device of one guest.
pub struct Device {
    name: String,
    model: Model,
    lines: Vec<Arc<Line>>,
    heap: Heap,
    token: EventFd,
}

impl Device {
    /// A device; `token` is its guest's.
    pub fn new(
        name: &str,
        model: Model,
        lines: Vec<Arc<Line>>,
        heap: Heap,
        token: &EventFd,
    ) -> Result<Self> {
        let good = region::name(name.as_bytes()).is_some();
        ensure!(Device, good, "{name:?} is no name of a device: 1 to {DEVICE_NAME_BYTES} letters, digits, '-', '_', '.'");
        let token = token.try_clone().context("eventfd")?;
        Ok(Self { name: name.to_owned(), model, lines, heap, token })
    }

    fn about(&self) -> (u32, u64, Vec<u8>) {
        match &self.model {
            Model::Block(block) => {
                let block = block.lock().unwrap_or_else(|e| e.into_inner());
                (DEVICE_BLOCK, block.features(), block.config())
            }
            Model::Net(net, ..) => (DEVICE_NET, net.features(), net.config()),
        }
    }

    /// Serves one queue, as far as its lock should be held at once.
    fn serve(&self, queue: usize) -> Served {
        let mut ring = self.lines[queue].ring();
        match &self.model {
            Model::Block(block) => {
                block.lock().unwrap_or_else(|e| e.into_inner()).serve(&mut ring, &self.heap)
            }
            Model::Net(net, network, port) if queue == TRANSMIT => {
                net.take(&mut ring, &self.heap, |frame| network.send(Some(*port), frame))
            }
            // Frames for the guest are delivered by the threads that have them.
            Model::Net(..) => Served::default(),
        }
    }

    /// The host's port of the network whose first port this is: one thread serves both, as most frames go from one to
    /// the other.
    fn host(&self) -> Option<(&Network, &Host)> {
        match &self.model {
            Model::Net(_, network, 0) => Some((network, network.host()?)),
            _ => None,
        }
    }

    /// What the device's thread does, until `stop` can be read.
    pub fn work(&self, stop: &EventFd) {
        let mut polls: Vec<_> = self.lines.iter().map(|line| poll_fd(&line.bell)).collect();
        let (queues, mut host, mut inward) = (polls.len(), self.host(), Inward::default());
        polls.push(poll_fd(stop));
        loop {
            polls.truncate(queues + 1);
            polls.extend(host.iter().flat_map(|(_, host)| host.waits_for()));
            // An interrupted wait has no events.
            let _ = poll(&mut polls, None);
            let (bells, [stop, port @ ..]) = polls.split_at(queues) else { return };
            if !stop.revents().is_empty() {
                return;
            }
            for (queue, _) in
                bells.iter().enumerate().filter(|(_, bell)| !bell.revents().is_empty())
            {
                self.rung(queue);
            }
            if let (Some((network, port_of_host)), [left, file]) = (host, port) {
                let ready = [left.revents(), file.revents()];
                let to = &mut |frame: &[u8]| network.send(None, frame);
                if !port_of_host.turn(&mut inward, ready, to) {
                    host = None;
                }
            }
        }
    }

    /// A doorbell was rung.
    fn rung(&self, queue: usize) {
        let bell = &self.lines[queue].bell;
        // Not blocking: somebody else may have read it.
        if bell.read().is_err() {
            return;
        }
        let served = self.serve(queue);
        if served.wake {
            // A counter that is full has a token.
            let _ = self.token.write(1);
        }
        if served.more {
            let _ = bell.write(1);
        }
    }
}

/// All devices of one guest.
#[derive(Default)]
pub struct Devices(Vec<Device>);

/// What a call about devices answers: a number, or `ERROR_*`.
type Answer = Result<u64, i64>;

impl Devices {
    /// Adds one.
    pub fn add(&mut self, device: Device) -> Result<()> {
        let queues: usize = self.0.iter().map(|device| device.lines.len()).sum();
        let (name, all) = (&device.name, &self.0);
        ensure!(
            Device,
            all.iter().all(|other| other.name != *name),
            "the device {name} is named twice"
        );
        ensure!(
            Device,
            queues + device.lines.len() <= MAX_QUEUES,
            "devices have more than {MAX_QUEUES} queues"
        );
        self.0.push(device);
        Ok(())
    }

    /// Each of them, for its thread.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.0.iter()
    }

    /// Doorbells, in the order of their numbers.
    pub fn bells(&self) -> impl Iterator<Item = &EventFd> {
        self.0.iter().flat_map(|device| device.lines.iter().map(|line| &line.bell))
    }

    fn device(&self, number: u64) -> Result<&Device, i64> {
        usize::try_from(number).ok().and_then(|number| self.0.get(number)).ok_or(ERROR_NAME)
    }

    fn line(&self, number: u64, queue: u64) -> Result<(&Device, &Line), i64> {
        let device = self.device(number)?;
        let queue = usize::try_from(queue).map_err(|_| ERROR_NAME)?;
        Ok((device, device.lines.get(queue).ok_or(ERROR_NAME)?))
    }

    /// [`ASK_DEVICE`]: the bytes of a [`DeviceInfo`].
    pub fn info(&self, number: u64) -> Result<Vec<u8>, i64> {
        let device = self.device(number)?;
        let before = self.0.iter().take(number as usize).map(|device| device.lines.len());
        let doorbell = QUEUE_DOORBELL + before.sum::<usize>() as u32;
        let (kind, features, mut config) = device.about();
        let config_bytes = config.len() as u64;
        config.resize(DEVICE_CONFIG_BYTES, 0);
        let mut bytes = device.name.clone().into_bytes();
        bytes.resize(DEVICE_NAME_BYTES, 0);
        bytes.extend(kind.to_le_bytes());
        bytes.extend((device.lines.len() as u32).to_le_bytes());
        bytes.extend(features.to_le_bytes());
        bytes.extend(doorbell.to_le_bytes());
        bytes.extend(u32::from(MAX_SIZE).to_le_bytes());
        bytes.extend(config_bytes.to_le_bytes());
        bytes.extend(config);
        Ok(bytes)
    }

    /// [`ASK_QUEUE_START`].
    pub fn start(&self, [number, queue, size, descriptors, available, used]: [u64; 6]) -> Answer {
        let (device, line) = self.line(number, queue)?;
        let size = u16::try_from(size).map_err(|_| ERROR_ARGUMENT)?;
        let place = Place { size, descriptors, available, used };
        match line.ring().start(&device.heap, place) {
            Ok(()) => Ok(0),
            Err(Refused::Running) => Err(ERROR_EXISTS),
            Err(Refused::Size) => Err(ERROR_ARGUMENT),
            Err(Refused::Address) => Err(ERROR_ADDRESS),
        }
    }

    /// [`ASK_QUEUE_STOP`].
    pub fn stop(&self, number: u64, queue: u64) -> Answer {
        self.line(number, queue)?.1.ring().stop();
        Ok(0)
    }

    /// [`ASK_QUEUE_STATE`].
    pub fn state(&self, number: u64, queue: u64) -> Answer {
        Ok(match self.line(number, queue)?.1.ring().state() {
            State::Stopped => QUEUE_STOPPED,
            State::Running => QUEUE_RUNNING,
            State::Ended(_) => QUEUE_FAILED,
        })
    }
}

#[cfg(test)]
mod tests;
