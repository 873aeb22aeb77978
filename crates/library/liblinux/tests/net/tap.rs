//! A TAP device: the library's network stack against the host's.

use super::{attach, kernel, port};
use crate::ping::ping;
use crate::{flow, namespace};
use kyozon_devices::net::NetHandle;
use liblinux::calls::{Calls, Fd};
use liblinux::host::Host;
use liblinux::socket::Sockets;
use liblinux::{Instance, Thread};

const BYTES: u64 = 64 << 20;
const HOST: [&str; 2] = ["10.1.0.1", "fd01::1"];
const LIBRARY: [&str; 2] = ["10.1.0.2", "fd01::2"];

/// A kernel at a TAP device in a namespace of the calling thread. Without root there is none, visibly.
fn setting(test: &str) -> Option<(Instance, Thread, NetHandle)> {
    if let Some(what) = namespace::missing() {
        eprintln!("SKIP {test}: needs {what}");
        return None;
    }
    namespace::enter().expect("a namespace");
    let tap = namespace::tap("tap0", &HOST.map(with_prefix));
    let (device, handle) = port(9, 1500, tap);
    let (instance, thread) = kernel(device, &LIBRARY.map(with_prefix));
    Some((instance, thread, handle))
}

fn with_prefix(address: &str) -> String {
    format!("{address}/{}", if address.contains(':') { 64 } else { 24 })
}

fn at(address: &str, port: u16) -> std::net::SocketAddr {
    (address.parse::<std::net::IpAddr>().expect("an address"), port).into()
}

#[test]
fn icmp_tap() {
    let Some((instance, thread, _)) = setting("icmp_tap") else { return };
    for (host, library) in HOST.iter().zip(LIBRARY) {
        for bytes in [56, 1474, 20_000] {
            ping(&thread, host.parse().expect("an address"), bytes).expect("an echo of the host");
            ping(&Host, library.parse().expect("an address"), bytes).expect("an echo");
        }
    }
    instance.halt(thread).expect("halt");
}

#[test]
fn udp_and_fragments_tap() {
    let Some((instance, thread, handle)) = setting("udp_and_fragments_tap") else { return };
    for host in HOST {
        flow::datagrams(&thread, &Host, at(host, 2000));
    }
    assert_eq!((handle.counts().refused, handle.counts().lost_out), (0, 0));
    instance.halt(thread).expect("halt");
}

#[test]
fn host_to_library_tcp() {
    let Some((instance, thread, handle)) = setting("host_to_library_tcp") else { return };
    for address in LIBRARY {
        let address = at(address, 2000);
        let listener = thread.tcp_listener(address).expect("listen");
        std::thread::scope(|scope| {
            scope.spawn(|| flow::serve(attach(&instance), listener, BYTES));
            flow::connect(|| Host, address, BYTES);
        });
    }
    large_segments(&handle);
    instance.halt(thread).expect("halt");
}

#[test]
fn library_to_host_tcp() {
    let Some((instance, thread, handle)) = setting("library_to_host_tcp") else { return };
    for address in HOST {
        let address = at(address, 2000);
        let listener = Host.tcp_listener(address).expect("listen");
        std::thread::scope(|scope| {
            scope.spawn(|| flow::serve(|| Host, listener, BYTES));
            flow::connect(attach(&instance), address, BYTES);
        });
    }
    large_segments(&handle);
    instance.halt(thread).expect("halt");
}

#[test]
fn small_messages_arrive_while_their_sender_computes() {
    let test = "small_messages_arrive_while_their_sender_computes";
    let Some((instance, thread, handle)) = setting(test) else { return };
    let listener = Host.tcp_listener(at(HOST[0], 2000)).expect("listen");
    let receiver = Host.udp(at(HOST[0], 2001)).expect("a socket");
    let stream = thread.tcp_stream(at(HOST[0], 2000)).expect("connect");
    let accepted = Host.accept(listener).expect("accept");
    let sender = thread.socket(libc::AF_INET, libc::SOCK_DGRAM, 0).expect("a socket");
    thread.connect(sender, at(HOST[0], 2001)).expect("connect");
    for round in 0..20_u64 {
        // More than what makes packets wait; then the thread calls the library no more.
        let mut sent = vec![0; 100 * 1000];
        flow::fill(&mut sent, round, 0);
        for piece in sent.chunks(1000) {
            thread.send_all(stream, piece).expect("send");
        }
        let mut got = vec![0; sent.len()];
        assert_eq!(Host.receive_all(accepted, &mut got), Ok(got.len()));
        assert!(got == sent, "round {round}");
        // Datagrams stay datagrams.
        for piece in sent[..40_000].chunks(700) {
            thread.send(sender, piece, 0).expect("send");
        }
        let mut piece = [0; 1000];
        for want in sent[..40_000].chunks(700) {
            assert_eq!(Host.receive(receiver, &mut piece, 0), Ok(want.len()));
            assert!(piece[..want.len()] == *want, "round {round}");
        }
    }
    assert_eq!((handle.counts().refused, handle.counts().lost_out), (0, 0));
    for socket in [stream, sender] {
        thread.close(socket).expect("close");
    }
    for socket in [accepted, listener, receiver] {
        Host.close(socket).expect("close");
    }
    instance.halt(thread).expect("halt");
}

/// Checks that segments of both directions were larger than the MTU: [`BYTES`] crossed twice, both ways.
fn large_segments(handle: &NetHandle) {
    let counts = handle.counts();
    let small = 2 * BYTES / 1460;
    // As many acknowledgements as half of the segments would be.
    assert!(counts.sent < small / 2 && counts.received < small / 2, "{counts:?}");
    assert_eq!((counts.refused, counts.lost_out, counts.lost_in), (0, 0, 0));
}

/// ethtool's commands that return one number (linux/ethtool.h).
const GET: [(&str, u32); 4] =
    [("transmit checksums", 0x16), ("scatter-gather", 0x18), ("segmentation", 0x1e), ("GRO", 0x2b)];
const SIOCETHTOOL: u64 = 0x8946;

#[test]
fn offloads_are_negotiated() {
    let Some((instance, thread, _)) = setting("offloads_are_negotiated") else { return };
    let socket = thread.socket(libc::AF_INET, libc::SOCK_DGRAM, 0).expect("a socket");
    for (name, command) in GET {
        assert!(get(&thread, socket, command), "{name}");
    }
    thread.close(socket).expect("close");
    instance.halt(thread).expect("halt");
}

/// Asks the driver of eth0. The request has an address, so it cannot be a method of `Calls`.
fn get(thread: &Thread, socket: Fd, command: u32) -> bool {
    let mut value = [command, 0];
    let mut request = [0u64; 5];
    request[0] = u64::from_le_bytes(*b"eth0\0\0\0\0");
    request[2] = value.as_mut_ptr() as u64;
    let arguments = [socket.0 as u64, SIOCETHTOOL, request.as_mut_ptr() as u64, 0, 0, 0];
    // SAFETY: the request is a struct ifreq, whose address is that of a struct ethtool_value.
    assert_eq!(unsafe { thread.syscall(libc::SYS_ioctl, arguments) }, 0, "{command:#x}");
    value[1] != 0
}
