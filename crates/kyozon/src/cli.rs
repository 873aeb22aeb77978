//! Words and options.

use clap::{Args, Parser, Subcommand, ValueEnum};
use kyozon_abi::{device, layer, task};
use kyozon_tender::device::host::HostOption;
use kyozon_tender::device::options::{BlockOption, DeviceOptions, NetOption};
use kyozon_tender::member::Meeting;
use kyozon_tender::run::RegionOption;
use std::path::PathBuf;
use std::time::Duration;

/// Puts a cokernel beside the running Linux kernel, and takes it out again; runs unikernels.
#[derive(Debug, Parser)]
#[command(
    name = "kyozon",
    version,
    after_help = "Exit status: 0 done (status: a cokernel runs), 1 failed, 2 wrong usage;\n\
    status and events also: 3 nothing is loaded; status also: 4 the cokernel was stopped;\n\
    run: the unikernel's own, 0 to 119; 120 it crashed, 124 its time was over, 128+N signal N."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a cokernel beside the running kernel (needs CAP_SYS_MODULE)
    ///
    /// Where no other is named, the cokernel is the microkernel with the monitor, which watches the running kernel for
    /// tampering and undoes it. What the kernel looks like is read from itself at this moment (needs CAP_SYSLOG and
    /// CAP_SYS_ADMIN): what was tampered with before is not all told.
    ///
    /// The kernel is not patched, restarted or reconfigured. A timer that Linux does not use interrupts it with
    /// non-maskable interrupts, and the cokernel runs in between, also while Linux has interrupts off.
    #[command(args_override_self = true)]
    Load(LoadOptions),
    /// Stop the cokernel and give everything back (needs CAP_SYS_MODULE)
    Unload,
    /// Say what is loaded and what it costs
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what the cokernel and its monitor reported
    ///
    /// Without isolation Linux can change what is printed here: only the copy on the cokernel's serial line is beyond
    /// its reach.
    Events {
        /// Go on until interrupted, or until the cokernel is unloaded
        #[arg(long, short)]
        follow: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Run a unikernel, in a virtual machine or in a confined process
    ///
    /// The image is a static ELF file made with the crate kyozon-unikernel. It runs in user mode only, and reaches
    /// its own memory, its regions and what it asks for: its console is the standard output. Before its first
    /// instruction this command gives up files, programs and the network for itself.
    ///
    /// With --group, guests of several runs meet: they share regions by name, each with its own rights. The first run
    /// of a group makes it, under $XDG_RUNTIME_DIR/kyozon, for root /run/kyozon; it goes with the last.
    Run(RunOptions),
    /// Show groups and their guests
    ///
    /// MEMORY is what a guest may have, RESIDENT what the process that runs it has now.
    Ps {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a group's guests, or one of them
    ///
    /// Each is ended by the command that runs it, whose status is then 143. A host program gets SIGTERM. Returns when
    /// they have ended.
    Kill {
        /// The group, or one of its peers by number
        #[arg(value_name = "GROUP[/PEER]", value_parser = target)]
        target: Target,
    },
    /// Measure what shared memory costs and brings
    ///
    /// Two virtual machines, two threads, and ways without shared memory do the same in turns. Needs /dev/kvm, and is
    /// worth something on a machine that does nothing else, with two CPUs or more.
    Bench {
        /// What to measure
        #[arg(value_enum)]
        what: Bench,
        /// How often each is done
        #[arg(long, value_name = "N", default_value_t = crate::bench::ROUNDS, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One experiment of a measurement, on threads of this process
    #[command(hide = true)]
    BenchPart {
        /// Its name, how many samples, and its number
        words: Vec<String>,
    },
    /// Print a completion script
    Completion {
        /// For this shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Bench {
    /// Shared memory: the same work between two virtual machines and between two threads, messages beside them
    Shm,
}

/// What stands between the cokernel and Linux.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Isolation {
    /// Nothing: fastest, and Linux can reach the cokernel's memory
    None,
    /// Nested paging: Linux becomes a guest
    Vmm,
}

/// Where the cokernel's ticks come from.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Tick {
    /// The first that this machine has
    Auto,
    /// HPET timer 2, delivered by message
    HpetMsi,
    /// HPET timer 2, delivered through the IO-APIC
    HpetIoapic,
    /// The real-time clock
    Rtc,
}

/// What the monitor does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Watch {
    /// It is not loaded.
    No,
    /// It tells what it finds.
    Report,
    /// It tells what it finds, and undoes it.
    Repair,
}

