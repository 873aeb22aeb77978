//! Network devices: their tables of operations (`include/linux/netdevice.h` of Linux).

use super::devices::Devices;
use super::source::{offset, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;

/// Bytes of a name (`IFNAMSIZ` in Linux's `if.h`).
const NAME_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct Interfaces {
    devices: Devices,
    name: u64,
    operations: [u64; 2],
}

impl Source for Interfaces {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("net", "dev_base_head", Optional),
            ("net", "list", Optional),
            ("net_device", "dev_list", Optional),
            ("net_device", "header_ops", Optional),
            ("net_device", "name", Optional),
            ("net_device", "nd_net.net", Optional),
            ("net_device", "netdev_ops", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden device operations";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let device = |member| offset(profile, "net_device", member);
        Some(Self {
            devices: Devices::new(profile)?,
            name: device("name")?,
            // Not `ethtool_ops`: DSA has a copy of another device's on the heap.
            operations: [device("header_ops")?, device("netdev_ops")?],
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = self.devices.visit(kernel, at, |device| {
            let hooks = self.operations.iter().filter_map(|&at| Hook::data(kernel, device, at));
            hooks.for_each(&mut *see);
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.c_string(object.wrapping_add(self.name), NAME_BYTES);
        format!("network device {}", name.unwrap_or_default())
    }
}
