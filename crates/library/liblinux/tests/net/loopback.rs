//! The loopback interface.

use crate::ping::ping;
use crate::{attach, common, flow};
use liblinux::calls::Calls;
use liblinux::socket::Sockets;
use std::net::SocketAddr;

fn over(address: &str) {
    let (instance, thread) = common::boot(common::config());
    let address: SocketAddr = address.parse().expect("an address");
    let listener = thread.tcp_listener(address).expect("listen");
    std::thread::scope(|scope| {
        scope.spawn(|| flow::serve(attach(&instance), listener, 16 << 20));
        flow::connect(attach(&instance), address, 16 << 20);
    });
    let (a, b) = (thread.udp(address).expect("bind"), thread.udp(SocketAddr::new(address.ip(), 9)));
    let b = b.expect("bind");
    // The largest datagram of IPv4.
    let sent: Vec<u8> = (0..65507).map(|i| (i % 251) as u8).collect();
    thread.send_to(b, &sent, address).expect("send");
    let mut received = vec![0; 65536];
    let (bytes, from) = thread.receive_from(a, &mut received).expect("receive");
    assert!(received[..bytes] == sent && from == SocketAddr::new(address.ip(), 9));
    thread.close(a).and_then(|()| thread.close(b)).expect("close");
    instance.halt(thread).expect("halt");
}

#[test]
fn loopback_ipv4() {
    over("127.0.0.1:2000");
}

#[test]
fn loopback_ipv6() {
    over("[::1]:2000");
}

#[test]
fn icmp_loopback() {
    let (instance, thread) = common::boot(common::config());
    for address in ["127.0.0.1", "127.255.0.1", "::1"] {
        for bytes in [0, 56, 1400, 60_000] {
            ping(&thread, address.parse().expect("an address"), bytes).expect("an echo");
        }
    }
    instance.halt(thread).expect("halt");
}
