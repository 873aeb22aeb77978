//! Devices of guests: runs the models of `kyozon-devices`, a thread per device, and answers guests' calls about them.
//!
//! | module | what it does |
//! |---|---|
//! | [`heap`] | the memory that a device can access |
//! | [`queue`] | a queue and its doorbell |
//! | [`network`] | a network's ports, and the delivery of frames |
//! | [`host`] | a network's port on the host: a UNIX socket or a TAP device |
//! | [`options`] | the operator's devices |
//!
//! A device consists of its model, its queues, and a thread that waits for their doorbells. The thread of a network's
//! first port also serves the network's port on the host. A queue's lock is held while a thread serves its entries and
//! while the guest starts or stops it.

pub mod heap;
pub mod host;
pub mod network;
pub mod options;
pub mod queue;

use crate::error::{ensure, Context, Result};
use crate::region;
use crate::signals::poll_fd;
use heap::Heap;
use host::{Host, ReceiveBuffer};
use kyozon_abi::unikernel::*;
use kyozon_devices::block::Block;
pub use kyozon_devices::net::MTU;
use kyozon_devices::net::{Net, TRANSMIT};
use kyozon_devices::ring::{Place, Refused, Served, State, MAX_SIZE};
use network::Network;
use queue::Queue;
use rustix::event::poll;
use std::sync::{Arc, Mutex};
use vmm_sys_util::eventfd::EventFd;

/// The model of a device.
pub enum Model {
    /// A disk.
    Block(Mutex<Block>),
    /// A port of a network, with the port's number.
    Net(Net, Arc<Network>, usize),
}

/// A device of one guest.
pub struct Device {
    name: String,
    model: Model,
    queues: Vec<Arc<Queue>>,
    heap: Heap,
    token: EventFd,
}

impl Device {
    /// A device of the guest with this heap and this `token`, which wakes the guest.
    ///
    /// # Errors
    ///
    /// The name is invalid, or Linux refuses another eventfd.
    pub fn new(
        name: &str,
        model: Model,
        queues: Vec<Arc<Queue>>,
        heap: Heap,
        token: &EventFd,
    ) -> Result<Self> {
        let valid = region::name(name.as_bytes()).is_some();
        ensure!(
            Device,
            valid,
            "{name:?} is not a valid device name: use 1 to {DEVICE_NAME_BYTES} letters, digits, '-', '_', '.'"
        );
        let token = token.try_clone().context("eventfd")?;
        Ok(Self { name: name.to_owned(), model, queues, heap, token })
    }

    /// Kind, features and configuration bytes.
    fn description(&self) -> (u32, u64, Vec<u8>) {
        match &self.model {
            Model::Block(block) => {
                let block = block.lock().unwrap_or_else(|e| e.into_inner());
                (DEVICE_BLOCK, block.features(), block.config())
            }
            Model::Net(net, ..) => (DEVICE_NET, net.features(), net.config()),
        }
    }

    /// Serves one queue once: a bounded number of entries, so that the lock is not held for long.
    fn serve(&self, queue: usize) -> Served {
        let mut ring = self.queues[queue].ring();
        match &self.model {
            Model::Block(block) => {
                block.lock().unwrap_or_else(|e| e.into_inner()).serve(&mut ring, &self.heap)
            }
            Model::Net(net, network, port) if queue == TRANSMIT => {
                net.take(&mut ring, &self.heap, |frame| network.send(Some(*port), frame))
            }
            // The sender's thread delivers frames for the guest.
            Model::Net(..) => Served::default(),
        }
    }

    /// The host port of the network, if this device is the network's first port. One thread serves both, as most frames
    /// pass between the two.
    fn host(&self) -> Option<(&Network, &Host)> {
        match &self.model {
            Model::Net(_, network, 0) => Some((network, network.host()?)),
            _ => None,
        }
    }

    /// Serves the device on its thread until `stop` is readable.
    pub fn work(&self, stop: &EventFd) {
        let mut polls: Vec<_> = self.queues.iter().map(|queue| poll_fd(&queue.doorbell)).collect();
        let (count, mut host, mut received) = (polls.len(), self.host(), ReceiveBuffer::default());
        polls.push(poll_fd(stop));
        loop {
            polls.truncate(count + 1);
            polls.extend(host.iter().flat_map(|(_, host)| host.poll_fds()));
            // An interrupted wait has no events.
            let _ = poll(&mut polls, None);
            let (doorbells, [stop, port @ ..]) = polls.split_at(count) else { return };
            if !stop.revents().is_empty() {
                return;
            }
            for (queue, _) in
                doorbells.iter().enumerate().filter(|(_, poll)| !poll.revents().is_empty())
            {
                self.handle_doorbell(queue);
            }
            if let (Some((network, host_port)), [pending, file]) = (host, port) {
                let ready = [pending.revents(), file.revents()];
                let deliver = &mut |frame: &[u8]| network.send(None, frame);
                if !host_port.serve(&mut received, ready, deliver) {
                    host = None;
                }
            }
        }
    }

