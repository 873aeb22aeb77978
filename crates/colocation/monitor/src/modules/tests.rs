use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};

const LIST_HEAD: u64 = TEXT + 0x8000;
const MOD_TREE: u64 = TEXT + 0x8100;
const KSET: u64 = TEXT + 0x8200;
const TAINTED: u64 = TEXT + 0x8208;
const SET: u64 = DIRECT + 0x1000;
const FIRST: u64 = DIRECT + 0x2000;
const SECOND: u64 = DIRECT + 0x3000;
const BUILT_IN: u64 = DIRECT + 0x4000;

// Offsets in a module: its link, name, state, taints, its entry in sysfs, and its part's node.
const NAME: u64 = 16;
const STATE: u64 = 72;
const TAINTS: u64 = 80;
const ENTRY: u64 = 96;
const MOD: u64 = 112;
const PART: u64 = 128;

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    check: ModuleCheck,
}

impl World {
    /// Two modules, of which one has a taint, and an entry of built-in code in sysfs.
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (LIST_HEAD, b'D', "modules"),
            (MOD_TREE, b'd', "mod_tree"),
            (KSET, b'D', "module_kset"),
            (TAINTED, b'D', "tainted_mask"),
        ];
        let layouts = [
            ("rb_node.__rb_parent_color", 0, 8),
            ("rb_node.rb_left", 16, 8),
            ("rb_node.rb_right", 8, 8),
            ("module.list", 0, 16),
            ("module.name", NAME, 56),
            ("module.state", STATE, 4),
            ("module.taints", TAINTS, 8),
            ("module.mem", 1024, 112),
            ("module_memory", 0, 16),
            ("module_memory.base", 0, 8),
            ("module_memory.size", 8, 4),
            ("#MODULE_STATE_LIVE", 0, 0),
            ("#MODULE_STATE_GOING", 2, 0),
            ("#MODULE_STATE_UNFORMED", 3, 0),
            ("kobject.entry", 0, 16),
            ("kset.list", 8, 16),
            ("module_kobject.kobj", 0, 16),
            ("module_kobject.mod", MOD - ENTRY, 8),
            ("mod_tree_root.root", 0, 24),
            ("latch_tree_root.seq", 0, 4),
            ("latch_tree_root.tree", 8, 16),
            ("mod_tree_node.mod", 0, 8),
            ("mod_tree_node.node", 8, 48),
            ("latch_tree_node.node", 0, 48),
        ];
        let profile = fake::profile(&symbols, &layouts);
        let check = ModuleCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        let world = Self { memory, profile, check };
        world.list(&[FIRST, SECOND]);
        world.tree(&[FIRST, SECOND]);
        world.sysfs(&[FIRST, BUILT_IN, SECOND]);
        for (module, name) in [(FIRST, *b"first\0\0\0"), (SECOND, *b"second\0\0")] {
            world.set(module + NAME, u64::from_le_bytes(name));
            world.set(module + PART, module);
            world.set(module + MOD, module);
        }
        world.set(FIRST + TAINTS, 1 << 12);
        world.set(TAINTED, 1 << 12 | 1 << 9);
        world.set(KSET, SET);
        world
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    fn links(&self, head: u64, nodes: impl Iterator<Item = u64>) {
        let last = nodes.fold(head, |at, node| {
            self.set(at, node);
            node
        });
        self.set(last, head);
    }

    fn list(&self, modules: &[u64]) {
        self.links(LIST_HEAD, modules.iter().copied());
    }

    fn sysfs(&self, modules: &[u64]) {
        self.links(SET + 8, modules.iter().map(|module| module + ENTRY));
    }

    /// Both copies have these modules, each left of the one before.
    fn tree(&self, modules: &[u64]) {
        for copy in 0..2 {
            let nodes = modules.iter().map(|module| module + PART + 8 + 24 * copy);
            let (mut pointer, mut parent) = (MOD_TREE + 8 + 8 * copy, 0);
            for node in nodes {
                self.set(pointer, node);
                self.set(node, parent | 1);
                (pointer, parent) = (node + 16, node);
            }
            self.set(pointer, 0);
        }
    }

    /// The findings of some passes, as lines.
    fn look(&mut self, passes: u32) -> Vec<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        fake::lines(&mut self.check, &kernel, (passes * PACE) as usize)
    }
}

