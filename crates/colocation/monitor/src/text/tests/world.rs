//! The small kernel: its memory layout, and helpers to change and check it.

use crate::check::{Check, Step};
use crate::fake::{self, physical, CallBudget, FakeMemory, DIRECT, IMAGE_BYTES, TEXT};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::profile::Profile;
use crate::text::code::{Code, CALL, JMP};
use crate::text::TextCheck;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Ranges of the image: text, read-only data, other data.
pub const TEXT_BYTES: u64 = 0x4000;
pub const RODATA: u64 = TEXT + 0x1_0000;
pub const RODATA_BYTES: u64 = 0x6000;
/// Two pages.
pub const NAMES: u64 = RODATA + 0x4000;
pub const DATA: u64 = TEXT + 0x2_0000;

/// Functions.
pub const VICTIM: u64 = TEXT + 0x100;
pub const OTHER: u64 = TEXT + 0x200;
pub const CALLER: u64 = TEXT + 0x300;
pub const REGS_CALLER: u64 = TEXT + 0x340;
pub const RETURN_0: u64 = TEXT + 0x380;
pub const THUNK: u64 = TEXT + 0x3c0;
pub const TRACE_ITERATOR: u64 = TEXT + 0x400;

/// Sites.
pub const JUMP_5: u64 = TEXT + 0x1003;
pub const JUMP_2: u64 = TEXT + 0x1021;
/// Behind it, without a gap.
pub const NEXT_2: u64 = JUMP_2 + 2;
pub const LAST_2: u64 = JUMP_2 + 4;
pub const JUMP_ON: u64 = TEXT + 0x1041;
pub const STATIC: u64 = TEXT + 0x1061;
pub const STATIC_TAIL: u64 = TEXT + 0x1081;
pub const TRAMPOLINE: u64 = TEXT + 0x10a0;
pub const ENTRY: u64 = TEXT + 0x10c4;
/// Across a page boundary.
pub const ENTRY_EDGE: u64 = TEXT + 0x1ffd;
pub const FTRACE_CALL: u64 = CALLER + 0x10;

/// Target of the jump labels, less than 128 bytes away.
pub const TARGET: u64 = TEXT + 0x1058;

/// Data: keys, lists, records.
pub const KEY: u64 = DATA;
pub const KEY_ON: u64 = DATA + 0x10;
pub const CALL_KEY: u64 = DATA + 0x20;
pub const TAIL_KEY: u64 = DATA + 0x30;
pub const MODULES: u64 = DATA + 0x40;
pub const BPF: u64 = DATA + 0x50;
pub const OPS: u64 = DATA + 0x60;
pub const OPS_END: u64 = DATA + 0x120;
pub const PAGES: u64 = DATA + 0x80;
pub const DIRECTS: u64 = DATA + 0x88;
pub const UNOPTIMIZING: u64 = DATA + 0x90;
pub const FREEING: u64 = DATA + 0xa0;
pub const OPS_TRAMPOLINES: u64 = DATA + 0xb0;
pub const MUTEX: u64 = DATA + 0xc0;
pub const CALL_MUTEX: u64 = DATA + 0xc8;
pub const POKE: u64 = DATA + 0xd0;
pub const SLOTS: u64 = DATA + 0xe0;
pub const TRACEPOINT: u64 = DATA + 0x100;
pub const TABLE: u64 = DATA + 0x200;
pub const THUNK_AT: u64 = RODATA + 0x3000;
pub const POINTER: u64 = RODATA + 0x2008;
pub const JUMP_TABLE: u64 = RODATA;
pub const CALL_TABLE: u64 = RODATA + 0x100;
pub const TRACEPOINT_TABLE: u64 = RODATA + 0x200;

/// Objects in the direct map.
pub const FTRACE_PAGE: u64 = DIRECT + 0x1000;
pub const RECORDS: u64 = DIRECT + 0x1100;
pub const USER: u64 = DIRECT + 0x2000;
pub const HASH: u64 = DIRECT + 0x3000;
pub const BUCKETS: u64 = DIRECT + 0x3100;
pub const DIRECT_ENTRY: u64 = DIRECT + 0x3200;
pub const MODULE: u64 = DIRECT + 0x4000;
pub const MODULE_TEXT: u64 = DIRECT + 0x5000;
pub const KSYM: u64 = DIRECT + 0x6000;
pub const BPF_TEXT: u64 = DIRECT + 0x7000;
pub const PROBE: u64 = DIRECT + 0x8000;
pub const SLOT_PAGE: u64 = DIRECT + 0x9000;
/// Near the text, within reach of a jump.
pub const SLOT: u64 = DATA + 0x8000;
pub const UNLISTED_CODE: u64 = DIRECT + 0xf000;
/// Behind the image, where Linux puts modules.
pub const MODULE_SPACE: u64 = TEXT + IMAGE_BYTES + 0x10_0000;
pub const TRACE_PROBES: u64 = DIRECT + 0xb000;
/// Many users of ftrace.
pub const USERS: u64 = DIRECT + 0x1_0000;

