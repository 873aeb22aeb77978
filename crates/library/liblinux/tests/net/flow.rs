//! Bytes through connections, with a check of their content.

use liblinux::calls::{Calls, Fd, Result};
use liblinux::socket::Sockets;
use liblinux::Errno;
use std::net::SocketAddr;

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