/// Memory for a cokernel without the monitor, bytes.
const MEMORY: u64 = 4 << 20;

/// What to load, and how.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// What stands between the cokernel and Linux
    #[arg(long, value_enum, default_value = "none", env = "KYOZON_ISOLATION")]
    pub isolation: Isolation,
    /// Ticks a second
    #[arg(long, value_name = "HZ", default_value_t = 100)]
    pub hz: u32,
    /// Microseconds that one stop of Linux may last before the cokernel is cut off
    #[arg(long, value_name = "US", default_value_t = 200)]
    pub budget: u32,
    /// CPU that the cokernel shares with Linux
    #[arg(long, default_value_t = 0)]
    pub cpu: u32,
    /// Where ticks come from
    #[arg(long, value_enum, default_value = "auto")]
    pub tick: Tick,
    /// Memory for the cokernel: bytes, or with K, M, G [default: what the monitor needs; for others 4M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// I/O port of a serial line for the cokernel alone, such as 0x2f8
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = port)]
    pub serial: u32,
    /// Number that the cokernel finds in its boot block
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub parameter: u64,
    /// Let the monitor tell what it finds, and repair nothing
    #[arg(long, conflicts_with_all = ["cokernel", "task", "data"])]
    pub report_only: bool,
    /// Image of the running kernel, as its package brought it [default: /boot/vmlinuz-RELEASE, where it is there]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cokernel", "task", "data"])]
    pub kernel_image: Option<PathBuf>,
    /// Cokernel image, instead of the microkernel with the monitor
    #[arg(long, value_name = "FILE")]
    pub cokernel: Option<PathBuf>,
    /// Image of a user task of the cokernel, instead of the monitor
    #[arg(long, value_name = "FILE")]
    pub task: Vec<PathBuf>,
    /// Data for the cokernel, as it stands: at most 64M. The monitor is not loaded then
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Colocation layer's image
    #[arg(long, value_name = "FILE")]
    pub layer: Option<PathBuf>,
    /// Kernel module, where it is not installed for the running kernel
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Go on although the running kernel is outside the tested range
    #[arg(long)]
    pub untested_kernel: bool,
    /// Go on although nobody has reported a run on such a machine
    #[arg(long)]
    pub untested_hardware: bool,
}

impl LoadOptions {
    /// What the monitor is to do: it is loaded where nothing else was named.
    pub fn watch(&self) -> Watch {
        if self.cokernel.is_some() || !self.task.is_empty() || self.data.is_some() {
            Watch::No
        } else if self.parameter() & task::MONITOR_REPORT_ONLY != 0 {
            Watch::Report
        } else {
            Watch::Repair
        }
    }

    fn parameter(&self) -> u64 {
        self.parameter | if self.report_only { task::MONITOR_REPORT_ONLY } else { 0 }
    }

    /// The request, its images still to come.
    pub fn request(&self) -> device::Load {
        let mode = match self.isolation {
            Isolation::None => layer::MODE_NONE,
            Isolation::Vmm => layer::MODE_VMM,
        };
        let flag = |on: bool, bit| if on { bit } else { 0 };
        device::Load {
            version: device::DEVICE_VERSION,
            mode,
            tick_hz: self.hz,
            budget_us: self.budget,
            cpu: self.cpu,
            tick_source: self.tick.number(),
            flags: flag(self.untested_kernel, device::LOAD_UNTESTED_KERNEL)
                | flag(self.untested_hardware, device::LOAD_UNTESTED_HARDWARE),
            serial_port: self.serial,
            memory_bytes: self.memory.unwrap_or(MEMORY),
            parameter: self.parameter(),
            image_count: 0,
            images: [device::Image::default(); device::MAX_IMAGES],
            message: [0; device::MESSAGE_BYTES],
            data: device::Image::default(),
            hypervisor: device::Image::default(),
        }
    }
}

