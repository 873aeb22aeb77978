//! A network's port on the host.
//!
//! - **A UNIX stream socket** needs no privilege. Each frame stands behind its length, 4 bytes, highest first: what
//!   passt and QEMU (`-netdev stream`) speak. With passt at the other end, guests have the host's network without
//!   anybody being root; with a program of one's own there is no network stack of the host in between. A stream rather
//!   than datagrams, as it is one descriptor whose other end is known to live, and no name is left behind.
//! - **A TAP device** is the host's own stack. It needs `CAP_NET_ADMIN`, or one that the administrator made for this
//!   user.
//!
//! Both are opened before the tender gives up its rights, and never again.

use crate::error::{bail, ensure, Context, Result};
use crate::signals::poll_fd;
use kyozon_devices::net::{ETHERNET, MTU};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{fcntl_setfl, OFlags};
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
/// Reads before something else has its turn. With a TAP device each is a frame.
const TURN: usize = 64;

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
        Device,
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
        bail!(Device, "cannot use the TAP device {name}: {error} (it needs CAP_NET_ADMIN, or `ip tuntap add dev {name} mode tap user $USER` by root)");
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
        fcntl_setfl(&file, OFlags::NONBLOCK).context("fcntl")?;
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
        let mut inward = Inward::default();
        loop {
            let [left, file] = self.waits_for();
            let mut polls = [poll_fd(stop), left, file];
            // An interrupted wait has no events.
            let _ = poll(&mut polls, None);
            let [stop, left, file] = polls.map(|poll| poll.revents());
            if !stop.is_empty() || !self.turn(&mut inward, [left, file], &mut to) {
                return;
            }
        }
    }

    /// What a thread that serves the port polls for.
    pub fn waits_for(&self) -> [PollFd<'_>; 2] {
        let out = if self.rest().is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        [poll_fd(&self.left), PollFd::new(&self.file, PollFlags::IN | out)]
    }

    /// Serves the port after a poll, and gives frames that came to `to`. `false`: nothing will come any more.
    pub fn turn(
        &self,
        inward: &mut Inward,
        [left, file]: [PollFlags; 2],
        to: &mut impl FnMut(&[u8]),
    ) -> bool {
        if !left.is_empty() {
            let _ = self.left.read();
        }
        if file.contains(PollFlags::OUT) {
            self.send_rest(&mut self.rest());
        }
        file.difference(PollFlags::OUT).is_empty() || self.receive(inward, to)
    }

    /// Takes what is there, a turn's reads at most. `false`: nothing will come any more.
    fn receive(&self, Inward { bytes, used }: &mut Inward, to: &mut impl FnMut(&[u8])) -> bool {
        for _ in 0..TURN {
            match (&self.file).read(&mut bytes[*used..]) {
                Ok(0) => return false,
                Ok(count) if !self.stream => to(&bytes[..count]),
                Ok(count) => {
                    *used += count;
                    if !frames(bytes, used, to) {
                        return false;
                    }
                }
                Err(error) => {
                    return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                }
            }
        }
        true
    }
}

/// What came and was not taken apart yet: the beginning of a frame. It has room for a whole one.
pub struct Inward {
    bytes: Vec<u8>,
    used: usize,
}

impl Default for Inward {
    fn default() -> Self {
        Self { bytes: vec![0; 1 << 17], used: 0 }
    }
}

/// Gives each frame of a stream that is whole to `to`. `false`: this is no stream of frames.
fn frames(bytes: &mut [u8], used: &mut usize, to: &mut impl FnMut(&[u8])) -> bool {
    let mut at = 0;
    while let Some((length, behind)) = bytes[at..*used].split_first_chunk::<LENGTH>() {
        let length = u32::from_be_bytes(*length) as usize;
        if length > MOST {
            return false;
        }
        let Some(frame) = behind.get(..length) else { break };
        to(frame);
        at += LENGTH + length;
    }
    bytes.copy_within(at..*used, 0);
    *used -= at;
    true
}

/// What a fuzzer drives: a stream of the other end's, in pieces.
pub fn fuzz(input: &[u8]) {
    let Inward { mut bytes, mut used } = Inward::default();
    for piece in input.chunks(7) {
        bytes[used..][..piece.len()].copy_from_slice(piece);
        used += piece.len();
        if !frames(&mut bytes, &mut used, &mut |frame| assert!(frame.len() <= MOST)) {
            return;
        }
        assert!(used < LENGTH + MOST);
    }
}

#[cfg(test)]
mod tests;
