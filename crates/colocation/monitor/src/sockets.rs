//! The sockets that the kernel's tables have now, for people: those of TCP, UDP and raw IP, and packet sockets
//! (`include/net/inet_hashtables.h`, `udp.h`, `raw.h` and `netns/packet.h` of Linux).

mod handlers;

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{entries, List};
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use handlers::Handlers;
pub(crate) use handlers::WANTS as HANDLERS;

/// Maximum number of buckets of a table, of sockets in a bucket, and of both together in a walk: of a large machine,
/// half a million buckets, and as many sockets.
const MAX_BUCKETS: u64 = 1 << 24;
const MAX_IN_BUCKET: u64 = 1 << 16;
const MAX_STEPS: u64 = 1 << 21;
/// The family of IPv6 addresses (`AF_INET6`).
const INET6: u16 = 10;
/// States in which a TCP connection is no full socket (`TCP_TIME_WAIT`, `TCP_NEW_SYN_RECV`).
const PARTIAL: [u8; 2] = [6, 12];

/// What the walk needs from a profile.
pub(crate) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("inet_ehash_bucket", "chain", Optional),
        ("inet_hashinfo", "ehash", Optional),
        ("inet_hashinfo", "ehash_mask", Optional),
        ("inet_hashinfo", "lhash2", Optional),
        ("inet_hashinfo", "lhash2_mask", Optional),
        ("inet_listen_hashbucket", "nulls_head", Optional),
        ("net", "ipv4.tcp_death_row.hashinfo", Optional),
        ("net", "ipv4.udp_table", Optional),
        ("net", "list", Optional),
        ("net", "ns.inum", Optional),
        ("net", "packet.sklist", Optional),
        ("raw_hashinfo", "ht", Optional),
        ("sock", "sk_socket", Optional),
        ("sock_common", "skc_daddr", Optional),
        ("sock_common", "skc_dport", Optional),
        ("sock_common", "skc_family", Optional),
        ("sock_common", "skc_net.net", Optional),
        ("sock_common", "skc_node", Optional),
        ("sock_common", "skc_num", Optional),
        ("sock_common", "skc_portaddr_node", Optional),
        ("sock_common", "skc_rcv_saddr", Optional),
        ("sock_common", "skc_state", Optional),
        ("sock_common", "skc_v6_daddr", Optional),
        ("sock_common", "skc_v6_rcv_saddr", Optional),
        ("socket_alloc", "socket", Optional),
        ("socket_alloc", "vfs_inode.i_ino", Optional),
        ("udp_hslot", "head", Optional),
        ("udp_table", "hash", Optional),
        ("udp_table", "hash2", Optional),
        ("udp_table", "mask", Optional),
    ],
    constants: &[],
};

/// What a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP: connections, and sockets that listen.
    Tcp,
    /// UDP.
    Udp,
    /// Raw IP; the port is the protocol's number.
    Raw,
    /// Packets of a device.
    Packet,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address as Linux keeps it: words of bytes in the network's order. One of IPv4 has one word.
    pub address: [u32; 4],
    /// The port.
    pub port: u16,
}

/// A socket, as the kernel's tables have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Socket {
    /// What it speaks.
    pub protocol: Protocol,
    /// Whether its addresses are of IPv6.
    pub is_v6: bool,
    /// Its own end.
    pub local: Endpoint,
    /// The other end; zeros if it has none.
    pub remote: Endpoint,
    /// Number of its inode, by which a process's descriptor names it; 0 if no process has it.
    pub inode: u64,
    /// Number of its network namespace (`/proc/PID/ns/net`).
    pub namespace: u32,
    /// Address of the `struct sock`.
    pub address: u64,
}

/// The sockets of one walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// The sockets, in the order of their protocols and addresses.
    pub sockets: Vec<Socket>,
    /// Whether all tables were walked to their ends.
    pub is_complete: bool,
}

/// Where a table has the heads of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Buckets {
    first: u64,
    count: u64,
    bytes: u64,
    /// Offset in a socket of the link of these lists.
    link: u64,
}

/// Offsets in Linux's structures.
struct Layout {
    established: [u64; 2],
    listening: [u64; 2],
    /// Bytes of a bucket, and offset of its head.
    established_bucket: (u64, u64),
    listening_bucket: (u64, u64),
    datagrams: [u64; 2],
    /// The second table of datagrams: its offset, and that of its link in a socket.
    by_address: (u64, u64),
    datagram_bucket: (u64, u64),
    /// Offset and bytes of the buckets of raw sockets.
    raw: Option<(u64, u64)>,
    namespaces: List,
    number: u64,
    own_established: Option<u64>,
    own_datagrams: Option<u64>,
    packets: Option<u64>,
    handlers: Option<Handlers>,
    // In `sock`, whose first member is a `sock_common`.
    link: u64,
    family: u64,
    state: u64,
    net: u64,
    addresses: [u64; 2],
    addresses_v6: Option<[u64; 2]>,
    ports: [u64; 2],
    socket: u64,
    /// From a `socket` to the number of its inode.
    inode: u64,
}

