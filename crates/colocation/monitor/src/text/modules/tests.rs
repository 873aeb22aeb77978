//! Tests on a small kernel with one module.

use super::super::code::{Code, CALL, INT3, JMP};
use super::super::tests::world::*;
use super::*;
use crate::class::Class;
use crate::fake::{self, CallBudget, FakeMemory, DIRECT};
use std::string::String;
use std::vec;

/// The module's code, three pages, and its tables.
const CODE: u64 = DIRECT + 0x2_0000;
const CODE_BYTES: u64 = 0x3000;
const JUMPS: u64 = DIRECT + 0x2_8000;
const CALLS: u64 = DIRECT + 0x2_8100;
const RECORD_PAGE: u64 = DIRECT + 0x2_8200;
const CODE_RECORDS: u64 = DIRECT + 0x2_8300;
const DIRECTORY: u64 = DIRECT + 0x2_8400;
/// Sites.
const JUMP: u64 = CODE + 0x103;
const JUMP_TO: u64 = CODE + 0x140;
const CALL_SITE: u64 = CODE + 0x163;
const OWN_TRAMPOLINE: u64 = CODE + 0x1ff4;
const ENTRY_SITE: u64 = CODE + 0x2004;
/// No site is here.
const PLAIN: u64 = CODE + 0x1801;

/// Offsets in `struct module`, behind those of the kernel's world.
const JUMP_ENTRIES: u64 = 256;
const JUMP_COUNT: u64 = 264;
const CALL_SITES: u64 = 272;
const CALL_COUNT: u64 = 280;
const SD: u64 = 288;

const MORE: &[(&str, u64, u64)] = &[
    ("module.jump_entries", JUMP_ENTRIES, 8),
    ("module.num_jump_entries", JUMP_COUNT, 4),
    ("module.static_call_sites", CALL_SITES, 8),
    ("module.num_static_call_sites", CALL_COUNT, 4),
    ("module.mkobj.kobj.sd", SD, 8),
    ("kernfs_node.id", 0x20, 8),
    ("#MODULE_STATE_LIVE", 0, 0),
    ("#MOD_INIT_TEXT", 1, 0),
];

struct Modules {
    kernel: World,
    profile: Vec<u8>,
    check: ModuleTextCheck,
    retries: u64,
}

impl Modules {
    /// A kernel with a live module, before the first look at it.
    fn before_first_look() -> Self {
        let kernel = World::before_first_pass();
        let profile = fake::profile(SYMBOLS, &[LAYOUTS, MORE].concat());
        let check = ModuleTextCheck::make(&Profile::decode(&profile).unwrap(), 7).unwrap();
        let modules = Self { kernel, profile, check, retries: 0 };
        modules.fill();
        modules
    }

    /// The same after it.
    fn new() -> Self {
        let mut modules = Self::before_first_look();
        assert_eq!(modules.pass(), vec![]);
        modules
    }