#[test]
fn modules_that_are_everywhere_are_no_findings() {
    let mut world = World::new();
    assert_eq!(world.look(2 * PASSES), [""; 0]);
    // Sysfs has a module later than the other places, and loses it earlier.
    world.set(SECOND + STATE, 1);
    world.sysfs(&[FIRST]);
    assert_eq!(world.look(2 * PASSES_IN_CHANGE), [""; 0]);
    // More taints.
    world.set(TAINTED, 1 << 12 | 1 << 9 | 1 << 4);
    assert_eq!(world.look(2 * PASSES), [""; 0]);
}

#[test]
fn a_module_that_one_place_lacks_is_hidden() {
    type Hide = fn(&World);
    let hides: [(Hide, &str); 4] = [
        (|w| w.list(&[FIRST]), "in the module list, only in the module tree, sysfs"),
        (|w| w.tree(&[FIRST]), "in the module tree, only in the module list, sysfs"),
        (|w| w.sysfs(&[FIRST]), "in sysfs, only in the module list, the module tree"),
        (
            |w| {
                w.list(&[FIRST]);
                w.sysfs(&[FIRST]);
            },
            "in the module list, sysfs, only in the module tree",
        ),
    ];
    for (hide, words) in hides {
        let mut world = World::new();
        assert_eq!(world.look(1), [""; 0]);
        hide(&world);
        assert_eq!(world.look(PASSES - 1), [""; 0], "{words}");
        let expected = std::format!("hidden module, second: {words}, nobody");
        assert_eq!(world.look(1), [expected]);
        assert!(Check::<FakeMemory>::stands(&world.check, HIDDEN, SECOND));
        assert_eq!(world.look(2 * PASSES), [""; 0]);
        world.list(&[FIRST, SECOND]);
        world.tree(&[FIRST, SECOND]);
        world.sysfs(&[FIRST, SECOND]);
        world.look(1);
        assert!(!Check::<FakeMemory>::stands(&world.check, HIDDEN, SECOND));
    }
}

#[test]
fn listing_has_every_module_and_what_lacks_it() {
    let world = World::new();
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.memory);
    let rows = || {
        let rows = listing::list(&kernel).unwrap().unwrap().into_iter();
        rows.map(|row| (row.name, row.address, row.taints, row.missing)).collect::<Vec<_>>()
    };
    let first = (String::from("first"), FIRST, 1 << 12, std::vec![]);
    let second = |missing| (String::from("second"), SECOND, 0, missing);
    assert_eq!(rows(), [first.clone(), second(std::vec![])]);
    world.list(&[FIRST]);
    assert_eq!(rows(), [first.clone(), second(std::vec!["the module list"])]);
    world.sysfs(&[FIRST]);
    assert_eq!(rows(), [first.clone(), second(std::vec!["the module list", "sysfs"])]);
    world.set(SECOND + STATE, 2);
    assert_eq!(rows(), [first, second(std::vec!["the module list"])]);
}

#[test]
fn a_module_that_says_it_is_going_is_found_later() {
    let mut world = World::new();
    world.list(&[FIRST]);
    world.set(SECOND + STATE, 2);
    world.set(SECOND + NAME, 0);
    assert_eq!(world.look(PASSES_IN_CHANGE - 1), [""; 0]);
    assert_eq!(
        world.look(1),
        ["hidden module, without a name: in the module list, only in the module tree, sysfs, nobody"]
    );
}