    /// Serves a queue whose doorbell was rung.
    fn handle_doorbell(&self, queue: usize) {
        let doorbell = &self.queues[queue].doorbell;
        // The read does not block; it fails if the doorbell was not rung.
        if doorbell.read().is_err() {
            return;
        }
        let served = self.serve(queue);
        if served.wake {
            // The write fails only if the counter is full; then the guest has a token already.
            let _ = self.token.write(1);
        }
        if served.more {
            let _ = doorbell.write(1);
        }
    }
}

/// All devices of one guest.
#[derive(Default)]
pub struct Devices(Vec<Device>);

/// The result of a call about devices: a number, or `ERROR_*`.
type Answer = Result<u64, i64>;

impl Devices {
    /// Adds a device.
    ///
    /// # Errors
    ///
    /// The guest has a device with this name, or more than [`MAX_QUEUES`] queues.
    pub fn add(&mut self, device: Device) -> Result<()> {
        let queues: usize = self.0.iter().map(|device| device.queues.len()).sum();
        let (name, all) = (&device.name, &self.0);
        ensure!(
            Device,
            all.iter().all(|other| other.name != *name),
            "two devices have the name {name}: rename one of them"
        );
        ensure!(
            Device,
            queues + device.queues.len() <= MAX_QUEUES,
            "the guest's devices have more than {MAX_QUEUES} queues: use fewer devices"
        );
        self.0.push(device);
        Ok(())
    }

    /// All devices, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.0.iter()
    }

    /// The doorbells of all queues, in the order of their numbers.
    pub fn doorbells(&self) -> impl Iterator<Item = &EventFd> {
        self.0.iter().flat_map(|device| device.queues.iter().map(|queue| &queue.doorbell))
    }

    fn device(&self, number: u64) -> Result<&Device, i64> {
        usize::try_from(number).ok().and_then(|number| self.0.get(number)).ok_or(ERROR_NAME)
    }

    fn queue(&self, number: u64, queue: u64) -> Result<(&Device, &Queue), i64> {
        let device = self.device(number)?;
        let queue = usize::try_from(queue).map_err(|_| ERROR_NAME)?;
        Ok((device, device.queues.get(queue).ok_or(ERROR_NAME)?))
    }

    /// Answers [`ASK_DEVICE`]: the bytes of a [`DeviceInfo`].
    ///
    /// # Errors
    ///
    /// [`ERROR_NAME`]: there is no such device.
    pub fn info(&self, number: u64) -> Result<Vec<u8>, i64> {
        let device = self.device(number)?;
        let before = self.0.iter().take(number as usize).map(|device| device.queues.len());
        let doorbell = QUEUE_DOORBELL + before.sum::<usize>() as u32;
        let (kind, features, mut config) = device.description();
        let config_bytes = config.len() as u64;
        config.resize(DEVICE_CONFIG_BYTES, 0);
        let mut bytes = device.name.clone().into_bytes();
        bytes.resize(DEVICE_NAME_BYTES, 0);
        bytes.extend(kind.to_le_bytes());
        bytes.extend((device.queues.len() as u32).to_le_bytes());
        bytes.extend(features.to_le_bytes());
        bytes.extend(doorbell.to_le_bytes());
        bytes.extend(u32::from(MAX_SIZE).to_le_bytes());
        bytes.extend(config_bytes.to_le_bytes());
        bytes.extend(config);
        Ok(bytes)
    }

    /// Answers [`ASK_QUEUE_START`].
    ///
    /// # Errors
    ///
    /// The `ERROR_*` of that call.
    pub fn start(&self, [number, queue, size, descriptors, available, used]: [u64; 6]) -> Answer {
        let (device, queue) = self.queue(number, queue)?;
        let size = u16::try_from(size).map_err(|_| ERROR_ARGUMENT)?;
        let place = Place { size, descriptors, available, used };
        match queue.ring().start(&device.heap, place) {
            Ok(()) => Ok(0),
            Err(Refused::Running) => Err(ERROR_EXISTS),
            Err(Refused::Size) => Err(ERROR_ARGUMENT),
            Err(Refused::Address) => Err(ERROR_ADDRESS),
        }
    }

    /// Answers [`ASK_QUEUE_STOP`].
    ///
    /// # Errors
    ///
    /// [`ERROR_NAME`]: there is no such queue.
    pub fn stop(&self, number: u64, queue: u64) -> Answer {
        self.queue(number, queue)?.1.ring().stop();
        Ok(0)
    }

    /// Answers [`ASK_QUEUE_STATE`].
    ///
    /// # Errors
    ///
    /// [`ERROR_NAME`]: there is no such queue.
    pub fn state(&self, number: u64, queue: u64) -> Answer {
        Ok(match self.queue(number, queue)?.1.ring().state() {
            State::Stopped => QUEUE_STOPPED,
            State::Running => QUEUE_RUNNING,
            State::Ended(_) => QUEUE_FAILED,
        })
    }
}

#[cfg(test)]
mod tests;
