//! Options of `kyozon run`.

use super::values::{address, group, seconds, size};
use clap::{Args, ValueEnum};
use kyozon_tender::device::host::HostOption;
use kyozon_tender::device::options::{BlockOption, DeviceOptions, NetOption};
use kyozon_tender::member::joining::Meeting;
use kyozon_tender::options::RegionOption;
use std::path::PathBuf;
use std::time::Duration;

/// The image that is the host of a program.
const HOST: &str = "posix.elf";

/// Where a unikernel runs.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Backend {
    /// A virtual machine if /dev/kvm is usable, otherwise a process
    Auto,
    /// A virtual machine
    Kvm,
    /// A confined process: needs no /dev/kvm, and isolates less
    Process,
}

/// Image, resources and limits of a run.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The image, or a program of kyozon cc
    pub image: PathBuf,
    /// Where the guests run
    #[arg(long, value_enum, default_value = "auto", env = "KYOZON_BACKEND")]
    pub backend: Backend,
    /// Memory of each guest (image, stacks and heap, its threads' own memory and the regions that it makes), in bytes
    /// or with K, M, G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub memory: u64,
    /// Seconds after which all guests are ended; fractions such as 0.5 are allowed
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<Duration>,
    /// Write a core file for a debugger when the first guest crashes
    #[arg(long, value_name = "FILE")]
    pub core: Option<PathBuf>,
    /// Memory that all guests share, with --group also guests of other commands that name it:
    /// name=NAME,size=SIZE[,at=ADDRESS][,ro]
    #[arg(long, value_name = "REGION", value_parser = region)]
    pub region: Vec<RegionOption>,
    /// A disk of the guests: name=NAME,file=FILE[,ro][,vm=N]; with vm=N only guest N has it
    #[arg(long, value_name = "DISK", value_parser = block)]
    pub block: Vec<BlockOption>,
    /// A network of the guests: name=NAME[,socket=PATH][,tap=DEVICE][,mtu=BYTES]; socket (passt or another listener) or
    /// tap is the host's port
    #[arg(long, value_name = "NETWORK", value_parser = net)]
    pub net: Vec<NetOption>,
    /// Number of guests of this image, numbered from 0
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub vms: u8,
    /// Join or create the group of this name: its guests come from several commands
    #[arg(long, value_name = "NAME", value_parser = group)]
    pub group: Option<String>,
    /// Memory limit of all guests and regions together; the first command of a group sets it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub group_memory: Option<u64>,
    /// Maximum number of peers in the group [default: 64]; its first command sets it
    #[arg(long, value_name = "N", requires = "group", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub group_peers: Option<u8>,
    /// Maximum number of guests at one time, including spawned threads; for a group use --group-peers
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "group", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub peers: u8,
    /// Maximum number of threads of each guest, itself included [default: its equal share of --peers, with --group half
    /// of the group]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: Option<u8>,
    /// CPUs of the guests in order, repeated from the first; spawned threads follow
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    pub pin: Vec<usize>,
    /// Print a summary as one line of JSON on standard error at the end
    #[arg(long)]
    pub json: bool,
    /// A string of the guests' environment; without =VALUE, this command's own value
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub env: Vec<String>,
    /// Arguments for the guests
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
}

impl RunOptions {
    /// The options for the tender.
    pub fn options(&self) -> kyozon_tender::options::Options {
        use kyozon_tender::options;
        options::Options {
            image: self.image.clone(),
            host: crate::library::find(HOST).unwrap_or_else(|_| HOST.into()),
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
            threads: self.threads.map(Into::into),
            pin: self.pin.clone(),
            arguments: self.arguments.clone(),
            environment: self.env.clone(),
        }
    }
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some(("", _)) => Err("a variable needs a name".into()),
        Some(_) => Ok(text.into()),
        None => match std::env::var(text) {
            Ok(value) => Ok(format!("{text}={value}")),
            Err(_) => Err(format!("this command has no variable {text}: give {text}=VALUE")),
        },
    }
}

fn region(text: &str) -> Result<RegionOption, String> {
    let mut region = RegionOption { name: String::new(), bytes: 0, address: None, write: true };
    for word in text.split(',') {
        match word.split_once('=') {
            Some(("name", name)) => region.name = name.to_owned(),
            Some(("size", bytes)) => region.bytes = size(bytes)?,
            Some(("at", at)) => {
                region.address = Some(address(at).ok_or_else(|| {
                    format!("address {at:?} is not a number: use at=0x4000000000, for example")
                })?);
            }
            None if word == "ro" => region.write = false,
            _ => {
                return Err(format!(
                    "unknown part {word:?}: a region takes name=, size=, at= and ro"
                ))
            }
        }
    }
    if region.name.is_empty() || region.bytes == 0 {
        return Err("name or size is missing: name=board,size=4M, for example".to_owned());
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
                let number = guest.parse().map_err(|_| {
                    format!("guest {guest:?} is not a number: vm=0 is the first guest")
                })?;
                block.guest = Some(number);
            }
            None if word == "ro" => block.write = false,
            _ => {
                return Err(format!("unknown part {word:?}: a disk takes name=, file=, vm= and ro"))
            }
        }
    }
    if block.name.is_empty() || block.file.as_os_str().is_empty() {
        return Err("name or file is missing: name=disk,file=disk.img, for example".to_owned());
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
                net.mtu = mtu.ok_or(format!(
                    "mtu is out of range: {} to {} bytes",
                    mtus.start(),
                    mtus.end()
                ))?;
                continue;
            }
            Some(("socket", path)) => HostOption::Socket(path.into()),
            Some(("tap", name)) => HostOption::Tap(name.to_owned()),
            _ => {
                return Err(format!(
                    "unknown part {word:?}: a network takes name=, socket=, tap= and mtu="
                ))
            }
        };
        if net.host.replace(host).is_some() {
            return Err(
                "a network has only one port on the host: name one socket= or tap=".to_owned()
            );
        }
    }
    if net.name.is_empty() {
        return Err("name is missing: name=lan, for example".to_owned());
    }
    Ok(net)
}

#[cfg(test)]
mod tests;