    fn fill(&self) {
        let world = &self.kernel;
        for (at, word) in (CODE..CODE + CODE_BYTES).step_by(8).zip(5u64..) {
            let filler = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) & 0x3f3f_3f3f_3f3f_3f3f;
            world.set(at, filler);
        }
        world.list_module(CODE, CODE_BYTES, 0);
        world.set(MODULE + SD, DIRECTORY);
        world.set(DIRECTORY + 0x20, 0x1_0000_0007);
        let distance = |from: u64, to: u64| (to.wrapping_sub(from) as u32).to_le_bytes();
        world.set(MODULE + JUMP_ENTRIES, JUMPS);
        world.set(MODULE + JUMP_COUNT, 1);
        world.put(JUMPS, &distance(JUMPS, JUMP));
        world.put(JUMPS + 4, &distance(JUMPS + 4, JUMP_TO));
        world.set(JUMPS + 8, KEY.wrapping_sub(JUMPS + 8));
        world.put(JUMP, &nop5());
        world.set(MODULE + CALL_SITES, CALLS);
        world.set(MODULE + CALL_COUNT, 1);
        // In reach of a four-byte distance from the module's tables.
        world.set(OWN_KEY, CALLED);
        world.put(CALLS, &distance(CALLS, CALL_SITE));
        world.put(CALLS + 4, &distance(CALLS + 4, OWN_KEY));
        world.put(CALL_SITE, &near(CALL_SITE, CALL, CALLED));
        world.put(OWN_TRAMPOLINE, &near(OWN_TRAMPOLINE, JMP, CALLED));
        world.put(OWN_TRAMPOLINE + 5, &[0x0f, 0xb9, 0xcc]);
        world.set(FTRACE_PAGE, RECORD_PAGE);
        world.set(RECORD_PAGE + 8, CODE_RECORDS);
        world.set(RECORD_PAGE + 16, 1);
        world.set(CODE_RECORDS, ENTRY_SITE);
        world.put(ENTRY_SITE, &nop5());
    }

    fn put(&self, address: u64, bytes: &[u8]) {
        self.kernel.put(address, bytes);
    }

    /// Runs one step.
    fn step(&mut self) -> (Step, Vec<Finding>) {
        self.step_with(u64::MAX)
    }

    /// Runs one step of so many calls of the budget.
    fn step_with(&mut self, calls: u64) -> (Step, Vec<Finding>) {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.kernel.memory);
        let mut found = Vec::new();
        let mut report = |finding| found.push(finding);
        let mut budget = CallBudget(calls);
        let step = self.check.step(&kernel, &mut budget, &mut report, &mut self.retries);
        (step, found)
    }

    /// Runs steps until a pass is over.
    fn pass(&mut self) -> Vec<Finding> {
        let mut all = Vec::new();
        loop {
            let (step, found) = self.step();
            all.extend(found);
            if matches!(step, Step::Done(_)) {
                return all;
            }
        }
    }

    /// The findings with `bytes` at `address`; then restores the old bytes.
    fn verdict(&mut self, address: u64, bytes: &[u8]) -> Vec<Finding> {
        let old: Vec<u8> = (address..).take(bytes.len()).map(|at| self.kernel.byte(at)).collect();
        self.put(address, bytes);
        let found = (0..2).flat_map(|_| self.pass()).collect();
        self.put(address, &old);
        assert_eq!(self.pass(), vec![], "nothing is left");
        found
    }

    fn assert_allowed(&mut self, address: u64, bytes: &[u8]) {
        assert_eq!(self.verdict(address, bytes), vec![], "{bytes:02x?} at {address:#x}");
    }

    fn assert_forbidden(&mut self, address: u64, bytes: &[u8]) -> String {
        let found = self.verdict(address, bytes);
        assert_eq!(found.len(), 1, "{bytes:02x?} at {address:#x}: {found:?}");
        found[0].expected.clone()
    }
}

/// The key of a static call, and the function that it calls: in the module.
const OWN_KEY: u64 = DIRECT + 0x2_8500;
const CALLED: u64 = CODE + 0x900;

#[test]
fn a_changed_function_is_reported_once_with_its_place() {
    let mut modules = Modules::new();
    modules.put(PLAIN, &[0x31, 0xc0, 0xc3]);
    let found: Vec<Finding> = (0..2).flat_map(|_| modules.pass()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let finding = &found[0];
    assert_eq!(
        (finding.what.as_str(), finding.class),
        ("module text changed", Class::ModuleTextModified)
    );
    assert_eq!((finding.address, finding.symbol.as_str()), (PLAIN, "module evil+0x1801"));
    assert_eq!((finding.found.as_str(), finding.owner.as_str()), ("31 c0 c3", "nobody"));
    assert!(finding.repairs.is_empty());
    let check: &dyn Check<FakeMemory> = &modules.check;
    assert!(check.stands(&finding.what, PLAIN) && !check.stands(&finding.what, PLAIN + 1));
}

#[test]
fn a_detour_names_where_it_leads() {
    let mut modules = Modules::new();
    modules.put(PLAIN, &near(PLAIN, JMP, UNLISTED_CODE));
    let found: Vec<Finding> = (0..2).flat_map(|_| modules.pass()).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].owner, format!("{UNLISTED_CODE:#x} in no listed module"));
}

