//! The location of a kernel's text, and of the records of what Linux patches in it.

mod lookup;

use crate::owner::Owners;
pub(super) use crate::walk::List;
use core::ops::Range;

/// A symbol or member that the kernel lacks, without which Linux's own changes look like tampering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingItem(pub &'static str);

/// A table in read-only data.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub range: Range<u64>,
    /// Size of an entry in bytes, then the offsets of its members.
    pub size: u64,
    pub code: u64,
    pub target: u64,
    pub key: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ftrace {
    /// Address of the pointer to the first `ftrace_page`.
    pub pages: u64,
    pub page_next: u64,
    pub page_records: u64,
    pub page_index: u64,
    pub record: u64,
    pub ip: u64,
    pub flags: u64,
    pub caller: u64,
    pub regs_caller: u64,
    /// Address of the pointer to the first registered `ftrace_ops`.
    pub ops: u64,
    pub ops_next: u64,
    pub ops_func: u64,
    pub ops_trampoline: u64,
    pub ops_direct: Option<u64>,
    /// The `ftrace_ops` that have a trampoline, registered or being removed.
    pub trampolines: Option<List>,
    /// Address of the pointer to the hash of direct calls.
    pub directs: Option<u64>,
    pub hash_bits: u64,
    pub hash_buckets: u64,
    pub direct_link: u64,
    pub direct_ip: u64,
    pub direct: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    /// Address of the hash table of all probes.
    pub table: u64,
    pub link: u64,
    pub addr: u64,
    pub flags: u64,
    /// Offsets of the original byte under a breakpoint or jump, of the four after it, and of the jump's target.
    pub opcode: u64,
    pub copied: u64,
    pub slot: u64,
    /// Lists of probes being removed, whose jump may still be in place.
    pub leaving: [Option<u64>; 2],
    pub leaving_link: u64,
    pub slot_pages: List,
    pub slot_page: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tracepoints {
    /// The table of all tracepoints: 4-byte distances from each entry.
    pub table: Range<u64>,
    /// Offset of the pointer to a tracepoint's probes; size of a probe, and offset of its function.
    pub probes: u64,
    pub probe: u64,
    pub probe_function: u64,
}

/// The records of patching in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Poke {
    pub desc: Option<u64>,
    pub refs: u64,
    pub vec: u64,
    pub count: u64,
    pub size: u64,
    pub addr: u64,
    pub len: u64,
    /// Address of the word that is nonzero while `text_mutex` is held.
    pub owner: Option<u64>,
    /// The same for `static_call_mutex`. `__static_call_update` changes the records first, then the sites one by one,
    /// and holds no `text_mutex` in between.
    pub calls_owner: Option<u64>,
    /// Address of the pointer to the address space in which Linux writes text, and offset of the pointer to its top
    /// table.
    pub space: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TextLayout {
    pub stext: u64,
    pub etext: u64,
    pub text: Range<u64>,
    pub rodata: Range<u64>,
    /// Read-only data that holds names of symbols and descriptions of types: nothing in it is called.
    pub names: [Range<u64>; 2],
    pub jumps: Option<Table>,
    pub key_enabled: u64,
    pub calls: Option<Table>,
    pub call_func: u64,
    /// Trampolines of static calls.
    pub trampolines: Range<u64>,
    pub call_return_0: Option<u64>,
    pub call_return: Option<u64>,
    /// Address of the variable that holds the return thunk.
    pub return_thunk: Option<u64>,
    pub ftrace: Option<Ftrace>,
    /// Calls within ftrace's own code.
    pub ftrace_calls: [Option<u64>; 3],
    pub probes: Option<Probes>,
    pub tracepoints: Option<Tracepoints>,
    pub poke: Poke,
    pub owners: Owners,
}