#[test]
fn a_module_that_says_it_is_unformed_is_found() {
    let line = "hidden module, second: formed, unformed, which lsmod leaves out, in the module list, the module tree";
    let mut world = World::new();
    world.set(SECOND + STATE, 3);
    assert_eq!(world.look(PASSES - 1), [""; 0]);
    assert_eq!(world.look(1), [format!("{line}, sysfs, nobody")]);
    assert!(Check::<FakeMemory>::stands(&world.check, HIDDEN, SECOND));
    // It stays one finding.
    assert_eq!(world.look(2 * PASSES_UNFORMED), [""; 0]);
    world.set(SECOND + STATE, 0);
    assert_eq!(world.look(PASSES), [""; 0]);
    assert!(!Check::<FakeMemory>::stands(&world.check, HIDDEN, SECOND));
    // A module is like that for a while before it is in sysfs, and after it left it.
    world.set(SECOND + STATE, 3);
    world.sysfs(&[FIRST]);
    assert_eq!(world.look(PASSES_UNFORMED - 1), [""; 0]);
    assert_eq!(world.look(1), [format!("{line}, nobody")]);
}

#[test]
fn a_module_that_moves_between_places_is_found() {
    let mut world = World::new();
    world.list(&[FIRST]);
    let found = (0..PASSES).flat_map(|pass| {
        world.sysfs(if pass % 2 == 0 { &[FIRST] } else { &[FIRST, SECOND] });
        world.look(1)
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        ["hidden module, second: in the module list, sysfs, only in the module tree, nobody"]
    );
    // Its state changes all the time.
    let mut world = World::new();
    world.list(&[FIRST]);
    let found = (0..2 * PASSES_IN_CHANGE).flat_map(|pass| {
        world.set(SECOND + STATE, u64::from(pass % 2));
        world.look(1)
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        ["hidden module, second: in the module list, only in the module tree, sysfs, nobody"]
    );
}

#[test]
fn taints_that_come_and_go_are_found() {
    let mut world = World::new();
    assert_eq!(world.look(1), [""; 0]);
    let found = (0..PASSES).flat_map(|pass| {
        world.set(TAINTED, if pass % 2 == 0 { 1 << 12 } else { 1 << 9 });
        world.look(1)
    });
    assert_eq!(found.collect::<Vec<_>>(), ["taint cleared, tainted_mask: , without 0x200, nobody"]);
}

#[test]
fn taints_do_not_vanish() {
    let mut world = World::new();
    assert_eq!(world.look(PASSES), [""; 0]);
    world.set(TAINTED, 1 << 12);
    assert_eq!(world.look(PASSES), ["taint cleared, tainted_mask: , without 0x200, nobody"]);
    // Cleared before the first look: the module that set it still has it.
    let mut world = World::new();
    world.set(TAINTED, 1 << 9);
    assert_eq!(world.look(PASSES), ["taint cleared, tainted_mask: , without 0x1000, nobody"]);
}

#[test]
fn broken_places_end_the_pass() {
    let mut numbers = fake::RandomNumbers(7);
    for _ in 0..fake::rounds(2000) {
        let mut world = World::new();
        for _ in 0..8 {
            let place = [LIST_HEAD, MOD_TREE, SET, FIRST, SECOND][numbers.below(5) as usize];
            let value = match numbers.below(4) {
                0 => numbers.next(),
                1 => 0,
                2 => DIRECT + 8 * numbers.below(0x800),
                _ => {
                    [FIRST, SECOND, SET, LIST_HEAD, MOD_TREE][numbers.below(5) as usize]
                        + 8 * numbers.below(40)
                }
            };
            world.set(place + 8 * numbers.below(40), value);
        }
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        let ends = (0..20).any(|_| {
            let mut budget = fake::CallBudget(3 * MAX_ENTRIES as u64);
            let step = world.check.step(&kernel, &mut budget, &mut |_| {}, &mut 0);
            matches!(step, Step::Done(_))
        });
        assert!(ends);
    }
}
