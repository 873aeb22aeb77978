//! Kprobes and kretprobes: functions that Linux calls at, or at the return of, an instruction
//! (`include/linux/kprobes.h` of Linux).

use super::source::{extent, offset, Cursor, Hook, Source, BATCH};
use super::stubs::{self, Stubs};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{chain, hash};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// Lists of the table (`KPROBE_TABLE_SIZE` in Linux's `kprobes.c`).
const LISTS: u64 = 64;

#[derive(Debug)]
pub(super) struct Kprobes {
    table: u64,
    /// Offset of the link in the table, and of the link among the probes of one instruction.
    link: u64,
    next: u64,
    same: u64,
    address: u64,
    handlers: [u64; 2],
    /// The handlers of an instruction with several probes.
    several: [Option<u64>; 2],
    /// The handler of kretprobes, and the offsets of their functions from the kprobe.
    returns: Option<(Range<u64>, [u64; 2])>,
    /// Offset from the kprobe of the pointer to what catches returns, and there of that to its handler.
    catches: Option<(u64, u64)>,
}

impl Kprobes {
    /// Whether `probe` stands in the table for several of the same instruction.
    fn is_of_several<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, probe: u64) -> bool {
        let head = probe.wrapping_add(self.same);
        let address = kernel.u64(probe.wrapping_add(self.address)).unwrap_or(0);
        let first = self.table + 8 * hash(address, LISTS.trailing_zeros());
        let mut links = chain(kernel, first, self.next);
        kernel.u64(head).is_some_and(|next| next != 0 && next != head)
            && links.any(|link| link == probe.wrapping_add(self.link))
    }

    fn see_probe<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        probe: u64,
        see: &mut dyn FnMut(Hook),
    ) {
        let address = kernel.u64(probe.wrapping_add(self.address)).unwrap_or(0);
        let [before, after] = self.handlers.map(|at| Hook::code(kernel, probe, at));
        let returns = self.returns.as_ref();
        let returns =
            returns.filter(|(handler, _)| before.is_some_and(|b| handler.contains(&b.value)));
        let of_return =
            returns.map(|(_, functions)| functions.map(|at| Hook::code(kernel, probe, at)));
        let catches = self.catches.filter(|_| of_return.is_some());
        let catches = catches.and_then(|(at, handler)| Hook::behind(kernel, probe, at, handler));
        let of_return = of_return.into_iter().flatten();
        let all = [before, after].into_iter().chain(of_return).chain([catches]);
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
            ("kretprobe", "rh", Optional),
            ("rethook", "handler", Optional),
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
            let handler = extent(profile, "pre_handler_kretprobe")?;
            Some((handler, functions.map(|at| at.wrapping_sub(kprobe))))
        };
        let catches = || {
            let of_return = |member| offset(profile, "kretprobe", member);
            let catches = of_return("rh")?.wrapping_sub(of_return("kp")?);
            Some((catches, offset(profile, "rethook", "handler")?))
        };
        Some(Self {
            catches: catches(),
            table: profile.symbol("kprobe_table")?,
            link: probe("hlist")?,
            next: offset(profile, "hlist_node", "next")?,
            same: probe("list")?,
            address: probe("addr")?,
            handlers: [probe("pre_handler")?, probe("post_handler")?],
            several: ["aggr_pre_handler", "aggr_post_handler"].map(|name| profile.symbol(name)),
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
        let word = |at: u64| kernel.u64(at).unwrap_or(0);
        let mut link = if at.link == 0 { word(self.table + 8 * at.list) } else { at.link };
        let mut inner = at.inner;
        for _ in 0..BATCH {
            if link == 0 {
                return Some(at.next_list());
            }
            let probe = link.wrapping_sub(self.link);
            // Those at the same instruction; the list of an only one is empty.
            let head = probe.wrapping_add(self.same);
            if inner == 0 {
                self.see_probe(kernel, probe, see);
                inner = word(head);
            } else {
                self.see_probe(kernel, inner.wrapping_sub(self.same), see);
                inner = word(inner);
            }
            if inner == 0 || inner == head {
                (link, inner) = (word(link.wrapping_add(self.next)), 0);
            }
        }
        match link {
            0 => Some(at.next_list()),
            _ => Some(Cursor { link, inner, ..at }),
        }
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
        let slots = self.handlers.map(|at| hook.object.wrapping_add(at));
        let own = slots.iter().zip(self.several).find(|(slot, _)| **slot == hook.slot);
        // Others' probes of the instruction are called by it.
        if let (Some((_, own)), true) = (own, self.is_of_several(kernel, hook.object)) {
            return stubs::lead(kernel, hook, own);
        }
        // Linux goes on with the probed instruction, or with what a kretprobe's function returned.
        stubs.nothing(kernel, hook)
    }
}
