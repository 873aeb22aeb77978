//! Users of ftrace: functions that Linux calls at the entries of others (`include/linux/ftrace.h` of Linux).
//!
//! The check `text` reports those that lead to nobody's code. Here, a module's user is asked which functions it hooks.
//! An fprobe's user leads to Linux's own code, which calls the fprobe's handlers (`include/linux/fprobe.h`).

use super::source::{offset, visit_chain, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::chain;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum binary logarithm of the number of a filter's lists, and maximum number of functions of a filter.
const MAX_BITS: u64 = 12;
const MAX_FUNCTIONS: usize = 4096;

#[derive(Debug)]
pub(super) struct Tracers {
    users: u64,
    next: u64,
    function: u64,
    /// Linux's own functions in fprobes; offsets in one of the user and of the handlers.
    probes: Option<(Vec<u64>, u64, [u64; 2])>,
    /// From a user to its filter, and from there to the lists.
    hashes: u64,
    filter: u64,
    bits: u64,
    lists: u64,
    /// Offsets of the link and of the function in an entry; offset of the next link in a link.
    link: u64,
    address: u64,
    next_link: u64,
}

impl Tracers {
    /// Calls `each` with the functions that a user hooks: 0 for all.
    fn functions<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        user: u64,
        mut each: impl FnMut(u64),
    ) {
        let filter = || {
            let hashes = kernel.u64(user.wrapping_add(self.hashes))?;
            kernel.u64(hashes.wrapping_add(self.filter)).filter(|&filter| filter != 0)
        };
        let word = |at: u64| kernel.u64(at).unwrap_or(0);
        let Some(filter) = filter() else { return each(0) };
        let lists = word(filter.wrapping_add(self.lists));
        let mut left = MAX_FUNCTIONS;
        for number in 0..1 << word(filter.wrapping_add(self.bits)).min(MAX_BITS) {
            for link in chain(kernel, lists.wrapping_add(8 * number), self.next_link) {
                if left == 0 {
                    return;
                }
                left -= 1;
                each(word(link.wrapping_sub(self.link).wrapping_add(self.address)));
            }
        }
    }
}

impl Source for Tracers {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("fprobe", "entry_handler", Optional),
            ("fprobe", "exit_handler", Optional),
            ("fprobe", "ops", Optional),
            ("ftrace_func_entry", "hlist", Optional),
            ("ftrace_func_entry", "ip", Optional),
            ("ftrace_hash", "buckets", Optional),
            ("ftrace_hash", "size_bits", Optional),
            ("ftrace_ops", "func", Optional),
            ("ftrace_ops", "func_hash", Optional),
            ("ftrace_ops", "next", Optional),
            ("ftrace_ops_hash", "filter_hash", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden ftrace handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let user = |member| offset(profile, "ftrace_ops", member);
        let probe = |member| offset(profile, "fprobe", member);
        let probes = || {
            let functions = ["fprobe_handler", "fprobe_kprobe_handler"];
            let functions = functions.iter().filter_map(|name| profile.symbol(name)).collect();
            Some((functions, probe("ops")?, [probe("entry_handler")?, probe("exit_handler")?]))
        };
        Some(Self {
            probes: probes(),
            users: profile.symbol("ftrace_ops_list")?,
            next: user("next")?,
            function: user("func")?,
            hashes: user("func_hash")?,
            filter: offset(profile, "ftrace_ops_hash", "filter_hash")?,
            bits: offset(profile, "ftrace_hash", "size_bits")?,
            lists: offset(profile, "ftrace_hash", "buckets")?,
            link: offset(profile, "ftrace_func_entry", "hlist")?,
            address: offset(profile, "ftrace_func_entry", "ip")?,
            next_link: offset(profile, "hlist_node", "next")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_chain(kernel, self.users, self.next, at, |user| {
            let Some(hook) = Hook::code(kernel, user, self.function) else { return };
            // Linux's own users hook what somebody with the right to do so asked for.
            if !kernel.in_image(hook.value) && hook.value != 0 {
                self.functions(kernel, user, |function| see(hook.on(function)));
            }
            let probes = self.probes.iter().filter(|(own, ..)| own.contains(&hook.value));
            for (_, start, handlers) in probes {
                let probe = user.wrapping_sub(*start);
                for hook in handlers.iter().filter_map(|&at| Hook::code(kernel, probe, at)) {
                    if !kernel.in_image(hook.value) && hook.value != 0 {
                        self.functions(kernel, user, |function| see(hook.on(function)));
                    }
                }
            }
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn symbol<M: KernelMemory>(&self, _kernel: &Kernel<'_, M>, _object: u64) -> String {
        "ftrace".into()
    }
}
