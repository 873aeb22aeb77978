//! The operator's devices, and their creation for guests.

use super::heap::Heap;
use super::host::{Host, HostOption};
use super::network::Network;
use super::queue::Queue;
use super::{Device, Model};
use crate::error::{ensure, Context, Result};
use crate::peer::Peer;
use kyozon_devices::block::Block;
use kyozon_devices::disk::FileDisk;
use kyozon_devices::net::Net;
use rustix::fs::{flock, FlockOperation};
use rustix::rand::{getrandom, GetRandomFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use vmm_sys_util::eventfd::EventFd;

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOption {
    /// Name of the device.
    pub name: String,
    /// File or block device that holds the sectors.
    pub file: PathBuf,
    /// Whether guests can write.
    pub write: bool,
    /// Number of the guest that has the disk; `None` for all guests.
    pub guest: Option<usize>,
}

/// A network, of which each guest has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetOption {
    /// Name of the device.
    pub name: String,
    /// The network's port on the host, if it has one.
    pub host: Option<HostOption>,
    /// Maximum bytes of a frame without its Ethernet header.
    pub mtu: u16,
}

/// All devices of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Disks.
    pub blocks: Vec<BlockOption>,
    /// Networks.
    pub nets: Vec<NetOption>,
}

/// Opens and locks a disk's file: exclusively with `write`, otherwise shared with other readers.
fn open(path: &Path, write: bool) -> Result<File> {
    let name = path.display();
    // The kind is checked before the file is opened, because opening a pipe waits for its other end.
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot open {name}"))?;
    let block = std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type());
    ensure!(Device, metadata.is_file() || block, "{name} is neither a file nor a block device");
    let file = File::options().read(true).write(write).open(path);
    let file = file.with_context(|| format!("cannot open {name}"))?;
    let lock = if write {
        FlockOperation::NonBlockingLockExclusive
    } else {
        FlockOperation::NonBlockingLockShared
    };
    let locked = flock(&file, lock).is_ok();
    ensure!(
        Device,
        locked,
        "{name} is in use as another disk: only read-only disks (ro) can share a file"
    );
    Ok(file)
}

fn block(option: &BlockOption, peer: &Peer, token: &EventFd) -> Result<Device> {
    let disk = FileDisk::new(open(&option.file, option.write)?)
        .with_context(|| option.file.display().to_string())?;
    let block = Block::new(Box::new(disk), !option.write, &option.name);
    let queues = vec![Arc::new(Queue::new()?)];
    let model = Model::Block(Mutex::new(block));
    Device::new(&option.name, model, queues, Heap::of(&peer.memory), token)
}

/// A locally administered address (IEEE 802, 8.2.2) from the run's random bytes, the network and the guest.
fn mac(run: [u8; 2], net: usize, guest: usize) -> [u8; 6] {
    [2, b'K', run[0], run[1], net as u8, guest as u8]
}

fn net(
    option: &NetOption,
    number: usize,
    peers: &mut [Peer],
    tokens: &[&EventFd],
    run: [u8; 2],
) -> Result<()> {
    let subject = || format!("the network {}", option.name);
    let host = option.host.as_ref().map(Host::open).transpose().with_context(subject)?;
    let network = Arc::new(Network::new(host));
    let mut ports = Vec::new();
    for (guest, (peer, token)) in peers.iter_mut().zip(tokens).enumerate() {
        let port = Net::new(mac(run, number, guest), option.mtu);
        let (receive, transmit) = (Arc::new(Queue::new()?), Arc::new(Queue::new()?));
        let heap = Heap::of(&peer.memory);
        ports.push((port.clone(), receive.clone(), heap.clone(), *token));
        let model = Model::Net(port, network.clone(), guest);
        let queues = vec![receive, transmit];
        peer.devices.add(Device::new(&option.name, model, queues, heap, token)?)?;
    }
    network.connect(ports)
}

impl DeviceOptions {
    /// Creates the devices of all guests. `tokens` wake the guests, in the order of `peers`.
    ///
    /// # Errors
    ///
    /// An option cannot be used, or Linux refuses a file, a lock or the port on the host.
    pub fn make(&self, peers: &mut [Peer], tokens: &[&EventFd]) -> Result<()> {
        for option in &self.blocks {
            let name = &option.name;
            let shared = option.write && option.guest.is_none() && peers.len() > 1;
            ensure!(
                Device,
                !shared,
                "the disk {name} is writable in several guests: name one guest (vm=0), or make it read-only (ro)"
            );
            let last = peers.len() - 1;
            ensure!(Device, option.guest <= Some(last), "the disk {name}: vm must be 0 to {last}");
            for (guest, (peer, token)) in peers.iter_mut().zip(tokens).enumerate() {
                if option.guest.is_none_or(|only| only == guest) {
                    let device = block(option, peer, token);
                    peer.devices.add(device.with_context(|| format!("the disk {name}"))?)?;
                }
            }
        }
        let mut run = [0; 2];
        // If this fails, each run has the same addresses.
        let _ = getrandom(&mut run, GetRandomFlags::empty());
        let mut nets = self.nets.iter().enumerate();
        nets.try_for_each(|(number, option)| net(option, number, peers, tokens, run))
    }
}
