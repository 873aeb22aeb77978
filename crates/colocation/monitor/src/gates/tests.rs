use super::*;
use crate::fake::{self, FakeMachine, FakeMemory, TEXT};
use alloc::string::String;
use kyozon_abi::layer::LinuxRegisters;

const ENTRY: u64 = TEXT + 0x1000;
const TABLE: u64 = TEXT + 0x8000;
const EARLY: u64 = TEXT + 0x6000;
const EVIL: u64 = 0xffff_ffff_c012_3450;

fn words(handler: u64) -> [u64; 2] {
    [handler & 0xffff | 0x10 << 16 | 0x8e << 40 | (handler & 0xffff_0000) << 32, handler >> 32]
}

struct World {
    machine: FakeMachine,
    profile: Vec<u8>,
    check: GateCheck,
}

impl World {
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (ENTRY, b'T', "__entry_text_start"),
            (ENTRY + 0x40, b'T', "asm_exc_overflow"),
            (ENTRY + 0x1000, b'T', "__entry_text_end"),
            (EARLY, b't', "early_idt_handler_array"),
            (TABLE, b'B', "idt_table"),
        ];
        let profile = fake::profile(&symbols, &[]);
        let check = GateCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        let registers = LinuxRegisters {
            cpu: 1,
            cr4: 0x20,
            idt_base: TABLE,
            idt_limit: 4095,
            ..LinuxRegisters::default()
        };
        let world =
            Self { machine: FakeMachine { memory, registers, other: None }, profile, check };
        (0..255).for_each(|vector| world.set(vector, ENTRY + 16 * vector));
        world
    }

    fn set(&self, vector: u64, handler: u64) {
        for (at, word) in (TABLE + 16 * vector..).step_by(8).zip(words(handler)) {
            self.machine.memory.set(fake::physical(at), word);
        }
    }

    fn look(&mut self, looks: usize) -> Vec<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.machine);
        fake::lines(&mut self.check, &kernel, looks)
    }

    fn stands(&self, address: u64) -> bool {
        Check::<FakeMachine>::stands(&self.check, "interrupt gate changed", address)
    }
}

#[test]
fn an_unchanged_table_is_no_finding() {
    assert_eq!(World::new().look(100), [""; 0]);
}

#[test]
fn a_changed_gate_is_reported_once() {
    let mut world = World::new();
    world.look(1);
    world.set(4, EVIL);
    let line = "interrupt gate changed, vector 4: asm_exc_overflow, 0xffffffffc0123450, 0xffffffffc0123450 in no listed module";
    assert_eq!(world.look(3), [line]);
    assert!(world.stands(TABLE + 64) && !world.stands(TABLE + 48));
    world.set(4, ENTRY + 64);
    assert_eq!(world.look(1), [""; 0]);
    assert!(!world.stands(TABLE + 64));
    // A gate that was not present; rights and stack of one that was; and one that is gone.
    world.set(255, EVIL);
    world.machine.memory.set(fake::physical(TABLE + 16 * 7), words(ENTRY + 16 * 7)[0] | 3 << 45);
    world.machine.memory.set(fake::physical(TABLE + 16 * 9), 0);
    let lines = world.look(2);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[2].starts_with("interrupt gate changed, vector 255: no handler, "));
}

#[test]
fn a_gate_hooked_before_the_load_is_reported() {
    let mut world = World::new();
    world.set(4, EVIL);
    let lines = world.look(2);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("interrupt gate changed, vector 4: entry code, "));
}

#[test]
fn reserved_vectors_keep_the_handlers_of_early_boot() {
    let mut world = World::new();
    (20..32).for_each(|vector| world.set(vector, EARLY + 13 * vector));
    assert_eq!(world.look(3), [""; 0]);
    let mut world = World::new();
    world.set(32, EARLY);
    world.set(31, EARLY + 13 * 32);
    assert_eq!(world.look(2).len(), 2);
}

#[test]
fn another_table_is_reported() {
    for (base, limit) in [(TEXT + 0x9000, 4095), (EVIL, 4095), (TABLE, 511)] {
        let mut world = World::new();
        (world.machine.registers.idt_base, world.machine.registers.idt_limit) = (base, limit);
        let lines = world.look(5);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("interrupt table moved, CPU 1: idt_table, "), "{lines:?}");
    }
}

