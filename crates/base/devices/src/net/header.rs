//! The header before each frame (section 5.1.6), and what it may ask for.

use super::HEADER;
use virtio_bindings::virtio_net::*;

/// Feature bits by which the sender leaves work on a frame to its receiver. Bits of both directions.
pub const OFFLOADS: u64 = FROM_GUEST | TO_GUEST;
/// Those for frames that a guest sends.
pub const FROM_GUEST: u64 = 1 << VIRTIO_NET_F_CSUM
    | 1 << VIRTIO_NET_F_HOST_TSO4
    | 1 << VIRTIO_NET_F_HOST_TSO6
    | 1 << VIRTIO_NET_F_HOST_ECN
    | 1 << VIRTIO_NET_F_HOST_USO;
/// Those for frames that a guest receives.
pub const TO_GUEST: u64 = 1 << VIRTIO_NET_F_GUEST_CSUM
    | 1 << VIRTIO_NET_F_GUEST_TSO4
    | 1 << VIRTIO_NET_F_GUEST_TSO6
    | 1 << VIRTIO_NET_F_GUEST_ECN
    | 1 << VIRTIO_NET_F_GUEST_USO4
    | 1 << VIRTIO_NET_F_GUEST_USO6;

/// What frames of one direction may leave to their receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The checksum.
    pub checksum: bool,
    /// The division of TCP over IPv4 into segments.
    pub tcp4: bool,
    /// The division of TCP over IPv6 into segments.
    pub tcp6: bool,
    /// Segments with a congestion mark.
    pub ecn: bool,
    /// The division of UDP into datagrams.
    pub udp: bool,
}

impl Offloads {
    /// Those for frames that the guest sends, if it accepted `features`. Each needs the checksum (section 5.1.3.1).
    pub fn from_guest(features: u64) -> Self {
        let has = |feature: u32| features >> feature & 1 != 0;
        let checksum = has(VIRTIO_NET_F_CSUM);
        Self {
            checksum,
            tcp4: checksum && has(VIRTIO_NET_F_HOST_TSO4),
            tcp6: checksum && has(VIRTIO_NET_F_HOST_TSO6),
            ecn: has(VIRTIO_NET_F_HOST_ECN),
            udp: checksum && has(VIRTIO_NET_F_HOST_USO),
        }
    }

    /// Those for frames that the guest receives, if it accepted `features`.
    pub fn to_guest(features: u64) -> Self {
        let has = |feature: u32| features >> feature & 1 != 0;
        let checksum = has(VIRTIO_NET_F_GUEST_CSUM);
        Self {
            checksum,
            tcp4: checksum && has(VIRTIO_NET_F_GUEST_TSO4),
            tcp6: checksum && has(VIRTIO_NET_F_GUEST_TSO6),
            ecn: has(VIRTIO_NET_F_GUEST_ECN),
            udp: checksum && has(VIRTIO_NET_F_GUEST_USO4) && has(VIRTIO_NET_F_GUEST_USO6),
        }
    }

    /// Whether frames may be longer than the network's maximum, because their receiver divides them.
    pub fn large(self) -> bool {
        self.tcp4 || self.tcp6 || self.udp
    }
}

/// A header that may not be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// The fields that matter.
struct Header {
    flags: u8,
    kind: u8,
    segment: u16,
    start: usize,
    offset: usize,
}

fn parse(bytes: &[u8; HEADER]) -> Header {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let [flags, kind, ..] = *bytes;
    Header { flags, kind, segment: half(4), start: half(6).into(), offset: half(8).into() }
}

/// Checks the header before `frame`, which has at most `max` bytes if it is not to be divided. `sent` says that a guest
/// sent the frame. Clears what is not for the receiver: reserved flags, the number of buffers, and a guest's flag for a
/// checked checksum.
///
/// A receiver that does not compute checksums gets a frame with a complete one.
///
/// # Errors
/// The header asks for work that was not agreed on, or names bytes outside the frame.
pub fn check(
    header: &mut [u8; HEADER],
    frame: &mut [u8],
    offloads: Offloads,
    max: usize,
    sent: bool,
) -> Result<(), Refused> {
    if let Some((start, offset)) = check_header(header, frame.len(), offloads, max, sent)? {
        complete(frame, start, offset);
    }
    Ok(())
}

/// As [`check`], of a frame with `bytes` bytes. Returns start and offset of a checksum that must be completed, which a
/// frame of a guest never has.
///
/// # Errors
/// Those of [`check`].
pub fn check_header(
    header: &mut [u8; HEADER],
    bytes: usize,
    offloads: Offloads,
    max: usize,
    sent: bool,
) -> Result<Option<(usize, usize)>, Refused> {
    let Header { flags, kind, segment, start, offset } = parse(header);
    let congestion = kind & VIRTIO_NET_HDR_GSO_ECN as u8 != 0;
    let divided = match u32::from(kind) & !VIRTIO_NET_HDR_GSO_ECN {
        VIRTIO_NET_HDR_GSO_NONE => None,
        VIRTIO_NET_HDR_GSO_TCPV4 => Some(offloads.tcp4),
        VIRTIO_NET_HDR_GSO_TCPV6 => Some(offloads.tcp6),
        VIRTIO_NET_HDR_GSO_UDP_L4 => Some(offloads.udp && !congestion),
        _ => Some(false),
    };
    let valid = match divided {
        None => !congestion && bytes <= max,
        Some(allowed) => allowed && segment > 0 && (offloads.ecn || !congestion),
    };
    if !valid {
        return Err(Refused);
    }
    let partial = flags & VIRTIO_NET_HDR_F_NEEDS_CSUM as u8 != 0;
    let checked = flags & VIRTIO_NET_HDR_F_DATA_VALID as u8 != 0 && !sent && offloads.checksum;
    header[0] = 0;
    header[10..].fill(0);
    if checked {
        header[0] = VIRTIO_NET_HDR_F_DATA_VALID as u8;
    }
    if !partial {
        return Ok(None);
    }
    if start + offset + 2 > bytes || (sent && !offloads.checksum) {
        return Err(Refused);
    }
    if offloads.checksum {
        header[0] |= VIRTIO_NET_HDR_F_NEEDS_CSUM as u8;
        return Ok(None);
    }
    header[6..10].fill(0);
    Ok(Some((start, offset)))
}

/// Completes a checksum (RFC 1071) over the bytes from `start` on. Its field, at `offset` from there, has the part for
/// the pseudo-header.
fn complete(frame: &mut [u8], start: usize, offset: usize) {
    let words = frame[start..].chunks(2);
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u64 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // In UDP a 0 would say that there is no checksum.
    let sum = match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    };
    frame[start + offset..][..2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests;
