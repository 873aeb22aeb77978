//! A wire of QEMU's protocol, which has no offloads: both kernels compute checksums and divide into segments.

use super::two;
use crate::pair::transfer;
use crate::ping::ping;
use kyozon_devices::net::backend::Stream;
use std::os::unix::net::UnixStream;

#[test]
fn tcp_over_a_stream_socket() {
    let (a, b) = UnixStream::pair().expect("sockets");
    let wire = (Stream::new(a.into()).expect("a wire"), Stream::new(b.into()).expect("a wire"));
    let two = two(1500, wire);
    ping(&two.a.1, "10.0.0.2".parse().expect("an address"), 20_000).expect("an echo");
    transfer(&two, "10.0.0.2:2000");
    let counts = two.port.counts();
    // 32 MiB are 23000 segments of 1460 bytes.
    assert!(counts.sent > 23_000 && counts.refused == 0, "{counts:?}");
    two.halt();
}
