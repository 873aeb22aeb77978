//! Networks. The names of the tests of one device follow the net tests of the Linux Kernel Library.

#[path = "../common/mod.rs"]
mod common;
mod device;
mod flow;
mod interface;
mod loopback;
mod namespace;
mod pair;
mod ping;
mod recorder;
mod routed;
mod serving;
mod stream;
mod stress;
mod tap;

use kyozon_devices::net::backend::Backend;
use kyozon_devices::net::{Mac, NetDevice, NetHandle};
use liblinux::net::Network;
use liblinux::{Instance, Thread};

/// The address of a device with this number.
fn mac(number: u8) -> Mac {
    [2, 0, 0, 0, 0, number]
}

/// A device with this number, and the host's view of it.
fn port(number: u8, mtu: u16, backend: impl Backend + 'static) -> (NetDevice, NetHandle) {
    let device = NetDevice::new(mac(number), mtu, Box::new(backend)).expect("a device");
    let handle = device.handle();
    (device, handle)
}

/// A kernel with a device, whose interface has `addresses` and is up.
fn kernel(device: NetDevice, addresses: &[impl AsRef<str>]) -> (Instance, Thread) {
    let (instance, thread) = common::boot(common::config().device(device));
    for address in addresses {
        thread.add_address("eth0", address.as_ref()).expect("an address");
    }
    thread.set_link("eth0", true).expect("up");
    (instance, thread)
}

/// Attaches each thread that calls it.
fn attach(instance: &Instance) -> impl Fn() -> Thread + Sync + '_ {
    || instance.attach().expect("attach")
}

/// Two kernels, joined by a wire.
struct Two {
    a: (Instance, Thread),
    b: (Instance, Thread),
    /// The host's view of the first one's device.
    port: NetHandle,
}

/// Two kernels, joined by the ends of a wire: 10.0.0.1 and 10.0.0.2, fd00::1 and fd00::2.
fn two(mtu: u16, wire: (impl Backend + 'static, impl Backend + 'static)) -> Two {
    let (first, port_a) = port(1, mtu, wire.0);
    let (second, _) = port(2, mtu, wire.1);
    let a = kernel(first, &["10.0.0.1/24", "fd00::1/64"]);
    let b = kernel(second, &["10.0.0.2/24", "fd00::2/64"]);
    Two { a, b, port: port_a }
}

impl Two {
    fn halt(self) {
        self.a.0.halt(self.a.1).expect("halt");
        self.b.0.halt(self.b.1).expect("halt");
    }
}