#[test]
fn sites_hold_what_the_modules_tables_allow() {
    let mut modules = Modules::new();
    let jump = near(JUMP, JMP, JUMP_TO);
    modules.assert_allowed(JUMP, &jump);
    assert_eq!(modules.assert_forbidden(JUMP, &near(JUMP, JMP, JUMP_TO + 1)), "0f 1f 44 00 00");
    modules.kernel.set(OWN_KEY, CODE + 0x800);
    modules.put(CALL_SITE, &near(CALL_SITE, CALL, CODE + 0x800));
    assert_eq!(modules.pass(), vec![], "the key says so");
    modules.assert_forbidden(CALL_SITE, &near(CALL_SITE, CALL, UNLISTED_CODE));
    modules.assert_allowed(OWN_TRAMPOLINE, &near(OWN_TRAMPOLINE, JMP, CODE + 0x800));
    modules.assert_allowed(OWN_TRAMPOLINE, Code::ret().bytes());
    modules.assert_forbidden(OWN_TRAMPOLINE, &near(OWN_TRAMPOLINE, JMP, UNLISTED_CODE));
    modules.assert_forbidden(ENTRY_SITE, &near(ENTRY_SITE, CALL, UNLISTED_CODE));
    modules.assert_forbidden(ENTRY_SITE, &[0x90; 5]);
}

#[test]
fn a_probe_may_stand_where_it_is_registered() {
    let mut modules = Modules::new();
    modules.assert_forbidden(PLAIN, &[INT3]);
    // In the hash table of all probes.
    let bucket = super::super::walk::hash(PLAIN, 6);
    modules.kernel.set(TABLE + 8 * bucket, PROBE);
    modules.kernel.set(PROBE + 16, PLAIN);
    modules.assert_allowed(PLAIN, &[INT3]);
}

#[test]
fn a_probe_that_the_copy_has_may_go() {
    let mut modules = Modules::before_first_look();
    let bucket = super::super::walk::hash(PLAIN, 6);
    let original = modules.kernel.byte(PLAIN);
    modules.kernel.set(TABLE + 8 * bucket, PROBE);
    modules.kernel.set(PROBE + 16, PLAIN);
    modules.put(PROBE + 28, &[original]);
    modules.put(PLAIN, &[INT3]);
    assert_eq!(modules.pass(), vec![]);
    modules.kernel.set(TABLE + 8 * bucket, 0);
    modules.put(PLAIN, &[original]);
    assert_eq!((0..3).flat_map(|_| modules.pass()).collect::<Vec<_>>(), vec![]);
}

#[test]
fn the_next_module_at_the_address_is_another_one() {
    let mut modules = Modules::new();
    modules.put(PLAIN, &[1, 2, 3]);
    modules.kernel.set(DIRECTORY + 0x20, 0x1_0000_0008);
    assert_eq!((0..3).flat_map(|_| modules.pass()).collect::<Vec<_>>(), vec![]);
    modules.assert_forbidden(PLAIN, &[4, 5, 6]);
}

#[test]
fn a_module_that_was_removed_in_the_middle_of_a_pass_is_none() {
    let mut modules = Modules::new();
    modules.put(PLAIN, &[1, 2, 3]);
    modules.kernel.set(MODULE + 120, 2);
    assert_eq!((0..3).flat_map(|_| modules.pass()).collect::<Vec<_>>(), vec![]);
    assert_eq!(modules.check.watch.coverage.unjudged, 1);
    modules.kernel.set(MODULES, MODULES);
    modules.kernel.set(MODULE + SD, 0);
    modules.pass();
    assert_eq!((modules.check.watch.coverage.unjudged, modules.check.watch.copies.len()), (0, 0));
}

