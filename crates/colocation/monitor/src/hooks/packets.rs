//! Handlers of received packets, by protocol and for all packets (`include/linux/netdevice.h` of Linux).

use super::source::{offset, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;

/// Lists by protocol (`PTYPE_HASH_SIZE` in Linux's `netdevice.h`); behind them comes the list for all packets.
const LISTS: u64 = 16;
const LIST_BYTES: u64 = 16;

#[derive(Debug)]
pub(super) struct Packets {
    by_protocol: u64,
    all: u64,
    link: u64,
    function: u64,
}

impl Source for Packets {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
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
        Some(Self {
            by_protocol: profile.symbol("ptype_base")?,
            all: profile.symbol("ptype_all").or_else(hot)?,
            link: offset(profile, "packet_type", "list")?,
            function: offset(profile, "packet_type", "func")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let head = match at.list {
            0..LISTS => self.by_protocol + at.list * LIST_BYTES,
            LISTS => self.all,
            _ => return None,
        };
        Some(visit_list(kernel, head, at, |link| {
            let hook = Hook::code(kernel, link.wrapping_sub(self.link), self.function);
            hook.into_iter().for_each(&mut *see);
        }))
    }
}
