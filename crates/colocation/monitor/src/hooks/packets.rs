//! Handlers of packets: by protocol, for all packets, and for those of one network device (`include/linux/netdevice.h`
//! of Linux).

use super::devices::Devices;
use super::source::{offset, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{entries, List};

/// Lists by protocol (`PTYPE_HASH_SIZE` in Linux's `netdevice.h`); behind them come the list for all packets and those
/// of the devices.
const LISTS: u64 = 16;
const DEVICES: u64 = LISTS + 1;
const LIST_BYTES: u64 = 16;
/// Maximum number of handlers in a device's list.
const MAX_HANDLERS: usize = 1024;

#[derive(Debug)]
pub(super) struct Packets {
    by_protocol: u64,
    all: u64,
    link: u64,
    function: u64,
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
            ("net_hotdata", "ptype_all", Optional),
            ("packet_type", "func", Optional),
            ("packet_type", "list", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden packet handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        // Since Linux 6.9, in a structure of what the network uses most.
        let hot =
            || Some(profile.symbol("net_hotdata")? + offset(profile, "net_hotdata", "ptype_all")?);
        let device = |member| offset(profile, "net_device", member);
        Some(Self {
            by_protocol: profile.symbol("ptype_base")?,
            all: profile.symbol("ptype_all").or_else(hot)?,
            link: offset(profile, "packet_type", "list")?,
            function: offset(profile, "packet_type", "func")?,
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
        let handler = |link: u64| Hook::code(kernel, link.wrapping_sub(self.link), self.function);
        let head = match at.list {
            0..LISTS => self.by_protocol + at.list * LIST_BYTES,
            LISTS => self.all,
            DEVICES => {
                let devices = self.devices.as_ref()?;
                return Some(devices.visit(kernel, at, |device| {
                    for at in self.lists.iter().flatten() {
                        let list = List { head: device.wrapping_add(*at), link: 0 };
                        let hooks = entries(kernel, list).take(MAX_HANDLERS).filter_map(handler);
                        hooks.for_each(&mut *see);
                    }
                    let own = self.own.and_then(|own| Hook::code(kernel, device, own));
                    own.into_iter().for_each(&mut *see);
                }));
            }
            _ => return None,
        };
        Some(visit_list(kernel, head, at, |link| handler(link).into_iter().for_each(&mut *see)))
    }
}