#[test]
fn a_module_that_is_unlisted_is_judged_as_before() {
    let mut modules = Modules::new();
    modules.kernel.set(MODULES, MODULES);
    assert_eq!(modules.pass(), vec![]);
    modules.assert_forbidden(PLAIN, &[4, 5, 6]);
    modules.kernel.set(MODULES, MODULE);
    modules.put(PLAIN, &[4, 5, 6]);
    assert_eq!((0..2).flat_map(|_| modules.pass()).count(), 1);
    // Its directory is gone.
    modules.kernel.set(MODULES, MODULES);
    modules.kernel.set(MODULE + SD, 0);
    modules.pass();
    assert_eq!(modules.check.watch.copies.len(), 0);
}

#[test]
fn a_module_that_begins_or_is_a_live_patch_is_not_judged() {
    for (at, word) in [(MODULE + 152, 0x1000), (MODULE + 80, 1 << 15)] {
        let mut modules = Modules::before_first_look();
        modules.kernel.set(at, word);
        assert_eq!(modules.pass(), vec![]);
        assert_eq!(modules.check.watch.coverage.unjudged, 1, "{at:#x}");
        modules.kernel.set(at, 0);
        modules.pass();
        modules.assert_forbidden(PLAIN, &[4, 5, 6]);
    }
}

#[test]
fn a_known_module_that_seems_to_begin_or_to_be_a_live_patch_is_judged() {
    for (at, word) in [(MODULE + 120, 1), (MODULE + 152, 0x1000), (MODULE + 80, 1 << 15)] {
        let mut modules = Modules::new();
        modules.kernel.set(at, word);
        modules.assert_forbidden(PLAIN, &[4, 5, 6]);
    }
}

#[test]
fn two_modules_that_claim_the_same_memory_leave_one_unjudged() {
    let mut modules = Modules::new();
    let other = MODULE + 0x400;
    modules.kernel.set(MODULE, other);
    modules.kernel.set(other, MODULES);
    for (at, word) in [(128, CODE + 0x1000), (136, 0x1000), (SD, DIRECTORY)] {
        modules.kernel.set(other + at, word);
    }
    modules.pass();
    assert_eq!((modules.check.watch.coverage.unjudged, modules.check.watch.copies.len()), (1, 1));
    modules.assert_forbidden(PLAIN, &[4, 5, 6]);
}

#[test]
fn forged_modules_do_no_harm() {
    let mut random = fake::RandomNumbers(3);
    for _ in 0..fake::rounds(200) {
        let mut modules = Modules::before_first_look();
        modules.pass();
        let interesting = [0, 1, u64::MAX, u64::MAX << 12, CODE, CODE + 1, MODULE, !0xfff - 8];
        for _ in 0..3 {
            let at = 8 * random.below(40);
            let value = match random.below(3) {
                0 => random.next(),
                _ => interesting[random.below(8) as usize],
            };
            let base = [MODULE, RECORD_PAGE, JUMPS, FTRACE_PAGE][random.below(4) as usize];
            if base != MODULE || at >= 80 {
                modules.kernel.set(base + at, value);
            }
        }
        for _ in 0..3 {
            modules.pass();
        }
    }
}

/// The findings of some passes.
fn passes(modules: &mut Modules, count: usize) -> Vec<Finding> {
    (0..count).flat_map(|_| modules.pass()).collect()
}

/// Files that say this, or that have no module.
#[derive(Debug)]
struct Says(Option<files::FileCode>);

impl files::ModuleFiles for Says {
    fn code(&self, _profile: &Profile<'_>, module: &files::Loaded<'_>) -> Option<files::FileCode> {
        assert_eq!((module.start, module.code.len() as u64), (CODE, CODE_BYTES));
        assert_eq!(module.others.iter().map(|other| other.start).collect::<Vec<_>>(), [CODE]);
        self.0.clone()
    }
}

