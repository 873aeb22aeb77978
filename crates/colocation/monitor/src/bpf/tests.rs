use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};
use alloc::vec;

const IDS: u64 = TEXT + 0x8000;
const HEAD: u64 = TEXT + 0x8100;
/// Near the programs, as in Linux.
const WRITES: u64 = DIRECT + 0x700;
const NODE: u64 = DIRECT + 0x800;
/// Distance of the programs, from `PROGRAMS` on: each has its `struct bpf_prog_aux` at `AUX`.
const PROGRAMS: u64 = DIRECT + 0x1000;
const DISTANCE: u64 = 0x400;
const AUX: u64 = 0x100;
// Offsets in a `struct bpf_prog_aux`; those in its `struct bpf_ksym`.
const ID: u64 = 0;
const KSYM: u64 = 16;
const FUNCTIONS: u64 = 200;
const FUNCTION_COUNT: u64 = 208;
const TAIL_CALLS: u64 = 216;
const TAIL_CALL_COUNT: u64 = 224;
const START: u64 = 0;
const NAME: u64 = 16;
const LINK: u64 = 144;
const IS_PROGRAM: u64 = 160;

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    check: BpfCheck,
}

impl World {
    /// Three programs, with the IDs 2, 3 and 4. The first one has 5,000 bytes of code, the others 64.
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (TEXT + 0x8200, b'D', "modules"),
            (IDS, b'd', "prog_idr"),
            (HEAD, b'd', "bpf_kallsyms"),
            (WRITES, b'T', "bpf_probe_write_user"),
        ];
        let layouts = [
            ("module.list", 0, 16),
            ("module.name", 16, 56),
            ("module.mem", 1024, 112),
            ("module_memory", 0, 16),
            ("module_memory.base", 0, 8),
            ("module_memory.size", 8, 4),
            ("xarray.xa_head", 8, 8),
            ("xa_node.shift", 0, 1),
            ("xa_node.count", 2, 1),
            ("xa_node.slots", 40, 512),
            ("xa_node.marks", 552, 24),
            ("idr.idr_rt", 0, 16),
            ("bpf_prog.aux", 8, 8),
            ("bpf_prog.bpf_func", 16, 8),
            ("bpf_prog_aux.id", ID, 4),
            ("bpf_prog_aux.ksym", KSYM, 168),
            ("bpf_prog_aux.func", FUNCTIONS, 8),
            ("bpf_prog_aux.func_cnt", FUNCTION_COUNT, 4),
            ("bpf_prog_aux.poke_tab", TAIL_CALLS, 8),
            ("bpf_prog_aux.size_poke_tab", TAIL_CALL_COUNT, 4),
            ("bpf_jit_poke_descriptor", 0, 40),
            ("bpf_jit_poke_descriptor.tailcall_target", 0, 8),
            ("bpf_jit_poke_descriptor.tailcall_bypass", 8, 8),
            ("bpf_ksym.start", START, 8),
            ("bpf_ksym.end", 8, 8),
            ("bpf_ksym.name", NAME, 128),
            ("bpf_ksym.lnode", LINK, 16),
            ("bpf_ksym.prog", IS_PROGRAM, 1),
        ];
        let profile = fake::profile(&symbols, &layouts);
        let check = BpfCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        let world = Self { memory, profile, check };
        world.set(IDS + 8, NODE | 2);
        for number in 0..3 {
            let (program, aux) = (program(number), program(number) + AUX);
            world.set(program + 8, aux);
            world.set(program + 16, code(number));
            world.set(aux + ID, 2 + number);
            let bytes = if number == 0 { 5000 } else { 64 };
            world.set(aux + KSYM + START, code(number));
            world.set(aux + KSYM + 8, code(number) + bytes);
            for at in (0..bytes).step_by(8) {
                world.set(code(number) + at, 0x0102_0304_0506_0708);
            }
            world.put(code(number), &NOP);
            world.set(aux + KSYM + NAME, u64::from_le_bytes(*b"bpf_prog"));
            world.set(aux + KSYM + IS_PROGRAM, 1);
        }
        world.index(&[0, 1, 2]);
        world.list(&[0, 1, 2]);
        world
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    /// Makes the index that of these programs.
    fn index(&self, numbers: &[u64]) {
        for number in 0..3 {
            let value = if numbers.contains(&number) { program(number) } else { 0 };
            self.set(NODE + 40 + 8 * (2 + number), value);
        }
    }

    /// Makes the list that of these programs.
    fn list(&self, numbers: &[u64]) {
        let links = numbers.iter().map(|&number| program(number) + AUX + KSYM + LINK);
        let mut before = HEAD;
        for link in links.chain([HEAD]) {
            self.set(before, link);
            before = link;
        }
    }

    /// What `passes` passes find.
    fn findings(&mut self, passes: u32) -> Vec<Finding> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        let mut found = Vec::new();
        for _ in 0..passes {
            let mut steps = 0;
            while !matches!(
                self.check.step(
                    &kernel,
                    &mut fake::CallBudget(1),
                    &mut |finding| found.push(finding),
                    &mut 0,
                ),
                Step::Done(_)
            ) {
                steps += 1;
                assert!(steps < 1 << 18, "a pass ends");
            }
        }
        found
    }
}

