//! Network devices, in each network namespace (`include/linux/netdevice.h` of Linux).

use super::source::{offset, Cursor, BATCH};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use crate::walk::List;

/// Maximum number of namespaces without devices in a row.
const MAX_EMPTY: u32 = 1024;

#[derive(Debug)]
pub(super) struct Devices {
    namespaces: List,
    /// Offset of the head of its devices in a namespace; of the link and of the pointer to the namespace in a device.
    devices: u64,
    link: u64,
    namespace: u64,
}

impl Devices {
    /// The devices of a kernel with `profile`.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let head = profile.symbol("net_namespace_list")?;
        Some(Self {
            namespaces: List { head, link: offset(profile, "net", "list")? },
            devices: offset(profile, "net", "dev_base_head")?,
            link: offset(profile, "net_device", "dev_list")?,
            namespace: offset(profile, "net_device", "nd_net.net")?,
        })
    }

    /// Visits some devices from `at` on. Continues with the next list behind the last device of the last namespace.
    pub fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        mut each: impl FnMut(u64),
    ) -> Cursor {
        let first = || self.first(kernel, self.namespaces.head);
        let mut link = if at.link == 0 { first() } else { Some(at.link) };
        for _ in 0..BATCH {
            let Some(found) = link else { break };
            each(found.wrapping_sub(self.link));
            link = self.next(kernel, found);
        }
        link.map_or(at.next_list(), |link| Cursor { link, ..at })
    }

    /// The link of the first device in the namespaces behind the one with the link `after`.
    fn first<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, after: u64) -> Option<u64> {
        let mut at = kernel.u64(after)?;
        for _ in 0..MAX_EMPTY {
            if at == self.namespaces.head {
                return None;
            }
            let head = at.wrapping_sub(self.namespaces.link).wrapping_add(self.devices);
            let first = kernel.u64(head)?;
            if first != head {
                return Some(first).filter(|&first| first != 0);
            }
            at = kernel.u64(at)?;
        }
        None
    }

    /// The link of the device behind the one with `link`, in its namespace or a later one.
    fn next<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, link: u64) -> Option<u64> {
        let namespace = link.wrapping_sub(self.link).wrapping_add(self.namespace);
        let namespace = kernel.u64(namespace)?;
        match kernel.u64(link)? {
            head if head == namespace.wrapping_add(self.devices) => {
                self.first(kernel, namespace.wrapping_add(self.namespaces.link))
            }
            next => Some(next).filter(|&next| next != 0),
        }
    }
}
