//! Kprobes and kretprobes: functions that Linux calls at, or at the return of, an instruction
//! (`include/linux/kprobes.h` of Linux).

use super::source::{offset, visit_chain, Cursor, Hook, Source};
use super::stubs::Stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{entries, List};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Lists of the table (`KPROBE_TABLE_SIZE` in Linux's `kprobes.c`).
const LISTS: u64 = 64;
/// Maximum number of probes at one instruction.
const MAX_PROBES: usize = 256;

#[derive(Debug)]
pub(super) struct Kprobes {
    table: u64,
    /// Offset of the link in the table, and of the link among the probes of one instruction.
    link: u64,
    next: u64,
    same: u64,
    address: u64,
    handlers: [u64; 2],
    /// The handler of an instruction with several probes.
    several: Option<u64>,
    /// The handler of kretprobes, and the offsets of their functions from the kprobe.
    returns: Option<(u64, [u64; 2])>,
}

impl Kprobes {
    fn see_probe<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        probe: u64,
        see: &mut dyn FnMut(Hook),
    ) {
        let address = kernel.u64(probe.wrapping_add(self.address)).unwrap_or(0);
        let [before, after] = self.handlers.map(|at| Hook::code(kernel, probe, at));
        let returns =
            self.returns.filter(|(handler, _)| before.is_some_and(|b| b.value == *handler));
        let of_return =
            returns.map(|(_, functions)| functions.map(|at| Hook::code(kernel, probe, at)));
        let all = [before, after].into_iter().chain(of_return.into_iter().flatten());
        all.flatten().for_each(|hook| see(hook.on(address)));
    }
}

impl Source for Kprobes {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("kprobe", "addr", Optional),
            ("kprobe", "hlist", Optional),
            ("kprobe", "list", Optional),
            ("kprobe", "post_handler", Optional),
            ("kprobe", "pre_handler", Optional),
            ("kretprobe", "entry_handler", Optional),
            ("kretprobe", "handler", Optional),
            ("kretprobe", "kp", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden kprobe handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let probe = |member| offset(profile, "kprobe", member);
        let returns = || {
            let of_return = |member| offset(profile, "kretprobe", member);
            let kprobe = of_return("kp")?;
            let functions = [of_return("handler")?, of_return("entry_handler")?];
            let handler = profile.symbol("pre_handler_kretprobe")?;
            Some((handler, functions.map(|at| at.wrapping_sub(kprobe))))
        };
        Some(Self {
            table: profile.symbol("kprobe_table")?,
            link: probe("hlist")?,
            next: offset(profile, "hlist_node", "next")?,
            same: probe("list")?,
            address: probe("addr")?,
            handlers: [probe("pre_handler")?, probe("post_handler")?],
            several: profile.symbol("aggr_pre_handler"),
            returns: returns(),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        if at.list == LISTS {
            return None;
        }
        Some(visit_chain(kernel, self.table + 8 * at.list, self.next, at, |link| {
            let probe = link.wrapping_sub(self.link);
            self.see_probe(kernel, probe, see);
            let handler = kernel.u64(probe.wrapping_add(self.handlers[0]));
            if self.several.is_some() && handler == self.several {
                let list = List { head: probe.wrapping_add(self.same), link: self.same };
                for probe in entries(kernel, list).take(MAX_PROBES) {
                    self.see_probe(kernel, probe, see);
                }
            }
        }))
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let address = kernel.u64(object.wrapping_add(self.address)).unwrap_or(0);
        format!("kprobe of {}", owner::symbol(kernel, address))
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        // Linux goes on with the probed instruction, or with what a kretprobe's function returned.
        stubs.nothing(kernel, hook)
    }
}