fn program(number: u64) -> u64 {
    PROGRAMS + DISTANCE * number
}

#[test]
fn programs_in_all_places_are_no_findings() {
    let mut world = World::new();
    assert_eq!(world.findings(5), []);
    // A function of a program has no ID; an interpreted program has no code; a trampoline is no program.
    let mut world = World::new();
    world.set(program(0) + AUX + ID, 0);
    world.index(&[1, 2]);
    world.set(program(1) + AUX + KSYM + START, 0);
    world.list(&[0, 2]);
    world.set(program(2) + AUX + KSYM + IS_PROGRAM, 0);
    assert_eq!(world.findings(5), []);
}

#[test]
fn a_program_without_its_id_or_unlisted_is_a_finding() {
    let mut world = World::new();
    world.index(&[0, 2]);
    assert_eq!(world.findings(PASSES - 1), []);
    let found = world.findings(1);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].address, program(1) + AUX);
    assert_eq!(found[0].symbol, "bpf_prog, ID 3");
    assert_eq!(
        (&*found[0].expected, &*found[0].found),
        ("in the index of IDs", "only in the list of code")
    );
    assert!(Check::<FakeMemory>::stands(&world.check, HIDDEN, program(1) + AUX));
    world.index(&[0, 1, 2]);
    assert_eq!(world.findings(1), []);
    assert!(!Check::<FakeMemory>::stands(&world.check, HIDDEN, program(1) + AUX));
    world.list(&[0, 1]);
    let found = world.findings(PASSES);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].address, &*found[0].expected), (program(2) + AUX, "in the list of code"));
}

#[test]
fn a_program_in_the_place_of_another_is_another() {
    let mut world = World::new();
    world.list(&[0, 1]);
    for id in 4..12 {
        // The program that had the ID before is gone.
        world.set(program(2) + AUX + ID, id);
        world.set(NODE + 40 + 8 * (id - 1), 0);
        world.set(NODE + 40 + 8 * id, program(2));
        world.index(&[0, 1]);
        assert_eq!(world.findings(1), []);
    }
}

#[test]
fn only_the_place_of_its_own_id_has_a_program() {
    let slot = |id: u64| NODE + 40 + 8 * id;
    // The ID of a program in the index is another, or another program has its place.
    for (id, value) in [(7, program(1)), (3, program(1) + 0x100)] {
        let mut world = World::new();
        world.index(&[0, 2]);
        world.set(slot(id), value);
        let found = world.findings(PASSES);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].symbol, "bpf_prog, ID 3");
    }
    // User space cannot ask for such an ID.
    let mut world = World::new();
    world.index(&[0, 2]);
    world.set(program(1) + AUX + ID, 0x8000_0003);
    // From the root down, one node for each six bits of it.
    let node = |level: u64| NODE + 0x4000 + 0x400 * level;
    world.set(IDS + 8, node(0) | 2);
    for level in 0..6 {
        let slot = if level == 0 { 2 } else { 0 };
        world.set(node(level), 30 - 6 * level);
        world.set(node(level) + 40 + 8 * slot, node(level + 1) | 2);
    }
    world.set(node(5) + 40, 0);
    world.set(node(5) + 40 + 8 * 3, program(1));
    let found = world.findings(PASSES);
    assert!(found.iter().any(|finding| finding.address == program(1) + AUX), "{found:?}");
}

