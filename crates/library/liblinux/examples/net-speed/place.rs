//! Namespaces, devices and addresses.
//!
//! | path | library | native |
//! |---|---|---|
//! | `direct` | eth0, TAP device of the peer | veth pair to the peer |
//! | `10Gbit` | eth1, TAP device of a router | veth pair to the router |
//!
//! The router forwards to the peer over a veth pair, whose end at the router has a token bucket filter of 10 Gbit/s.

use crate::meter::{Meter, Metered};
use kyozon_devices::net::backend::Tap;
use kyozon_devices::net::NetDevice;
use liblinux::calls::Calls;
use liblinux::host::Host;
use liblinux::net::Network;
use liblinux::{Config, Instance, Thread};
use std::error::Error;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;

/// A result of any work here.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Names of the paths.
pub const PATHS: [&str; 2] = ["direct", "10Gbit"];
/// Port of every test at the peer.
const PORT: u16 = 5001;

/// One end, to which threads attach.
pub trait Side: Sync {
    /// The calling thread's calls at this end.
    fn attach(&self) -> Box<dyn Calls>;
}

/// A network namespace of the host.
pub struct Namespace(File);

impl Namespace {
    fn new() -> Result<Self> {
        let make = || {
            // SAFETY: the call concerns this thread alone, and no memory.
            match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
                0 => File::open("/proc/thread-self/ns/net"),
                _ => Err(io::Error::last_os_error()),
            }
        };
        let made = std::thread::scope(|scope| scope.spawn(make).join());
        let file = made.map_err(|_| "a thread panicked")??;
        let namespace = Self(file);
        namespace.run(|| Ok(Host.set_link("lo", true)?))?;
        Ok(namespace)
    }

    /// Moves the calling thread here.
    fn enter(&self) -> io::Result<()> {
        // SAFETY: the call concerns this thread alone, and no memory.
        match unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Runs `work` here.
    fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let inside = || {
            self.enter()?;
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).map_err(|_| "a thread panicked")?
    }

    /// A name that commands of this process's children understand.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// A veth pair: one end here, one end in `other`, each with its name and address.
    fn join(&self, here: [&str; 2], other: &Self, there: [&str; 2]) -> Result<()> {
        let target = other.path();
        self.run(|| {
            let words = ["link", "add", here[0], "type", "veth", "peer", "name", there[0]];
            tool("ip", &[&words[..], &["netns", &target]].concat())?;
            up(here[0], here[1])
        })?;
        other.run(|| up(there[0], there[1]))
    }
}

impl Side for Namespace {
    fn attach(&self) -> Box<dyn Calls> {
        self.enter().expect("the namespace exists");
        Box::new(Host)
    }
}

impl Side for Instance {
    fn attach(&self) -> Box<dyn Calls> {
        Box::new(Instance::attach(self).expect("the kernel runs"))
    }
}

fn tool(name: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(name).args(arguments).output().map_err(|e| format!("{name}: {e}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} {}: {text}", arguments.join(" ")).into());
    }
    Ok(())
}

/// Gives an interface of the calling thread's namespace its address.
fn up(name: &str, address: &str) -> Result<()> {
    Host.add_address(name, address)?;
    Host.set_link(name, true)?;
    Ok(())
}

/// Everything that the samples need.
pub struct Place {
    peer: Namespace,
    native: Namespace,
    library: Instance,
    thread: Thread,
    meter: Arc<Meter>,
}

impl Place {
    /// Makes namespaces and devices, and boots the kernel image.
    pub fn new(image: &str) -> Result<Self> {
        let (peer, native, router) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        native.join(["direct", "10.1.0.2/24"], &peer, ["native", "10.1.0.1/24"])?;
        native.join(["router", "10.4.0.2/24"], &router, ["native", "10.4.0.1/24"])?;
        router.join(["peer", "10.3.0.2/24"], &peer, ["router", "10.3.0.1/24"])?;
        let tap = |address: &'static str| {
            move || {
                let tap = Tap::open("library")?;
                up("library", address)?;
                Ok(tap)
            }
        };
        let direct = peer.run(tap("10.2.0.1/24"))?;
        let routed = router.run(tap("10.5.0.1/24"))?;
        router.run(|| {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            let words = ["qdisc", "add", "dev", "peer", "root", "tbf", "rate", "10gbit"];
            tool("tc", &[&words[..], &["burst", "256kb", "latency", "5ms"]].concat())
        })?;
        let back = "10.3.0.2".parse()?;
        peer.run(|| Ok(Host.add_route("10.4.0.0/15", back)?))?;
        let gateway = "10.4.0.1".parse()?;
        native.run(|| Ok(Host.add_route("10.3.0.0/24", gateway)?))?;

        let (mut config, meter) = (Config::new(image), Arc::new(Meter::default()));
        for (number, tap) in [direct, routed].into_iter().enumerate() {
            let mac = [2, 0, 0, 0, 0, number as u8 + 1];
            let metered = Metered { tap, meter: meter.clone() };
            config = config.device(NetDevice::new(mac, 1500, Box::new(metered))?);
        }
        let (library, thread) = Instance::in_process(config)?;
        for (name, address) in [("eth0", "10.2.0.2/24"), ("eth1", "10.5.0.2/24")] {
            thread.add_address(name, address)?;
            thread.set_link(name, true)?;
        }
        thread.add_route("10.3.0.0/24", "10.5.0.1".parse()?)?;
        Ok(Self { peer, native, library, thread, meter })
    }

    /// The calls of the library's TAP devices.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The peer.
    pub fn peer(&self) -> &dyn Side {
        &self.peer
    }

    /// The variants, by name.
    pub fn variants(&self) -> Vec<(&'static str, &dyn Side)> {
        vec![("library", &self.library), ("native", &self.native)]
    }

    /// The peer's address, which determines the path.
    pub fn peer_address(&self, path: &str, variant: &str) -> SocketAddr {
        let network = match (path, variant) {
            ("direct", "native") => 1,
            ("direct", _) => 2,
            _ => 3,
        };
        ([10, network, 0, 1], PORT).into()
    }

    /// Halts the kernel. The namespaces end with the process.
    pub fn end(self) -> Result<()> {
        Ok(self.library.halt(self.thread)?)
    }
}
