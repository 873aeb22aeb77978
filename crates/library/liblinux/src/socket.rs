//! Sockets of a kernel: addresses as Rust's types.

use crate::calls::{Arg, Calls, Fd, Result};
use crate::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use Arg::{In, InOut, Number, Out};

/// Bytes of the longest address here, a struct sockaddr_in6.
const ADDRESS: usize = 28;
/// No address: a null pointer.
const NONE: Arg<'static> = Number(0);

/// A struct sockaddr_in or sockaddr_in6.
fn packed(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address {
        SocketAddr::V4(v4) => {
            let family = libc::AF_INET as u16;
            [&family.to_ne_bytes()[..], &port, &v4.ip().octets(), &[0; 8]].concat()
        }
        SocketAddr::V6(v6) => {
            let family = (libc::AF_INET6 as u16).to_ne_bytes();
            let (flow, scope) = (v6.flowinfo().to_be_bytes(), v6.scope_id().to_ne_bytes());
            [&family[..], &port, &flow, &v6.ip().octets(), &scope].concat()
        }
    }
}

fn unpacked(bytes: &[u8; ADDRESS]) -> Result<SocketAddr> {
    let part = |at: usize| -> [u8; 4] { std::array::from_fn(|i| bytes[at + i]) };
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => Ok((Ipv4Addr::from(part(4)), port).into()),
        libc::AF_INET6 => {
            let ip: [u8; 16] = std::array::from_fn(|i| bytes[8 + i]);
            let (flow, scope) = (u32::from_be_bytes(part(4)), u32::from_ne_bytes(part(24)));
            Ok(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into())
        }
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

fn fd<'a>(socket: Fd) -> Arg<'a> {
    Number(socket.0 as u64)
}

fn number<'a>(value: i32) -> Arg<'a> {
    Number(value as u64)
}

/// The address family of an address.
pub fn family(address: IpAddr) -> i32 {
    match address {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    }
}

/// Calls on sockets. Methods are named after the calls that they make; errors are those of the call.
pub trait Sockets: Calls {
    /// socket(2), with `SOCK_CLOEXEC`.
    fn socket(&self, family: i32, kind: i32, protocol: i32) -> Result<Fd> {
        let kind = kind | libc::SOCK_CLOEXEC;
        self.call(libc::SYS_socket, &mut [number(family), number(kind), number(protocol)])
            .map(|fd| Fd(fd as i32))
    }

    /// bind(2).
    fn bind(&self, socket: Fd, address: SocketAddr) -> Result<()> {
        let address = packed(address);
        let bytes = Number(address.len() as u64);
        self.call(libc::SYS_bind, &mut [fd(socket), In(&address), bytes]).map(drop)
    }

    /// connect(2).
    fn connect(&self, socket: Fd, address: SocketAddr) -> Result<()> {
        let address = packed(address);
        let bytes = Number(address.len() as u64);
        self.call(libc::SYS_connect, &mut [fd(socket), In(&address), bytes]).map(drop)
    }

    /// listen(2).
    fn listen(&self, socket: Fd, backlog: i32) -> Result<()> {
        self.call(libc::SYS_listen, &mut [fd(socket), number(backlog)]).map(drop)
    }

    /// accept4(2) with `SOCK_CLOEXEC`, without the peer's address.
    fn accept(&self, socket: Fd) -> Result<Fd> {
        let arguments = &mut [fd(socket), NONE, NONE, number(libc::SOCK_CLOEXEC)];
        self.call(libc::SYS_accept4, arguments).map(|fd| Fd(fd as i32))
    }

    /// getsockname(2).
    fn local_address(&self, socket: Fd) -> Result<SocketAddr> {
        let (mut address, mut bytes) = ([0; ADDRESS], (ADDRESS as u32).to_ne_bytes());
        let arguments = &mut [fd(socket), Out(&mut address), InOut(&mut bytes)];
        self.call(libc::SYS_getsockname, arguments)?;
        unpacked(&address)
    }

    /// sendto(2) to the connected peer. A peer that is gone causes no signal.
    fn send(&self, socket: Fd, bytes: &[u8], flags: i32) -> Result<usize> {
        let (length, flags) = (Number(bytes.len() as u64), number(flags | libc::MSG_NOSIGNAL));
        let arguments = &mut [fd(socket), In(bytes), length, flags, NONE, NONE];
        self.call(libc::SYS_sendto, arguments).map(|bytes| bytes as usize)
    }

    /// sendto(2) until all is sent.
    fn send_all(&self, socket: Fd, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[self.send(socket, bytes, 0)?..];
        }
        Ok(())
    }

    /// sendto(2) of one datagram.
    fn send_to(&self, socket: Fd, bytes: &[u8], to: SocketAddr) -> Result<usize> {
        let to = packed(to);
        let (length, size) = (Number(bytes.len() as u64), Number(to.len() as u64));
        let arguments = &mut [fd(socket), In(bytes), length, number(0), In(&to), size];
        self.call(libc::SYS_sendto, arguments).map(|bytes| bytes as usize)
    }

    /// recvfrom(2) without the sender's address. Returns 0 at the end of a stream.
    fn receive(&self, socket: Fd, to: &mut [u8], flags: i32) -> Result<usize> {
        let length = Number(to.len() as u64);
        let arguments = &mut [fd(socket), Out(to), length, number(flags), NONE, NONE];
        self.call(libc::SYS_recvfrom, arguments).map(|bytes| bytes as usize)
    }

    /// recvfrom(2) until `to` is full or the stream ends. Returns the number of bytes.
    fn receive_all(&self, socket: Fd, to: &mut [u8]) -> Result<usize> {
        let mut have = 0;
        while have < to.len() {
            match self.receive(socket, &mut to[have..], 0)? {
                0 => break,
                bytes => have += bytes,
            }
        }
        Ok(have)
    }

    /// recvfrom(2) of one datagram, with its sender.
    fn receive_from(&self, socket: Fd, to: &mut [u8]) -> Result<(usize, SocketAddr)> {
        let (mut address, mut size) = ([0; ADDRESS], (ADDRESS as u32).to_ne_bytes());
        let length = Number(to.len() as u64);
        let (from, size) = (Out(&mut address), InOut(&mut size));
        let arguments = &mut [fd(socket), Out(to), length, number(0), from, size];
        let bytes = self.call(libc::SYS_recvfrom, arguments)? as usize;
        Ok((bytes, unpacked(&address)?))
    }

    /// setsockopt(2) of a number.
    fn set_option(&self, socket: Fd, level: i32, name: i32, value: i32) -> Result<()> {
        self.set_option_bytes(socket, level, name, &value.to_ne_bytes())
    }

    /// setsockopt(2) of any structure.
    fn set_option_bytes(&self, socket: Fd, level: i32, name: i32, value: &[u8]) -> Result<()> {
        let size = Number(value.len() as u64);
        let arguments = &mut [fd(socket), number(level), number(name), In(value), size];
        self.call(libc::SYS_setsockopt, arguments).map(drop)
    }

    /// Makes receiving fail with EAGAIN after `limit`.
    fn set_receive_limit(&self, socket: Fd, limit: Duration) -> Result<()> {
        let (seconds, micros) = (limit.as_secs() as i64, i64::from(limit.subsec_micros()));
        let value = [seconds.to_ne_bytes(), micros.to_ne_bytes()].concat();
        self.set_option_bytes(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &value)
    }

    /// shutdown(2).
    fn shutdown(&self, socket: Fd, how: i32) -> Result<()> {
        self.call(libc::SYS_shutdown, &mut [fd(socket), number(how)]).map(drop)
    }

    /// A TCP socket that listens at `address`.
    fn tcp_listener(&self, address: SocketAddr) -> Result<Fd> {
        let socket = self.socket(family(address.ip()), libc::SOCK_STREAM, 0)?;
        let ready = self
            .set_option(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)
            .and_then(|()| self.bind(socket, address))
            .and_then(|()| self.listen(socket, libc::SOMAXCONN));
        ready_or_closed(self, socket, ready)
    }

    /// A TCP socket that is connected to `address`.
    fn tcp_stream(&self, address: SocketAddr) -> Result<Fd> {
        let socket = self.socket(family(address.ip()), libc::SOCK_STREAM, 0)?;
        ready_or_closed(self, socket, self.connect(socket, address))
    }

    /// A UDP socket at `address`.
    fn udp(&self, address: SocketAddr) -> Result<Fd> {
        let socket = self.socket(family(address.ip()), libc::SOCK_DGRAM, 0)?;
        ready_or_closed(self, socket, self.bind(socket, address))
    }
}

impl<C: Calls + ?Sized> Sockets for C {}

/// Closes a socket that did not become ready.
fn ready_or_closed<C: Calls + ?Sized>(kernel: &C, socket: Fd, ready: Result<()>) -> Result<Fd> {
    ready.map(|()| socket).inspect_err(|_| {
        // The first error is the one to report.
        let _ = kernel.close(socket);
    })
}

#[cfg(test)]
mod tests;