#[test]
fn what_is_cut_acquits_nobody() {
    let mut world = World::new();
    world.list(&[0, 1]);
    assert_eq!(world.findings(PASSES).len(), 1);
    let stands =
        |world: &World| Check::<FakeMemory>::stands(&world.check, HIDDEN, program(2) + AUX);
    let unjudged = |world: &World| Check::<FakeMemory>::coverage(&world.check).unjudged;
    // An endless list; a node that is none.
    world.set(program(1) + AUX + KSYM + LINK, program(0) + AUX + KSYM + LINK);
    assert_eq!(world.findings(4), []);
    assert_eq!((stands(&world), unjudged(&world)), (true, 1));
    world.list(&[0, 1]);
    world.set(NODE, 7);
    // Without the index, no program is in its place.
    assert_eq!(world.findings(PASSES).len(), 2);
    assert_eq!((stands(&world), unjudged(&world)), (true, 1));
    world.set(NODE, 0);
    world.list(&[0, 1, 2]);
    assert_eq!(world.findings(1), []);
    assert!(!stands(&world));
}

/// Code of the program `number`, and of its only function besides itself.
fn code(number: u64) -> u64 {
    DIRECT + 0x8000 + 0x2000 * number
}

const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];

fn near(opcode: u8, at: u64, to: u64) -> [u8; 5] {
    let [a, b, c, d] = (to.wrapping_sub(at).wrapping_sub(5) as u32).to_le_bytes();
    [opcode, a, b, c, d]
}

impl World {
    fn put(&self, address: u64, bytes: &[u8]) {
        self.memory.put(fake::physical(address), bytes);
    }
}

#[test]
fn changed_code_is_a_finding() {
    // Also where two parts that are read together meet.
    for at in [9, 4094, 4095, 4096, 4999] {
        let mut world = World::new();
        assert_eq!(world.findings(3), []);
        world.put(code(0) + at, &[0xcc]);
        assert_eq!(world.findings(PASSES - 1), []);
        let found = world.findings(1);
        assert_eq!(found.len(), 1, "{at}");
        assert_eq!((&*found[0].what, found[0].address), (CHANGED, code(0)));
        assert_eq!(found[0].symbol, format!("bpf_prog+{at:#x}, ID 2"));
        assert!(found[0].found.starts_with("cc"));
        assert!(Check::<FakeMemory>::stands(&world.check, CHANGED, code(0)));
        assert_eq!(world.findings(PASSES), []);
        world.put(code(0) + at, &0x0102_0304_0506_0708u64.to_le_bytes()[at as usize % 8..][..1]);
        world.findings(1);
        assert!(!Check::<FakeMemory>::stands(&world.check, CHANGED, code(0)));
    }
}

#[test]
fn places_that_linux_patches_may_lead_to_listed_code() {
    let at = code(0);
    let mut world = World::new();
    // A tail call across the end of what is read together.
    let edge = code(0) + 4094;
    world.put(edge, &near(0xe9, edge, at + 8));
    let table = DIRECT + 0x780;
    world.set(table, edge);
    world.set(program(0) + AUX + TAIL_CALLS, table);
    world.set(program(0) + AUX + TAIL_CALL_COUNT, 1);
    assert_eq!(world.findings(2), []);
    world.put(at, &near(0xe8, at, code(1) + 4));
    world.put(edge, &NOP);
    assert_eq!(world.findings(PASSES + 1), []);
    for bad in [near(0xe8, at, code(1) + 64), near(0xe8, at, code(2) + 0x1000), [0x90; 5]] {
        world.put(at, &bad);
        assert_eq!(world.findings(PASSES).len(), 1, "{bad:x?}");
        world.put(at, &NOP);
        assert_eq!(world.findings(PASSES), []);
    }
    // Where nothing is patched, the same call is a change.
    world.put(at + 16, &near(0xe8, at + 16, code(1) + 4));
    assert_eq!(world.findings(PASSES).len(), 1);
}

