//! A TAP device: the host's network stack. It needs `CAP_NET_ADMIN`, or a device that the administrator made for this
//! user.

use super::super::header::{FROM_GUEST, TO_GUEST};
use super::super::{Offloads, HEADER};
use super::{Backend, MAX_PIECES};
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use virtio_bindings::virtio_net::*;
use vm_memory::VolatileSlice;

// linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;

/// A TAP device.
#[derive(Debug)]
pub struct Tap {
    file: File,
    /// Whether the host's kernel divides UDP frames (since Linux 6.2).
    udp: bool,
}

impl Tap {
    /// Opens the TAP device with this name, or makes it.
    ///
    /// # Errors
    /// The name is invalid, or Linux refuses the device.
    pub fn open(name: &str) -> Result<Self> {
        let valid = (1..libc::IFNAMSIZ).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b'%');
        if !valid {
            let text = format!("{name:?} is not a valid name of a network device");
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let file = File::options().read(true).write(true).open("/dev/net/tun")?;
        // SAFETY: all zeros are a valid value of this structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: the kernel accesses only this structure.
        if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
            let error = Error::last_os_error();
            let text = format!(
                "cannot use the TAP device {name}: {error} (get CAP_NET_ADMIN, or let root run \
                 `ip tuntap add dev {name} mode tap vnet_hdr user $USER`)"
            );
            return Err(Error::new(error.kind(), text));
        }
        Self::new(file.into())
    }

    /// A TAP device that another program opened, with the flag `IFF_VNET_HDR`.
    ///
    /// # Errors
    /// It is not such a device.
    pub fn new(device: OwnedFd) -> Result<Self> {
        fcntl_setfl(&device, fcntl_getfl(&device)? | OFlags::NONBLOCK)?;
        let bytes = HEADER as libc::c_int;
        // SAFETY: the kernel reads this integer.
        if unsafe { libc::ioctl(device.as_raw_fd(), TUNSETVNETHDRSZ, &raw const bytes) } < 0 {
            return Err(Error::last_os_error());
        }
        let mut tap = Self { file: device.into(), udp: false };
        let udp = Offloads { checksum: true, udp: true, ..Offloads::default() };
        tap.udp = tap.set(udp).is_ok();
        tap.set(Offloads::default())?;
        Ok(tap)
    }

    /// Sets what the host may leave to the guest.
    fn set(&self, offloads: Offloads) -> Result<()> {
        let flags = [
            (offloads.checksum, libc::TUN_F_CSUM),
            (offloads.tcp4, libc::TUN_F_TSO4),
            (offloads.tcp6, libc::TUN_F_TSO6),
            (offloads.ecn && (offloads.tcp4 || offloads.tcp6), libc::TUN_F_TSO_ECN),
            (offloads.udp, libc::TUN_F_USO4 | libc::TUN_F_USO6),
        ];
        let flags: u32 = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum();
        // SAFETY: the argument is no pointer.
        let done = unsafe {
            libc::ioctl(self.file.as_raw_fd(), TUNSETOFFLOAD, libc::c_ulong::from(flags))
        };
        if done < 0 {
            return Err(Error::last_os_error());
        }
        Ok(())
    }
}

fn vector(at: *mut u8, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: at.cast(), iov_len: bytes }
}

fn piece(slice: &VolatileSlice<'_>) -> libc::iovec {
    vector(slice.ptr_guard_mut().as_ptr(), slice.len())
}

impl Backend for Tap {
    fn offloads(&self) -> u64 {
        let udp = 1 << VIRTIO_NET_F_HOST_USO
            | 1 << VIRTIO_NET_F_GUEST_USO4
            | 1 << VIRTIO_NET_F_GUEST_USO6;
        (FROM_GUEST | TO_GUEST) & if self.udp { u64::MAX } else { !udp }
    }

    /// Linux does since 4.15, also if nothing else has this offload any more.
    fn takes_datagrams(&self) -> bool {
        true
    }

    fn accept(&self, features: u64) -> Result<()> {
        self.set(Offloads::to_guest(features))
    }

    fn send(&self, packet: &[u8], _: &mut usize) -> Result<()> {
        Ok(rustix::io::write(&self.file, packet).map(drop)?)
    }

    fn send_pieces(
        &self,
        header: &[u8; HEADER],
        frame: &[VolatileSlice<'_>],
    ) -> Option<Result<()>> {
        if frame.len() > MAX_PIECES {
            return None;
        }
        let header = vector(header.as_ptr().cast_mut(), HEADER);
        let vectors: Vec<_> = [header].into_iter().chain(frame.iter().map(piece)).collect();
        // SAFETY: the vectors are the header and slices, whose memory is mapped while it is borrowed and is accessed by
        // volatile accesses and system calls only. The call only reads it.
        let sent =
            unsafe { libc::writev(self.file.as_raw_fd(), vectors.as_ptr(), vectors.len() as i32) };
        Some(if sent < 0 { Err(Error::last_os_error()) } else { Ok(()) })
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        Ok(rustix::io::read(&self.file, to)?)
    }

    fn receive_pieces(
        &self,
        header: &mut [u8; HEADER],
        frame: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Option<Result<usize>> {
        if frame.len() > MAX_PIECES {
            return None;
        }
        let (header, rest) =
            (vector(header.as_mut_ptr(), HEADER), vector(rest.as_mut_ptr(), rest.len()));
        let vectors: Vec<_> =
            [header].into_iter().chain(frame.iter().map(piece)).chain([rest]).collect();
        // SAFETY: the vectors are header and rest, which are borrowed mutably, and slices, whose memory is mapped while
        // it is borrowed and is accessed by volatile accesses and system calls only.
        let received =
            unsafe { libc::readv(self.file.as_raw_fd(), vectors.as_ptr(), vectors.len() as i32) };
        Some(usize::try_from(received).map_err(|_| Error::last_os_error()))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests;
