//! Echoes by raw sockets.

use liblinux::calls::{Calls, Result};
use liblinux::socket::{family, Sockets};
use liblinux::Errno;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Bytes of an IPv4 header without options. A raw socket receives it.
const IPV4: usize = 20;
/// How long an answer may take. The first one waits for the neighbour's address.
const LIMIT: Duration = Duration::from_secs(5);

/// The checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum + (sum >> 16)) as u16
}

/// Sends an echo request with a content of `bytes` bytes, an even number, and waits for the answer.
pub fn ping(kernel: &dyn Calls, to: IpAddr, bytes: usize) -> Result<()> {
    let (request, reply, protocol, header) = match to {
        IpAddr::V4(_) => (8, 0, libc::IPPROTO_ICMP, IPV4),
        IpAddr::V6(_) => (128, 129, libc::IPPROTO_ICMPV6, 0),
    };
    let socket = kernel.socket(family(to), libc::SOCK_RAW, protocol)?;
    kernel.set_receive_limit(socket, LIMIT)?;
    let mut packet = vec![request, 0, 0, 0, 0x12, 0x34, 0, 1];
    packet.extend((0..bytes).map(|i| i as u8));
    // The kernel completes the checksum of ICMPv6, which covers addresses.
    let sum = checksum(&packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    kernel.send_to(socket, &packet, SocketAddr::new(to, 0))?;
    let mut answer = vec![0; 65536];
    let start = Instant::now();
    // A raw socket also receives the request, if it is to an address of its own kernel.
    let result = loop {
        match kernel.receive_from(socket, &mut answer) {
            Ok((bytes, from)) if from.ip() == to && bytes >= header + packet.len() => {
                let answer = &answer[header..bytes];
                if answer[0] == reply && answer[4..] == packet[4..] {
                    break Ok(());
                }
            }
            Ok(_) => {}
            Err(error) => break Err(error),
        }
        if start.elapsed() > LIMIT {
            break Err(Errno(libc::ETIMEDOUT));
        }
    };
    kernel.close(socket)?;
    result
}
