//! Handlers outside of the kernel's image that Linux calls when a task begins, ends, or makes a system call.
//!
//! Code that hides a task may also put it back, for instance when the task exits: Linux would remove a task that is in
//! none of its lists otherwise, and crash. After a repair, it would then be in a list twice. While such a handler is
//! registered, a repair can do more harm than the hidden task.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use crate::walk::chain;
use alloc::vec::Vec;

/// Maximum number of entries in a list of handlers, and of probes in a bucket.
const MAX_HANDLERS: usize = 256;
/// Buckets of the table of probes (`kprobes.c`).
const BUCKETS: u64 = 64;
/// Flag of a probe (`kprobes.h`): its memory is going away.
const GONE: u32 = 1;

/// The tracepoints whose handlers see tasks begin and end, or every system call.
const TRACEPOINTS: [&str; 9] = [
    "__tracepoint_sched_process_exit",
    "__tracepoint_sched_process_free",
    "__tracepoint_sched_process_wait",
    "__tracepoint_sched_process_fork",
    "__tracepoint_sched_process_exec",
    "__tracepoint_sched_switch",
    "__tracepoint_signal_deliver",
    "__tracepoint_sys_enter",
    "__tracepoint_sys_exit",
];

/// A probe there sees no task: kyozon.ko stops the cokernel before a crash kernel starts. The place of a probe may
/// follow on a landing pad of 4 bytes.
const HARMLESS: &str = "__crash_kexec";
const LANDING_PAD: u64 = 4;

/// `ftrace_ops_list`: address of the pointer to the first entry, offsets in an entry.
#[derive(Clone, Debug)]
struct Ftrace {
    ops: u64,
    next: u64,
    funcs: [Option<u64>; 2],
}

/// `kprobe_table`: its address, offsets in a `kprobe`, and those for return probes.
#[derive(Clone, Debug)]
struct Probes {
    table: u64,
    link: u64,
    addr: u64,
    flags: u64,
    handlers: [u64; 2],
    harmless: Option<u64>,
    /// The handler of several probes at one place, and the offset of their list.
    several: Option<(u64, u64)>,
    /// The handler of all return probes, and the offset of a return probe's own one.
    returns: Option<(u64, u64)>,
}

/// Where Linux keeps handlers. What a kernel lacks, nobody can use.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    ftrace: Option<Ftrace>,
    probes: Option<Probes>,
    /// Addresses of the pointers to the handlers of each tracepoint.
    tracepoints: Vec<u64>,
}

impl Hooks {
    pub fn new(profile: &Profile<'_>) -> Self {
        let offset = |structure, member| Some(profile.field(structure, member)?.offset);
        let ftrace = || {
            Some(Ftrace {
                ops: profile.symbol("ftrace_ops_list")?,
                next: offset("ftrace_ops", "next")?,
                // While only some processes are traced, `func` leads to Linux's own filter.
                funcs: ["func", "saved_func"].map(|name| offset("ftrace_ops", name)),
            })
        };
        let probes = || {
            Some(Probes {
                table: profile.symbol("kprobe_table")?,
                link: offset("kprobe", "hlist")?,
                addr: offset("kprobe", "addr")?,
                flags: offset("kprobe", "flags")?,
                handlers: [offset("kprobe", "pre_handler")?, offset("kprobe", "post_handler")?],
                harmless: profile.symbol(HARMLESS),
                several: profile.symbol("aggr_pre_handler").zip(offset("kprobe", "list")),
                returns: profile
                    .symbol("pre_handler_kretprobe")
                    .zip(offset("kretprobe", "handler")),
            })
        };
        let tracepoints = offset("tracepoint", "funcs").map_or_else(Vec::new, |funcs| {
            let addresses = TRACEPOINTS.iter().filter_map(|name| profile.symbol(name));
            addresses.map(|address| address.wrapping_add(funcs)).collect()
        });
        Self { ftrace: ftrace(), probes: probes(), tracepoints }
    }

    /// Whether a handler outside of the kernel's image is registered.
    pub fn any<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        self.is_traced(kernel) || self.is_probed(kernel) || self.has_tracepoint(kernel)
    }

    fn is_traced<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        let Some(ftrace) = &self.ftrace else { return false };
        chain(kernel, ftrace.ops, ftrace.next)
            .take(MAX_HANDLERS)
            .flat_map(|ops| ftrace.funcs.iter().flatten().map(move |func| ops.wrapping_add(*func)))
            .any(|func| is_outside(kernel, kernel.u64(func)))
    }

    fn is_probed<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        let Some(probes) = &self.probes else { return false };
        let links = (0..BUCKETS)
            .flat_map(|i| chain(kernel, probes.table.wrapping_add(8 * i), 0).take(MAX_HANDLERS));
        links.map(|link| link.wrapping_sub(probes.link)).any(|probe| {
            let at = kernel.u64(probe.wrapping_add(probes.addr)).unwrap_or(0);
            let flags = kernel.u32(probe.wrapping_add(probes.flags)).unwrap_or(0);
            let is_harmless =
                probes.harmless.is_some_and(|start| at.wrapping_sub(start) <= LANDING_PAD);
            flags & GONE == 0 && !is_harmless && probes.lead_outside(kernel, probe)
        })
    }

    fn has_tracepoint<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        self.tracepoints.iter().any(|funcs| {
            // An array of (function, data, priority) that ends with a function of 0.
            let first = kernel.u64(*funcs).filter(|first| *first != 0);
            first.is_some_and(|first| {
                (0..MAX_HANDLERS as u64)
                    .map_while(|i| {
                        kernel.u64(first.wrapping_add(24 * i)).filter(|function| *function != 0)
                    })
                    .any(|function| is_outside(kernel, Some(function)))
            })
        })
    }
}

impl Probes {
    /// Whether a handler of the probe at `probe` lies outside of the kernel's image.
    fn lead_outside<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, probe: u64) -> bool {
        let outside = |probe: u64| {
            let word = |offset: u64| kernel.u64(probe.wrapping_add(offset));
            let own = self.returns.is_some_and(|(all, handler)| {
                word(self.handlers[0]) == Some(all) && is_outside(kernel, word(handler))
            });
            own || self.handlers.iter().any(|handler| is_outside(kernel, word(*handler)))
        };
        let first = kernel.u64(probe.wrapping_add(self.handlers[0]));
        let list = self.several.filter(|(all, _)| first == Some(*all)).map(|(_, list)| list);
        outside(probe)
            || list.is_some_and(|list| {
                let head = probe.wrapping_add(list);
                chain(kernel, head, 0)
                    .take(MAX_HANDLERS)
                    .take_while(|link| *link != head)
                    .any(|link| outside(link.wrapping_sub(list)))
            })
    }
}

fn is_outside<M: KernelMemory>(kernel: &Kernel<'_, M>, function: Option<u64>) -> bool {
    function.is_some_and(|function| function != 0 && !kernel.in_image(function))
}
