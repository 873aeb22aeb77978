//! Timers of high resolution: each clock of each CPU has a tree of them (`kernel/time/hrtimer.c` of Linux).

use super::source::{offset, visit_tree, Cursor, Hook, Source};
use super::stubs::Stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{Areas, Trees};
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

#[derive(Debug)]
pub(super) struct Hrtimers {
    areas: Areas,
    trees: Trees,
    /// Offset in an area of what the CPU's clocks share; offset there of the bits that say which clocks have timers.
    shared: u64,
    active: u64,
    /// Offset of the root pointer of the first clock's tree; bytes from a clock to the next; number of clocks.
    root: u64,
    clock_bytes: u64,
    clocks: u64,
    node: u64,
    function: u64,
}

impl Source for Hrtimers {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("hrtimer", "function", Optional),
            ("hrtimer", "node.node", Optional),
            ("hrtimer_clock_base", "active.rb_root.rb_root.rb_node", Optional),
            ("hrtimer_cpu_base", "active_bases", Optional),
            ("hrtimer_cpu_base", "clock_base", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden high-resolution timer";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let clocks = profile.field("hrtimer_cpu_base", "clock_base")?;
        let clock_bytes = profile.size_of("hrtimer_clock_base")?.max(1);
        let root = offset(profile, "hrtimer_clock_base", "active.rb_root.rb_root.rb_node")?;
        Some(Self {
            areas: Areas::new(profile)?,
            trees: Trees::new(profile).ok()?,
            shared: profile.symbol("hrtimer_bases")?,
            active: offset(profile, "hrtimer_cpu_base", "active_bases")?,
            root: clocks.offset + root,
            clock_bytes,
            clocks: (clocks.bytes / clock_bytes).clamp(1, 32),
            node: offset(profile, "hrtimer", "node.node")?,
            function: offset(profile, "hrtimer", "function")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        // A cursor's list counts the clocks of all CPUs.
        let (cpu, clock) = (at.list / self.clocks, at.list % self.clocks);
        let shared = self.areas.of(kernel, cpu)?.wrapping_add(self.shared);
        // Linux itself runs no timer of a clock whose bit is clear.
        let active = kernel.u32(shared.wrapping_add(self.active)).unwrap_or(0);
        let skipped = if at.link == 0 { (active >> clock).trailing_zeros() } else { 0 };
        let clock = (clock + u64::from(skipped)).min(self.clocks);
        let at = Cursor { list: cpu * self.clocks + clock, ..at };
        if clock == self.clocks {
            return Some(at);
        }
        let root = shared.wrapping_add(self.root + clock * self.clock_bytes);
        Some(visit_tree(kernel, &self.trees, root, at, |node| {
            let hook = Hook::code(kernel, node.wrapping_sub(self.node), self.function);
            hook.into_iter().for_each(&mut *see);
        }))
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        // `HRTIMER_NORESTART` is 0.
        stubs.nothing(kernel, hook)
    }
}
