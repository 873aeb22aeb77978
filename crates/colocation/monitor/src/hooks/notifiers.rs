//! Notifier chains: functions that Linux calls when something happens (`include/linux/notifier.h` of Linux).

use super::source::{offset, visit_chain, Cursor, Hook, Source};
use super::stubs::Stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// The chains, by the type of their head.
const CHAINS: [(&str, &[&str]); 3] = [
    (
        "atomic_notifier_head",
        &[
            "die_chain",
            "inet6addr_chain",
            "keyboard_notifier_list",
            "netevent_notif_chain",
            "panic_notifier_list",
            "vt_notifier_list",
        ],
    ),
    (
        "blocking_notifier_head",
        &[
            "inetaddr_chain",
            "module_notify_list",
            "netlink_chain",
            "oom_notify_list",
            "pm_chain_head",
            "reboot_notifier_list",
            "tracepoint_notify_list",
        ],
    ),
    ("raw_notifier_head", &["netdev_chain"]),
];

#[derive(Debug)]
pub(super) struct Notifiers {
    /// Addresses of the pointers to the chains' first entries.
    chains: Vec<u64>,
    call: u64,
    next: u64,
}

impl Source for Notifiers {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("atomic_notifier_head", "head", Optional),
            ("blocking_notifier_head", "head", Optional),
            ("notifier_block", "next", Optional),
            ("notifier_block", "notifier_call", Optional),
            ("raw_notifier_head", "head", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden notifier";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let mut chains = Vec::new();
        for (head, names) in CHAINS {
            let first = offset(profile, head, "head")?;
            chains.extend(names.iter().filter_map(|name| Some(profile.symbol(name)? + first)));
        }
        let block = |member| offset(profile, "notifier_block", member);
        Some(Self { chains, call: block("notifier_call")?, next: block("next")? })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let first = *self.chains.get(at.list as usize)?;
        Some(visit_chain(kernel, first, self.next, at, |block| {
            // The chain tells more than the block.
            let hook = Hook::code(kernel, block, self.call);
            hook.into_iter().for_each(|hook| see(Hook { object: first, ..hook }));
        }))
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        // `NOTIFY_DONE` is 0.
        stubs.nothing(kernel, hook)
    }
}
