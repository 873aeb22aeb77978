//! Options of a run: the image, the backend, the guests, their regions and devices.

use crate::device::options::DeviceOptions;
use crate::member::joining::Meeting;
use std::path::PathBuf;
use std::time::Duration;

/// What runs guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A virtual machine.
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

/// A region of the group's, which every guest has from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionOption {
    /// Its name.
    pub name: String,
    /// Bytes, with the header's page.
    pub bytes: u64,
    /// Address, or any.
    pub at: Option<u64>,
    /// Whether guests may write.
    pub write: bool,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The image.
    pub image: PathBuf,
    /// Backend; by default a virtual machine if the host has KVM.
    pub backend: Option<Backend>,
    /// Bytes that each guest may have.
    pub memory: u64,
    /// Time limit of the whole run.
    pub time_limit: Option<Duration>,
    /// Where a core file goes, when a guest crashes.
    pub core: Option<PathBuf>,
    /// The group's regions.
    pub regions: Vec<RegionOption>,
    /// Its guests' devices.
    pub devices: DeviceOptions,
    /// How many guests at the start.
    pub vms: usize,
    /// The group that this run shares with others.
    pub group: Option<Meeting>,
    /// Maximum bytes of all guests and regions.
    pub group_memory: Option<u64>,
    /// How many peers at once, with those that guests spawn; not fewer than `vms`.
    pub peers: usize,
    /// CPUs, one for each guest in turn; empty: the kernel chooses.
    pub pin: Vec<usize>,
    /// Their arguments.
    pub arguments: Vec<String>,
}