impl Tick {
    /// `TICK_*` of the interface.
    pub fn number(self) -> u32 {
        match self {
            Self::Auto => device::TICK_AUTO,
            Self::HpetMsi => device::TICK_HPET_MSI,
            Self::HpetIoapic => device::TICK_HPET_IOAPIC,
            Self::Rtc => device::TICK_RTC,
        }
    }
}

/// Whom to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The group.
    pub group: String,
    /// One of its peers, or all.
    pub peer: Option<usize>,
}

fn target(text: &str) -> Result<Target, String> {
    let (name, peer) = match text.split_once('/') {
        Some((group, peer)) => {
            let number = peer.parse().ok().filter(|peer| *peer < kyozon_abi::unikernel::MAX_PEERS);
            (
                group,
                Some(number.ok_or_else(|| format!("{peer:?} is no number of a peer: 0 to 63"))?),
            )
        }
        None => (text, None),
    };
    Ok(Target { group: group(name)?, peer })
}

fn group(text: &str) -> Result<String, String> {
    let name = kyozon_join::place::is_name(text).then(|| text.to_owned());
    name.ok_or_else(|| "a name has 1 to 32 letters, digits, '-', '_', '.', no '.' first".to_owned())
}

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
    pub fn options(&self) -> kyozon_tender::run::Options {
        use kyozon_tender::run;
        run::Options {
            image: self.image.clone(),
            backend: match self.backend {
                Backend::Auto => None,
                Backend::Kvm => Some(run::Backend::Kvm),
                Backend::Process => Some(run::Backend::Process),
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

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "not more than 0 seconds, or far too many".to_owned())
}

fn address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
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

fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match &text[split..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        unit => return Err(format!("unknown unit {unit:?}: K, M and G are known")),
    };
    let number: u64 = text[..split].parse().map_err(|_| "not a number".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned())
}

