use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};

const NET: u64 = TEXT + 0x8000;
const NETS: u64 = TEXT + 0x8100;
const CONNECTIONS: u64 = TEXT + 0x8200;
const DATAGRAMS: u64 = TEXT + 0x8300;
const RAW: u64 = TEXT + 0x8400;
const BY_PROTOCOL: u64 = TEXT + 0x8500;
const FOR_ALL: u64 = TEXT + 0x8600;
const RECEIVE: u64 = TEXT + 0x100;
const RECEIVE_IN_RING: u64 = TEXT + 0x200;
const RECEIVE_IN_GROUP: u64 = TEXT + 0x300;
const DEVICE: u64 = DIRECT + 0xa000;
const OTHER_DEVICE: u64 = DIRECT + 0xa100;
const HANDLERS_AT: u64 = DIRECT + 0xb000;
const SHARED: u64 = DIRECT + 0xc000;
const OTHER_NET: u64 = DIRECT + 0x1000;
const OTHER_CONNECTIONS: u64 = DIRECT + 0x1800;
const ESTABLISHED: u64 = DIRECT + 0x2000;
const OTHER_ESTABLISHED: u64 = DIRECT + 0x2800;
const LISTENING: u64 = DIRECT + 0x3000;
const BY_PORT: u64 = DIRECT + 0x4000;
const BY_ADDRESS: u64 = DIRECT + 0x4800;
/// From one socket to the next.
const SOCKET_BYTES: u64 = 0x100;
const SOCKETS: u64 = DIRECT + 0x5000;
/// Where a list's end is an odd number.
const END: u64 = 1;

// Offsets in a namespace, and in a socket.
const PACKETS: u64 = 64;
const DEVICES: u64 = 80;
const FOR_ALL_HERE: u64 = 96;
const LINK: u64 = 104;
const FAMILY: u64 = 16;
const STATE: u64 = 18;
const OF_NET: u64 = 48;
const V6: u64 = 56;
const SOCKET: u64 = 136;
// Offsets in a device, in a handler, and in what a group of sockets shares.
const DEVICE_LINK: u64 = 8;
const DEVICE_FOR_ALL: u64 = 24;
const DEVICE_BY_PROTOCOL: u64 = 40;
const FUNCTION: u64 = 16;
const PRIVATE: u64 = 48;
const HANDLER_LINK: u64 = 56;
const MEMBERS: u64 = 8;
const FIRST: u64 = 136;

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
}

