//! Two kernels in one process.

use super::{attach, two, Two};
use crate::flow;
use crate::ping::ping;
use kyozon_devices::net::backend::pair;
use liblinux::calls::{Calls, Fd};
use liblinux::net::Network;
use liblinux::socket::Sockets;
use liblinux::{Errno, Instance};
use std::sync::mpsc::channel;

/// Sends 32 MiB both ways at once.
pub fn transfer(two: &Two, address: &str) {
    const BYTES: u64 = 32 << 20;
    let address = address.parse().expect("an address");
    let listener = two.b.1.tcp_listener(address).expect("listen");
    let (a, b) = (&two.a.0, &two.b.0);
    std::thread::scope(|scope| {
        scope.spawn(|| flow::serve(attach(b), listener, BYTES));
        flow::connect(attach(a), address, BYTES);
    });
}

#[test]
fn icmp() {
    let two = two(1500, pair().expect("a pair"));
    for address in ["10.0.0.2", "fd00::2"] {
        for bytes in [0, 56, 1452, 1474, 20_000] {
            let address = address.parse().expect("an address");
            ping(&two.a.1, address, bytes).unwrap_or_else(|e| panic!("{address} {bytes}: {e:?}"));
        }
    }
    two.halt();
}

#[test]
fn tcp_both_ways_in_large_segments() {
    let two = two(1500, pair().expect("a pair"));
    transfer(&two, "10.0.0.2:2000");
    transfer(&two, "[fd00::2]:2000");
    let counts = two.port.counts();
    // 64 MiB each way are 46000 segments of 1460 bytes.
    assert!(counts.sent > 1000 && counts.sent < 30_000, "{counts:?}");
    assert_eq!((counts.refused, counts.lost_out, counts.lost_in), (0, 0, 0));
    two.halt();
}

#[test]
fn udp_and_fragments() {
    let two = two(1500, pair().expect("a pair"));
    for address in ["10.0.0.2:2000", "[fd00::2]:2000"] {
        flow::datagrams(&two.a.1, &two.b.1, address.parse().expect("an address"));
    }
    two.halt();
}

#[test]
fn mtu_changes() {
    let two = two(9000, pair().expect("a pair"));
    for mtu in [9000, 1280, 4000] {
        for thread in [&two.a.1, &two.b.1] {
            thread.set_mtu("eth0", mtu).expect("an MTU");
            assert_eq!(thread.interface("eth0").expect("eth0").mtu, mtu);
        }
        // A packet that may not be divided: the largest one passes, a larger one does not.
        let socket = two.a.1.socket(libc::AF_INET, libc::SOCK_DGRAM, 0).expect("a socket");
        let discover = libc::IP_PMTUDISC_DO;
        let set = two.a.1.set_option(socket, libc::SOL_IP, libc::IP_MTU_DISCOVER, discover);
        set.expect("an option");
        let packet = vec![0; mtu as usize - 27];
        let to = "10.0.0.2:9".parse().expect("an address");
        assert_eq!(two.a.1.send_to(socket, &packet[1..], to), Ok(packet.len() - 1));
        assert_eq!(two.a.1.send_to(socket, &packet, to), Err(Errno(libc::EMSGSIZE)));
        two.a.1.close(socket).expect("close");
        transfer(&two, "10.0.0.2:2000");
    }
    let error = two.a.1.set_mtu("eth0", 9001).expect_err("the device has less");
    assert!(error.to_string().starts_with("cannot set the MTU of eth0 to 9001: "), "{error}");
    two.halt();
}

/// Sends until the other side is gone or the kernel halts.
fn send_forever(instance: &Instance, socket: Fd) -> Errno {
    let thread = instance.attach().expect("attach");
    let piece = vec![7; 1 << 16];
    loop {
        if let Err(error) = thread.send(socket, &piece, 0) {
            return error;
        }
    }
}

#[test]
fn one_side_halts_in_mid_transfer() {
    let Two { a, b, port } = two(1500, pair().expect("a pair"));
    let address = "10.0.0.2:2000".parse().expect("an address");
    let listener = b.1.tcp_listener(address).expect("listen");
    let (started, wait) = channel();
    std::thread::scope(|scope| {
        let receiver = b.0.clone();
        let receiver = scope.spawn(move || {
            let thread = receiver.attach().expect("attach");
            let socket = thread.accept(listener).expect("accept");
            let mut buffer = vec![0; 1 << 16];
            let mut total = 0;
            loop {
                match thread.receive(socket, &mut buffer, 0) {
                    Ok(bytes) => total += bytes,
                    Err(error) => return error,
                }
                if total > 4 << 20 {
                    // Nobody waits for the later ones.
                    let _ = started.send(());
                }
            }
        });
        let socket = a.1.tcp_stream(address).expect("connect");
        // The sender gives up soon after the other side is silent.
        let limit = 2000;
        a.1.set_option(socket, libc::SOL_TCP, libc::TCP_USER_TIMEOUT, limit).expect("an option");
        let sender = a.0.clone();
        let sender = scope.spawn(move || send_forever(&sender, socket));
        wait.recv().expect("a transfer");
        b.0.halt(b.1).expect("halt");
        assert_eq!(receiver.join().expect("no panic"), Errno(libc::ESHUTDOWN));
        let error = sender.join().expect("no panic");
        assert!([libc::ETIMEDOUT, libc::EHOSTUNREACH].contains(&error.0), "{error:?}");
    });
    // The other kernel works on: its device has lost the link.
    assert!(!port.link());
    ping(&a.1, "10.0.0.1".parse().expect("an address"), 56).expect("an echo");
    a.0.halt(a.1).expect("halt");
}
