//! Several packets of one flow as one, which its receiver divides again (segmentation offload).
//!
//! A stack that gets small messages makes small packets, and each costs a backend a system call and its receiver a
//! walk through all layers. Packets with equal headers whose data follow each other are therefore passed on as one; so
//! are all fragments of a datagram. Headers are compared in private copies; the data stay in the guest's memory.

use super::header::Offloads;
use super::{ETHERNET, HEADER};
use virtio_bindings::virtio_net::*;

/// Bytes of the longest headers: Ethernet, IPv6, TCP with all options.
pub const MAX_HEADERS: usize = ETHERNET + 40 + 60;
/// Bytes of the longest IP packet.
const MAX_IP: usize = u16::MAX as usize;
/// Maximum number of datagrams in one packet. More are refused by some versions of Linux.
const MAX_DATAGRAMS: usize = 64;

/// Flags of TCP that packets of a stream have.
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;

/// Offsets in the headers of IP.
const IPV4_LENGTH: usize = ETHERNET + 2;
const IPV4_ID: usize = ETHERNET + 4;
const IPV4_FRAGMENT: usize = ETHERNET + 6;
const IPV4_SUM: usize = ETHERNET + 10;
const IPV6_LENGTH: usize = ETHERNET + 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
    /// Fragments of a datagram (RFC 791).
    Fragments(Fragments),
}

/// What a run of fragments has of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fragments {
    /// The bytes that UDP's header states, if its fragment is the first.
    stated: Option<usize>,
    /// Whether the last one is there.
    ends: bool,
}