impl World {
    /// Two namespaces without a socket, of which the second has a table of its own.
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (NET, b'D', "init_net"),
            (NETS, b'D', "net_namespace_list"),
            (CONNECTIONS, b'D', "tcp_hashinfo"),
            (DATAGRAMS, b'D', "udp_table"),
            (RAW, b'D', "raw_v4_hashinfo"),
            (BY_PROTOCOL, b'D', "ptype_base"),
            (FOR_ALL, b'D', "ptype_all"),
            (RECEIVE, b't', "packet_rcv"),
            (RECEIVE_IN_RING, b't', "tpacket_rcv"),
            (RECEIVE_IN_GROUP, b't', "packet_rcv_fanout"),
        ];
        let layouts = [
            ("list_head.next", 0, 8),
            ("list_head.prev", 8, 8),
            ("hlist_head.first", 0, 8),
            ("hlist_node.next", 0, 8),
            ("hlist_node.pprev", 8, 8),
            ("net.dev_base_head", DEVICES, 16),
            ("net.ptype_all", FOR_ALL_HERE, 16),
            ("net_device.dev_list", DEVICE_LINK, 16),
            ("net_device.ptype_all", DEVICE_FOR_ALL, 16),
            ("net_device.ptype_specific", DEVICE_BY_PROTOCOL, 16),
            ("packet_fanout.arr", FIRST, 0),
            ("packet_fanout.num_members", MEMBERS, 4),
            ("packet_type.af_packet_priv", PRIVATE, 8),
            ("packet_type.func", FUNCTION, 8),
            ("packet_type.list", HANDLER_LINK, 16),
            ("inet_ehash_bucket", 0, 8),
            ("inet_ehash_bucket.chain", 0, 8),
            ("inet_hashinfo.ehash", 0, 8),
            ("inet_hashinfo.ehash_mask", 16, 4),
            ("inet_hashinfo.lhash2", 64, 8),
            ("inet_hashinfo.lhash2_mask", 56, 4),
            ("inet_listen_hashbucket", 0, 16),
            ("inet_listen_hashbucket.nulls_head", 8, 8),
            ("net.ipv4.tcp_death_row.hashinfo", 8, 8),
            ("net.list", 16, 16),
            ("net.ns.inum", 40, 4),
            ("net.packet.sklist", PACKETS, 8),
            ("raw_hashinfo.ht", 8, 16),
            ("sock.sk_socket", SOCKET, 8),
            ("sock_common.skc_daddr", 0, 4),
            ("sock_common.skc_dport", 12, 2),
            ("sock_common.skc_family", FAMILY, 2),
            ("sock_common.skc_net.net", OF_NET, 8),
            ("sock_common.skc_node", LINK, 16),
            ("sock_common.skc_num", 14, 2),
            ("sock_common.skc_rcv_saddr", 4, 4),
            ("sock_common.skc_state", STATE, 1),
            ("sock_common.skc_v6_daddr", V6, 16),
            ("sock_common.skc_v6_rcv_saddr", V6 + 16, 16),
            ("socket_alloc.socket", 0, 128),
            ("socket_alloc.vfs_inode.i_ino", 192, 8),
            ("udp_hslot", 0, 16),
            ("udp_hslot.head", 0, 8),
            ("sock_common.skc_portaddr_node", 88, 16),
            ("udp_table.hash", 0, 8),
            ("udp_table.hash2", 8, 8),
            ("udp_table.mask", 16, 4),
        ];
        let profile = fake::profile(&symbols, &layouts);
        let world =
            Self { memory: FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES), profile };
        for (net, number) in [(NET, 100), (OTHER_NET, 200)] {
            world.set(net + 40, number);
        }
        world.set(NETS, NET + 16);
        world.set(NET + 16, OTHER_NET + 16);
        world.set(OTHER_NET + 16, NETS);
        world.set(NET + 8, CONNECTIONS);
        world.set(OTHER_NET + 8, OTHER_CONNECTIONS);
        for (table, established) in
            [(CONNECTIONS, ESTABLISHED), (OTHER_CONNECTIONS, OTHER_ESTABLISHED)]
        {
            world.set(table, established);
            world.set(table + 16, 3);
            world.set(table + 64, LISTENING);
            world.set(table + 56, 1);
            (0..4).for_each(|bucket| world.set(established + 8 * bucket, END));
        }
        (0..2).for_each(|bucket| world.set(LISTENING + 8 + 16 * bucket, END));
        world.set(DATAGRAMS, BY_PORT);
        world.set(DATAGRAMS + 8, BY_ADDRESS);
        world.set(DATAGRAMS + 16, 1);
        (0..16).for_each(|list| world.set(BY_PROTOCOL + 16 * list, BY_PROTOCOL + 16 * list));
        world.set(FOR_ALL, FOR_ALL);
        for (net, device) in [(NET, DEVICE), (OTHER_NET, OTHER_DEVICE)] {
            world.set(net + FOR_ALL_HERE, net + FOR_ALL_HERE);
            world.set(net + DEVICES, device + DEVICE_LINK);
            world.set(device + DEVICE_LINK, net + DEVICES);
            for list in [DEVICE_FOR_ALL, DEVICE_BY_PROTOCOL] {
                world.set(device + list, device + list);
            }
        }
        world
    }

    /// A packet socket that no list has.
    fn apart(&self, number: u64, net: u64) -> u64 {
        let at = self.add(OTHER_NET + PACKETS, number, 17, 7, net);
        self.set(OTHER_NET + PACKETS, self.get(at + LINK));
        at
    }

    /// Puts the handler of this number at the beginning of the list at `head`: it calls `function` for `private`.
    fn handle(&self, head: u64, number: u64, function: u64, private: u64) {
        let at = HANDLERS_AT + 0x100 * number;
        self.set(at + FUNCTION, function);
        self.set(at + PRIVATE, private);
        self.set(at + HANDLER_LINK, self.get(head));
        self.set(head, at + HANDLER_LINK);
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    fn get(&self, address: u64) -> u64 {
        self.memory.get(fake::physical(address))
    }

    /// Puts the socket of this number at the beginning of the list at `head`: its port is 1000 and the number, its
    /// inode 5000 and the number.
    fn add(&self, head: u64, number: u64, family: u64, state: u64, net: u64) -> u64 {
        let at = SOCKETS + number * SOCKET_BYTES;
        self.set(at, 0x0200_007f | 0x0100_007f << 32);
        self.set(at + 8, (1000 + number) << 48 | 0x901f << 32);
        self.set(at + 16, family | state << 16);
        self.set(at + OF_NET, net);
        self.set(at + V6, 0x1111_1111);
        self.set(at + V6 + 24, 0x0100_0000 << 32);
        let inode = at + 0x2000;
        self.set(at + SOCKET, inode);
        self.set(inode + 192, 5000 + number);
        self.set(at + LINK, self.get(head));
        self.set(head, at + LINK);
        at
    }

    fn list(&self) -> Sockets {
        let profile = Profile::decode(&self.profile).unwrap();
        list(&Kernel::new(&profile, &self.memory)).unwrap()
    }
}

