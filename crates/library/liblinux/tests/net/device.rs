//! One device, from its creation to its removal.

use super::{kernel, mac, port};
use crate::common;
use crate::ping::ping;
use kyozon_devices::net::backend::pair;
use liblinux::calls::Calls;
use liblinux::net::Network;
use liblinux::socket::Sockets;
use liblinux::Errno;
use std::path::Path;

#[test]
fn nd_create_and_nd_add() {
    let (wire, _other) = pair().expect("a pair");
    let (device, handle) = port(7, 1400, wire);
    let (instance, thread) = common::boot(common::config().device(device));
    let eth0 = thread.interface("eth0").expect("eth0");
    assert_eq!((eth0.mac, eth0.mtu), (mac(7).to_vec(), 1400));
    assert!(handle.link());
    instance.halt(thread).expect("halt");
}

#[test]
fn nd_ifindex() {
    let devices: Vec<_> = (0..3).map(|_| pair().expect("a pair")).collect();
    let mut config = common::config();
    let mut others = Vec::new();
    for (number, (wire, other)) in devices.into_iter().enumerate() {
        config = config.device(port(number as u8, 1500, wire).0);
        others.push(other);
    }
    let (instance, thread) = common::boot(config);
    // Ports have the order of the configuration.
    for number in 0..3u8 {
        let interface = thread.interface(&format!("eth{number}")).expect("an interface");
        assert_eq!(interface.mac, mac(number));
        assert!(interface.index > 1 && !interface.is_up());
    }
    let error = thread.interface("eth3").expect_err("three ports").to_string();
    assert!(error.starts_with("there is no interface eth3: the kernel has lo, "), "{error}");
    assert!(error.contains("eth0, eth1, eth2"), "{error}");
    instance.halt(thread).expect("halt");
}

#[test]
fn if_up() {
    let (wire, _other) = pair().expect("a pair");
    let (device, handle) = port(1, 1500, wire);
    let (instance, thread) = kernel(device, &["10.0.0.1/24"]);
    let running = |wanted: bool| {
        // The kernel sees a change of the link in a work item.
        for _ in 0..500 {
            if thread.interface("eth0").expect("eth0").is_running() == wanted {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        false
    };
    assert!(thread.interface("eth0").expect("eth0").is_up() && running(true));
    handle.set_link(false);
    assert!(running(false), "the interface runs without a link");
    handle.set_link(true);
    assert!(running(true), "the link is back, but the interface does not run");
    thread.set_link("eth0", false).expect("down");
    assert!(!thread.interface("eth0").expect("eth0").is_up());
    instance.halt(thread).expect("halt");
}

#[test]
fn set_ipv4() {
    let (wire, _other) = pair().expect("a pair");
    let (instance, thread) = kernel(port(1, 1500, wire).0, &["10.0.0.1/24"]);
    ping(&thread, "10.0.0.1".parse().expect("an address"), 56).expect("its own address");
    let bind = |ip: &str| {
        let socket = thread.udp(format!("{ip}:7").parse().expect("an address"))?;
        thread.close(socket)
    };
    assert_eq!(bind("10.0.0.1"), Ok(()));
    assert_eq!(bind("10.0.0.2"), Err(Errno(libc::EADDRNOTAVAIL)));
    let again = thread.add_address("eth0", "10.0.0.1/24").expect_err("it has the address");
    assert_eq!(again.errno, Errno(libc::EEXIST));
    assert!(again.to_string().starts_with("cannot give eth0 the address 10.0.0.1/24: "));
    thread.remove_address("eth0", "10.0.0.1/24").expect("remove");
    assert_eq!(bind("10.0.0.1"), Err(Errno(libc::EADDRNOTAVAIL)));
    instance.halt(thread).expect("halt");
}

#[test]
fn set_gateway() {
    let (wire, _other) = pair().expect("a pair");
    let (instance, thread) = kernel(port(1, 1500, wire).0, &["10.0.0.1/24", "fd00::1/64"]);
    let gateway = "10.0.0.254".parse().expect("an address");
    // The address that the kernel would send from, if it has a route.
    let source = |to: &str| {
        let to: std::net::SocketAddr = to.parse().expect("an address");
        let kind = libc::SOCK_DGRAM;
        let socket = thread.socket(liblinux::socket::family(to.ip()), kind, 0)?;
        let source = thread.connect(socket, to).and_then(|()| thread.local_address(socket));
        thread.close(socket)?;
        source.map(|address| address.ip().to_string())
    };
    let unreachable = Err(Errno(libc::ENETUNREACH));
    assert_eq!(source("192.0.2.1:7"), unreachable);
    thread.add_route("192.0.2.0/25", gateway).expect("a route");
    assert_eq!(source("192.0.2.1:7"), Ok("10.0.0.1".into()));
    assert_eq!(source("192.0.2.200:7"), unreachable);
    thread.add_route("default", gateway).expect("a gateway");
    assert_eq!(source("192.0.2.200:7"), Ok("10.0.0.1".into()));
    assert_eq!(source("[2001:db8::1]:7"), unreachable);
    thread.add_route("default", "fd00::9".parse().expect("an address")).expect("a gateway");
    assert_eq!(source("[2001:db8::1]:7"), Ok("fd00::1".into()));
    let error = thread.add_route("0.0.0.0/0", "10.9.9.9".parse().expect("an address"));
    let error = error.expect_err("the gateway is in no network").to_string();
    assert!(error.starts_with("cannot route 0.0.0.0/0 by 10.9.9.9: "), "{error}");
    instance.halt(thread).expect("halt");
}

#[test]
fn nd_remove() {
    let (wire, _other) = pair().expect("a pair");
    let (instance, thread) = kernel(port(1, 1500, wire).0, &["10.0.0.1/24"]);
    let write = |file: &str, text: &[u8]| {
        let path = format!("/sys/bus/virtio/drivers/virtio_net/{file}");
        let file = thread.open(Path::new(&path), libc::O_WRONLY, 0).expect("open");
        thread.write_all(file, text).expect("write");
        thread.close(file).expect("close");
    };
    write("unbind", b"virtio0");
    assert!(thread.interface("eth0").is_err());
    // The same device can be used again.
    write("bind", b"virtio0");
    thread.add_address("eth0", "10.0.0.1/24").expect("an address");
    thread.set_link("eth0", true).expect("up");
    instance.halt(thread).expect("halt");
}
