//! TCP/IP over a port, by smoltcp.

use crate::net::Port;
use crate::{clock, system, Result};
use alloc::vec::Vec;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};

pub use smoltcp;

/// A network stack of one port. It does nothing but in [`Stack::poll`].
pub struct Stack {
    port: Wire,
    interface: Interface,
    /// Its sockets.
    pub sockets: SocketSet<'static>,
}

fn now() -> Instant {
    Instant::from_micros((clock::now() / 1000) as i64)
}

impl Stack {
    /// A stack with this address, as in `10.0.0.2/24`, and a way to other networks.
    pub fn new(port: Port, address: IpCidr, gateway: Option<Ipv4Address>) -> Result<Self> {
        let mut seed = [0; 8];
        system::random(&mut seed)?;
        let mut config = Config::new(EthernetAddress(port.mac()).into());
        config.random_seed = u64::from_le_bytes(seed);
        let mut port = Wire(port);
        let mut interface = Interface::new(config, &mut port, now());
        // Of a list that has room for one.
        interface.update_ip_addrs(|list| {
            let _ = list.push(address);
        });
        if let Some(gateway) = gateway {
            // Of a table that has room for one.
            let _ = interface.routes_mut().add_default_ipv4_route(gateway);
        }
        Ok(Self { port, interface, sockets: SocketSet::new(Vec::new()) })
    }

    /// A socket for TCP, with so many bytes of buffer each way.
    pub fn socket(&mut self, bytes: usize) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(alloc::vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        // Whoever waits for an answer does not wait for more to send.
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    /// The socket.
    pub fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Takes and sends what there is.
    pub fn poll(&mut self) {
        self.interface.poll(now(), &mut self.port, &mut self.sockets);
    }

    /// Sleeps until there may be something to do, or the deadline.
    pub fn wait(&mut self, deadline: Option<u64>) {
        let delay = self.interface.poll_delay(now(), &self.sockets);
        let until = delay.map(|delay| clock::now() + delay.total_micros() * 1000);
        let until = until.into_iter().chain(deadline).min();
        self.port.0.wait(until);
    }
}

/// The port, as smoltcp has it.
struct Wire(Port);

struct Received(Vec<u8>);

struct Sending<'a>(&'a mut Port);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, with: F) -> R {
        with(&self.0)
    }
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, with: F) -> R {
        // A token is given where there is room. A frame that is too long for the port goes nowhere.
        let mut frame = alloc::vec![0; bytes];
        let done = with(&mut frame);
        let _ = self.0.send(bytes, |to| to.copy_from_slice(&frame));
        done
    }
}

impl phy::Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        if !self.0.can_send() {
            return None;
        }
        let frame = self.0.receive(<[u8]>::to_vec)?;
        Some((Received(frame), Sending(&mut self.0)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        self.0.can_send().then_some(Sending(&mut self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ethernet;
        all.max_transmission_unit = self.0.most();
        all.checksum = ChecksumCapabilities::default();
        all
    }
}