#[test]
fn every_table_is_walked() {
    let world = World::new();
    assert_eq!(world.list(), Sockets { sockets: Vec::new(), is_complete: true });
    world.add(ESTABLISHED + 24, 1, 2, 1, NET);
    world.add(ESTABLISHED + 24, 2, 2, 6, NET);
    world.add(LISTENING + 24, 3, 10, 10, NET);
    world.add(OTHER_ESTABLISHED, 4, 2, 1, OTHER_NET);
    world.add(BY_PORT + 16, 5, 2, 7, NET);
    world.add(RAW + 16, 6, 2, 7, NET);
    world.add(OTHER_NET + PACKETS, 7, 17, 7, OTHER_NET);
    let listed = world.list();
    assert!(listed.is_complete);
    let rows: Vec<_> = listed
        .sockets
        .iter()
        .map(|it| (it.protocol, it.is_v6, it.local.port, it.remote.port, it.inode, it.namespace))
        .collect();
    let ports = (1001, 8080);
    assert_eq!(
        rows,
        [
            (Protocol::Tcp, false, ports.0, ports.1, 5001, 100),
            // A connection that waits for its end is no full socket.
            (Protocol::Tcp, false, 1002, ports.1, 0, 100),
            (Protocol::Tcp, false, 1004, ports.1, 5004, 200),
            (Protocol::Tcp, true, 1003, ports.1, 5003, 100),
            (Protocol::Udp, false, 1005, ports.1, 5005, 100),
            (Protocol::Raw, false, 1006, 0, 5006, 100),
            (Protocol::Packet, false, 0, 0, 5007, 200),
        ]
    );
    assert_eq!(listed.sockets[0].local.address, [0x0100_007f, 0, 0, 0]);
    assert_eq!(listed.sockets[0].remote.address, [0x0200_007f, 0, 0, 0]);
    assert_eq!(listed.sockets[3].local.address, [0, 0, 0, 0x0100_0000]);
    assert_eq!(listed.sockets[3].remote.address, [0x1111_1111, 0, 0, 0]);
}

/// A socket that only the second table of datagrams has is found there, and another one once.
#[test]
fn both_tables_of_datagrams_are_walked() {
    let world = World::new();
    let unlinked = world.add(BY_PORT, 1, 2, 7, NET);
    let other = world.add(BY_PORT, 2, 2, 7, NET);
    world.set(BY_ADDRESS, unlinked + 88);
    world.set(unlinked + 88, other + 88);
    world.set(other + LINK, 0);
    let inodes: Vec<_> = world.list().sockets.iter().map(|socket| socket.inode).collect();
    assert_eq!(inodes, [5001, 5002]);
}

