use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};

const IDS: u64 = TEXT + 0x8000;
const HEAD: u64 = TEXT + 0x8100;
const NODE: u64 = DIRECT + 0x800;
/// Distance of the programs, from `PROGRAMS` on: each has its `struct bpf_prog_aux` at `AUX`.
const PROGRAMS: u64 = DIRECT + 0x1000;
const DISTANCE: u64 = 0x400;
const AUX: u64 = 0x100;
// Offsets in a `struct bpf_prog_aux`; those in its `struct bpf_ksym`.
const ID: u64 = 0;
const KSYM: u64 = 16;
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
    /// Three programs, with the IDs 2, 3 and 4.
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (TEXT + 0x8200, b'D', "modules"),
            (IDS, b'd', "prog_idr"),
            (HEAD, b'd', "bpf_kallsyms"),
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
            ("bpf_prog_aux.id", ID, 4),
            ("bpf_prog_aux.ksym", KSYM, 168),
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
            world.set(aux + ID, 2 + number);
            world.set(aux + KSYM + START, 0xffff_ffff_c000_0000 + number);
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
