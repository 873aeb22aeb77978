//! Two kernels and a router between them, a third kernel or the host. Packets that are larger than the MTU, and the
//! large segments of the devices, arrive whole, in both directions.

use super::{attach, kernel, port};
use crate::{common, flow, namespace};
use kyozon_devices::net::backend::{pair, Backend};
use kyozon_devices::net::NetHandle;
use liblinux::calls::Calls;
use liblinux::host::Host;
use liblinux::net::Network;
use liblinux::socket::{family, Sockets};
use liblinux::{Instance, Thread};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// The kernels' addresses, and the router's on their sides.
const ENDS: [[&str; 2]; 2] = [["10.0.0.1", "fd00::1"], ["10.2.0.2", "fd02::2"]];
const ROUTER: [[&str; 2]; 2] = [["10.0.0.9", "fd00::9"], ["10.2.0.9", "fd02::9"]];

/// What makes a kernel a router.
const FORWARD: [&str; 2] =
    ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];

const BYTES: u64 = 32 << 20;

fn with_prefixes(addresses: [&str; 2]) -> [String; 2] {
    [format!("{}/24", addresses[0]), format!("{}/64", addresses[1])]
}

fn ip(address: &str) -> IpAddr {
    address.parse().expect("an address")
}

fn forward(kernel: &dyn Calls) {
    for path in FORWARD {
        let file = kernel.open(Path::new(path), libc::O_WRONLY, 0).expect(path);
        kernel.write_all(file, b"1").expect(path);
        kernel.close(file).expect(path);
    }
}

/// The kernels at both ends.
struct Ends([(Instance, Thread, NetHandle); 2]);

impl Ends {
    /// At the ends of wires with these MTUs, whose others are the router's.
    fn new(mtus: [u16; 2], wires: [impl Backend + 'static; 2]) -> Self {
        let mut side = 0;
        Self(wires.map(|wire| {
            let (device, handle) = port(1 + side as u8, mtus[side], wire);
            let (instance, thread) = kernel(device, &with_prefixes(ENDS[side]));
            for router in ROUTER[side] {
                thread.add_route("default", ip(router)).expect("a route");
            }
            side += 1;
            (instance, thread, handle)
        }))
    }

    /// Sends datagrams until one arrives: before, the sender learns the MTU of the path.
    fn learn(&self, from: usize, to: usize, address: &str) {
        let (sender, receiver) = (&self.0[from].1, &self.0[to].1);
        let to = SocketAddr::new(ip(address), 2000);
        let server = receiver.udp(to).expect("bind");
        receiver.set_receive_limit(server, Duration::from_millis(300)).expect("a limit");
        let client = sender.socket(family(to.ip()), libc::SOCK_DGRAM, 0).expect("a socket");
        let mut buffer = [0; 2000];
        let arrived = (0..20).any(|_| {
            let sent = sender.send_to(client, &buffer[..1440], to);
            sent.is_ok() && receiver.receive(server, &mut buffer, 0) == Ok(1440)
        });
        assert!(arrived, "{to}: no datagram of 1440 bytes arrives");
        receiver.close(server).and_then(|()| sender.close(client)).expect("close");
    }

    /// All packets, from each end to the other.
    fn check(self) {
        for (from, to) in [(0, 1), (1, 0)] {
            for address in ENDS[to] {
                self.learn(from, to, address);
            }
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let (sender, receiver) = (&self.0[from].1, &self.0[to].1);
            for address in ENDS[to] {
                let address = SocketAddr::new(ip(address), 2000);
                for merged in [false, true] {
                    flow::segments(sender, receiver, address, 1200, merged);
                }
            }
        }
        // Both directions at once, or one after the other.
        let [(a, sender, _), (b, receiver, _)] = &self.0;
        for address in ENDS[1] {
            let address = SocketAddr::new(ip(address), 2000);
            flow::datagrams(sender, receiver, address);
            let listener = receiver.tcp_listener(address).expect("listen");
            std::thread::scope(|scope| {
                scope.spawn(|| flow::serve(attach(b), listener, BYTES));
                flow::connect(attach(a), address, BYTES);
            });
        }
        for (instance, thread, handle) in self.0 {
            let counts = handle.counts();
            // The segments of two connections, with an MTU of 1500 bytes.
            let small = 2 * BYTES / 1448;
            assert!(counts.sent < small / 2 && counts.received < small / 2, "{counts:?}");
            assert_eq!((counts.refused, counts.lost_out, counts.lost_in), (0, 0, 0));
            instance.halt(thread).expect("halt");
        }
    }
}

/// A third kernel routes between wires with these MTUs.
fn by_a_kernel(mtus: [u16; 2]) {
    let [(first, near), (second, far)] = [pair(), pair()].map(|wire| wire.expect("a pair"));
    let devices = (port(8, mtus[0], near).0, port(9, mtus[1], far).0);
    let config = common::config().device(devices.0).device(devices.1);
    let (router, thread) = common::boot(config);
    for (name, addresses) in ["eth0", "eth1"].iter().zip(ROUTER) {
        for address in with_prefixes(addresses) {
            thread.add_address(name, &address).expect("an address");
        }
        thread.set_link(name, true).expect("up");
    }
    forward(&thread);
    Ends::new(mtus, [first, second]).check();
    router.halt(thread).expect("halt");
}

/// The host routes between TAP devices with these MTUs.
fn by_the_host(test: &str, mtus: [u16; 2]) {
    if let Some(what) = namespace::missing() {
        eprintln!("SKIP {test}: needs {what}");
        return;
    }
    namespace::enter().expect("a namespace");
    let taps = [0, 1].map(|side| {
        let name = format!("tap{side}");
        let tap = namespace::tap(&name, &with_prefixes(ROUTER[side]));
        Host.set_mtu(&name, mtus[side].into()).expect("an MTU");
        tap
    });
    forward(&Host);
    Ends::new(mtus, taps).check();
}

#[test]
fn routed_by_a_kernel() {
    by_a_kernel([1500, 1500]);
}

#[test]
fn routed_by_a_kernel_to_a_smaller_mtu() {
    by_a_kernel([1500, 1300]);
}

#[test]
fn routed_by_the_host() {
    by_the_host("routed_by_the_host", [1500, 1500]);
}

#[test]
fn routed_by_the_host_to_a_smaller_mtu() {
    by_the_host("routed_by_the_host_to_a_smaller_mtu", [1500, 1300]);
}