/// A socket that gets packets is found although its namespace's list lacks it.
#[test]
fn packet_sockets_are_found_by_their_handlers() {
    let world = World::new();
    let listed = world.add(NET + PACKETS, 1, 17, 7, NET);
    world.handle(FOR_ALL, 1, RECEIVE, listed);
    let heads = [
        FOR_ALL,
        BY_PROTOCOL,
        BY_PROTOCOL + 16 * 15,
        DEVICE + DEVICE_FOR_ALL,
        OTHER_DEVICE + DEVICE_BY_PROTOCOL,
        OTHER_NET + FOR_ALL_HERE,
    ];
    for (number, head) in (2..).zip(heads) {
        let function = if number % 2 == 0 { RECEIVE } else { RECEIVE_IN_RING };
        world.handle(head, number, function, world.apart(number, OTHER_NET));
    }
    // What else gets packets, and two sockets that share them.
    world.handle(FOR_ALL, 8, TEXT + 0x400, 7);
    world.set(SHARED + MEMBERS, 2);
    (0..2).for_each(|at| world.set(SHARED + FIRST + 8 * at, world.apart(9 + at, NET)));
    world.handle(DEVICE + DEVICE_FOR_ALL, 9, RECEIVE_IN_GROUP, SHARED);
    let all = world.list();
    assert!(all.is_complete);
    let rows: Vec<_> = all.sockets.iter().map(|it| (it.protocol, it.inode, it.namespace)).collect();
    let row = |number: u64| {
        let is_here = matches!(number, 1 | 9 | 10);
        (Protocol::Packet, 5000 + number, if is_here { 100 } else { 200 })
    };
    assert_eq!(rows, [1, 2, 3, 4, 5, 6, 7, 9, 10].map(row));
}

/// Lists without end in each bucket of a large table take a bounded time.
#[test]
fn the_steps_of_a_walk_are_bounded() {
    let world = World::new();
    let at = world.add(ESTABLISHED, 1, 2, 1, NET);
    world.set(at + LINK, at + LINK);
    let began = std::time::Instant::now();
    // The image ends long before the table.
    world.set(CONNECTIONS + 16, (1 << 24) - 1);
    (0..0x800).step_by(8).for_each(|bucket| world.set(ESTABLISHED + bucket, at + LINK));
    assert!(!world.list().is_complete);
    assert!(began.elapsed().as_secs() < 20);
}

/// What cannot be walked to its end does not end the walk, and is not passed over in silence.
#[test]
fn damaged_tables_are_told() {
    let damages: [fn(&World); 13] = [
        // A cycle, a wild pointer, and one to a socket that cannot be read.
        |w| w.set(SOCKETS + SOCKET_BYTES + LINK, SOCKETS + SOCKET_BYTES + LINK),
        |w| w.set(SOCKETS + SOCKET_BYTES + LINK, 0x7000),
        |w| w.set(SOCKETS + SOCKET_BYTES + OF_NET, 0x7000),
        // A table that is gone, and one without end.
        |w| w.set(OTHER_NET + 8, 0x7000),
        |w| w.set(CONNECTIONS + 16, 0xffff_ffff),
        |w| w.set(DATAGRAMS, 0x7000),
        // Handlers, devices, and sockets that share packets: the same.
        |w| w.set(HANDLERS_AT + HANDLER_LINK, HANDLERS_AT + HANDLER_LINK),
        |w| w.set(HANDLERS_AT + HANDLER_LINK, 0x7000),
        |w| w.set(HANDLERS_AT + PRIVATE, 0x7000),
        |w| w.set(DEVICE + DEVICE_LINK, DEVICE + DEVICE_LINK),
        |w| w.set(OTHER_DEVICE + DEVICE_LINK, 0x7000),
        |w| w.set(SHARED + MEMBERS, 0xffff_ffff),
        |w| w.set(SHARED + FIRST, 0x7000),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let world = World::new();
        world.add(ESTABLISHED, 1, 2, 1, NET);
        world.add(BY_PORT, 2, 2, 7, NET);
        world.handle(DEVICE + DEVICE_FOR_ALL, 0, RECEIVE, world.apart(3, NET));
        world.set(SHARED + MEMBERS, 1);
        world.set(SHARED + FIRST, world.apart(4, NET));
        world.handle(FOR_ALL, 1, RECEIVE_IN_GROUP, SHARED);
        assert!(world.list().is_complete);
        damage(&world);
        let listed = world.list();
        assert!(!listed.is_complete, "{number}");
        assert!(!listed.sockets.is_empty(), "{number}");
    }
}
