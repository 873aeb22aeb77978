//! A network's port on the host.
//!
//! - **A UNIX stream socket** needs no privilege. A 4-byte big-endian length precedes each frame: the protocol of passt
//!   and QEMU (`-netdev stream`). With passt at the other end, guests reach the host's network without root. With the
//!   user's own program there, the host's network stack is not involved. Unlike a datagram socket, a stream is one
//!   descriptor that reports when the other end closes, and it leaves no name in the file system.
//! - **A TAP device** connects to the host's network stack. It needs `CAP_NET_ADMIN`, or a device that the
//!   administrator created for this user.
//!
//! The tender opens either of them before it gives up its rights, and never again.

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

/// Maximum size of a frame in bytes.
const MAX_FRAME_BYTES: usize = ETHERNET + *MTU.end() as usize;
/// Size of the length field before each frame of a stream, in bytes.
const LENGTH_BYTES: usize = 4;
/// Maximum count of reads before the thread polls again. With a TAP device each read returns one frame.
const MAX_READS: usize = 64;

/// The kind of a port on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOption {
    /// Path of a UNIX stream socket that a process listens on.
    Socket(PathBuf),
    /// Name of a TAP device.
    Tap(String),
}

/// An open port on the host.
pub struct Host {
    file: File,
    /// Whether `file` is a stream socket rather than a TAP device.
    stream: bool,
    /// Unsent rest of a frame of which the socket took a part.
    unsent: Mutex<Vec<u8>>,
    /// Wakes the serving thread if there are unsent bytes.
    pending: EventFd,
}

/// `TUNSETIFF` of linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

fn tap(name: &str) -> Result<File> {
    ensure!(
        Device,
        (1..libc::IFNAMSIZ).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b'%'),
        "{name:?} is not a valid name of a network device"
    );
    let mut options = File::options();
    let file =
        options.read(true).write(true).open("/dev/net/tun").context("cannot open /dev/net/tun")?;
    // SAFETY: all zeros are a valid value of this structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the kernel accesses only this structure.
    if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
        let error = Error::last_os_error();
        bail!(
            Device,
            "cannot use the TAP device {name}: {error} \
             (get CAP_NET_ADMIN, or let root run `ip tuntap add dev {name} mode tap user $USER`)"
        );
    }
    Ok(file)
}

fn socket(path: &Path) -> Result<File> {
    let stream = UnixStream::connect(path).with_context(|| {
        format!("cannot connect to {} (is a process listening there?)", path.display())
    })?;
    Ok(File::from(OwnedFd::from(stream)))
}

impl Host {
    /// Opens a port.
    ///
    /// # Errors
    ///
    /// The device's name is invalid, or the device or socket cannot be opened.
    pub fn open(option: &HostOption) -> Result<Self> {
        let (file, stream) = match option {
            HostOption::Socket(path) => (socket(path)?, true),
            HostOption::Tap(name) => (tap(name)?, false),
        };
        Self::new(file, stream)
    }