/// The address space in which Linux patches text, and the physical address of its top table.
pub const POKING: u64 = DATA + 0xf0;
pub const POKING_SPACE: u64 = DATA + 0xf00;
pub const SPACE: u64 = 0x7000;

pub const SYMBOLS: &[(u64, u8, &str)] = &[
    (TEXT, b'T', "_text"),
    (TEXT, b'T', "_stext"),
    (TEXT + TEXT_BYTES, b'T', "_etext"),
    (TEXT + IMAGE_BYTES, b'B', "_end"),
    (RODATA, b'R', "__start_rodata"),
    (RODATA + RODATA_BYTES, b'R', "__end_rodata"),
    (NAMES, b'R', "__start_BTF"),
    (NAMES + 0x2000, b'R', "__stop_BTF"),
    (VICTIM, b'T', "victim"),
    (OTHER, b'T', "other"),
    (CALLER, b'T', "ftrace_caller"),
    (FTRACE_CALL, b'T', "ftrace_call"),
    (REGS_CALLER, b'T', "ftrace_regs_caller"),
    (RETURN_0, b'T', "__static_call_return0"),
    (THUNK, b'T', "thunk"),
    (TRAMPOLINE, b'T', "__static_call_text_start"),
    (TRAMPOLINE, b'T', "__SCT__tail"),
    (TRAMPOLINE + 8, b'T', "__static_call_text_end"),
    (JUMP_TABLE, b'R', "__start___jump_table"),
    (JUMP_TABLE + 80, b'R', "__stop___jump_table"),
    (CALL_TABLE, b'R', "__start_static_call_sites"),
    (CALL_TABLE + 16, b'R', "__stop_static_call_sites"),
    (THUNK_AT, b'R', "x86_return_thunk"),
    (POINTER - 8, b'R', "table"),
    (TAIL_KEY, b'D', "__SCK__tail"),
    (MODULES, b'D', "modules"),
    (BPF, b'D', "bpf_kallsyms"),
    (OPS, b'D', "ftrace_ops_list"),
    (PAGES, b'D', "ftrace_pages_start"),
    (DIRECTS, b'D', "direct_functions"),
    (UNOPTIMIZING, b'D', "unoptimizing_list"),
    (FREEING, b'D', "freeing_list"),
    (OPS_TRAMPOLINES, b'D', "ftrace_ops_trampoline_list"),
    (MUTEX, b'D', "text_mutex"),
    (CALL_MUTEX, b'D', "static_call_mutex"),
    (POKE, b'D', "bp_desc"),
    (POKING, b'D', "poking_mm"),
    (SLOTS, b'D', "kprobe_optinsn_slots"),
    (TABLE, b'D', "kprobe_table"),
    (TRACE_ITERATOR, b'T', "__traceiter_event"),
    (TRACEPOINT, b'D', "__tracepoint_event"),
    (TRACEPOINT_TABLE, b'R', "__start___tracepoints_ptrs"),
    (TRACEPOINT_TABLE + 4, b'R', "__stop___tracepoints_ptrs"),
];