/// A module before the first look, with files that say this.
fn with_file(says: Option<files::FileCode>) -> Modules {
    let mut modules = Modules::before_first_look();
    let profile = Profile::decode(&modules.profile).unwrap();
    modules.check = ModuleTextCheck::with_files(&profile, Box::new(Says(says))).unwrap();
    modules
}

/// The sites of the module's file.
fn file_sites() -> Vec<files::FileSite> {
    let site =
        |address, bytes: &[u8], target| files::FileSite { address, bytes: bytes.to_vec(), target };
    vec![
        site(JUMP, &nop5(), Some(JUMP_TO)),
        site(CALL_SITE, &near(CALL_SITE, CALL, CODE), None),
        site(OWN_TRAMPOLINE, &near(OWN_TRAMPOLINE, JMP, CODE), None),
        site(ENTRY_SITE, &near(ENTRY_SITE, CALL, 0), None),
    ]
}

#[test]
fn a_file_tells_what_was_changed_before_the_first_look() {
    let differs = |differences| files::FileCode { differences, sites: file_sites() };
    for (says, unjudged) in [(Some(differs(vec![(PLAIN, vec![7])])), 0), (None, 1)] {
        let is_known = says.is_some();
        let mut modules = with_file(says);
        modules.put(PLAIN, &[4]);
        let found = passes(&mut modules, 2);
        let lines: Vec<_> =
            found.iter().map(|it| (it.address, &*it.expected, &*it.found)).collect();
        assert_eq!(lines, if is_known { vec![(PLAIN, "07", "04")] } else { vec![] });
        assert_eq!(modules.check.watch.coverage.unjudged, unjudged);
    }
}

#[test]
fn a_file_names_the_sites() {
    let file = files::FileCode { differences: vec![], sites: file_sites() };
    let mut modules = with_file(Some(file.clone()));
    assert_eq!(modules.pass(), vec![]);
    modules.assert_allowed(CALL_SITE, &near(CALL_SITE, CALL, CALLED));
    // Forged tables name others: a label that leads elsewhere, a static call.
    let plain = (PLAIN..PLAIN + 5).map(|at| modules.kernel.byte(at)).collect();
    let differences = vec![(PLAIN, plain)];
    let mut forged = with_file(Some(files::FileCode { differences, ..file.clone() }));
    let distance = |from: u64, to: u64| (to.wrapping_sub(from) as u32).to_le_bytes();
    forged.put(JUMPS + 4, &distance(JUMPS + 4, UNLISTED_CODE));
    forged.put(CALLS, &distance(CALLS, PLAIN));
    forged.put(CALL_SITE, &near(CALL_SITE, CALL, CODE));
    assert_eq!(forged.pass(), vec![]);
    forged.kernel.set(KEY, 1);
    forged.assert_forbidden(JUMP, &near(JUMP, JMP, UNLISTED_CODE));
    forged.assert_forbidden(PLAIN, &near(PLAIN, CALL, CALLED));
    // Forged records that lack some: a function's entry, a trampoline.
    let mut forged = with_file(Some(file));
    forged.kernel.set(RECORD_PAGE + 16, 0);
    forged.kernel.set(FTRACE_PAGE, 0);
    forged.put(ENTRY_SITE, &[0x31, 0xc0, 0xc3]);
    forged.put(OWN_TRAMPOLINE, &[0x31, 0xc0, 0xc3]);
    let found = passes(&mut forged, 2);
    let places: Vec<_> = found.iter().map(|it| it.address & !7).collect();
    assert_eq!(places, [OWN_TRAMPOLINE & !7, ENTRY_SITE & !7]);
}

