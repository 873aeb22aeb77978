//! TCP/IP over a port, by smoltcp. The port is this machine's, or whatever else takes and gives frames: so the same
//! stack runs in a program of the host's.

use crate::net::Port;
use crate::{clock, system, Result};
use alloc::vec::Vec;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};

pub use smoltcp;

/// What a stack asks of a port, and of the machine that has it.
pub trait Frames {
    /// The port's address.
    fn mac(&self) -> [u8; 6];
    /// Bytes of a frame, at most.
    fn most(&self) -> usize;
    /// The next frame that came.
    fn receive(&mut self) -> Option<Vec<u8>>;
    /// Whether a frame can be sent.
    fn can_send(&mut self) -> bool;
    /// Sends a frame, by [`Frames::notify`] at the latest. One that is too long, or when none can be sent, goes
    /// nowhere.
    fn send(&mut self, frame: &[u8]);
    /// Sends what is still to be sent.
    fn notify(&mut self);
    /// Sleeps until a frame came or the deadline, in nanoseconds of [`Frames::now`], has passed. May return early.
    fn wait(&mut self, deadline: Option<u64>);
    /// Nanoseconds of a clock that never goes back.
    fn now(&self) -> u64;
    /// A number that nobody can guess.
    fn random(&self) -> Result<u64>;
}

impl Frames for Port {
    fn mac(&self) -> [u8; 6] {
        self.mac()
    }

    fn most(&self) -> usize {
        self.most()
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.receive(<[u8]>::to_vec)
    }

    fn can_send(&mut self) -> bool {
        self.can_send()
    }

    fn send(&mut self, frame: &[u8]) {
        let _ = self.send_quietly(frame.len(), |to| to.copy_from_slice(frame));
    }

    fn notify(&mut self) {
        Port::notify(self);
    }

    fn wait(&mut self, deadline: Option<u64>) {
        self.wait(deadline);
    }

    fn now(&self) -> u64 {
        clock::now()
    }

    fn random(&self) -> Result<u64> {
        let mut bytes = [0; 8];
        system::random(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Frames that are taken before what they said is looked at.
const TURN: usize = 256;

/// A network stack of one port. It does nothing but in [`Stack::poll`].
pub struct Stack<P: Frames = Port> {
    port: Wire<P>,
    interface: Interface,
    /// Its sockets.
    pub sockets: SocketSet<'static>,
}

fn now<P: Frames>(port: &P) -> Instant {
    Instant::from_micros((port.now() / 1000) as i64)
}

impl<P: Frames> Stack<P> {
    /// A stack with this address, as in `10.0.0.2/24`, and a way to other networks.
    pub fn new(port: P, address: IpCidr, gateway: Option<Ipv4Address>) -> Result<Self> {
        let mut config = Config::new(EthernetAddress(port.mac()).into());
        config.random_seed = port.random()?;
        let mut port = Wire(port);
        let now = now(&port.0);
        let mut interface = Interface::new(config, &mut port, now);
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

    /// Takes what there is, but no more than a turn's frames, however fast they come; sends what there is.
    pub fn poll(&mut self) {
        self.poll_quietly();
        self.notify();
    }

    /// As [`Stack::poll`], but what is sent may stay here up to [`Stack::notify`].
    pub fn poll_quietly(&mut self) {
        let now = now(&self.port.0);
        let Self { port, interface, sockets } = self;
        for _ in 0..TURN {
            let taken = interface.poll_ingress_single(now, port, sockets);
            if taken == PollIngressSingleResult::None {
                break;
            }
        }
        interface.poll_egress(now, port, sockets);
    }

    /// Says that there are frames to be sent: once for all of them.
    pub fn notify(&mut self) {
        self.port.0.notify();
    }

    /// The port's clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.port.0.now()
    }

    /// Sleeps until there may be something to do, or the deadline.
    pub fn wait(&mut self, deadline: Option<u64>) {
        let delay = self.interface.poll_delay(now(&self.port.0), &self.sockets);
        let until = delay.map(|delay| self.now() + delay.total_micros() * 1000);
        let until = until.into_iter().chain(deadline).min();
        self.port.0.wait(until);
    }
}

/// The port, as smoltcp has it.
struct Wire<P>(P);

struct Received(Vec<u8>);

struct Sending<'a, P>(&'a mut P);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, with: F) -> R {
        with(&self.0)
    }
}

impl<P: Frames> phy::TxToken for Sending<'_, P> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, with: F) -> R {
        // A token is given where there is room.
        let mut frame = alloc::vec![0; bytes];
        let done = with(&mut frame);
        self.0.send(&frame);
        done
    }
}

impl<P: Frames> phy::Device for Wire<P> {
    type RxToken<'a>
        = Received
    where
        P: 'a;
    type TxToken<'a>
        = Sending<'a, P>
    where
        P: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_, P>)> {
        if !self.0.can_send() {
            return None;
        }
        let frame = self.0.receive()?;
        Some((Received(frame), Sending(&mut self.0)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_, P>> {
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
