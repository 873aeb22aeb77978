//! Messages to a kernel's routing tables, rtnetlink(7). They contain no addresses of memory.

use crate::calls::{Calls, Fd, Result};
use crate::socket::Sockets;
use crate::Errno;

/// Bytes of a struct nlmsghdr: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// Bytes of an attribute's length and type.
const ATTRIBUTE: usize = 4;
/// Attribute of an acknowledgement: the kernel's words (linux/netlink.h).
const NLMSGERR_ATTR_MSG: u16 = 1;
/// Flags of an acknowledgement: it has not the request; it has attributes.
const CAPPED: u16 = 0x100;
const HAS_ATTRIBUTES: u16 = 0x200;

/// Why the kernel refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) errno: Errno,
    /// The kernel's own words, if it has any.
    pub(crate) words: Option<String>,
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self { errno, words: None }
    }
}

/// A message under construction.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A request of type `kind`, with its family's structure.
    pub(crate) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self(bytes)
    }

    /// Adds an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        let length = (ATTRIBUTE + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_ne_bytes([two[0], two[1]]))
}

/// The number at `at`; 0 if there are too few bytes.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
    four.map_or(0, |four| u32::from_ne_bytes(*four))
}

/// The attributes, by type.
pub(crate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half(rest, 0));
        let value = rest.get(ATTRIBUTE..length)?;
        let kind = half(rest, 2);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// What one message of an answer says.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Payload(&'a [u8]),
    End(std::result::Result<(), Refused>),
}

fn acknowledgement(flags: u16, payload: &[u8]) -> std::result::Result<(), Refused> {
    let error = word(payload, 0) as i32;
    if error == 0 {
        return Ok(());
    }
    // Behind the error number: the request's header, and without the flag all of the request.
    let request = if flags & CAPPED == 0 { word(payload, 4) as usize } else { HEADER };
    let after = payload.get(4 + request.next_multiple_of(4)..).unwrap_or(&[]);
    let after = if flags & HAS_ATTRIBUTES == 0 { &[] } else { after };
    let words = attributes(after).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG);
    let words =
        words.map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
    Err(Refused { errno: Errno(error.wrapping_neg()), words })
}

/// Divides a datagram into its messages.
fn parts(mut datagram: &[u8]) -> impl Iterator<Item = Part<'_>> {
    std::iter::from_fn(move || {
        let length = word(datagram, 0) as usize;
        let payload = datagram.get(HEADER..length)?;
        let (kind, flags) = (i32::from(half(datagram, 4)), half(datagram, 6));
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(match kind {
            libc::NLMSG_ERROR => Part::End(acknowledgement(flags, payload)),
            libc::NLMSG_DONE => Part::End(Ok(())),
            _ => Part::Payload(payload),
        })
    })
}

fn exchange<C: Calls + ?Sized>(
    kernel: &C,
    socket: Fd,
    request: &[u8],
) -> std::result::Result<Vec<Vec<u8>>, Refused> {
    // Without the kernel's words there is still the error number.
    for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
        let _ = kernel.set_option(socket, libc::SOL_NETLINK, option, 1);
    }
    kernel.send(socket, request, 0)?;
    let (mut answers, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let bytes = kernel.receive(socket, &mut buffer, 0)?;
        for part in parts(&buffer[..bytes]) {
            match part {
                Part::Payload(payload) => answers.push(payload.to_vec()),
                Part::End(end) => return end.map(|()| answers),
            }
        }
    }
}

/// Sends a request and returns the payloads of the answers.
pub(crate) fn request<C: Calls + ?Sized>(
    kernel: &C,
    message: Message,
) -> std::result::Result<Vec<Vec<u8>>, Refused> {
    let socket = kernel.socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let answers = exchange(kernel, socket, &message.finish());
    let closed: Result<()> = kernel.close(socket);
    closed?;
    answers
}

#[cfg(test)]
mod tests;