#[test]
fn a_call_into_a_module_that_is_gone_stays() {
    let mut modules = Modules::new();
    let gone = DIRECT - 0x10_0000;
    modules.kernel.set(OWN_KEY, gone);
    modules.put(CALL_SITE, &near(CALL_SITE, CALL, gone));
    modules.put(OWN_TRAMPOLINE, &near(OWN_TRAMPOLINE, JMP, gone));
    assert_eq!(passes(&mut modules, 2), vec![]);
    // Nothing else leads there.
    modules.put(PLAIN, &near(PLAIN, JMP, gone));
    assert_eq!(passes(&mut modules, 2).len(), 1);
}

#[test]
fn no_static_call_leads_to_user_mode_or_to_hidden_code() {
    let mut modules = Modules::new();
    // What follows the end of the address space is user mode's.
    let user = 0x1000_0000;
    modules.kernel.set(OWN_KEY, user);
    modules.assert_forbidden(CALL_SITE, &near(CALL_SITE, CALL, user));
    modules.assert_forbidden(OWN_TRAMPOLINE, &near(OWN_TRAMPOLINE, JMP, user));
    // Before a listed function, where it begins: there is padding only within listed code.
    let mut modules = Modules::new();
    modules.kernel.set(OWN_KEY, CODE);
    modules.assert_forbidden(CALL_SITE, &near(CALL_SITE, CALL, CODE - 8));
    modules.kernel.set(OWN_KEY, CALLED);
    modules.assert_allowed(CALL_SITE, &near(CALL_SITE, CALL, CALLED - 8));
}

#[test]
fn a_conditional_jump_leads_to_listed_code() {
    let mut modules = Modules::before_first_look();
    let conditional = |to: u64| {
        let distance = (to.wrapping_sub(CALL_SITE + 6) as u32).to_le_bytes();
        [&[0x0f, 0x85][..], &distance].concat()
    };
    modules.put(CALL_SITE, &conditional(CALLED));
    modules.pass();
    modules.kernel.set(OWN_KEY, CODE + 0x800);
    modules.assert_allowed(CALL_SITE, &conditional(CODE + 0x800));
    modules.kernel.set(OWN_KEY, UNLISTED_CODE);
    modules.assert_forbidden(CALL_SITE, &conditional(UNLISTED_CODE));
}

#[test]
fn a_module_that_forges_its_size_or_directory_for_a_while_keeps_its_copy() {
    // Since before the first look.
    let mut modules = Modules::before_first_look();
    modules.kernel.set(MODULE + 136, CODE_BYTES - 1);
    modules.pass();
    modules.assert_forbidden(PLAIN + 0x1000, &[4, 5, 6]);
    // A live module loses its directory, and gets it back.
    let mut modules = Modules::new();
    modules.kernel.set(MODULE + SD, 0);
    modules.pass();
    modules.put(PLAIN, &[4, 5, 6]);
    modules.pass();
    modules.kernel.set(MODULE + SD, DIRECTORY);
    assert_eq!(passes(&mut modules, 2).len(), 1);
    // It stays without.
    let mut modules = Modules::new();
    modules.kernel.set(MODULE + SD, 0);
    let found = passes(&mut modules, 3);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].found, "a live module without a directory in sysfs");
}

#[test]
fn a_module_with_more_sites_than_code_is_not_judged() {
    let mut modules = Modules::before_first_look();
    let distance = |from: u64, to: u64| (to.wrapping_sub(from) as u32).to_le_bytes();
    let table = DIRECT + 0x3_0000;
    for entry in (table..).step_by(16).take(CODE_BYTES as usize / 64 + 1) {
        modules.put(entry, &distance(entry, JUMP));
        modules.put(entry + 4, &distance(entry + 4, JUMP_TO));
        modules.kernel.set(entry + 8, KEY.wrapping_sub(entry + 8));
    }
    modules.kernel.set(MODULE + JUMP_ENTRIES, table);
    modules.kernel.set(MODULE + JUMP_COUNT, CODE_BYTES / 64 + 1);
    assert_eq!(passes(&mut modules, 2), vec![]);
    assert_eq!(modules.check.watch.coverage.unjudged, 1);
}

