//! Packet sockets by the handlers through which they get packets, whatever list has them
//! (`include/linux/netdevice.h`, `net/packet/af_packet.c` and `internal.h` of Linux).

use super::MAX_IN_BUCKET;
use crate::hooks::packets;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{List, ListWalk, Lists};
use alloc::vec::Vec;

/// Lists by protocol (`PTYPE_HASH_SIZE` in Linux's `netdevice.h`), and bytes of a list's head.
const BY_PROTOCOL: u64 = 16;
const HEAD_BYTES: u64 = 16;
/// Maximum number of sockets that share packets (`PACKET_FANOUT_MAX`).
const MAX_IN_GROUP: u64 = 1 << 16;
/// The functions that hand a packet to one socket, and the one that chooses among several.
const SINGLE: [&str; 3] = ["packet_rcv", "packet_rcv_spkt", "tpacket_rcv"];
const GROUP: &str = "packet_rcv_fanout";

/// What the walk needs from a profile.
pub(crate) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("net", "dev_base_head", Optional),
        ("net", "ptype_all", Optional),
        ("net", "ptype_specific", Optional),
        ("net_device", "dev_list", Optional),
        ("net_device", "ptype_all", Optional),
        ("net_device", "ptype_specific", Optional),
        ("net_hotdata", "ptype_all", Optional),
        ("packet_fanout", "arr", Optional),
        ("packet_fanout", "num_members", Optional),
        ("packet_type", "af_packet_priv", Optional),
        ("packet_type", "func", Optional),
        ("packet_type", "list", Optional),
    ],
    constants: &[],
};

/// Sockets that share packets.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Address of the function of their handler.
    function: u64,
    /// Offsets of their number, and of the first pointer to one.
    count: u64,
    first: u64,
}

#[derive(Debug)]
pub(super) struct Handlers {
    lists: Lists,
    /// The heads of lists of handlers; offsets of those in a namespace, since Linux 6.16, and in a device.
    heads: Vec<u64>,
    of_namespace: [Option<u64>; 2],
    of_device: [Option<u64>; 2],
    /// Offset of the head of its devices in a namespace, and of the link in a device.
    devices: Option<List>,
    // In `packet_type`.
    link: u64,
    function: u64,
    private: u64,
    /// Addresses of the functions.
    single: Vec<u64>,
    group: Option<Group>,
}

impl Handlers {
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let offset = |of: &str, member: &str| Some(profile.field(of, member)?.offset);
        let handler = |member| offset("packet_type", member);
        let lists = |of| ["ptype_all", "ptype_specific"].map(|member| offset(of, member));
        let devices = || {
            Some(List {
                head: offset("net", "dev_base_head")?,
                link: offset("net_device", "dev_list")?,
            })
        };
        let group = || {
            Some(Group {
                function: profile.symbol(GROUP)?,
                count: offset("packet_fanout", "num_members")?,
                first: offset("packet_fanout", "arr")?,
            })
        };
        let first = profile.symbol("ptype_base")?;
        let by_protocol = (0..BY_PROTOCOL).map(|number| first + number * HEAD_BYTES);
        Some(Self {
            lists: Lists::new(profile).ok()?,
            heads: by_protocol.chain(packets::head(profile, "ptype_all")).collect(),
            of_namespace: lists("net"),
            of_device: lists("net_device"),
            devices: devices(),
            link: handler("list")?,
            function: handler("func")?,
            private: handler("af_packet_priv")?,
            single: SINGLE.iter().filter_map(|name| profile.symbol(name)).collect(),
            group: group(),
        })
    }

    /// Calls `each` with the sockets that get packets in these network namespaces. False if a list could not be walked
    /// to its end.
    pub fn walk<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        namespaces: &[u64],
        steps: &mut u64,
        mut each: impl FnMut(u64),
    ) -> bool {
        let mut heads = self.heads.clone();
        let mut is_complete = true;
        for namespace in namespaces {
            let at = |offset: &u64| namespace.wrapping_add(*offset);
            heads.extend(self.of_namespace.iter().flatten().map(at));
            let Some(devices) = self.devices else { continue };
            is_complete &= self.links(kernel, at(&devices.head), steps, |link, _| {
                let device = link.wrapping_sub(devices.link);
                heads.extend(self.of_device.iter().flatten().map(|at| device.wrapping_add(*at)));
                Some(())
            });
        }
        for head in heads {
            is_complete &= self.links(kernel, head, steps, |link, steps| {
                self.sockets(kernel, link.wrapping_sub(self.link), steps, &mut each)
            });
        }
        is_complete
    }

    /// Calls `each` with the links of the list at `head`. False if it has no end, or `each` cannot read something.
    fn links<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        head: u64,
        steps: &mut u64,
        mut each: impl FnMut(u64, &mut u64) -> Option<()>,
    ) -> bool {
        let mut walk = ListWalk::new(head, MAX_IN_BUCKET as u32);
        let mut is_complete = true;
        while let Ok(next) = walk.next(kernel, &self.lists) {
            let Some(link) = next else { return is_complete };
            let Some(left) = steps.checked_sub(1) else { break };
            *steps = left;
            is_complete &= each(link, steps).is_some();
        }
        false
    }

    /// Calls `each` with the sockets to which the handler at `handler` hands packets; `None` if they cannot be read.
    fn sockets<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        handler: u64,
        steps: &mut u64,
        each: &mut impl FnMut(u64),
    ) -> Option<()> {
        let word = |offset: u64| kernel.u64(handler.wrapping_add(offset));
        let function = word(self.function)?;
        if self.single.contains(&function) {
            each(word(self.private)?);
        }
        let Some(group) = self.group.filter(|group| group.function == function) else {
            return Some(());
        };
        let shared = word(self.private)?;
        let count = u64::from(kernel.u32(shared.wrapping_add(group.count))?);
        *steps = steps.checked_sub(count).filter(|_| count <= MAX_IN_GROUP)?;
        for number in 0..count {
            each(kernel.u64(shared.wrapping_add(group.first + 8 * number))?);
        }
        Some(())
    }
}
