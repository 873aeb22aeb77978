//! Options of a run: the image, the backend, the guests, their regions and devices.

use crate::device::options::DeviceOptions;
use crate::member::joining::Meeting;
use std::path::PathBuf;
use std::time::Duration;

/// The kind of machine that runs guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A virtual machine under KVM.
    Kvm,
    /// A confined process.
    Process,
}

impl Backend {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Process => "process",
        }
    }
}

/// A region of the group, which every guest maps from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionOption {
    /// Its name.
    pub name: String,
    /// Bytes, including the header's page.
    pub bytes: u64,
    /// Address of its header; `None` for any.
    pub address: Option<u64>,
    /// Whether guests may write.
    pub write: bool,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the image, or of a program.
    pub image: PathBuf,
    /// Path of the image that is a program's host.
    pub host: PathBuf,
    /// Backend; `None` for a virtual machine if the host has KVM, else a process.
    pub backend: Option<Backend>,
    /// Maximum bytes of memory of each guest with the threads and regions that it makes.
    pub memory: u64,
    /// Time limit of the whole run.
    pub time_limit: Option<Duration>,
    /// Path of the core file that the first guest writes if it crashes.
    pub core: Option<PathBuf>,
    /// Regions of the group.
    pub regions: Vec<RegionOption>,
    /// Devices of the guests.
    pub devices: DeviceOptions,
    /// Number of guests at the start.
    pub vms: usize,
    /// The group that this run joins, if it shares one with other runs.
    pub group: Option<Meeting>,
    /// Maximum bytes of all guests and regions.
    pub group_memory: Option<u64>,
    /// Maximum number of peers at the same time, including those that guests spawn. Not less than `vms`.
    pub peers: usize,
    /// Maximum number of threads of each guest, itself included; by default an equal share of `peers`, or half of the
    /// group's.
    pub threads: Option<usize>,
    /// CPUs to which guests are pinned, one for each guest in turn. If it is empty, guests are not pinned.
    pub pin: Vec<usize>,
    /// The guests' arguments.
    pub arguments: Vec<String>,
    /// The guests' environment, each string `NAME=VALUE`.
    pub environment: Vec<String>,
}
