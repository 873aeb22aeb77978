//! What the operator asked for, and how guests get it.

use super::heap::Heap;
use super::host::{Host, HostOption};
use super::line::Line;
use super::network::Network;
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
    /// Its name.
    pub name: String,
    /// Where its sectors are.
    pub file: PathBuf,
    /// Whether guests can write.
    pub write: bool,
    /// The guest that has it; all, where that is not said.
    pub guest: Option<usize>,
}

/// A network, of which each guest has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetOption {
    /// Its name.
    pub name: String,
    /// Its port on the host.
    pub host: Option<HostOption>,
    /// Bytes of a frame behind the Ethernet header.
    pub mtu: u16,
}

/// What the operator asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Disks.
    pub blocks: Vec<BlockOption>,
    /// Networks.
    pub nets: Vec<NetOption>,
}

/// Opens the file, and keeps others from writing it, or from using what is written here.
fn open(path: &Path, write: bool) -> Result<File> {
    let name = path.display();
    // Looked at before it is opened: to open a pipe would wait for somebody.
    let about = std::fs::metadata(path).with_context(|| format!("cannot open {name}"))?;
    let kind = std::os::unix::fs::FileTypeExt::is_block_device(&about.file_type());
    ensure!(Device, about.is_file() || kind, "{name} is neither a file nor a block device");
    let file = File::options().read(true).write(write).open(path);
    let file = file.with_context(|| format!("cannot open {name}"))?;
    let lock = if write {
        FlockOperation::NonBlockingLockExclusive
    } else {
        FlockOperation::NonBlockingLockShared
    };
    let locked = flock(&file, lock).is_ok();
    ensure!(Device, locked, "{name} is in use, by another guest's disk that is written");
    Ok(file)
}

fn block(option: &BlockOption, peer: &Peer, token: &EventFd) -> Result<Device> {
    let disk = FileDisk::new(open(&option.file, option.write)?)
        .with_context(|| option.file.display().to_string())?;
    let block = Block::new(Box::new(disk), !option.write, &option.name);
    let lines = vec![Arc::new(Line::new()?)];
    let model = Model::Block(Mutex::new(block));
    Device::new(&option.name, model, lines, Heap::of(&peer.memory), token)
}

/// An address that is no manufacturer's (IEEE 802, 8.2.2), of a run, a network and a guest.
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
    let of = || format!("the network {}", option.name);
    let host = option.host.as_ref().map(Host::open).transpose().with_context(of)?;
    let network = Arc::new(Network::new(host));
    let mut ports = Vec::new();
    for (guest, (peer, token)) in peers.iter_mut().zip(tokens).enumerate() {
        let port = Net::new(mac(run, number, guest), option.mtu);
        let (receive, transmit) = (Arc::new(Line::new()?), Arc::new(Line::new()?));
        let heap = Heap::of(&peer.memory);
        ports.push((port.clone(), receive.clone(), heap.clone(), *token));
        let model = Model::Net(port, network.clone(), guest);
        let lines = vec![receive, transmit];
        peer.devices.add(Device::new(&option.name, model, lines, heap, token)?)?;
    }
    network.connect(ports)
}

impl DeviceOptions {
    /// Gives guests their devices.
    pub fn make(&self, peers: &mut [Peer], tokens: &[&EventFd]) -> Result<()> {
        for option in &self.blocks {
            let name = &option.name;
            let many = option.write && option.guest.is_none() && peers.len() > 1;
            ensure!(
                Device,
                !many,
                "the disk {name} is written: say which guest has it (vm=0), or ro"
            );
            let last = peers.len() - 1;
            ensure!(
                Device,
                option.guest <= Some(last),
                "the disk {name}: there are guests 0 to {last}"
            );
            for (guest, (peer, token)) in peers.iter_mut().zip(tokens).enumerate() {
                if option.guest.is_none_or(|only| only == guest) {
                    let device = block(option, peer, token);
                    peer.devices.add(device.with_context(|| format!("the disk {name}"))?)?;
                }
            }
        }
        let mut run = [0; 2];
        // Without random bytes addresses are the same in each run.
        let _ = getrandom(&mut run, GetRandomFlags::empty());
        let mut nets = self.nets.iter().enumerate();
        nets.try_for_each(|(number, option)| net(option, number, peers, tokens, run))
    }
}