#[test]
fn a_breakpoint_where_linux_patches_may_come_again_and_again_but_not_stay() {
    let mut world = World::new();
    assert_eq!(world.findings(2), []);
    let call = near(0xe8, code(0), code(1) + 4);
    for _ in 0..10 {
        world.put(code(0), &[0xcc]);
        assert_eq!(world.findings(PASSES + 1), []);
        world.put(code(0), &call);
        assert_eq!(world.findings(1), []);
    }
    world.put(code(0), &[0xcc]);
    let found = world.findings(code::BREAKPOINT_PASSES + PASSES);
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].found, found[0].address), ("a breakpoint that stays", code(0)));
}

#[test]
fn programs_that_share_code_are_judged_both() {
    // The second one says that its code is the first one's.
    let mut world = World::new();
    world.set(program(1) + 16, code(0));
    world.set(program(1) + AUX + KSYM + START, code(0));
    world.set(program(1) + AUX + KSYM + 8, code(0) + 5000);
    assert_eq!(world.findings(3), []);
    world.put(code(0) + 100, &[0x55]);
    assert_eq!(world.findings(PASSES).len(), 2);
    // One program that has two IDs, and is not listed.
    let mut world = World::new();
    world.list(&[0, 1]);
    world.set(NODE + 40 + 8 * 9, program(2));
    let found = world.findings(PASSES);
    assert!(found.iter().any(|it| it.symbol.ends_with("ID 4")), "{found:?}");
}

#[test]
fn a_call_is_no_place_that_linux_patches() {
    for old in [near(0xe8, code(0) + 16, code(1)), [0xcc; 5], [0xe9; 5], NOP] {
        let mut world = World::new();
        world.put(code(0) + 16, &old);
        assert_eq!(world.findings(2), []);
        let new = if old == NOP { near(0xe8, code(0) + 16, code(1)) } else { NOP };
        world.put(code(0) + 16, &new);
        assert_eq!(world.findings(PASSES).len(), 1, "{old:x?}");
    }
}

#[test]
fn a_function_follows_its_landing_pad() {
    let mut world = World::new();
    let at = code(0);
    world.put(at, &[0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0]);
    assert_eq!(world.findings(2), []);
    world.put(at + 4, &near(0xe8, at + 4, code(1)));
    assert_eq!(world.findings(PASSES), []);
    world.put(at, &NOP);
    assert_eq!(world.findings(PASSES).len(), 1);
}

#[test]
fn a_function_that_its_program_forgets_is_a_finding() {
    let list = DIRECT + 0x700;
    for (at, value) in [(program(0) + AUX + FUNCTION_COUNT, 1), (list + 8, 0), (list, 0)] {
        let mut world = World::new();
        world.set(program(0) + AUX + FUNCTIONS, list);
        world.set(program(0) + AUX + FUNCTION_COUNT, 2);
        world.set(list, program(0));
        world.set(list + 8, program(1));
        world.index(&[0, 2]);
        world.set(program(1) + AUX + ID, 0);
        assert_eq!(world.findings(2), []);
        world.set(at, value);
        let found = world.findings(PASSES);
        assert!(found.iter().any(|it| it.address == code(1) && it.found == "none"), "{found:?}");
    }
    // One that ends takes its ID first.
    let mut world = World::new();
    assert_eq!(world.findings(2), []);
    world.index(&[0, 1]);
    world.set(program(2) + AUX + ID, 0);
    assert_eq!(world.findings(PASSES + 1), []);
}

#[test]
fn a_list_that_is_cut_leaves_calls_unjudged() {
    let mut world = World::new();
    assert_eq!(world.findings(2), []);
    world.put(code(0), &near(0xe8, code(0), code(0) + 0x100_0000));
    world.set(program(1) + AUX + KSYM + LINK, program(0) + AUX + KSYM + LINK);
    assert_eq!(world.findings(PASSES + 1), []);
    assert_eq!(Check::<FakeMemory>::coverage(&world.check).unjudged, 1);
}

