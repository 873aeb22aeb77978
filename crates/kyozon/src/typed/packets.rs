//! The packets of a network interface, for a program that counts or looks at them.

use anyhow::{anyhow, Context, Result};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::socket_error;
use rustix::net::{bind, socket_with, AddressFamily, SocketAddrAny, SocketFlags, SocketType};
use std::os::fd::{AsFd, OwnedFd};

/// Every protocol, in the order of bytes of networks.
const ALL: u16 = 0x0003_u16.to_be();

/// `struct sockaddr_ll` of packet(7).
#[repr(C)]
struct Address {
    family: u16,
    protocol: u16,
    interface: i32,
    hardware: u16,
    kind: u8,
    bytes: u8,
    address: [u8; 8],
}

/// A packet socket that receives what an interface receives and sends.
///
/// # Errors
///
/// There is no such interface, or the process must not see packets.
pub(super) fn socket(interface: &str) -> Result<OwnedFd> {
    // Without a protocol it receives nothing yet.
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(|error| match error {
        Errno::PERM => {
            anyhow!("--packets: to see packets needs root, or the capability CAP_NET_RAW")
        }
        _ => anyhow::Error::new(error).context("--packets: a packet socket"),
    })?;
    let index = index_of(&socket, interface).context("--packets")?;
    bind(&socket, &address(index)).with_context(|| format!("--packets {interface}"))?;
    Ok(socket)
}

/// The index of an interface, by any socket.
pub(super) fn index_of(socket: &impl AsFd, interface: &str) -> Result<u32> {
    name_to_index(socket, interface)
        .with_context(|| format!("no network interface {interface}: see ip link"))
}

#[allow(unsafe_code)]
fn address(interface: u32) -> SocketAddrAny {
    let address = Address {
        family: AddressFamily::PACKET.as_raw(),
        protocol: ALL,
        interface: interface as i32,
        hardware: 0,
        kind: 0,
        bytes: 0,
        address: [0; 8],
    };
    // SAFETY: a whole address of this family is read.
    unsafe { SocketAddrAny::read((&raw const address).cast(), size_of::<Address>() as u32) }
}

/// Waits until there is a packet.
///
/// # Errors
///
/// The interface is down or gone.
pub(super) fn wait(socket: &impl AsFd) -> Result<()> {
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    loop {
        match poll(&mut sockets, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("--packets: waiting for a packet"),
        }
    }
    match socket_error(socket) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) | Err(error) => Err(error).context("--packets: the interface"),
    }
}
