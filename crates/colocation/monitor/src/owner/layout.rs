//! Where Linux lists the owners of code.

use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;
use core::ops::Range;

/// Maximum number of pages of thunks of a module.
const MAX_THUNKS: u64 = 64;

pub(crate) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("module", "list", Optional),
        ("module", "name", Optional),
        ("module", "state", Optional),
        ("module", "taints", Optional),
        ("module", "core_layout", Optional),
        ("module", "init_layout", Optional),
        ("module", "its_num_pages", Optional),
        ("module", "its_page_array", Optional),
        ("module", "mem", Optional),
        ("module_layout", "base", Optional),
        ("module_layout", "size", Optional),
        ("module_layout", "text_size", Optional),
        ("module_memory", "base", Optional),
        ("module_memory", "size", Optional),
        ("bpf_prog_pack", "list", Optional),
        ("bpf_prog_pack", "ptr", Optional),
        ("bpf_ksym", "end", Optional),
        ("bpf_ksym", "lnode", Optional),
        ("bpf_ksym", "name", Optional),
        ("bpf_ksym", "prog", Optional),
        ("bpf_ksym", "start", Optional),
        ("ftrace_ops", "func", Optional),
        ("ftrace_ops", "list", Optional),
        ("ftrace_ops", "trampoline", Optional),
        ("ftrace_ops", "trampoline_size", Optional),
        ("kprobe_insn_cache", "pages", Optional),
        ("kprobe_insn_page", "insns", Optional),
        ("kprobe_insn_page", "list", Optional),
    ],
    constants: &[
        ("MOD_TEXT", Optional),
        ("MOD_INIT_TEXT", Optional),
        ("MODULE_STATE_LIVE", Optional),
        ("MODULE_STATE_GOING", Optional),
    ],
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    pub modules: List,
    pub module_name: u64,
    /// Offset of a module's state, and its value while the module is being removed.
    pub module_state: Option<(u64, u64)>,
    /// Offset of the flags that a module sets for the whole kernel.
    pub module_taints: Option<u64>,
    /// Offsets of base and size of each range of a module.
    pub module_ranges: [Option<(u64, u64)>; 7],
    /// Offsets of the number of a module's pages of thunks (ITS mitigation), and of the pointer to their addresses.
    pub module_thunks: Option<(u64, u64)>,
    pub bpf: Option<List>,
    pub bpf_start: u64,
    pub bpf_end: u64,
    pub bpf_name: u64,
    /// Offsets of base and size of a module's code, which lasts as long as the module; and of its initialization's.
    pub module_code: Option<(u64, u64)>,
    pub module_init: Option<(u64, u64)>,
    /// The `ftrace_ops` with a trampoline of their own; offsets of its address, its size, and the handler.
    pub trampolines: Option<(List, [u64; 3])>,
    /// The pages for copies of probed instructions, and for optimized probes; offset of the page's address.
    pub slots: [Option<(List, u64)>; 2],
    /// The memory that BPF programs share; offset of its address. Address of the number of memory nodes, each of which
    /// has a part.
    pub packs: Option<(List, u64)>,
    pub nodes: Option<u64>,
}

impl Owners {
    /// Looks them up in `profile`. The error is the missing item.
    pub fn new(profile: &Profile<'_>) -> Result<Self, &'static str> {
        let offset = |structure: &'static str, member: &'static str| {
            profile.field(structure, member).map(|field| field.offset).ok_or(member)
        };
        let modules = profile.symbol("modules").ok_or("modules")?;
        let mut found = Self {
            modules: List { head: modules, link: offset("module", "list")? },
            module_name: offset("module", "name")?,
            module_taints: offset("module", "taints").ok(),
            module_state: offset("module", "state")
                .ok()
                .zip(profile.constant("MODULE_STATE_GOING")),
            module_thunks: offset("module", "its_num_pages")
                .ok()
                .zip(offset("module", "its_page_array").ok()),
            trampolines: trampolines(profile),
            packs: packs(profile),
            nodes: profile.symbol("nr_node_ids"),
            slots: ["kprobe_insn_slots", "kprobe_optinsn_slots"].map(|cache| slots(profile, cache)),
            ..Self::default()
        };
        let part = profile.size_of("module_memory").filter(|&size| size > 0);
        if let (Ok(all), Some(size)) = (offset("module", "mem"), part) {
            let (base, bytes) =
                (offset("module_memory", "base")?, offset("module_memory", "size")?);
            for (range, at) in found.module_ranges.iter_mut().zip(0..) {
                *range = Some((all + at * size + base, all + at * size + bytes));
            }
            let part = |name| {
                let number = profile.constant(name)?;
                found.module_ranges.get(number as usize).copied().flatten()
            };
            let (code, init) = (part("MOD_TEXT"), part("MOD_INIT_TEXT"));
            (found.module_code, found.module_init) = (code.or(found.module_ranges[0]), init);
        } else {
            let (start, size) =
                (offset("module_layout", "base")?, offset("module_layout", "size")?);
            let core = offset("module", "core_layout")?;
            let base = core + start;
            found.module_ranges[0] = Some((base, core + size));
            let init = offset("module", "init_layout").ok();
            found.module_ranges[1] = init.map(|init| (init + start, init + size));
            found.module_init = found.module_ranges[1];
            found.module_code =
                offset("module_layout", "text_size").ok().map(|bytes| (base, core + bytes));
        }
        if let Some(head) = profile.symbol("bpf_kallsyms") {
            found.bpf = Some(List { head, link: offset("bpf_ksym", "lnode")? });
            found.bpf_start = offset("bpf_ksym", "start")?;
            found.bpf_end = offset("bpf_ksym", "end")?;
            found.bpf_name = offset("bpf_ksym", "name")?;
        }
        Ok(found)
    }

    /// The pages of thunks of `module`.
    pub fn thunks_of_module<'k, M: KernelMemory>(
        &self,
        kernel: &'k Kernel<'_, M>,
        module: u64,
    ) -> impl Iterator<Item = Range<u64>> + 'k {
        let pages = self.module_thunks.and_then(|(count, pages)| {
            let count = kernel.u32(module.wrapping_add(count)).map_or(0, u64::from);
            Some((count.min(MAX_THUNKS), kernel.u64(module.wrapping_add(pages))?))
        });
        let (count, pages) = pages.unwrap_or((0, 0));
        let page = move |number| kernel.u64(pages.wrapping_add(8 * number));
        let starts = (0..count).filter_map(page);
        starts.filter_map(|start| Some(start..start.checked_add(PAGE_BYTES)?))
    }
}

fn trampolines(profile: &Profile<'_>) -> Option<(List, [u64; 3])> {
    let offset = |member| profile.field("ftrace_ops", member).map(|field| field.offset);
    let list = List { head: profile.symbol("ftrace_ops_trampoline_list")?, link: offset("list")? };
    Some((list, [offset("trampoline")?, offset("trampoline_size")?, offset("func")?]))
}

fn slots(profile: &Profile<'_>, cache: &str) -> Option<(List, u64)> {
    let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
    let head = profile.symbol(cache)? + offset("kprobe_insn_cache", "pages")?;
    let list = List { head, link: offset("kprobe_insn_page", "list")? };
    Some((list, offset("kprobe_insn_page", "insns")?))
}

fn packs(profile: &Profile<'_>) -> Option<(List, u64)> {
    let offset = |member| profile.field("bpf_prog_pack", member).map(|field| field.offset);
    let list = List { head: profile.symbol("pack_list")?, link: offset("list")? };
    Some((list, offset("ptr")?))
}