impl Layout {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let at = |of: &str, member: &str| Some(profile.field(of, member)?.offset);
        let common = |member: &str| at("sock_common", member);
        let bucket = |of: &str, member: &str| {
            Some((profile.size_of(of).filter(|bytes| *bytes > 0)?, at(of, member)?))
        };
        let pair = |first: Option<u64>, second: Option<u64>| Some([first?, second?]);
        Some(Self {
            established: pair(at("inet_hashinfo", "ehash"), at("inet_hashinfo", "ehash_mask"))?,
            listening: pair(at("inet_hashinfo", "lhash2"), at("inet_hashinfo", "lhash2_mask"))?,
            established_bucket: bucket("inet_ehash_bucket", "chain")?,
            listening_bucket: bucket("inet_listen_hashbucket", "nulls_head")?,
            datagrams: pair(at("udp_table", "hash"), at("udp_table", "mask"))?,
            by_address: (at("udp_table", "hash2")?, common("skc_portaddr_node")?),
            datagram_bucket: bucket("udp_hslot", "head")?,
            raw: profile.field("raw_hashinfo", "ht").map(|field| (field.offset, field.bytes)),
            namespaces: List {
                head: profile.symbol("net_namespace_list")?,
                link: at("net", "list")?,
            },
            number: at("net", "ns.inum")?,
            own_established: at("net", "ipv4.tcp_death_row.hashinfo"),
            own_datagrams: at("net", "ipv4.udp_table"),
            packets: at("net", "packet.sklist"),
            handlers: Handlers::new(profile),
            link: common("skc_node")?,
            family: common("skc_family")?,
            state: common("skc_state")?,
            net: common("skc_net.net")?,
            addresses: pair(common("skc_rcv_saddr"), common("skc_daddr"))?,
            addresses_v6: pair(common("skc_v6_rcv_saddr"), common("skc_v6_daddr")),
            ports: pair(common("skc_num"), common("skc_dport"))?,
            socket: at("sock", "sk_socket")?,
            inode: at("socket_alloc", "vfs_inode.i_ino")?
                .wrapping_sub(at("socket_alloc", "socket")?),
        })
    }

    /// The buckets of the table whose address is at `table` and whose number of buckets, less one, is at `mask`.
    fn buckets<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        [table, mask]: [u64; 2],
        (bytes, head): (u64, u64),
        link: u64,
    ) -> Option<Buckets> {
        let first = kernel.u64(table)?.wrapping_add(head);
        let count = u64::from(kernel.u32(mask)?) + 1;
        (count <= MAX_BUCKETS).then_some(Buckets { first, count, bytes, link })
    }

    /// The network namespaces, each once.
    fn nets<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> Vec<u64> {
        let mut nets: Vec<u64> = kernel.profile.symbol("init_net").into_iter().collect();
        nets.extend(entries(kernel, self.namespaces));
        nets.sort_unstable();
        nets.dedup();
        nets
    }

    /// The tables of the namespaces `nets`, each once, with what their sockets speak. `None` stands for one that cannot
    /// be read.
    fn tables<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        nets: &[u64],
    ) -> Vec<Option<(Protocol, Buckets)>> {
        let symbol = |name: &str| kernel.profile.symbol(name);
        let pointers = |offset: Option<u64>| {
            let pointers = offset.map(|offset| {
                nets.iter().filter_map(move |net| kernel.u64(net.wrapping_add(offset)))
            });
            pointers.into_iter().flatten().filter(|table| *table != 0)
        };
        let mut tables = BTreeSet::new();
        let connections: BTreeSet<u64> =
            symbol("tcp_hashinfo").into_iter().chain(pointers(self.own_established)).collect();
        for table in connections {
            let members = |members: [u64; 2]| members.map(|member| table.wrapping_add(member));
            let established = Self::buckets(
                kernel,
                members(self.established),
                self.established_bucket,
                self.link,
            );
            let listening =
                Self::buckets(kernel, members(self.listening), self.listening_bucket, self.link);
            for buckets in [established, listening] {
                tables.insert(buckets.map(|buckets| (Protocol::Tcp, buckets)));
            }
        }
        let datagrams: BTreeSet<u64> =
            symbol("udp_table").into_iter().chain(pointers(self.own_datagrams)).collect();
        for table in datagrams {
            // By port, and by address and port: Linux finds a socket by either, and lists those of the first.
            for (hash, link) in [(self.datagrams[0], self.link), self.by_address] {
                let members = [hash, self.datagrams[1]].map(|member| table.wrapping_add(member));
                let buckets = Self::buckets(kernel, members, self.datagram_bucket, link);
                tables.insert(buckets.map(|buckets| (Protocol::Udp, buckets)));
            }
        }
        for table in ["raw_v4_hashinfo", "raw_v6_hashinfo"].into_iter().filter_map(symbol) {
            tables.extend(self.raw.map(|(heads, bytes)| {
                let first = table.wrapping_add(heads);
                let link = self.link;
                Some((Protocol::Raw, Buckets { first, count: bytes / 8, bytes: 8, link }))
            }));
        }
        for net in nets {
            tables.extend(self.packets.map(|list| {
                let first = net.wrapping_add(list);
                let link = self.link;
                Some((Protocol::Packet, Buckets { first, count: 1, bytes: 8, link }))
            }));
        }
        tables.into_iter().collect()
    }

    /// The socket at `address`; `None` if its memory cannot be read.
    fn read<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        protocol: Protocol,
        address: u64,
    ) -> Option<Socket> {
        let at = |offset: u64| address.wrapping_add(offset);
        let is_v6 = kernel.u16(at(self.family))? == INET6;
        let words = |member: u64, count: u64| {
            let mut words = [0; 4];
            for (number, word) in (0..count).zip(&mut words) {
                *word = kernel.u32(at(member).wrapping_add(4 * number))?;
            }
            Some(words)
        };
        let addresses = match (protocol, is_v6) {
            (Protocol::Packet, _) => [[0; 4]; 2],
            (_, false) => [words(self.addresses[0], 1)?, words(self.addresses[1], 1)?],
            (_, true) => {
                let [own, other] = self.addresses_v6?;
                [words(own, 4)?, words(other, 4)?]
            }
        };
        let ports = match protocol {
            Protocol::Packet => [0; 2],
            Protocol::Raw => [kernel.u16(at(self.ports[0]))?, 0],
            _ => [kernel.u16(at(self.ports[0]))?, kernel.u16(at(self.ports[1]))?.swap_bytes()],
        };
        let is_partial = protocol == Protocol::Tcp && PARTIAL.contains(&kernel.u8(at(self.state))?);
        let socket = if is_partial { 0 } else { kernel.u64(at(self.socket))? };
        let inode = match socket {
            0 => 0,
            socket => kernel.u64(socket.wrapping_add(self.inode))?,
        };
        let net = kernel.u64(at(self.net))?;
        let [local, remote] =
            [0, 1].map(|end| Endpoint { address: addresses[end], port: ports[end] });
        let namespace = kernel.u32(net.wrapping_add(self.number))?;
        Some(Socket { protocol, is_v6, local, remote, inode, namespace, address })
    }
}

