//! Bytes through connections, with a check of their content.

use liblinux::calls::{Calls, Fd, Result};
use liblinux::socket::{family, Sockets};
use liblinux::Errno;
use std::net::SocketAddr;
use std::time::Duration;

/// The content of a stream from byte `at` on. It repeats after a prime number of bytes, so that a piece of any size
/// that is lost or repeated shows.
pub fn fill(to: &mut [u8], seed: u64, at: u64) {
    for (i, byte) in to.iter_mut().enumerate() {
        let place = (at + i as u64 + seed) % 65_521;
        *byte = (place ^ place >> 8) as u8;
    }
}

/// Sends `bytes` bytes, and then the end of the stream.
pub fn send(kernel: &dyn Calls, socket: Fd, seed: u64, bytes: u64) -> Result<()> {
    // No power of two, so that pieces do not fall on pages.
    let mut piece = vec![0; 100_003];
    let mut at = 0;
    while at < bytes {
        let length = piece.len().min((bytes - at) as usize);
        fill(&mut piece[..length], seed, at);
        kernel.send_all(socket, &piece[..length])?;
        at += length as u64;
    }
    kernel.shutdown(socket, libc::SHUT_WR)
}

/// Receives to the end of the stream. Returns its bytes; EBADMSG if the content is not what the other side sent.
pub fn receive(kernel: &dyn Calls, socket: Fd, seed: u64) -> Result<u64> {
    let (mut piece, mut expected) = (vec![0; 70_001], vec![0; 70_001]);
    let mut at = 0;
    loop {
        let bytes = kernel.receive(socket, &mut piece, 0)?;
        if bytes == 0 {
            return Ok(at);
        }
        fill(&mut expected[..bytes], seed, at);
        if piece[..bytes] != expected[..bytes] {
            return Err(Errno(libc::EBADMSG));
        }
        at += bytes as u64;
    }
}

/// Accepts one connection, sends `bytes` bytes and receives to the end. Each direction has a thread, which `attach`
/// gives its calls.
pub fn serve<C: Calls>(attach: impl Fn() -> C + Sync, listener: Fd, bytes: u64) {
    let kernel = attach();
    let socket = kernel.accept(listener).expect("accept");
    both(&attach, socket, (2, 1), bytes);
    kernel.close(socket).expect("close");
    kernel.close(listener).expect("close");
}

/// Connects, sends `bytes` bytes and receives to the end.
pub fn connect<C: Calls>(attach: impl Fn() -> C + Sync, to: SocketAddr, bytes: u64) {
    let kernel = attach();
    let socket = kernel.tcp_stream(to).expect("connect");
    both(&attach, socket, (1, 2), bytes);
    kernel.close(socket).expect("close");
}

/// Both directions at once. `seeds` are those of the sent and of the received stream.
fn both<C: Calls>(attach: &(impl Fn() -> C + Sync), socket: Fd, seeds: (u64, u64), bytes: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| send(&attach(), socket, seeds.0, bytes).expect("send"));
        assert_eq!(receive(&attach(), socket, seeds.1), Ok(bytes));
    });
}

/// How long a datagram may take. Its loss is an error, and no test that waits for ever.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends datagrams of every size up to 3000 bytes and some larger ones to `address`, which is the receiver's, and each
/// back from there.
pub fn datagrams(sender: &dyn Calls, receiver: &dyn Calls, address: SocketAddr) {
    let server = receiver.udp(address).expect("bind");
    let client = sender.socket(family(address.ip()), libc::SOCK_DGRAM, 0).expect("a socket");
    receiver.set_receive_limit(server, LIMIT).expect("a limit");
    sender.set_receive_limit(client, LIMIT).expect("a limit");
    let (mut sent, mut received) = (vec![0; 65507], vec![0; 65536]);
    for bytes in (0..3000).chain([8972, 20_000, 65_507]) {
        fill(&mut sent[..bytes], 3, bytes as u64);
        assert_eq!(sender.send_to(client, &sent[..bytes], address), Ok(bytes));
        let (count, from) = receiver
            .receive_from(server, &mut received)
            .unwrap_or_else(|error| panic!("{address}, {bytes} bytes: {error:?}"));
        assert!(received[..count] == sent[..bytes], "{address}, {bytes} bytes: {count}");
        // And back.
        assert_eq!(receiver.send_to(server, &received[..count], from), Ok(bytes));
        let back = sender.receive(client, &mut received, 0);
        assert_eq!(back, Ok(bytes), "{address}, {bytes} bytes, on their way back");
        assert!(received[..bytes] == sent[..bytes], "{address}, {bytes} bytes, on their way back");
    }
    sender.close(client).and_then(|()| receiver.close(server)).expect("close");
}

/// Sends datagrams of `bytes` bytes, many by each call (`UDP_SEGMENT`, udp(7)), to `address`, which is the receiver's.
/// With `merged`, a call of the receiver takes several (`UDP_GRO`).
pub fn segments(
    sender: &dyn Calls,
    receiver: &dyn Calls,
    address: SocketAddr,
    bytes: usize,
    merged: bool,
) {
    // The receiver's buffer counts more than the data.
    const DATAGRAMS: usize = 20;
    let server = receiver.udp(address).expect("bind");
    let client = sender.socket(family(address.ip()), libc::SOCK_DGRAM, 0).expect("a socket");
    receiver.set_receive_limit(server, LIMIT).expect("a limit");
    receiver.set_option(server, libc::SOL_UDP, libc::UDP_GRO, merged.into()).expect("an option");
    sender.set_option(client, libc::SOL_UDP, libc::UDP_SEGMENT, bytes as i32).expect("an option");
    // The last one is shorter.
    let (mut sent, mut received) = (vec![0; DATAGRAMS * bytes - 7], vec![0; 65536]);
    for round in 0..50 {
        fill(&mut sent, 4, round);
        assert_eq!(sender.send_to(client, &sent, address), Ok(sent.len()));
        let mut at = 0;
        while at < sent.len() {
            let count = receiver.receive(server, &mut received, 0);
            let count = count.unwrap_or_else(|error| panic!("{address}, round {round}: {error:?}"));
            assert!(received[..count] == sent[at..at + count], "{address}, round {round}");
            assert!(merged || count == bytes.min(sent.len() - at), "{address}: {count} bytes");
            at += count;
        }
    }
    sender.close(client).and_then(|()| receiver.close(server)).expect("close");
}
