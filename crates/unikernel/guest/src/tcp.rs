//! TCP/IP over a port, by smoltcp. The port is this machine's, or anything else that sends and receives frames, so the
//! same stack runs in a host program.

use crate::net::Port;
use crate::{clock, system, Result};
use alloc::vec::Vec;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr, Ipv4Address};

pub use smoltcp;

/// What a stack needs from a port, and from the machine that has it.
pub trait Frames {
    /// The port's Ethernet address.
    fn mac(&self) -> [u8; 6];
    /// Maximum bytes of a frame.
    fn max_frame(&self) -> usize;
    /// Takes the next received frame.
    fn receive(&mut self) -> Option<Vec<u8>>;
    /// Whether there is room for a frame to send.
    fn can_send(&mut self) -> bool;
    /// Sends a frame, at the latest in [`Frames::notify`]. Drops it if it is too long, or if there is no room.
    fn send(&mut self, frame: &[u8]);
    /// Sends all frames that wait.
    fn notify(&mut self);
    /// Sleeps until a frame is received, or until the deadline in nanoseconds of [`Frames::now`] has passed. May return
    /// early.
    fn wait(&mut self, deadline: Option<u64>);
    /// A monotonic clock, in nanoseconds.
    fn now(&self) -> u64;
    /// An unpredictable number.
    ///
    /// # Errors
    ///
    /// There are no random numbers.
    fn random(&self) -> Result<u64>;
}

impl Frames for Port {
    fn mac(&self) -> [u8; 6] {
        self.mac()
    }

    fn max_frame(&self) -> usize {
        self.max_frame()
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

/// Maximum frames that one poll receives.
const FRAMES_PER_POLL: usize = 256;

/// A network stack on one port. It works only inside [`Stack::poll`].
pub struct Stack<P: Frames = Port> {
    port: Wire<P>,
    interface: Interface,
    /// The stack's sockets.
    pub sockets: SocketSet<'static>,
}

fn now<P: Frames>(port: &P) -> Instant {
    Instant::from_micros((port.now() / 1000) as i64)
}

impl<P: Frames> Stack<P> {
    /// Makes a stack with an address, such as `10.0.0.2/24`, and a gateway to other networks.
    ///
    /// # Errors
    ///
    /// There are no random numbers.
    pub fn new(port: P, address: IpCidr, gateway: Option<Ipv4Address>) -> Result<Self> {
        let mut config = Config::new(EthernetAddress(port.mac()).into());
        config.random_seed = port.random()?;
        let mut port = Wire(port);
        let now = now(&port.0);
        let mut interface = Interface::new(config, &mut port, now);
        // The list has room for one address.
        interface.update_ip_addrs(|list| {
            let _ = list.push(address);
        });
        if let Some(gateway) = gateway {
            // The table has room for one route.
            let _ = interface.routes_mut().add_default_ipv4_route(gateway);
        }
        Ok(Self { port, interface, sockets: SocketSet::new(Vec::new()) })
    }

    /// Adds a TCP socket with `bytes` bytes of buffer in each direction.
    pub fn socket(&mut self, bytes: usize) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(alloc::vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        // Answers are sent at once, not collected.
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    /// The TCP socket of a handle.
    pub fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Receives waiting frames, a bounded number of them, and sends what sockets have to send.
    pub fn poll(&mut self) {
        self.poll_quietly();
        self.notify();
    }

    /// [`Stack::poll`], but frames may stay in the port until [`Stack::notify`].
    pub fn poll_quietly(&mut self) {
        let now = now(&self.port.0);
        let Self { port, interface, sockets } = self;
        for _ in 0..FRAMES_PER_POLL {
            let taken = interface.poll_ingress_single(now, port, sockets);
            if taken == PollIngressSingleResult::None {
                break;
            }
        }
        interface.poll_egress(now, port, sockets);
    }

    /// Notifies the port's device of all frames to send.
    pub fn notify(&mut self) {
        self.port.0.notify();
    }

    /// The port's clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.port.0.now()
    }

    /// Sleeps until a socket may have something to do, or until the deadline.
    pub fn wait(&mut self, deadline: Option<u64>) {
        let delay = self.interface.poll_delay(now(&self.port.0), &self.sockets);
        let until = delay.map(|delay| self.now() + delay.total_micros() * 1000);
        let until = until.into_iter().chain(deadline).min();
        self.port.0.wait(until);
    }
}

/// The port as a device of smoltcp.
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
        // smoltcp gets a token only if there is room.
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
        all.max_transmission_unit = self.0.max_frame();
        all.checksum = ChecksumCapabilities::default();
        all
    }
}
