//! The host's end of a unikernel's network, `kyozon run --net name=lan,socket=PATH`: a TCP client with its own stack,
//! which needs neither the host's network nor privileges.

use anyhow::{anyhow, bail, ensure, Context, Result};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The address of a server, and the socket of its network.
#[derive(Debug, clap::Args)]
pub struct Server {
    /// Socket to listen on for the unikernel's network
    #[arg(long)]
    socket: PathBuf,
    /// Address of this end
    #[arg(long, default_value = "10.0.0.1/24", value_parser = cidr)]
    address: IpCidr,
    /// Address of the server
    #[arg(value_parser = address)]
    server: IpAddress,
    /// Port of the server
    port: u16,
}

/// Options of `kyozon-lab echo`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    server: Server,
    /// Number of bytes to send and receive back, for each connection
    #[arg(required = true)]
    bytes: Vec<usize>,
}

fn cidr(text: &str) -> Result<IpCidr, String> {
    text.parse().map_err(|()| "not an address such as 10.0.0.1/24".to_owned())
}

fn address(text: &str) -> Result<IpAddress, String> {
    text.parse().map_err(|()| "not an address such as 10.0.0.2".to_owned())
}

/// Time limit of the wait for the network, and of each connection.
const LIMIT: Duration = Duration::from_secs(30);
/// Sleep while there is nothing to send or receive.
const NAP: Duration = Duration::from_millis(1);
/// Time that the client stays after the last byte, so that its last acknowledgement leaves.
const LINGER: Duration = Duration::from_millis(100);
/// Maximum length of a frame, in bytes.
const FRAME: usize = 1514;

/// Ethernet frames over a stream, each after its length in 4 bytes, big endian.
pub(crate) struct Wire {
    stream: UnixStream,
    received: Vec<u8>,
}

pub(crate) struct Sending<'a>(&'a UnixStream);

pub(crate) struct Received(Vec<u8>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, with: F) -> R {
        with(&self.0)
    }
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, with: F) -> R {
        let mut frame = (bytes as u32).to_be_bytes().to_vec();
        frame.resize(4 + bytes, 0);
        let done = with(&mut frame[4..]);
        let (mut stream, mut rest) = (self.0, &frame[..]);
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(NAP),
                // The network is gone; the next `fill` reports that.
                Err(_) => break,
            }
        }
        done
    }
}

impl Wire {
    /// Frames over `stream`, which no one has read from.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// Whether every received byte was consumed.
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    /// Reads the available bytes. Returns false at the end of the stream.
    pub fn fill(&mut self) -> bool {
        let mut piece = [0; 1 << 16];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(count) => {
                self.received.extend(&piece[..count]);
                true
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }
}

impl phy::Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let (length, behind) = self.received.split_first_chunk::<4>()?;
        let frame = behind.get(..u32::from_be_bytes(*length) as usize)?.to_vec();
        self.received.drain(..4 + frame.len());
        Some((Received(frame), Sending(&self.stream)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&self.stream))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ethernet;
        all.max_transmission_unit = FRAME;
        all
    }
}

/// Waits for the network, and returns its stream.
fn accept(path: &Path) -> Result<UnixStream> {
    let listener = UnixListener::bind(path).with_context(|| path.display().to_string())?;
    listener.set_nonblocking(true)?;
    let end = std::time::Instant::now() + LIMIT;
    let accepted = loop {
        match listener.accept() {
            Ok((stream, _)) => break Ok(stream),
            Err(error) if error.kind() != ErrorKind::WouldBlock => break Err(error.into()),
            Err(_) if std::time::Instant::now() > end => {
                break Err(anyhow!("no unikernel connected its network to {}", path.display()));
            }
            Err(_) => std::thread::sleep(NAP),
        }
    };
    std::fs::remove_file(path)?;
    let stream = accepted?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

impl Server {
    /// Waits for the network, and configures this end's address on it.
    pub(crate) fn meet(&self) -> Result<(Wire, Interface)> {
        let mut wire = Wire::new(accept(&self.socket)?);
        let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, 1]).into());
        let mut interface = Interface::new(config, &mut wire, Instant::now());
        // The list has room for one address.
        interface.update_ip_addrs(|list| {
            let _ = list.push(self.address);
        });
        Ok((wire, interface))
    }

    /// Begins a connection from local port `port`.
    pub(crate) fn connect(
        &self,
        interface: &mut Interface,
        sockets: &mut SocketSet<'_>,
        port: u16,
    ) -> Result<SocketHandle> {
        let buffer = || SocketBuffer::new(vec![0; 1 << 16]);
        let handle = sockets.add(Socket::new(buffer(), buffer()));
        let socket = sockets.get_mut::<Socket>(handle);
        let connected = socket.connect(interface.context(), (self.server, self.port), port);
        connected.map_err(|error| anyhow!("{error}"))?;
        Ok(handle)
    }
}

/// Sends bytes to a server that echoes them, and compares.
pub fn echo(options: &Options) -> Result<()> {
    let (mut wire, mut interface) = options.server.meet()?;
    for (number, bytes) in options.bytes.iter().enumerate() {
        connection(&options.server, &mut wire, &mut interface, number, *bytes)
            .with_context(|| format!("connection {number}, {bytes} bytes"))?;
        println!("{bytes} bytes came back");
    }
    Ok(())
}

fn connection(
    server: &Server,
    wire: &mut Wire,
    interface: &mut Interface,
    number: usize,
    bytes: usize,
) -> Result<()> {
    let mut sockets = SocketSet::new(Vec::new());
    let handle = server.connect(interface, &mut sockets, 50_000 + number as u16)?;
    let byte = |i: usize| (i * 31 + i / 257) as u8;
    let (mut sent, mut got) = (0, 0);
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let alive = wire.fill();
        interface.poll(Instant::now(), wire, &mut sockets);
        let socket = sockets.get_mut::<Socket>(handle);
        if socket.may_send() && sent < bytes {
            let piece: Vec<u8> = (sent..bytes.min(sent + (1 << 14))).map(byte).collect();
            sent += socket.send_slice(&piece).unwrap_or(0);
        } else if socket.may_send() && sent == bytes {
            socket.close();
        }
        let mut wrong = None;
        while socket.can_recv() {
            let check = |piece: &mut [u8]| {
                let differs = piece.iter().enumerate().find(|(i, b)| byte(got + i) != **b);
                wrong = wrong.or(differs.map(|(i, _)| got + i));
                (piece.len(), piece.len())
            };
            got += socket.recv(check).map_err(|error| anyhow!("{error}"))?;
        }
        if let Some(at) = wrong {
            bail!("byte {at} differs from the one that was sent");
        }
        if !socket.is_active() || !socket.may_recv() && sent == bytes && got > 0 {
            ensure!(got == bytes, "{got} of {bytes} bytes came back");
            // TCP delays the last acknowledgement, and the server waits for it.
            let end = std::time::Instant::now() + LINGER;
            while std::time::Instant::now() < end {
                wire.fill();
                interface.poll(Instant::now(), wire, &mut sockets);
                std::thread::sleep(NAP);
            }
            return Ok(());
        }
        ensure!(alive, "the unikernel closed the network: {sent} bytes were sent, {got} came back");
        ensure!(
            std::time::Instant::now() < end,
            "no end within {} s: {sent} bytes were sent, {got} came back",
            LIMIT.as_secs()
        );
        if wire.is_empty() {
            std::thread::sleep(NAP);
        }
    }
}
