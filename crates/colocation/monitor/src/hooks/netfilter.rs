//! Netfilter's hooks: functions that see packets, in each network namespace (`include/net/netns/netfilter.h` of Linux)
//! and at each network device.

use super::devices::Devices;
use super::source::{offset, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;

/// Maximum number of functions at one place (`MAX_HOOK_COUNT` in Linux's `core.c`).
const MAX_HOOKS: u64 = 1024;

/// The tables of a namespace.
const TABLES: [&str; 4] = ["nf.hooks_ipv4", "nf.hooks_ipv6", "nf.hooks_arp", "nf.hooks_bridge"];

#[derive(Debug)]
pub(super) struct Netfilter {
    namespaces: List,
    /// Offset of each table in a namespace, and its number of pointers.
    tables: [Option<(u64, u64)>; TABLES.len()],
    /// The devices, and the offsets of their pointers. A kernel can lack those.
    devices: Option<Devices>,
    places: [Option<u64>; 2],
    count: u64,
    hooks: u64,
    hook_bytes: u64,
    function: u64,
}

impl Netfilter {
    /// Calls `see` with the functions at the place whose pointer is at `place`.
    fn entries<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        place: u64,
        see: &mut dyn FnMut(Hook),
    ) {
        let Some(entries) = kernel.u64(place).filter(|&entries| entries != 0) else { return };
        let count = kernel.u16(entries.wrapping_add(self.count)).map_or(0, u64::from);
        for number in 0..count.min(MAX_HOOKS) {
            let entry = entries.wrapping_add(self.hooks + number * self.hook_bytes);
            Hook::code(kernel, entry, self.function).into_iter().for_each(&mut *see);
        }
    }
}

impl Source for Netfilter {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("net", "list", Optional),
            ("net", "nf.hooks_arp", Optional),
            ("net", "nf.hooks_bridge", Optional),
            ("net", "nf.hooks_ipv4", Optional),
            ("net", "nf.hooks_ipv6", Optional),
            ("net_device", "nf_hooks_egress", Optional),
            ("net_device", "nf_hooks_ingress", Optional),
            ("nf_hook_entries", "hooks", Optional),
            ("nf_hook_entries", "num_hook_entries", Optional),
            ("nf_hook_entry", "hook", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden netfilter hook";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let head = profile.symbol("net_namespace_list")?;
        Some(Self {
            namespaces: List { head, link: offset(profile, "net", "list")? },
            tables: TABLES.map(|table| {
                profile.field("net", table).map(|field| (field.offset, field.bytes / 8))
            }),
            devices: Devices::new(profile),
            places: ["nf_hooks_egress", "nf_hooks_ingress"]
                .map(|place| offset(profile, "net_device", place)),
            count: offset(profile, "nf_hook_entries", "num_hook_entries")?,
            hooks: offset(profile, "nf_hook_entries", "hooks")?,
            hook_bytes: profile.size_of("nf_hook_entry")?,
            function: offset(profile, "nf_hook_entry", "hook")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        Some(match (at.list, &self.devices) {
            (0, _) => visit_list(kernel, self.namespaces.head, at, |link| {
                let namespace = link.wrapping_sub(self.namespaces.link);
                for &(table, places) in self.tables.iter().flatten() {
                    let places = (0..places).map(|number| table + 8 * number);
                    places.for_each(|at| self.entries(kernel, namespace.wrapping_add(at), see));
                }
            }),
            (1, Some(devices)) => devices.visit(kernel, at, |device| {
                let places = self.places.iter().flatten();
                places.for_each(|at| self.entries(kernel, device.wrapping_add(*at), see));
            }),
            _ => return None,
        })
    }
}
