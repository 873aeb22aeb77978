//! What run takes.

use super::values::{address, group, seconds, size};
use clap::{Args, ValueEnum};
use kyozon_tender::device::host::HostOption;
use kyozon_tender::device::options::{BlockOption, DeviceOptions, NetOption};
use kyozon_tender::member::Meeting;
use kyozon_tender::options::RegionOption;
use std::path::PathBuf;
use std::time::Duration;

/// What runs a unikernel.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Backend {
    /// A virtual machine where /dev/kvm can be used, else a process
    Auto,
    /// A virtual machine
    Kvm,
    /// A confined process: no /dev/kvm is needed, and the wall is thinner
    Process,
}

/// Which unikernel to run, and how.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The image
    pub image: PathBuf,
    /// What runs it
    #[arg(long, value_enum, default_value = "auto", env = "KYOZON_BACKEND")]
    pub backend: Backend,
    /// Memory of each guest: image, stack and heap; bytes, or with K, M, G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub memory: u64,
    /// Seconds after which all guests are ended, such as 0.5
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<Duration>,
    /// Write a core file for a debugger when the (first) guest crashes
    #[arg(long, value_name = "FILE")]
    pub core: Option<PathBuf>,
    /// Memory that all guests share, with --group also those of other runs that name it: name=NAME,size=SIZE and, where
    /// wanted, at=ADDRESS and ro
    #[arg(long, value_name = "REGION", value_parser = region)]
    pub region: Vec<RegionOption>,
    /// A disk of the guests': name=NAME,file=FILE and, where wanted, ro, and vm=N for the guest that has it
    #[arg(long, value_name = "DISK", value_parser = block)]
    pub block: Vec<BlockOption>,
    /// A network of the guests': name=NAME and, where the host has a port there, socket=PATH (of passt, or whoever
    /// listens) or tap=DEVICE; mtu=BYTES
    #[arg(long, value_name = "NETWORK", value_parser = net)]
    pub net: Vec<NetOption>,
    /// How many guests of this image, numbered from 0
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub vms: u8,
    /// Join the group of this name, or make it: guests of several runs meet in it
    #[arg(long, value_name = "NAME", value_parser = group)]
    pub group: Option<String>,
    /// Memory of all guests and regions together, at most; of a group, its first run says it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub group_memory: Option<u64>,
    /// Peers of the group, at most [default: 64]; its first run says it
    #[arg(long, value_name = "N", requires = "group", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub group_peers: Option<u8>,
    /// How many guests at once, with those that guests spawn as their threads; of a group, --group-peers says it
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "group", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub peers: u8,
    /// CPUs that guests run on: the first guest on the first, and so on, from the first again; then threads that they spawn
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    pub pin: Vec<usize>,
    /// At the end, say in a line of JSON on standard error how it went
    #[arg(long)]
    pub json: bool,
    /// Arguments for the guests
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
}

impl RunOptions {
    /// As the tender wants them.
    pub fn options(&self) -> kyozon_tender::options::Options {
        use kyozon_tender::options;
        options::Options {
            image: self.image.clone(),
            backend: match self.backend {
                Backend::Auto => None,
                Backend::Kvm => Some(options::Backend::Kvm),
                Backend::Process => Some(options::Backend::Process),
            },
            memory: self.memory,
            time_limit: self.time_limit,
            core: self.core.clone(),
            regions: self.region.clone(),
            devices: DeviceOptions { blocks: self.block.clone(), nets: self.net.clone() },
            vms: self.vms.into(),
            group: self.group.clone().map(|name| Meeting {
                name,
                memory: self.group_memory,
                peers: self.group_peers.map(Into::into),
            }),
            group_memory: self.group_memory,
            peers: self.peers.into(),
            pin: self.pin.clone(),
            arguments: self.arguments.clone(),
        }
    }
}

fn region(text: &str) -> Result<RegionOption, String> {
    let mut region = RegionOption { name: String::new(), bytes: 0, at: None, write: true };
    for word in text.split(',') {
        match word.split_once('=') {
            Some(("name", name)) => region.name = name.to_owned(),
            Some(("size", bytes)) => region.bytes = size(bytes)?,
            Some(("at", at)) => {
                region.at = Some(address(at).ok_or_else(|| format!("{at:?} is no address"))?);
            }
            None if word == "ro" => region.write = false,
            _ => return Err(format!("{word:?} is none of name=, size=, at=, ro")),
        }
    }
    if region.name.is_empty() || region.bytes == 0 {
        return Err("a region has a name and a size: name=board,size=4M".to_owned());
    }
    Ok(region)
}

fn block(text: &str) -> Result<BlockOption, String> {
    let (name, file) = (String::new(), PathBuf::new());
    let mut block = BlockOption { name, file, write: true, guest: None };
    for word in text.split(',') {
        match word.split_once('=') {
            Some(("name", name)) => block.name = name.to_owned(),
            Some(("file", file)) => block.file = file.into(),
            Some(("vm", guest)) => {
                let number =
                    guest.parse().map_err(|_| format!("{guest:?} is no guest's number"))?;
                block.guest = Some(number);
            }
            None if word == "ro" => block.write = false,
            _ => return Err(format!("{word:?} is none of name=, file=, vm=, ro")),
        }
    }
    if block.name.is_empty() || block.file.as_os_str().is_empty() {
        return Err("a disk has a name and a file: name=disk,file=disk.img".to_owned());
    }
    Ok(block)
}

fn net(text: &str) -> Result<NetOption, String> {
    let mut net = NetOption { name: String::new(), host: None, mtu: 1500 };
    let mtus = kyozon_tender::device::MTU;
    for word in text.split(',') {
        let host = match word.split_once('=') {
            Some(("name", name)) => {
                net.name = name.to_owned();
                continue;
            }
            Some(("mtu", mtu)) => {
                let mtu = mtu.parse().ok().filter(|mtu| mtus.contains(mtu));
                net.mtu = mtu.ok_or(format!("mtu is {} to {}", mtus.start(), mtus.end()))?;
                continue;
            }
            Some(("socket", path)) => HostOption::Socket(path.into()),
            Some(("tap", name)) => HostOption::Tap(name.to_owned()),
            _ => return Err(format!("{word:?} is none of name=, socket=, tap=, mtu=")),
        };
        if net.host.replace(host).is_some() {
            return Err("a network has one port on the host".to_owned());
        }
    }
    if net.name.is_empty() {
        return Err("a network has a name: name=lan".to_owned());
    }
    Ok(net)
}

#[cfg(test)]
mod tests;