pub const LAYOUTS: &[(&str, u64, u64)] = &[
    ("jump_entry", 0, 16),
    ("jump_entry.code", 0, 4),
    ("jump_entry.target", 4, 4),
    ("jump_entry.key", 8, 8),
    ("static_key.enabled", 0, 4),
    ("static_call_site", 0, 8),
    ("static_call_site.addr", 0, 4),
    ("static_call_site.key", 4, 4),
    ("static_call_key.func", 0, 8),
    ("ftrace_page.next", 0, 8),
    ("ftrace_page.records", 8, 8),
    ("ftrace_page.index", 16, 4),
    ("dyn_ftrace", 0, 16),
    ("dyn_ftrace.ip", 0, 8),
    ("dyn_ftrace.flags", 8, 8),
    ("ftrace_ops.func", 0, 8),
    ("ftrace_ops.next", 8, 8),
    ("ftrace_ops.trampoline", 16, 8),
    ("ftrace_ops.list", 24, 16),
    ("ftrace_ops.direct_call", 40, 8),
    ("ftrace_hash.size_bits", 0, 8),
    ("ftrace_hash.buckets", 8, 8),
    ("ftrace_func_entry.hlist", 0, 16),
    ("ftrace_func_entry.ip", 16, 8),
    ("ftrace_func_entry.direct", 24, 8),
    ("kprobe.hlist", 0, 16),
    ("kprobe.addr", 16, 8),
    ("kprobe.flags", 24, 4),
    ("kprobe.opcode", 28, 1),
    ("optimized_kprobe.list", 32, 16),
    ("optimized_kprobe.optinsn.copied_insn", 48, 4),
    ("optimized_kprobe.optinsn.insn", 56, 8),
    ("kprobe_insn_cache.pages", 0, 16),
    ("kprobe_insn_page.list", 0, 16),
    ("kprobe_insn_page.insns", 16, 8),
    ("bp_patching_desc.vec", 0, 8),
    ("bp_patching_desc.nr_entries", 8, 4),
    ("bp_patching_desc.refs", 12, 4),
    ("text_poke_loc", 0, 16),
    ("text_poke_loc.rel_addr", 0, 4),
    ("text_poke_loc.len", 8, 1),
    ("mutex.owner", 0, 8),
    ("mm_struct.pgd", 8, 8),
    ("module.list", 0, 16),
    ("module.name", 16, 56),
    ("module.state", 120, 4),
    ("module.taints", 80, 8),
    ("#MODULE_STATE_GOING", 2, 0),
    ("tracepoint.funcs", 8, 8),
    ("tracepoint_func", 0, 24),
    ("tracepoint_func.func", 0, 8),
    ("module.mem", 128, 112),
    ("module_memory", 0, 16),
    ("module_memory.base", 0, 8),
    ("module_memory.size", 8, 4),
    ("bpf_ksym.start", 0, 8),
    ("bpf_ksym.end", 8, 8),
    ("bpf_ksym.lnode", 16, 16),
    ("bpf_ksym.name", 32, 512),
];

pub struct World {
    pub memory: FakeMemory,
    pub profile: Vec<u8>,
    pub check: TextCheck,
    pub retries: u64,
    /// Of the last pass.
    pub pages: u64,
}

pub fn near(at: u64, opcode: u8, to: u64) -> Vec<u8> {
    Code::near(opcode, at, to).bytes().to_vec()
}

pub fn nop5() -> Vec<u8> {
    Code::nop5().bytes().to_vec()
}