fn port(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "not a number; 0x2f8 is the second serial line of a PC".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn options(words: &[&str]) -> Result<LoadOptions, clap::Error> {
        let words = ["kyozon", "load"].iter().chain(words);
        match Cli::try_parse_from(words)?.command {
            Command::Load(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    fn request(words: &[&str]) -> device::Load {
        options(words).unwrap().request()
    }

    #[test]
    fn words_become_a_request() {
        Cli::command().debug_assert();
        let plain = request(&[]);
        assert_eq!(
            (plain.mode, plain.tick_hz, plain.budget_us, plain.flags),
            (layer::MODE_NONE, 100, 200, 0)
        );
        let full = request(&[
            "--isolation",
            "vmm",
            "--hz",
            "1000",
            "--serial",
            "0x2f8",
            "--memory",
            "64K",
            "--untested-hardware",
        ]);
        assert_eq!((full.mode, full.tick_hz, full.serial_port), (layer::MODE_VMM, 1000, 0x2f8));
        assert_eq!((full.memory_bytes, full.flags), (64 << 10, device::LOAD_UNTESTED_HARDWARE));
    }

    #[test]
    fn the_monitor_watches_where_nothing_else_is_named() {
        let watch = |words: &[&str]| options(words).unwrap().watch();
        assert_eq!((watch(&[]), request(&[]).parameter), (Watch::Repair, 0));
        let only = ["--report-only"];
        assert_eq!(
            (watch(&only), request(&only).parameter),
            (Watch::Report, task::MONITOR_REPORT_ONLY)
        );
        assert_eq!(watch(&["--parameter", "1"]), Watch::Report);
        for other in ["--cokernel", "--task", "--data"] {
            assert_eq!(watch(&[other, "x", "--parameter", "1"]), Watch::No, "{other}");
            let error = options(&[other, "x", "--report-only"]).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{other}");
        }
    }

    fn run(words: &[&str]) -> Result<RunOptions, clap::Error> {
        let words = ["kyozon", "run"].iter().chain(words);
        match Cli::try_parse_from(words)?.command {
            Command::Run(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn disks_and_networks_of_a_unikernel() {
        let disk = "name=disk,file=/x.img,ro,vm=1";
        let words =
            ["--block", disk, "--net", "name=lan", "--net", "name=up,tap=t0,mtu=9000", "x.elf"];
        let devices = run(&words).unwrap().options().devices;
        let (name, file) = ("disk".to_owned(), "/x.img".into());
        assert_eq!(devices.blocks, [BlockOption { name, file, write: false, guest: Some(1) }]);
        assert_eq!(devices.nets[0], NetOption { name: "lan".into(), host: None, mtu: 1500 });
        assert_eq!(devices.nets[1].host, Some(HostOption::Tap("t0".into())));
        for bad in [
            ["--block", "name=disk"],
            ["--block", "file=x"],
            ["--block", "name=a,file=x,rw"],
            ["--block", "name=a,file=x,vm=one"],
            ["--net", "socket=x"],
            ["--net", "name=a,socket=x,tap=y"],
            ["--net", "name=a,mtu=67"],
            ["--net", "name=a,mtu=65536"],
            ["--net", "name=a,bridge=x"],
        ] {
            assert!(run(&[bad[0], bad[1], "x.elf"]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn regions_and_arguments_of_a_unikernel() {
        let plain = run(&["x.elf"]).unwrap().options();
        assert_eq!((plain.backend, plain.memory, plain.vms), (None, 64 << 20, 1));
        assert!(plain.regions.is_empty() && plain.arguments.is_empty());
        let board = "name=board,size=4M,at=0x4000000000,ro";
        let words =
            ["--region", board, "--time-limit", "0.5", "--vms", "2", "x.elf", "--", "--a", "b"];
        let full = run(&words).unwrap().options();
        let want = RegionOption {
            name: "board".into(),
            bytes: 4 << 20,
            at: Some(0x40_0000_0000),
            write: false,
        };
        assert_eq!((full.regions, full.arguments), (vec![want], vec!["--a".into(), "b".into()]));
        assert_eq!(full.time_limit, Some(Duration::from_millis(500)));
        for bad in [
            ["--region", "name=x"],
            ["--region", "size=4M"],
            ["--region", "name=x,size=4M,rw"],
            ["--region", "name=x,size=4M,at=board"],
            ["--time-limit", "0"],
            ["--time-limit", "-1"],
            ["--time-limit", "1e99"],
            ["--vms", "0"],
            ["--vms", "65"],
            ["--backend", "none"],
            ["--group", "a/b"],
            ["--group", ""],
            ["--group-memory", "x"],
            // Without a group.
            ["--group-peers", "3"],
        ] {
            assert!(run(&[bad[0], bad[1], "x.elf"]).is_err(), "{bad:?}");
        }
        assert!(run(&[]).is_err());
    }

    #[test]
    fn groups_and_their_peers() {
        let words = ["--group", "g", "--group-memory", "1G", "--group-peers", "8", "x.elf"];
        let meeting = Meeting { name: "g".into(), memory: Some(1 << 30), peers: Some(8) };
        assert_eq!(run(&words).unwrap().options().group, Some(meeting));
        let all = Target { group: "a.b".into(), peer: None };
        assert_eq!(target("a.b"), Ok(all.clone()));
        assert_eq!(target("a.b/63"), Ok(Target { peer: Some(63), ..all }));
        for bad in ["", "/", "/1", "a/", "a/64", "a/-1", "a/b", "a/1/2", ".a", "a b"] {
            assert!(target(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!((size("4096"), size("3G")), (Ok(4096), Ok(3 << 30)));
        for bad in ["", "M", "4m", "-1", "4 M", "99999999999G"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }
}
