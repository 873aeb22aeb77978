//! Sockets, beside `/proc/net`.
//!
//! Each is compared with what a process of its own network namespace is told.

use super::{numbers, Look, Row, NOWHERE};
use crate::inspect::dump::Dump;
use anyhow::{ensure, Context, Result};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::sockets::{self, Endpoint, Protocol, Socket};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// A listing of Linux's.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    protocol: Protocol,
    is_v6: bool,
    path: &'static str,
    /// The column of the inode's number.
    inode: usize,
}

const FILES: [File; 7] = [
    File { protocol: Protocol::Tcp, is_v6: false, path: "/proc/net/tcp", inode: 9 },
    File { protocol: Protocol::Tcp, is_v6: true, path: "/proc/net/tcp6", inode: 9 },
    File { protocol: Protocol::Udp, is_v6: false, path: "/proc/net/udp", inode: 9 },
    File { protocol: Protocol::Udp, is_v6: true, path: "/proc/net/udp6", inode: 9 },
    File { protocol: Protocol::Raw, is_v6: false, path: "/proc/net/raw", inode: 9 },
    File { protocol: Protocol::Raw, is_v6: true, path: "/proc/net/raw6", inode: 9 },
    File { protocol: Protocol::Packet, is_v6: false, path: "/proc/net/packet", inode: 8 },
];
/// The columns of the two ends.
const ENDS: [usize; 2] = [1, 2];

/// What tells a socket from others of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    protocol: Protocol,
    is_v6: bool,
    ends: [Endpoint; 2],
    inode: u64,
}

impl From<&Socket> for Identity {
    fn from(socket: &Socket) -> Self {
        let Socket { protocol, is_v6, local, remote, inode, .. } = *socket;
        // No listing of packet sockets has a family.
        let is_v6 = is_v6 && protocol != Protocol::Packet;
        Self { protocol, is_v6, ends: [local, remote], inode }
    }
}

impl Identity {
    fn file(&self) -> &'static File {
        let is_its = |file: &&File| (file.protocol, file.is_v6) == (self.protocol, self.is_v6);
        FILES.iter().find(is_its).unwrap_or(&FILES[0])
    }

    /// The ends, for people.
    fn shown(&self) -> [String; 2] {
        self.ends.map(|Endpoint { address, port }| {
            let bytes = address.map(u32::to_le_bytes);
            let v6: [u8; 16] = std::array::from_fn(|at| bytes[at / 4][at % 4]);
            match (self.protocol, self.is_v6) {
                (Protocol::Packet, _) => "-".into(),
                (_, false) => SocketAddr::from((Ipv4Addr::from(bytes[0]), port)).to_string(),
                (_, true) => SocketAddr::from((Ipv6Addr::from(v6), port)).to_string(),
            }
        })
    }

    /// The row of the socket in `namespace`.
    fn row(&self, namespace: u32) -> Row {
        let [local, remote] = self.shown();
        let inode = if self.inode == 0 { "-".into() } else { self.inode.to_string() };
        Row {
            cells: vec![self.file().name().into(), local, remote, inode, namespace.to_string()],
            ..Row::default()
        }
    }

    fn object(&self, namespace: u32, address: u64) -> Value {
        let [local, remote] = self.shown();
        json!({
            "protocol": self.file().name(),
            "local": local,
            "remote": remote,
            "inode": self.inode,
            "network": namespace,
            "address": format!("{address:#x}"),
        })
    }
}

impl File {
    fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// The sockets of the listing's `lines`. One of another form is left out: its socket is missing then.
    fn parse(&self, lines: &[u8]) -> Vec<Identity> {
        let socket = |line: &[u8]| {
            let words: Vec<&str> =
                std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
            let inode = words.get(self.inode)?.parse().ok()?;
            let ends = match self.protocol {
                Protocol::Packet => [Endpoint::default(); 2],
                _ => [endpoint(words.get(ENDS[0])?)?, endpoint(words.get(ENDS[1])?)?],
            };
            Some(Identity { protocol: self.protocol, is_v6: self.is_v6, ends, inode })
        };
        lines.split(|byte| *byte == b'\n').skip(1).filter_map(socket).collect()
    }
}

