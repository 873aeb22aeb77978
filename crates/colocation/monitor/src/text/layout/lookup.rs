//! Looks the addresses and offsets up in a profile.

use super::*;
use crate::profile::Profile;

const PAGE: u64 = crate::memory::PAGE_BYTES;

fn pages(range: Range<u64>) -> Range<u64> {
    range.start & !(PAGE - 1)..(range.end + PAGE - 1) & !(PAGE - 1)
}

fn symbol(profile: &Profile<'_>, name: &'static str) -> Result<u64, MissingItem> {
    profile.symbol(name).ok_or(MissingItem(name))
}

/// Offsets of the members of one structure; a missing one is an error.
struct Members<'p, 'a>(&'p Profile<'a>, &'static str);

impl Members<'_, '_> {
    fn offset(&self, path: &'static str) -> Result<u64, MissingItem> {
        self.0.field(self.1, path).map(|field| field.offset).ok_or(MissingItem(path))
    }

    fn size(&self) -> Result<u64, MissingItem> {
        self.0.size_of(self.1).filter(|&size| size > 0).ok_or(MissingItem(self.1))
    }
}

impl TextLayout {
    pub fn new(profile: &Profile<'_>) -> Result<Self, MissingItem> {
        let stext = symbol(profile, "_stext")?;
        let etext = symbol(profile, "_etext")?;
        let rodata = symbol(profile, "__start_rodata")?..symbol(profile, "__end_rodata")?;
        let image = profile.text_base()..profile.image_end();
        let inside = |range: &Range<u64>| {
            image.start <= range.start && range.start < range.end && range.end <= image.end
        };
        if !inside(&(stext..etext)) || !inside(&rodata) || etext > rodata.start {
            return Err(MissingItem("text followed by read-only data"));
        }
        let trampolines = match (
            profile.symbol("__static_call_text_start"),
            profile.symbol("__static_call_text_end"),
        ) {
            (Some(start), Some(end)) if stext <= start && end <= etext => start..end,
            _ => 0..0,
        };
        let (jumps, key_enabled) = jumps(profile)?;
        let (calls, call_func) = calls(profile)?;
        Ok(Self {
            stext,
            etext,
            text: pages(stext..etext),
            names: names(profile, &rodata),
            rodata: pages(rodata),
            jumps,
            key_enabled,
            calls,
            call_func,
            trampolines,
            call_return_0: profile.symbol("__static_call_return0"),
            call_return: profile.symbol("__static_call_return"),
            return_thunk: profile.symbol("x86_return_thunk"),
            ftrace: ftrace(profile)?,
            ftrace_calls: ["ftrace_call", "ftrace_regs_call", "ftrace_graph_call"]
                .map(|name| profile.symbol(name)),
            probes: probes(profile)?,
            tracepoints: tracepoints(profile),
            poke: poke(profile),
            owners: Owners::new(profile).map_err(MissingItem)?,
        })
    }
}

/// The tables of symbols (`kernel/kallsyms.c`), without the last one, whose end no symbol names; and BTF.
fn names(profile: &Profile<'_>, rodata: &Range<u64>) -> [Range<u64>; 2] {
    const TABLES: [&str; 6] = [
        "kallsyms_names",
        "kallsyms_markers",
        "kallsyms_token_table",
        "kallsyms_token_index",
        "kallsyms_offsets",
        "kallsyms_seqs_of_names",
    ];
    let tables = || TABLES.iter().filter_map(|name| profile.symbol(name));
    let symbols = tables().min().zip(tables().max());
    let types = profile.symbol("__start_BTF").zip(profile.symbol("__stop_BTF"));
    [symbols, types].map(|range| {
        let range = range.map_or(0..0, |(start, end)| start..end);
        let is_inside = rodata.start <= range.start && range.end <= rodata.end;
        if is_inside {
            range
        } else {
            0..0
        }
    })
}

fn jumps(profile: &Profile<'_>) -> Result<(Option<Table>, u64), MissingItem> {
    let Some(start) = profile.symbol("__start___jump_table") else { return Ok((None, 0)) };
    let entry = Members(profile, "jump_entry");
    let table = Table {
        range: start..symbol(profile, "__stop___jump_table")?,
        size: entry.size()?,
        code: entry.offset("code")?,
        target: entry.offset("target")?,
        key: entry.offset("key")?,
    };
    Ok((Some(table), Members(profile, "static_key").offset("enabled")?))
}

fn calls(profile: &Profile<'_>) -> Result<(Option<Table>, u64), MissingItem> {
    let Some(start) = profile.symbol("__start_static_call_sites") else { return Ok((None, 0)) };
    let entry = Members(profile, "static_call_site");
    let table = Table {
        range: start..symbol(profile, "__stop_static_call_sites")?,
        size: entry.size()?,
        code: entry.offset("addr")?,
        target: 0,
        key: entry.offset("key")?,
    };
    Ok((Some(table), Members(profile, "static_call_key").offset("func")?))
}

fn ftrace(profile: &Profile<'_>) -> Result<Option<Ftrace>, MissingItem> {
    let Some(pages) = profile.symbol("ftrace_pages_start") else { return Ok(None) };
    let page = Members(profile, "ftrace_page");
    let record = Members(profile, "dyn_ftrace");
    let ops = Members(profile, "ftrace_ops");
    let hash = Members(profile, "ftrace_hash");
    let entry = Members(profile, "ftrace_func_entry");
    let mut found = Ftrace {
        pages,
        page_next: page.offset("next")?,
        page_records: page.offset("records")?,
        page_index: page.offset("index")?,
        record: record.size()?,
        ip: record.offset("ip")?,
        flags: record.offset("flags")?,
        caller: symbol(profile, "ftrace_caller")?,
        regs_caller: symbol(profile, "ftrace_regs_caller")?,
        ops: symbol(profile, "ftrace_ops_list")?,
        ops_next: ops.offset("next")?,
        ops_func: ops.offset("func")?,
        ops_trampoline: ops.offset("trampoline")?,
        ops_direct: ops.offset("direct_call").ok(),
        trampolines: profile
            .symbol("ftrace_ops_trampoline_list")
            .map(|head| Ok(List { head, link: ops.offset("list")? }))
            .transpose()?,
        directs: profile.symbol("direct_functions"),
        ..Ftrace::default()
    };
    if found.directs.is_some() {
        found.hash_bits = hash.offset("size_bits")?;
        found.hash_buckets = hash.offset("buckets")?;
        found.direct_link = entry.offset("hlist")?;
        found.direct_ip = entry.offset("ip")?;
        found.direct = entry.offset("direct")?;
    }
    Ok(Some(found))
}

fn probes(profile: &Profile<'_>) -> Result<Option<Probes>, MissingItem> {
    let Some(table) = profile.symbol("kprobe_table") else { return Ok(None) };
    let probe = Members(profile, "kprobe");
    let mut found = Probes {
        table,
        link: probe.offset("hlist")?,
        addr: probe.offset("addr")?,
        flags: probe.offset("flags")?,
        opcode: probe.offset("opcode")?,
        ..Probes::default()
    };
    if let Some(slots) = profile.symbol("kprobe_optinsn_slots") {
        let optimized = Members(profile, "optimized_kprobe");
        let page = Members(profile, "kprobe_insn_page");
        found.copied = optimized.offset("optinsn.copied_insn")?;
        found.slot = optimized.offset("optinsn.insn")?;
        found.leaving_link = optimized.offset("list")?;
        found.leaving = ["unoptimizing_list", "freeing_list"].map(|name| profile.symbol(name));
        let pages = slots + Members(profile, "kprobe_insn_cache").offset("pages")?;
        found.slot_pages = List { head: pages, link: page.offset("list")? };
        found.slot_page = page.offset("insns")?;
    }
    Ok(Some(found))
}

/// `None` for a kernel without tracepoints, or with another table.
fn tracepoints(profile: &Profile<'_>) -> Option<Tracepoints> {
    let probe = Members(profile, "tracepoint_func");
    let start = profile.symbol("__start___tracepoints_ptrs")?;
    Some(Tracepoints {
        table: start..profile.symbol("__stop___tracepoints_ptrs")?,
        probes: Members(profile, "tracepoint").offset("funcs").ok()?,
        probe: probe.size().ok()?,
        probe_function: probe.offset("func").ok()?,
    })
}

fn poke(profile: &Profile<'_>) -> Poke {
    let desc = Members(profile, "bp_patching_desc");
    let entry = Members(profile, "text_poke_loc");
    let known = || -> Result<Poke, MissingItem> {
        Ok(Poke {
            desc: profile.symbol("bp_desc"),
            refs: desc.offset("refs")?,
            vec: desc.offset("vec")?,
            count: desc.offset("nr_entries")?,
            size: entry.size()?,
            addr: entry.offset("rel_addr")?,
            len: entry.offset("len")?,
            ..Poke::default()
        })
    };
    let owner = Members(profile, "mutex").offset("owner").ok();
    let held = |mutex| Some(profile.symbol(mutex)? + owner?);
    let space = profile.symbol("poking_mm").or_else(|| profile.symbol("text_poke_mm"));
    Poke {
        space: space.zip(Members(profile, "mm_struct").offset("pgd").ok()),
        owner: held("text_mutex"),
        calls_owner: held("static_call_mutex"),
        ..known().unwrap_or_default()
    }
}
