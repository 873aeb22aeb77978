//! The other end of a network device: where its frames go, and where they come from.

mod packet;
mod pcap;
mod stream;
mod tap;

pub use packet::{pair, Packet};
pub use pcap::Pcap;
pub use stream::Stream;
pub use tap::Tap;

use super::HEADER;
use std::io::Result;
use std::os::fd::BorrowedFd;
use vm_memory::VolatileSlice;

/// Maximum bytes of a header and a frame that its receiver divides: 64 KiB of IP, Ethernet, two VLAN tags.
pub const MAX_PACKET: usize = HEADER + (1 << 16) + super::ETHERNET + 8;

/// Maximum number of pieces of a frame in one call (`UIO_MAXIOV` of the kernel, less one each for the header and for
/// what has no room).
pub const MAX_PIECES: usize = 1022;

/// A backend. A packet is a header (section 5.1.6) and a frame. No call waits: an error of kind `WouldBlock` means that
/// the descriptor must become ready first.
pub trait Backend: Send + Sync {
    /// The feature bits that it provides, of [`super::header::OFFLOADS`].
    fn offloads(&self) -> u64 {
        0
    }

    /// Whether it takes datagrams that are longer than the network's maximum (`VIRTIO_NET_HDR_GSO_UDP`), whatever the
    /// guest accepted.
    fn takes_datagrams(&self) -> bool {
        false
    }

    /// Takes over the features that the guest accepted.
    ///
    /// # Errors
    /// The host refuses them.
    fn accept(&self, features: u64) -> Result<()> {
        let _ = features;
        Ok(())
    }

    /// Sends a packet. `sent` is 0 at first; if the call fails with `WouldBlock`, the next call must have the same
    /// packet and the value that this call leaves. A packet of which `sent` is not 0 cannot be dropped.
    ///
    /// # Errors
    /// `WouldBlock`; kind `BrokenPipe` or `ConnectionReset` if the other end is gone; another one if it does not take
    /// this packet.
    fn send(&self, packet: &[u8], sent: &mut usize) -> Result<()>;

    /// Sends a packet whose frame lies in a guest's memory, without a copy of it. Returns `None` if the backend takes
    /// copies only.
    ///
    /// # Errors
    /// As for [`Backend::send`]; nothing is sent then.
    fn send_pieces(
        &self,
        header: &[u8; HEADER],
        frame: &[VolatileSlice<'_>],
    ) -> Option<Result<()>> {
        let _ = (header, frame);
        None
    }

    /// Receives a packet into `to`, which has at least [`MAX_PACKET`] bytes. Returns its bytes; 0 if no more will come.
    ///
    /// # Errors
    /// `WouldBlock`, or another one if no more packets will come.
    fn receive(&self, to: &mut [u8]) -> Result<usize>;

    /// Receives a packet: its header into `header`, its frame into a guest's memory, and
    /// the part of it that has no room there into `rest`. Returns the packet's bytes as [`Backend::receive`] does, or
    /// `None` if the backend makes copies only.
    ///
    /// # Errors
    /// As for [`Backend::receive`].
    fn receive_pieces(
        &self,
        header: &mut [u8; HEADER],
        frame: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Option<Result<usize>> {
        let _ = (header, frame, rest);
        None
    }

    /// Whether received packets may be in this backend, so that its descriptor does not announce them.
    fn holds_packets(&self) -> bool {
        false
    }

    /// The descriptor that becomes ready.
    fn fd(&self) -> BorrowedFd<'_>;
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn offloads(&self) -> u64 {
        (**self).offloads()
    }

    fn takes_datagrams(&self) -> bool {
        (**self).takes_datagrams()
    }

    fn accept(&self, features: u64) -> Result<()> {
        (**self).accept(features)
    }

    fn send(&self, packet: &[u8], sent: &mut usize) -> Result<()> {
        (**self).send(packet, sent)
    }

    fn send_pieces(
        &self,
        header: &[u8; HEADER],
        frame: &[VolatileSlice<'_>],
    ) -> Option<Result<()>> {
        (**self).send_pieces(header, frame)
    }

    fn receive(&self, to: &mut [u8]) -> Result<usize> {
        (**self).receive(to)
    }

    fn receive_pieces(
        &self,
        header: &mut [u8; HEADER],
        frame: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Option<Result<usize>> {
        (**self).receive_pieces(header, frame, rest)
    }

    fn holds_packets(&self) -> bool {
        (**self).holds_packets()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        (**self).fd()
    }
}