/// The headers of a packet that can be merged with others.
#[derive(Clone, Debug)]
pub struct Headers {
    bytes: [u8; MAX_HEADERS],
    /// Number of bytes of all headers, from Ethernet's on.
    length: usize,
    /// Number of bytes before the transport's header.
    outer: usize,
    v6: bool,
    transport: Transport,
    /// Bytes of data.
    data: usize,
    /// Bytes of data in each segment but the last.
    segment: usize,
    /// The next data's place in the stream, or the datagram.
    next: u32,
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn set_half(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sum of words with carries added (RFC 1071).
fn sum(start: usize, bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| usize::from(half(pair, 0)));
    let mut sum = start + words.sum::<usize>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Headers {
    /// The headers of a frame with `frame` bytes behind a checked `header`. `start` has the frame's first bytes, at
    /// most [`MAX_HEADERS`]. Returns `None` if the packet must stay as it is.
    pub fn new(
        header: &[u8; HEADER],
        start: &[u8],
        frame: usize,
        offloads: Offloads,
    ) -> Option<Self> {
        if u32::from(header[0]) != VIRTIO_NET_HDR_F_NEEDS_CSUM || start.len() < ETHERNET + 20 {
            return None;
        }
        let little = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (v6, outer, protocol) = match half(start, 12) {
            // No options, not a fragment, and not to be divided into some: then its number means nothing.
            0x0800 if start[ETHERNET] == 0x45 && half(start, ETHERNET + 6) == 0x4000 => {
                (false, ETHERNET + 20, start[ETHERNET + 9])
            }
            0x86dd if start[ETHERNET] >> 4 == 6 && start.len() >= ETHERNET + 40 => {
                (true, ETHERNET + 40, start[ETHERNET + 6])
            }
            _ => return None,
        };
        let (transport, kind, field, allowed) = match libc::c_int::from(protocol) {
            libc::IPPROTO_TCP if v6 => {
                (Transport::Tcp, VIRTIO_NET_HDR_GSO_TCPV6, 16, offloads.tcp6)
            }
            libc::IPPROTO_TCP => (Transport::Tcp, VIRTIO_NET_HDR_GSO_TCPV4, 16, offloads.tcp4),
            libc::IPPROTO_UDP => (Transport::Udp, VIRTIO_NET_HDR_GSO_UDP_L4, 6, offloads.udp),
            _ => return None,
        };
        if !allowed || (little(6), little(8)) != (outer, field) {
            return None;
        }
        let inner = match transport {
            Transport::Tcp => usize::from(start.get(outer + 12)? >> 4) * 4,
            _ => 8,
        };
        let length = outer + inner;
        let stated = match (v6, transport) {
            (false, _) => usize::from(half(start, IPV4_LENGTH)) + ETHERNET,
            (true, _) => usize::from(half(start, IPV6_LENGTH)) + outer,
        };
        if inner < field + 2 || length > start.len() || stated != frame || frame <= length {
            return None;
        }
        let data = frame - length;
        let single = u32::from(header[1]) == VIRTIO_NET_HDR_GSO_NONE;
        let segment = if single { data } else { little(4) };
        if !single && u32::from(header[1]) != kind {
            return None;
        }
        let next = match transport {
            Transport::Tcp if start[outer + 13] & !PUSH != ACK => return None,
            Transport::Tcp => {
                let place = [4, 5, 6, 7].map(|at| start[outer + at]);
                u32::from_be_bytes(place).wrapping_add(data as u32)
            }
            _ if usize::from(half(start, outer + 4)) != 8 + data => return None,
            _ => 0,
        };
        let mut bytes = [0; MAX_HEADERS];
        bytes[..length].copy_from_slice(&start[..length]);
        Some(Self { bytes, length, outer, v6, transport, data, segment, next })
    }

    /// The header of a fragment of a UDP datagram over IPv4. UDP's own header counts as data: only the first one has
    /// it. Arguments and result are those of [`Headers::new`].
    pub fn of_fragment(header: &[u8; HEADER], start: &[u8], frame: usize) -> Option<Self> {
        let length = ETHERNET + 20;
        let plain = header.iter().all(|byte| *byte == 0) && start.len() > length;
        let kind = |start: &[u8]| (half(start, 12), start[ETHERNET], start[ETHERNET + 9]);
        if !plain || kind(start) != (0x0800, 0x45, libc::IPPROTO_UDP as u8) {
            return None;
        }
        let place = half(start, IPV4_FRAGMENT);
        let (more, next) = (place & 0x2000 != 0, usize::from(place & 0x1fff) * 8);
        // A fragment that may not be divided has a bit that the others here have not.
        if place & 0xc000 != 0 || usize::from(half(start, IPV4_LENGTH)) + ETHERNET != frame {
            return None;
        }
        let data = frame.checked_sub(length)?;
        let stated = match next {
            // Who divides a datagram makes a checksum for it, and not all have one.
            0 if start.len() < length + 8 || half(start, length + 6) == 0 => return None,
            0 => Some(usize::from(half(start, length + 4))),
            _ => None,
        };
        if more && !data.is_multiple_of(8) || !more && stated.is_some() {
            return None;
        }
        let mut bytes = [0; MAX_HEADERS];
        bytes[..length].copy_from_slice(&start[..length]);
        Some(Self {
            bytes,
            length,
            outer: length,
            v6: false,
            transport: Transport::Fragments(Fragments { stated, ends: !more }),
            data,
            segment: data,
            next: (next + data) as u32,
        })
    }

    /// Whether what was appended makes a packet. Fragments do only if all are there.
    pub fn is_whole(&self) -> bool {
        match self.transport {
            Transport::Fragments(Fragments { stated, ends }) => ends && stated == Some(self.data),
            _ => true,
        }
    }

    /// Bytes of all headers.
    pub fn length(&self) -> usize {
        self.length
    }

    /// All headers, of a packet that is not merged.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    /// Clears what may differ between packets that are merged.
    fn common(&self) -> [u8; MAX_HEADERS] {
        let mut bytes = self.bytes;
        if self.v6 {
            set_half(&mut bytes, IPV6_LENGTH, 0);
        } else {
            set_half(&mut bytes, IPV4_LENGTH, 0);
            set_half(&mut bytes, IPV4_SUM, 0);
            // Fragments are known by it.
            if !matches!(self.transport, Transport::Fragments(_)) {
                set_half(&mut bytes, IPV4_ID, 0);
            }
        }
        let inner = &mut bytes[self.outer..];
        match self.transport {
            Transport::Tcp => {
                inner[4..8].fill(0);
                inner[13] &= !PUSH;
                set_half(inner, 16, 0);
            }
            Transport::Udp => inner[4..8].fill(0),
            Transport::Fragments(_) => set_half(&mut bytes, IPV4_FRAGMENT, 0),
        }
        bytes
    }

    /// Appends the data of the packet with the headers `other`. Returns whether that is possible.
    pub fn append(&mut self, other: &Self) -> bool {
        let data = self.data + other.data;
        let follows = match self.transport {
            Transport::Tcp => {
                let place = [4, 5, 6, 7].map(|at| other.bytes[other.outer + at]);
                u32::from_be_bytes(place) == self.next
            }
            Transport::Udp => data.div_ceil(self.segment) <= MAX_DATAGRAMS,
            Transport::Fragments(fragments) => {
                let begins = fragments.stated.is_some() && !fragments.ends;
                begins && other.next as usize - other.data == self.next as usize
            }
        };
        // Only the last segment may be shorter. A packet with longer ones begins anew.
        let fits = self.data.is_multiple_of(self.segment)
            && (other.segment == self.segment
                || other.data == other.segment && other.data < self.segment);
        let room = self.length - ETHERNET + data <= MAX_IP;
        if !(follows && fits && room && self.length == other.length)
            || self.common() != other.common()
        {
            return false;
        }
        match (&mut self.transport, other.transport) {
            (Transport::Tcp, _) => {
                self.bytes[self.outer + 13] |= other.bytes[other.outer + 13] & PUSH;
            }
            (Transport::Fragments(first), Transport::Fragments(last)) => first.ends = last.ends,
            _ => (),
        }
        (self.data, self.next) = (data, other.next);
        true
    }

    /// The header before the frame of all packets, and the frame's headers. They must be [whole](Self::is_whole).
    pub fn finish(&mut self) -> ([u8; HEADER], &mut [u8]) {
        let Self { length, outer, data, segment, .. } = *self;
        let (kind, field, protocol) = match (self.transport, self.v6) {
            (Transport::Tcp, false) => (VIRTIO_NET_HDR_GSO_TCPV4, 16, libc::IPPROTO_TCP),
            (Transport::Tcp, true) => (VIRTIO_NET_HDR_GSO_TCPV6, 16, libc::IPPROTO_TCP),
            (Transport::Udp, _) => (VIRTIO_NET_HDR_GSO_UDP_L4, 6, libc::IPPROTO_UDP),
            (Transport::Fragments(_), _) => return self.finish_fragments(),
        };
        let inner = length - outer + data;
        let bytes = &mut self.bytes[..length];
        let addresses = if self.v6 {
            set_half(bytes, IPV6_LENGTH, inner as u16);
            ETHERNET + 8..outer
        } else {
            set_half(bytes, IPV4_LENGTH, (outer - ETHERNET + inner) as u16);
            set_half(bytes, IPV4_SUM, 0);
            let complete = !sum(0, &bytes[ETHERNET..outer]);
            set_half(bytes, IPV4_SUM, complete);
            ETHERNET + 12..outer
        };
        if self.transport == Transport::Udp {
            set_half(bytes, outer + 4, inner as u16);
        }
        // The part of the checksum for the pseudo-header.
        let pseudo = sum(inner + protocol as usize, &bytes[addresses]);
        set_half(bytes, outer + field, pseudo);
        let mut header = [0; HEADER];
        (header[0], header[1]) = (VIRTIO_NET_HDR_F_NEEDS_CSUM as u8, kind as u8);
        for (at, value) in [(2, length), (4, segment), (6, outer), (8, field)] {
            header[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        (header, bytes)
    }

    /// The datagram of fragments, which its receiver divides as it was. Its checksum is complete; Linux makes it anew
    /// where it divides.
    fn finish_fragments(&mut self) -> ([u8; HEADER], &mut [u8]) {
        let bytes = &mut self.bytes[..self.length];
        set_half(bytes, IPV4_LENGTH, (self.length - ETHERNET + self.data) as u16);
        set_half(bytes, IPV4_FRAGMENT, 0);
        set_half(bytes, IPV4_SUM, 0);
        let complete = !sum(0, &bytes[ETHERNET..]);
        set_half(bytes, IPV4_SUM, complete);
        let mut header = [0; HEADER];
        header[1] = VIRTIO_NET_HDR_GSO_UDP as u8;
        header[2..4].copy_from_slice(&((self.length + 8) as u16).to_le_bytes());
        header[4..6].copy_from_slice(&(self.segment as u16).to_le_bytes());
        (header, bytes)
    }
}

#[cfg(test)]
mod tests;