#[test]
fn functions_of_a_program_are_compared() {
    let mut world = World::new();
    // The program 1 is a function of the program 0.
    let list = DIRECT + 0x700;
    world.set(program(0) + AUX + FUNCTIONS, list);
    world.set(program(0) + AUX + FUNCTION_COUNT, 2);
    world.set(list, program(0));
    world.set(list + 8, program(1));
    world.index(&[0, 2]);
    world.set(program(1) + AUX + ID, 0);
    assert_eq!(world.findings(2), []);
    world.put(code(1) + 20, &[0]);
    let found = world.findings(PASSES);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].symbol, "bpf_prog, function 1+0x14, ID 2");
}

#[test]
fn a_program_with_another_id_is_another() {
    let mut world = World::new();
    assert_eq!(world.findings(2), []);
    world.put(code(2) + 20, &[0]);
    world.set(NODE + 40 + 8 * 4, 0);
    world.set(NODE + 40 + 8 * 5, program(2));
    world.set(program(2) + AUX + ID, 5);
    world.index(&[0, 1]);
    assert_eq!(world.findings(PASSES + 2), []);
    world.put(code(2) + 20, &[1]);
    assert_eq!(world.findings(PASSES).len(), 1);
}

#[test]
fn a_program_that_is_called_or_listed_elsewhere_is_a_finding() {
    for (at, bytes) in [(16, 0), (AUX + KSYM + START, 0), (AUX + KSYM + 8, 8)] {
        let mut world = World::new();
        assert_eq!(world.findings(2), []);
        let old = world.memory.get(fake::physical(program(1) + at));
        world.set(program(1) + at, code(0) + bytes + 16);
        let found = world.findings(PASSES);
        assert_eq!(found.len(), 1, "{at}");
        assert_eq!((&*found[0].what, found[0].address), (CHANGED, code(1)));
        world.set(program(1) + at, old);
        assert_eq!(world.findings(PASSES), []);
        world.put(code(1) + 20, &[0]);
        assert_eq!(world.findings(PASSES).len(), 1, "the copy is the old one");
    }
}

#[test]
fn code_that_cannot_be_copied_is_not_judged() {
    let unjudged = |world: &World| Check::<FakeMemory>::coverage(&world.check).unjudged;
    for bytes in [0, 3 << 20, u64::MAX] {
        let mut world = World::new();
        world.set(program(1) + AUX + KSYM + 8, code(1).wrapping_add(bytes));
        assert_eq!(world.findings(4), []);
        assert_eq!(unjudged(&world), 1, "{bytes:#x}");
    }
    let mut world = World::new();
    world.set(program(1) + 16, 0xffff_ffff_c000_0000);
    world.set(program(1) + AUX + KSYM + START, 0xffff_ffff_c000_0000);
    world.set(program(1) + AUX + KSYM + 8, 0xffff_ffff_c000_0040);
    assert_eq!((world.findings(4), unjudged(&world)), (vec![], 1));
}

#[test]
fn a_program_that_calls_a_sensitive_helper_is_a_finding() {
    let mut world = World::new();
    // Elsewhere; across the end of a part.
    world.put(code(1) + 9, &near(0xe8, code(1) + 9, WRITES + 1));
    let at = code(0) + 4094;
    world.put(at, &near(0xe8, at, WRITES));
    // The first pass copies the first part, the second one the rest.
    assert_eq!(world.findings(PASSES), []);
    let found = world.findings(2);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].class, found[0].address), (Class::BpfProgramSensitive, code(0)));
    assert_eq!((&*found[0].symbol, &*found[0].owner), ("bpf_prog, ID 2", "bpf bpf_prog"));
    let does = "a call of bpf_probe_write_user, which writes to the memory of processes";
    assert_eq!(found[0].found, does);
    let stands = |world: &World| Check::<FakeMemory>::stands(&world.check, SENSITIVE, code(0));
    assert_eq!((world.findings(2), stands(&world)), (vec![], true));
    world.index(&[1, 2]);
    world.list(&[1, 2]);
    assert_eq!((world.findings(1), stands(&world)), (vec![], false));
}
