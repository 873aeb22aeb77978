//! Handlers of received packets, of errors and of offloads by IP protocol (`include/net/protocol.h` of Linux).

use super::source::{offset, see_functions, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::vec::Vec;

/// Pointers of a table (`MAX_INET_PROTOS` in Linux's `protocol.h`).
const PROTOCOLS: u64 = 256;

/// The tables, the type of what they point to, and the functions there.
const OFFLOADS: &[&str] =
    &["callbacks.gro_complete", "callbacks.gro_receive", "callbacks.gso_segment"];
const TABLES: [(&str, &str, &[&str]); 4] = [
    ("inet6_offloads", "net_offload", OFFLOADS),
    ("inet6_protos", "inet6_protocol", &["err_handler", "handler"]),
    ("inet_offloads", "net_offload", OFFLOADS),
    ("inet_protos", "net_protocol", &["err_handler", "handler"]),
];

#[derive(Debug)]
pub(super) struct Protocols {
    /// Addresses of the tables, and offsets of the functions.
    tables: Vec<(u64, Vec<u64>)>,
}

impl Source for Protocols {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("inet6_protocol", "err_handler", Optional),
            ("inet6_protocol", "handler", Optional),
            ("net_offload", "callbacks.gro_complete", Optional),
            ("net_offload", "callbacks.gro_receive", Optional),
            ("net_offload", "callbacks.gso_segment", Optional),
            ("net_protocol", "err_handler", Optional),
            ("net_protocol", "handler", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden protocol handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        // A kernel can have IPv6 as a module.
        let tables = TABLES.into_iter().filter_map(|(table, structure, functions)| {
            let offsets = functions.iter().map(|function| offset(profile, structure, function));
            Some((profile.symbol(table)?, offsets.collect::<Option<_>>()?))
        });
        Some(Self { tables: tables.collect() }).filter(|found| !found.tables.is_empty())
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let (table, functions) = self.tables.get(at.list as usize)?;
        kernel.words(*table, PROTOCOLS, |entry, object| {
            if object == 0 {
                return;
            }
            // Linux replaces none by another one.
            Hook::data(kernel, entry, 0).into_iter().for_each(|hook| see(hook.fixed(0)));
            see_functions(kernel, object, functions.iter().copied(), see);
        });
        Some(at.next_list())
    }
}