#[test]
fn a_watched_write_to_a_gate_is_a_finding() {
    let mut world = World::new();
    assert_eq!(world.look(4), Vec::<String>::new());
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.machine);
    let table = fake::physical(TABLE);
    let watched = Watched { range: table..table + 4096, space: 0 };
    assert_eq!(world.check.watched(&kernel), [watched]);
    let [low, high] = words(ENTRY + 16 * 6);
    let [bad_low, bad_high] = words(EVIL);
    let mut judge = |address, before, after| {
        let mut found = Vec::new();
        let write = Write { address, before, after, ..Write::default() };
        world.check.judge_writes(&kernel, &[write], &mut |finding: Finding| {
            found.push((finding.address, finding.found));
        });
        found
    };
    let before = [0, low, high, 0];
    let found = judge(table + 16 * 6 - 8, before, [0, bad_low, bad_high, 0]);
    assert_eq!(found, [(TABLE + 16 * 6, alloc::format!("{EVIL:#x}"))]);
    // Half of a gate, and what was there at the first look.
    assert_eq!(judge(table + 16 * 6 - 8, before, [0, bad_low, high, 0]).len(), 1);
    assert_eq!(judge(table + 16 * 6 - 8, [0, bad_low, high, 0], before), []);
    // Other memory, and the table's last words.
    assert_eq!(judge(table - 64, before, [1; 4]), []);
    assert_eq!(judge(table + 4096, before, [1; 4]), []);
    assert_eq!(judge(u64::MAX, before, [1; 4]), []);
    assert_eq!(judge(table + 4096 - 8, before, [1; 4]).len(), 3);
}

#[test]
fn a_watched_write_that_moves_the_table_is_a_finding() {
    let mut world = World::new();
    assert_eq!(world.look(4), Vec::<String>::new());
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.machine);
    let mut judge = |before: [u64; 2], after: [u64; 2]| {
        let mut found = Vec::new();
        let words = |[base, limit]: [u64; 2]| [base, limit, 0, 0];
        let (before, after) = (words(before), words(after));
        let write = Write { kind: WRITE_TABLE, cpu: 3, before, after, ..Write::default() };
        world.check.judge_writes(&kernel, &[write], &mut |finding: Finding| {
            found.push((finding.symbol, finding.found));
        });
        found
    };
    let moved = |found: &str| [("CPU 3".into(), found.into())];
    assert_eq!(judge([TABLE, 4095], [EVIL, 4095]), moved(&alloc::format!("{EVIL:#x}")));
    assert_eq!(judge([TABLE, 4095], [TABLE, 0]), moved(&alloc::format!("{TABLE:#x}")));
    // Back, and a CPU that begins.
    assert_eq!(judge([EVIL, 4095], [TABLE, 4095]), []);
    assert_eq!(judge([0, 0xffff], [EVIL, 511]), []);
}

#[test]
fn another_cpu_must_use_the_same_table() {
    let mut world = World::new();
    let good = LinuxRegisters { cpu: 2, ..world.machine.registers };
    world.machine.other = Some(good);
    assert_eq!(world.look(3), [""; 0]);
    world.machine.other = Some(LinuxRegisters { idt_limit: 0xffff, ..good });
    assert_eq!(world.look(3), [""; 0], "after an exit of an Intel virtual machine");
    world.machine.other = Some(LinuxRegisters { idt_base: EVIL, ..good });
    let found = world.look(3);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("interrupt table moved, CPU 2: "), "{found:?}");
    world.machine.registers.idt_base = EVIL;
    assert_eq!(world.look(1).len(), 1);
    world.machine.registers.idt_base = TABLE;
    world.machine.other = None;
    world.look(1);
    assert!(Check::<FakeMachine>::stands(&world.check, "interrupt table moved", 0));
    world.machine.other = Some(good);
    world.look(1);
    assert!(!Check::<FakeMachine>::stands(&world.check, "interrupt table moved", 0));
}