/// The entries of the list at `head`, whose end is a null pointer or an odd number (`hlist_nulls`); `None` if it has no
/// end.
fn bucket<M: KernelMemory>(kernel: &Kernel<'_, M>, head: u64, steps: &mut u64) -> Option<Vec<u64>> {
    let mut links = vec![];
    let mut link = kernel.u64(head)?;
    while link != 0 && link & 1 == 0 {
        *steps = steps.checked_sub(1).filter(|_| (links.len() as u64) < MAX_IN_BUCKET)?;
        links.push(link);
        // The first member of either kind of node.
        link = kernel.u64(link)?;
    }
    Some(links)
}

/// Walks over all tables once; `None` if the kernel does not describe them.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Option<Sockets> {
    let layout = Layout::new(kernel.profile)?;
    let nets = layout.nets(kernel);
    let mut seen = BTreeSet::new();
    let mut all = Sockets { sockets: Vec::new(), is_complete: true };
    let mut steps = MAX_STEPS;
    let mut see = |all: &mut Sockets, protocol: Protocol, address: u64| {
        if seen.insert(address) {
            match layout.read(kernel, protocol, address) {
                Some(socket) => all.sockets.push(socket),
                None => all.is_complete = false,
            }
        }
    };
    for table in layout.tables(kernel, &nets) {
        let Some((protocol, Buckets { first, count, bytes, link })) = table else {
            all.is_complete = false;
            continue;
        };
        for number in 0..count {
            let Some(left) = steps.checked_sub(1) else {
                all.is_complete = false;
                break;
            };
            steps = left;
            let head = first.wrapping_add(number * bytes);
            let Some(links) = bucket(kernel, head, &mut steps) else {
                all.is_complete = false;
                continue;
            };
            for address in links.iter().map(|at| at.wrapping_sub(link)) {
                see(&mut all, protocol, address);
            }
        }
    }
    if let Some(handlers) = &layout.handlers {
        all.is_complete &= handlers.walk(kernel, &nets, &mut steps, |socket| {
            see(&mut all, Protocol::Packet, socket);
        });
    }
    all.sockets.sort_unstable();
    Some(all)
}

#[cfg(test)]
mod tests;