impl World {
    /// A kernel without patches and records of users, before the first pass.
    pub fn before_first_pass() -> Self {
        let profile = fake::profile(SYMBOLS, LAYOUTS);
        let check = TextCheck::new(&Profile::decode(&profile).unwrap()).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + IMAGE_BYTES);
        let world = Self { memory, profile, check, retries: 0, pages: 0 };
        for (at, word) in (TEXT..TEXT + TEXT_BYTES).step_by(8).zip(1u64..) {
            // No byte of the filler is a breakpoint, call or jump.
            world.put(
                at,
                &(word.wrapping_mul(0x9e37_79b9_7f4a_7c15) & 0x3f3f_3f3f_3f3f_3f3f).to_le_bytes(),
            );
        }
        world.fill_tables();
        world.fill_lists();
        world
    }

    /// The same after the first pass.
    pub fn new() -> Self {
        let mut world = Self::before_first_pass();
        assert_eq!(world.pass(), vec![]);
        assert_eq!(world.check.sites(), 11);
        world
    }

    pub fn fill_tables(&self) {
        let jumps = [
            (JUMP_5, KEY, 0),
            (JUMP_2, KEY, 0),
            (NEXT_2, KEY, 0),
            (LAST_2, KEY, 0),
            (JUMP_ON, KEY_ON, 1),
        ];
        for (at, (code, key, branch)) in (JUMP_TABLE..).step_by(16).zip(jumps) {
            self.put(at, &(code.wrapping_sub(at) as u32).to_le_bytes());
            self.put(at + 4, &(TARGET.wrapping_sub(at + 4) as u32).to_le_bytes());
            self.put(at + 8, &(u64::wrapping_sub(key, at + 8) + branch).to_le_bytes());
        }
        let calls = [(STATIC, CALL_KEY), (STATIC_TAIL, TAIL_KEY + 1)];
        for (at, (code, key)) in (CALL_TABLE..).step_by(8).zip(calls) {
            self.put(at, &(code.wrapping_sub(at) as u32).to_le_bytes());
            self.put(at + 4, &(u64::wrapping_sub(key, at + 4) as u32).to_le_bytes());
        }
        self.put(JUMP_5, &nop5());
        for jump in [JUMP_2, NEXT_2, LAST_2] {
            self.put(jump, &[0x66, 0x90]);
        }
        self.put(JUMP_ON, &nop5());
        self.set(KEY_ON, 1);
        self.set(CALL_KEY, VICTIM);
        self.put(STATIC, &near(STATIC, CALL, VICTIM));
        self.set(TAIL_KEY, OTHER);
        self.put(STATIC_TAIL, &near(STATIC_TAIL, JMP, OTHER));
        self.put(TRAMPOLINE, &near(TRAMPOLINE, JMP, OTHER));
        self.put(ENTRY, &nop5());
        self.put(ENTRY_EDGE, &nop5());
        self.put(FTRACE_CALL, &near(FTRACE_CALL, CALL, CALLER));
        self.set(THUNK_AT, THUNK);
        self.set(POINTER, VICTIM);
        self.put(
            TRACEPOINT_TABLE,
            &(TRACEPOINT.wrapping_sub(TRACEPOINT_TABLE) as u32).to_le_bytes(),
        );
    }

    /// Lists a module with this range, in state `state`.
    pub fn list_module(&self, start: u64, bytes: u64, state: u64) {
        self.set(MODULES, MODULE);
        self.set(MODULE, MODULES);
        self.put(MODULE + 16, b"evil\0");
        self.set(MODULE + 120, state);
        self.set(MODULE + 128, start);
        self.set(MODULE + 136, bytes);
    }

    pub fn fill_lists(&self) {
        for head in [MODULES, BPF, UNOPTIMIZING, FREEING, OPS_TRAMPOLINES, SLOTS] {
            self.set(head, head);
        }
        self.set(OPS, OPS_END);
        self.set(PAGES, FTRACE_PAGE);
        self.set(FTRACE_PAGE + 8, RECORDS);
        self.set(FTRACE_PAGE + 16, 2);
        self.set(RECORDS, ENTRY);
        self.set(RECORDS + 16, ENTRY_EDGE);
        self.set(POKING, POKING_SPACE);
        self.set(POKING_SPACE + 8, DIRECT + SPACE);
        self.set(DIRECTS, HASH);
        self.set(HASH, 2);
        self.set(HASH + 8, BUCKETS);
    }

    pub fn put(&self, address: u64, bytes: &[u8]) {
        self.memory.put(physical(address), bytes);
    }

    pub fn set(&self, address: u64, word: u64) {
        self.memory.set(physical(address), word);
    }

    pub fn get(&self, address: u64) -> u64 {
        self.memory.get(physical(address))
    }

    /// Runs a slice of `calls` budget calls; returns whether the pass is over.
    pub fn slice(&mut self, calls: u64, found: &mut Vec<Finding>) -> bool {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        let mut report = |finding| found.push(finding);
        let step = self.check.step(&kernel, &mut CallBudget(calls), &mut report, &mut self.retries);
        if let Step::Done(pages) = step {
            self.pages = pages;
        }
        matches!(step, Step::Done(_))
    }

    /// Runs a pass in one slice.
    pub fn pass(&mut self) -> Vec<Finding> {
        let mut found = Vec::new();
        while !self.slice(u64::MAX, &mut found) {}
        found
    }

    /// Runs `count` passes.
    pub fn passes(&mut self, count: usize) -> Vec<Finding> {
        (0..count).flat_map(|_| self.pass()).collect()
    }

    /// The findings of three passes with `bytes` at `address`; then restores the old bytes.
    pub fn verdict(&mut self, address: u64, bytes: &[u8]) -> Vec<Finding> {
        let old: Vec<u8> = (address..).take(bytes.len()).map(|at| self.byte(at)).collect();
        self.put(address, bytes);
        let found = self.passes(3);
        self.put(address, &old);
        assert_eq!(self.pass(), vec![], "nothing is left");
        found
    }

    pub fn byte(&self, address: u64) -> u8 {
        self.get(address & !7).to_le_bytes()[(address % 8) as usize]
    }

    pub fn assert_allowed(&mut self, address: u64, bytes: &[u8]) {
        assert_eq!(self.verdict(address, bytes), vec![], "{bytes:02x?} at {address:#x}");
    }

    /// Asserts one finding; returns the expected bytes.
    pub fn assert_forbidden(&mut self, address: u64, bytes: &[u8]) -> String {
        let found = self.verdict(address, bytes);
        assert_eq!(found.len(), 1, "{bytes:02x?} at {address:#x}: {found:?}");
        found[0].expected.clone()
    }

    /// Applies a repair as the layer does.
    pub fn repair(&mut self, finding: &Finding) {
        for word in finding.repairs.iter().flat_map(|repair| &repair.words) {
            assert_eq!(self.memory.get(word.address), word.expected);
            self.memory.set(word.address, word.value);
        }
        Check::<FakeMemory>::forget(&mut self.check, finding.address);
    }
}