#[test]
fn a_trampoline_may_lie_across_the_end_of_a_page() {
    let mut modules = Modules::before_first_look();
    let edge = CODE + 0x1ffc;
    modules.put(edge, &near(edge, JMP, CALLED));
    modules.put(edge + 5, &[0x0f, 0xb9, 0xcc]);
    modules.pass();
    modules.assert_allowed(edge, &near(edge, JMP, CODE + 0x800));
    modules.assert_forbidden(edge, &near(edge, JMP, UNLISTED_CODE));
}

#[test]
fn an_optimized_probe_that_is_a_breakpoint_again_leaves_no_change() {
    let mut modules = Modules::before_first_look();
    let bucket = super::super::walk::hash(PLAIN, 6);
    let originals: [u8; 5] = core::array::from_fn(|at| modules.kernel.byte(PLAIN + at as u64));
    modules.kernel.set(TABLE + 8 * bucket, PROBE);
    modules.kernel.set(PROBE + 16, PLAIN);
    modules.put(PROBE + 24, &[4]);
    modules.put(PROBE + 28, &originals[..1]);
    modules.put(PROBE + 48, &originals[1..]);
    modules.put(PLAIN, &near(PLAIN, JMP, SLOT));
    // The copy has the jump; then Linux takes it back, before the copy is corrected.
    while modules.check.watch.copies.first().is_none_or(|copy| copy.baseline.copied() < 3) {
        modules.step_with(1);
    }
    modules.put(PLAIN, &[INT3]);
    modules.put(PLAIN + 1, &originals[1..]);
    modules.put(PROBE + 24, &[0]);
    assert_eq!(passes(&mut modules, 3), vec![]);
}

#[test]
fn a_module_that_says_that_its_code_is_elsewhere_is_a_finding() {
    for (at, word) in [(136, 0), (136, 0x1000), (128, CODE + 0x1000), (128, 1), (136, u64::MAX)] {
        let mut modules = Modules::new();
        let old = modules.kernel.get(MODULE + at);
        modules.kernel.set(MODULE + at, word);
        let found = passes(&mut modules, 3);
        assert_eq!(found.len(), 1, "{at} {word:#x}: {found:?}");
        assert_eq!(found[0].address, CODE);
        // The copy is the old one.
        modules.kernel.set(MODULE + at, old);
        modules.put(PLAIN, &[4, 5, 6]);
        assert_eq!(passes(&mut modules, 2).len(), 1);
    }
}

#[test]
fn what_was_reported_goes_with_its_module() {
    let mut modules = Modules::new();
    modules.put(PLAIN, &[4, 5, 6]);
    assert_eq!(passes(&mut modules, 2).len(), 1);
    modules.kernel.set(MODULES, MODULES);
    modules.kernel.set(MODULE + SD, 0);
    modules.pass();
    assert!(!Check::<FakeMemory>::stands(&modules.check, "", PLAIN));
}

#[test]
fn a_list_that_is_cut_leaves_something_unjudged() {
    let mut modules = Modules::new();
    modules.kernel.set(MODULE, 0);
    modules.pass();
    assert_eq!(modules.check.watch.coverage.unjudged, 1);
}

#[test]
fn a_trampoline_of_ftrace_that_is_gone_is_none() {
    let mut modules = Modules::new();
    modules.kernel.set(OPS, USER);
    modules.kernel.set(USER + 8, OPS_END);
    modules.kernel.set(USER + 16, UNLISTED_CODE);
    modules.put(ENTRY_SITE, &near(ENTRY_SITE, CALL, UNLISTED_CODE));
    assert_eq!(passes(&mut modules, 2), vec![]);
    modules.kernel.set(OPS, OPS_END);
    assert_eq!(passes(&mut modules, 2).len(), 1);
}
