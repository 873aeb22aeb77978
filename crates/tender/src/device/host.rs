//! A network's port on the host.
//!
//! - **A UNIX stream socket** needs no privilege. Each frame stands behind its length, 4 bytes, highest first: what
//!   passt and QEMU (`-netdev stream`) speak. With passt at the other end, guests have the host's network without
//!   anybody being root; with a program of one's own there is no network stack of the host in between. A stream rather
//!   than datagrams, as it is one descriptor whose other end is known to live, and no name is left behind.
//! - **A TAP device** is the host's own stack. It needs `CAP_NET_ADMIN`, or one that the administrator made for this user.
//!
//! Both are opened before the tender gives up its rights, and never again.

use anyhow::{bail, ensure, Context, Result};
use kyozon_devices::net::{ETHERNET, MTU};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use vmm_sys_util::eventfd::EventFd;

/// Bytes of a frame, at most.
const MOST: usize = ETHERNET + *MTU.end() as usize;
/// Bytes before a frame in a stream.
const LENGTH: usize = 4;

/// Which port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOption {
    /// A socket that somebody listens on.
    Socket(PathBuf),
    /// A TAP device.
    Tap(String),
}

/// The port.
pub struct Host {
    file: File,
    stream: bool,
    /// Rest of a frame that was sent in part.
    rest: Mutex<Vec<u8>>,
    /// Rung when there is a rest.
    left: EventFd,
}

/// `TUNSETIFF` of linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

fn tap(name: &str) -> Result<File> {
    ensure!(
        (1..libc::IFNAMSIZ).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b'%'),
        "{name:?} is no name of a network device"
    );
    let mut options = File::options();
    let file =
        options.read(true).write(true).open("/dev/net/tun").context("cannot open /dev/net/tun")?;
    // SAFETY: zeros are a value of this structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the kernel reads and writes this structure.
    if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
        let error = Error::last_os_error();
        bail!("cannot use the TAP device {name}: {error} (it needs CAP_NET_ADMIN, or `ip tuntap add dev {name} mode tap user $USER` by root)");
    }
    Ok(file)
}

fn socket(path: &Path) -> Result<File> {
    let stream = UnixStream::connect(path).with_context(|| {
        format!("cannot connect to {} (does somebody listen there?)", path.display())
    })?;
    Ok(File::from(OwnedFd::from(stream)))
}

impl Host {
    /// Opens it.
    pub fn open(option: &HostOption) -> Result<Self> {
        let (file, stream) = match option {
            HostOption::Socket(path) => (socket(path)?, true),
            HostOption::Tap(name) => (tap(name)?, false),
        };
        Self::new(file, stream)
    }

    fn new(file: File, stream: bool) -> Result<Self> {
        // SAFETY: sets a flag of this descriptor.
        let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        ensure!(done >= 0, "fcntl: {}", Error::last_os_error());
        let left = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).context("eventfd")?;
        Ok(Self { file, stream, rest: Mutex::default(), left })
    }

    fn rest(&self) -> MutexGuard<'_, Vec<u8>> {
        self.rest.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes what it can: how much that was. An end that is gone takes everything.
    fn write(&self, bytes: &[u8]) -> usize {
        match (&self.file).write(bytes) {
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(_) => bytes.len(),
        }
    }

    /// Sends a frame. It is lost where the other end does not read.
    pub fn send(&self, frame: &[u8]) {
        if !self.stream {
            self.write(frame);
            return;
        }
        let mut rest = self.rest();
        self.send_rest(&mut rest);
        if rest.is_empty() {
            let bytes = [&(frame.len() as u32).to_be_bytes()[..], frame].concat();
            let count = self.write(&bytes);
            // None of it is a frame that is lost; a part of it would be a stream that is broken.
            if count > 0 && count < bytes.len() {
                rest.extend(&bytes[count..]);
                let _ = self.left.write(1);
            }
        }
    }

    fn send_rest(&self, rest: &mut Vec<u8>) {
        let count = self.write(rest).min(rest.len());
        rest.drain(..count);
    }

    /// What the port's thread does, until `stop` can be read or the other end is gone: gives each frame to `to`.
    pub fn work(&self, stop: &EventFd, mut to: impl FnMut(&[u8])) {
        let mut buffer = Buffer { bytes: vec![0; 1 << 17], used: 0 };
        loop {
            let rest = !self.rest().is_empty();
            let poll = |fd, events| libc::pollfd { fd, events, revents: 0 };
            let mut polls = [
                poll(stop.as_raw_fd(), libc::POLLIN),
                poll(self.left.as_raw_fd(), libc::POLLIN),
                poll(self.file.as_raw_fd(), libc::POLLIN | if rest { libc::POLLOUT } else { 0 }),
            ];
            // SAFETY: an array of this function's, of this length.
            unsafe { libc::poll(polls.as_mut_ptr(), 3, -1) };
            if polls[0].revents != 0 {
                return;
            }
            let _ = self.left.read();
            if rest {
                self.send_rest(&mut self.rest());
            }
            if polls[2].revents & !libc::POLLOUT != 0 && !self.receive(&mut buffer, &mut to) {
                return;
            }
        }
    }

    /// Takes what is there. `false`: nothing will come any more.
    fn receive(&self, buffer: &mut Buffer, to: &mut impl FnMut(&[u8])) -> bool {
        match (&self.file).read(&mut buffer.bytes[buffer.used..]) {
            Ok(0) => false,
            Ok(count) if !self.stream => {
                to(&buffer.bytes[..count]);
                true
            }
            Ok(count) => {
                buffer.used += count;
                buffer.frames(to)
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// The beginning of a stream that was not taken apart yet. It has room for a frame.
struct Buffer {
    bytes: Vec<u8>,
    used: usize,
}

impl Buffer {
    /// Gives each frame that is whole to `to`. `false`: this is no stream of frames.
    fn frames(&mut self, to: &mut impl FnMut(&[u8])) -> bool {
        let mut at = 0;
        while let Some((length, behind)) = self.bytes[at..self.used].split_first_chunk::<LENGTH>() {
            let length = u32::from_be_bytes(*length) as usize;
            if length > MOST {
                return false;
            }
            let Some(frame) = behind.get(..length) else { break };
            to(frame);
            at += LENGTH + length;
        }
        self.bytes.copy_within(at..self.used, 0);
        self.used -= at;
        true
    }
}

/// What a fuzzer drives: a stream of the other end's, in pieces.
pub fn fuzz(input: &[u8]) {
    let mut buffer = Buffer { bytes: vec![0; 1 << 17], used: 0 };
    for piece in input.chunks(7) {
        buffer.bytes[buffer.used..][..piece.len()].copy_from_slice(piece);
        buffer.used += piece.len();
        if !buffer.frames(&mut |frame| assert!(frame.len() <= MOST)) {
            return;
        }
        assert!(buffer.used < LENGTH + MOST);
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
