//! Netfilter's hooks: functions that see packets, in each network namespace (`include/net/netns/netfilter.h` of Linux)
//! and at each network device.

use super::devices::Devices;
use super::source::{offset, visit_some, Cursor, Hook, Source};
use super::stubs::Stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Maximum number of functions at one place (`MAX_HOOK_COUNT` in Linux's `core.c`).
const MAX_HOOKS: u64 = 1024;

/// Namespaces that are visited in one part.
const NAMESPACES: u32 = 4;

/// The tables of a namespace.
const TABLES: [&str; 4] = ["nf.hooks_ipv4", "nf.hooks_ipv6", "nf.hooks_arp", "nf.hooks_bridge"];

#[derive(Debug)]
pub(super) struct Netfilter {
    /// The first namespace, which packets use whether it is listed or not.
    first: Option<u64>,
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
            first: profile.symbol("init_net"),
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
        let mut visit = |namespace: u64| {
            for &(table, places) in self.tables.iter().flatten() {
                let places = (0..places).map(|number| table + 8 * number);
                places.for_each(|at| self.entries(kernel, namespace.wrapping_add(at), see));
            }
        };
        Some(match (at.list, &self.devices) {
            (0, _) => {
                self.first.into_iter().for_each(visit);
                at.next_list()
            }
            (1, _) => visit_some(kernel, self.namespaces.head, at, NAMESPACES, |link| {
                let namespace = link.wrapping_sub(self.namespaces.link);
                if Some(namespace) != self.first {
                    visit(namespace);
                }
            }),
            (2, Some(devices)) => devices.visit(kernel, at, |device| {
                let places = self.places.iter().flatten();
                places.for_each(|at| self.entries(kernel, device.wrapping_add(*at), see));
            }),
            _ => return None,
        })
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        // Netfilter's own removal puts this function here first. The entry's registration stays, and with it the
        // function when Linux copies the entries to add or to remove others.
        stubs.accepts(kernel, hook)
    }
}