/// An end as Linux prints it: the words of the address as they lie in memory, and the port.
fn endpoint(text: &str) -> Option<Endpoint> {
    let (digits, port) = text.split_once(':')?;
    let mut address = [0; 4];
    for (number, word) in address.iter_mut().enumerate().take(digits.len() / 8) {
        *word = u32::from_str_radix(digits.get(8 * number..8 * number + 8)?, 16).ok()?;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    matches!(digits.len(), 8 | 32).then_some(Endpoint { address, port })
}

pub(super) fn look(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
    let mut told = BTreeMap::new();
    if is_live {
        ensure!(fs::exists("/proc/net/dev")?, "/proc/net has no network: mount /proc");
        for (namespace, process) in namespaces() {
            if let Some(sockets) = listed(process) {
                told.insert(namespace, sockets);
            }
        }
    }
    let listed = sockets::list(kernel).context("this kernel's types do not describe sockets")?;
    Ok((compare(&listed.sockets, told), listed.is_complete))
}

/// The rows of `sockets`, beside those that Linux tells of in each namespace where somebody can ask.
fn compare(sockets: &[Socket], told: BTreeMap<u32, BTreeSet<Identity>>) -> Look {
    let mut look = Look::new();
    let mut known = BTreeSet::new();
    for socket in sockets {
        let (namespace, identity) = (socket.namespace, Identity::from(socket));
        known.insert((namespace, identity));
        let is_told = told.get(&namespace).is_none_or(|told| told.contains(&identity));
        let row = Row {
            is_shown: true,
            absent: (!is_told).then_some(identity.file().path).into_iter().collect(),
            object: identity.object(namespace, socket.address),
            ..identity.row(namespace)
        };
        look.insert(format!("{:#x} {}", socket.address, row.cells.join(" ")), row);
    }
    for (namespace, told) in told {
        for identity in told.into_iter().filter(|it| !known.contains(&(namespace, *it))) {
            let row = Row { absent: BTreeSet::from([NOWHERE]), ..identity.row(namespace) };
            look.insert(row.cells.join(" "), row);
        }
    }
    look
}

/// The network namespaces that processes are in, each with one of them.
fn namespaces() -> BTreeMap<u32, u32> {
    let namespace = |process: u32| {
        let link = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
        link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
    };
    let processes = numbers("/proc").into_iter();
    processes.filter_map(|process| Some((namespace(process)?, process))).collect()
}

/// The sockets of which `process` is told; `None` if it has ended.
fn listed(process: u32) -> Option<BTreeSet<Identity>> {
    let mut all = BTreeSet::new();
    for file in &FILES {
        // A kernel without IPv6 has fewer of them.
        if let Ok(lines) = fs::read(format!("/proc/{process}/net/{}", file.name())) {
            all.extend(file.parse(&lines));
        }
    }
    fs::exists(format!("/proc/{process}/net/dev")).is_ok_and(|exists| exists).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &[u8] = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0200007F:D431 06 00000000:00000000 03:00001771 00000000     0        0 0 3 0000000000000000
a line of another form
";
    const TCP6: &[u8] = b"  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0
";
    const PACKET: &[u8] = b"sk               RefCnt Type Proto  Iface R Rmem   User   Inode
0000000000000000 3      3    0003   2     1 0      0      99
";

    fn socket(identity: Identity, address: u64) -> Socket {
        let Identity { protocol, is_v6, ends: [local, remote], inode } = identity;
        Socket { protocol, is_v6, local, remote, inode, namespace: 7, address }
    }

    #[test]
    fn listings_are_read_as_linux_prints_them() {
        let shown = |file: usize, lines| -> Vec<String> {
            let sockets: Vec<Identity> = FILES[file].parse(lines);
            sockets.iter().map(|socket| socket.row(7).cells.join(" ")).collect()
        };
        assert_eq!(
            shown(0, TCP),
            ["tcp 127.0.0.1:8080 0.0.0.0:0 1234 7", "tcp 127.0.0.1:8080 127.0.0.2:54321 - 7"]
        );
        assert_eq!(shown(1, TCP6), ["tcp6 [::1]:22 [::]:0 77 7"]);
        assert_eq!(shown(6, PACKET), ["packet - - 99 7"]);
        for bad in
            ["", ":", "0100007F", "0100007F:", "0100007:1F90", "0100007F0:1F90", "x100007F:1"]
        {
            assert_eq!(endpoint(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_one_side_lacks_differs() {
        let told = FILES[0].parse(TCP);
        let absent = |sockets: &[Socket], told: &[Identity]| -> Vec<Vec<&str>> {
            let told = BTreeMap::from([(7, told.iter().copied().collect())]);
            let look = compare(sockets, told).into_values();
            look.map(|row| row.absent.into_iter().collect()).collect()
        };
        let both = [socket(told[0], 0x1000), socket(told[1], 0x2000)];
        assert_eq!(absent(&both, &told), [[""; 0]; 2]);
        assert_eq!(absent(&both, &told[1..]), [vec!["/proc/net/tcp"], vec![]]);
        assert_eq!(absent(&both[1..], &told), [vec![], vec![NOWHERE]]);
        // Nobody can ask in another namespace.
        assert_eq!(absent(&both.map(|it| Socket { namespace: 8, ..it }), &[]), [[""; 0]; 2]);
    }
}
