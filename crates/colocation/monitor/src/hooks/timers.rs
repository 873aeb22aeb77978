//! Timers, and delayed work, which begins as a timer (`kernel/time/timer.c` of Linux).

use super::source::{offset, visit_chain, Cursor, Hook, Source};
use super::stubs::Stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::Areas;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Maximum number of sets of timers of a CPU.
const MAX_BASES: u64 = 3;

#[derive(Debug)]
pub(super) struct Timers {
    areas: Areas,
    /// Offset of the first set of timers in an area; size and number of the sets.
    base: u64,
    base_bytes: u64,
    bases: u64,
    /// Offset of the bits that say which lists have timers; offset and number of the lists.
    pending: u64,
    lists: u64,
    count: u64,
    next: u64,
    entry: u64,
    function: u64,
    /// The function of delayed work's timers, and the offset of the work's function from the timer.
    delayed: Option<(u64, u64)>,
}

impl Timers {
    /// The first list that has timers, from `list` on.
    fn pending<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, base: u64, mut list: u64) -> u64 {
        while list < self.count {
            let bits = kernel.u64(base.wrapping_add(self.pending + list / 64 * 8)).unwrap_or(0);
            match bits >> (list % 64) {
                0 => list = (list / 64 + 1) * 64,
                rest => return list + u64::from(rest.trailing_zeros()),
            }
        }
        list
    }

    fn see_timer<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        timer: u64,
        see: &mut dyn FnMut(Hook),
    ) {
        let Some(hook) = Hook::code(kernel, timer, self.function) else { return };
        see(hook);
        let work = self.delayed.filter(|(function, _)| *function == hook.value);
        let work = work.and_then(|(_, work)| Hook::code(kernel, timer, work));
        work.into_iter().for_each(see);
    }
}

impl Source for Timers {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("delayed_work", "timer", Optional),
            ("delayed_work", "work.func", Optional),
            ("timer_base", "pending_map", Optional),
            ("timer_base", "vectors", Optional),
            ("timer_list", "entry", Optional),
            ("timer_list", "function", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden timer";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let lists = profile.field("timer_base", "vectors")?;
        let delayed = || {
            let timer = offset(profile, "delayed_work", "timer")?;
            let work = offset(profile, "delayed_work", "work.func")?;
            Some((profile.symbol("delayed_work_timer_fn")?, work.wrapping_sub(timer)))
        };
        let (base, base_bytes) = (profile.symbol("timer_bases")?, profile.size_of("timer_base")?);
        // Two or three, which no type says (`NR_BASES` in Linux's `timer.c`).
        let behind = profile.symbols_from(base + 1).next()?.address;
        Some(Self {
            areas: Areas::new(profile)?,
            base,
            base_bytes,
            bases: ((behind - base) / base_bytes.max(1)).clamp(1, MAX_BASES),
            pending: offset(profile, "timer_base", "pending_map")?,
            lists: lists.offset,
            count: lists.bytes / 8,
            next: offset(profile, "hlist_node", "next")?,
            entry: offset(profile, "timer_list", "entry")?,
            function: offset(profile, "timer_list", "function")?,
            delayed: delayed(),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        // A cursor's list counts the lists of all sets of all CPUs.
        let (set, list) = (at.list / self.count, at.list % self.count);
        let area = self.areas.of(kernel, set / self.bases)?;
        let base = area.wrapping_add(self.base + set % self.bases * self.base_bytes);
        let pending = if at.link == 0 { self.pending(kernel, base, list) } else { list };
        let at = Cursor { list: at.list - list + pending, ..at };
        if pending == self.count {
            return Some(at);
        }
        let first = base.wrapping_add(self.lists + 8 * pending);
        Some(visit_chain(kernel, first, self.next, at, |link| {
            self.see_timer(kernel, link.wrapping_sub(self.entry), see);
        }))
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        if hook.slot != hook.object.wrapping_add(self.function) {
            // Linux finds a running work by its function: it would no longer wait for the end of one that a module
            // cancels before it is removed.
            return Err("Linux knows the work by this function while it runs");
        }
        // The timer runs once more, and is not begun again.
        stubs.nothing(kernel, hook)
    }
}
