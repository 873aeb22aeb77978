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
    /// The first namespace, whose devices come first: packets use them whether it is listed or not.
    initial: Option<u64>,
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
            initial: profile.symbol("init_net"),
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
        let first = || {
            let initial = self.initial.and_then(|initial| self.of(kernel, initial));
            initial.or_else(|| self.first(kernel, self.namespaces.head))
        };
        let mut link = if at.link == 0 { first() } else { Some(at.link) };
        for _ in 0..BATCH {
            let Some(found) = link else { break };
            each(found.wrapping_sub(self.link));
            link = self.next(kernel, found);
        }
        link.map_or(at.next_list(), |link| Cursor { link, ..at })
    }

    /// The link of the first device in `namespace`.
    fn of<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, namespace: u64) -> Option<u64> {
        let head = namespace.wrapping_add(self.devices);
        kernel.u64(head).filter(|&first| first != head && first != 0)
    }

    /// The link of the first device in the namespaces behind the one with the link `after`, but the first namespace.
    fn first<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, after: u64) -> Option<u64> {
        let mut at = kernel.u64(after)?;
        for _ in 0..MAX_EMPTY {
            if at == self.namespaces.head {
                return None;
            }
            let namespace = at.wrapping_sub(self.namespaces.link);
            let device = self.of(kernel, namespace).filter(|_| Some(namespace) != self.initial);
            if device.is_some() {
                return device;
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
            head if head == namespace.wrapping_add(self.devices) => match Some(namespace) {
                initial if initial == self.initial => self.first(kernel, self.namespaces.head),
                _ => self.first(kernel, namespace.wrapping_add(self.namespaces.link)),
            },
            next => Some(next).filter(|&next| next != 0),
        }
    }
}