    fn new(file: File, stream: bool) -> Result<Self> {
        fcntl_setfl(&file, OFlags::NONBLOCK).context("fcntl")?;
        let pending = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).context("eventfd")?;
        Ok(Self { file, stream, unsent: Mutex::default(), pending })
    }

    fn unsent(&self) -> MutexGuard<'_, Vec<u8>> {
        self.unsent.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes bytes and returns the count of those written. If the other end is closed, it drops all and returns their
    /// count.
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

    /// Sends a frame. The frame is dropped if the other end does not read.
    pub fn send(&self, frame: &[u8]) {
        if !self.stream {
            self.write(frame);
            return;
        }
        let mut unsent = self.unsent();
        self.send_unsent(&mut unsent);
        if unsent.is_empty() {
            let bytes = [&(frame.len() as u32).to_be_bytes()[..], frame].concat();
            let count = self.write(&bytes);
            // A frame can be dropped as a whole, but a partial frame would break the stream.
            if count > 0 && count < bytes.len() {
                unsent.extend(&bytes[count..]);
                let _ = self.pending.write(1);
            }
        }
    }

    fn send_unsent(&self, unsent: &mut Vec<u8>) {
        let count = self.write(unsent).min(unsent.len());
        unsent.drain(..count);
    }

    /// Serves the port on its thread until `stop` is readable or the other end closes. Passes each received frame to
    /// `deliver`.
    pub fn work(&self, stop: &EventFd, mut deliver: impl FnMut(&[u8])) {
        let mut received = ReceiveBuffer::default();
        loop {
            let [pending, file] = self.poll_fds();
            let mut polls = [poll_fd(stop), pending, file];
            // An interrupted wait has no events.
            let _ = poll(&mut polls, None);
            let [stop, pending, file] = polls.map(|poll| poll.revents());
            if !stop.is_empty() || !self.serve(&mut received, [pending, file], &mut deliver) {
                return;
            }
        }
    }

    /// Descriptors that a thread that serves the port must poll.
    pub fn poll_fds(&self) -> [PollFd<'_>; 2] {
        let out = if self.unsent().is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        [poll_fd(&self.pending), PollFd::new(&self.file, PollFlags::IN | out)]
    }

    /// Serves the port after a poll of [`Host::poll_fds`], which returned these events. Passes each received frame to
    /// `deliver`. Returns `false` if no more frames will come.
    pub fn serve(
        &self,
        received: &mut ReceiveBuffer,
        [pending, file]: [PollFlags; 2],
        deliver: &mut impl FnMut(&[u8]),
    ) -> bool {
        if !pending.is_empty() {
            let _ = self.pending.read();
        }
        if file.contains(PollFlags::OUT) {
            self.send_unsent(&mut self.unsent());
        }
        file.difference(PollFlags::OUT).is_empty() || self.receive(received, deliver)
    }

    /// Reads up to [`MAX_READS`] times. Returns `false` if no more frames will come.
    fn receive(&self, received: &mut ReceiveBuffer, deliver: &mut impl FnMut(&[u8])) -> bool {
        let ReceiveBuffer { bytes, used } = received;
        for _ in 0..MAX_READS {
            match (&self.file).read(&mut bytes[*used..]) {
                Ok(0) => return false,
                Ok(count) if !self.stream => deliver(&bytes[..count]),
                Ok(count) => {
                    *used += count;
                    if !deliver_frames(bytes, used, deliver) {
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

/// Received bytes of an incomplete frame. The buffer has room for a complete one.
pub struct ReceiveBuffer {
    bytes: Vec<u8>,
    /// Count of received bytes.
    used: usize,
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; 1 << 17], used: 0 }
    }
}

/// Passes each complete frame of a stream to `deliver` and removes it. Returns `false` if a length is invalid.
fn deliver_frames(bytes: &mut [u8], used: &mut usize, deliver: &mut impl FnMut(&[u8])) -> bool {
    let mut at = 0;
    while let Some((length, rest)) = bytes[at..*used].split_first_chunk::<LENGTH_BYTES>() {
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_FRAME_BYTES {
            return false;
        }
        let Some(frame) = rest.get(..length) else { break };
        deliver(frame);
        at += LENGTH_BYTES + length;
    }
    bytes.copy_within(at..*used, 0);
    *used -= at;
    true
}

/// Entry of a fuzzer: `input` is a stream from the other end, received in pieces.
pub fn fuzz(input: &[u8]) {
    let ReceiveBuffer { mut bytes, mut used } = ReceiveBuffer::default();
    for piece in input.chunks(7) {
        bytes[used..][..piece.len()].copy_from_slice(piece);
        used += piece.len();
        let check = &mut |frame: &[u8]| assert!(frame.len() <= MAX_FRAME_BYTES);
        if !deliver_frames(&mut bytes, &mut used, check) {
            return;
        }
        assert!(used < LENGTH_BYTES + MAX_FRAME_BYTES);
    }
}

#[cfg(test)]
mod tests;
