//! Handlers of packets: by protocol, for all packets, for those of one network device, and for packets that are merged
//! (`include/linux/netdevice.h` of Linux).

use super::devices::Devices;
use super::source::{offset, see_functions, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{entries, List};

/// Lists by protocol (`PTYPE_HASH_SIZE` in Linux's `netdevice.h`); behind them come the list for all packets, those
/// of the devices, and the one for packets that are merged.
const LISTS: u64 = 16;
const DEVICES: u64 = LISTS + 1;
const OFFLOADS: u64 = LISTS + 2;
const LIST_BYTES: u64 = 16;
/// Maximum number of handlers in a device's list.
const MAX_HANDLERS: usize = 1024;

/// The address of the list called `name`: since Linux 6.9, in a structure of what the network uses most.
pub(crate) fn head(profile: &Profile<'_>, name: &str) -> Option<u64> {
    let hot = || Some(profile.symbol("net_hotdata")? + offset(profile, "net_hotdata", name)?);
    profile.symbol(name).or_else(hot)
}

#[derive(Debug)]
pub(super) struct Packets {
    by_protocol: u64,
    all: u64,
    link: u64,
    functions: [u64; 3],
    /// The list for packets that are merged, and offsets of its functions.
    offloads: Option<(List, [u64; 3])>,
    /// The devices; offsets of their lists and of the pointer to their own handler. A kernel can lack those.
    devices: Option<Devices>,
    lists: [Option<u64>; 2],
    own: Option<u64>,
}

impl Source for Packets {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("net_device", "ptype_all", Optional),
            ("net_device", "ptype_specific", Optional),
            ("net_device", "rx_handler", Optional),
            ("net_hotdata", "offload_base", Optional),
            ("net_hotdata", "ptype_all", Optional),
            ("packet_offload", "callbacks.gro_complete", Optional),
            ("packet_offload", "callbacks.gro_receive", Optional),
            ("packet_offload", "callbacks.gso_segment", Optional),
            ("packet_offload", "list", Optional),
            ("packet_type", "func", Optional),
            ("packet_type", "id_match", Optional),
            ("packet_type", "list", Optional),
            ("packet_type", "list_func", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden packet handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let device = |member| offset(profile, "net_device", member);
        let handler = |member| offset(profile, "packet_type", member);
        let offload = |member| offset(profile, "packet_offload", member);
        let offloads = || {
            let functions = [
                offload("callbacks.gro_complete")?,
                offload("callbacks.gro_receive")?,
                offload("callbacks.gso_segment")?,
            ];
            Some((List { head: head(profile, "offload_base")?, link: offload("list")? }, functions))
        };
        Some(Self {
            by_protocol: profile.symbol("ptype_base")?,
            all: head(profile, "ptype_all")?,
            link: handler("list")?,
            functions: [handler("func")?, handler("id_match")?, handler("list_func")?],
            offloads: offloads(),
            devices: Devices::new(profile),
            lists: ["ptype_all", "ptype_specific"].map(device),
            own: device("rx_handler"),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let handler = |link: u64, see: &mut dyn FnMut(Hook)| {
            see_functions(kernel, link.wrapping_sub(self.link), self.functions, see);
        };
        let head = match at.list {
            0..LISTS => self.by_protocol + at.list * LIST_BYTES,
            LISTS => self.all,
            DEVICES => {
                let Some(devices) = &self.devices else { return Some(at.next_list()) };
                return Some(devices.visit(kernel, at, |device| {
                    for at in self.lists.iter().flatten() {
                        let list = List { head: device.wrapping_add(*at), link: 0 };
                        let links = entries(kernel, list).take(MAX_HANDLERS);
                        links.for_each(|link| handler(link, see));
                    }
                    see_functions(kernel, device, self.own, see);
                }));
            }
            OFFLOADS => {
                let (list, members) = self.offloads.as_ref()?;
                return Some(visit_list(kernel, list.head, at, |link| {
                    see_functions(kernel, link.wrapping_sub(list.link), *members, see);
                }));
            }
            _ => return None,
        };
        Some(visit_list(kernel, head, at, |link| handler(link, see)))
    }
}
