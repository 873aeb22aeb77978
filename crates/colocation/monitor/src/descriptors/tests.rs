use super::*;
use crate::fake::{self, physical, FakeMachine, FakeMemory, DIRECT, TEXT};

const OFFSETS: u64 = TEXT + 0x1000;
const CPUS: u64 = TEXT + 0x2000;
/// Offsets of the symbols in an area, and where the areas lie. The third CPU was never up.
const TABLE: u64 = 0x1_0000;
const TSS: u64 = 0x1_2000;
const AREAS: [u64; 3] = [DIRECT + 0x1000, DIRECT + 0x5000, DIRECT + 0x9000];
const EVIL: u64 = 0xffff_ffff_c012_3450;
const MODULES: u64 = TEXT + 0xb000;
const MODULE: u64 = TEXT + 0xc000;
const STACK: u64 = ENTRY_AREAS.start + 0x5000;

struct World {
    machine: FakeMachine,
    profile: Vec<u8>,
    check: DescriptorCheck,
}

fn table(cpu: usize) -> u64 {
    AREAS[cpu]
}

fn task_state(cpu: usize) -> u64 {
    AREAS[cpu] + TSS - TABLE
}

impl World {
    fn new() -> Self {
        let symbols = [
            // Offsets are absolute symbols below the image.
            (TABLE, b'A', "gdt_page"),
            (TSS, b'A', "cpu_tss_rw"),
            (TEXT, b'T', "_text"),
            (OFFSETS, b'D', "__per_cpu_offset"),
            (CPUS, b'D', "nr_cpu_ids"),
            (MODULES, b'D', "modules"),
        ];
        let profile = fake::profile(&symbols, &fake::MODULES);
        let check = DescriptorCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        memory.set(physical(CPUS), 3);
        for (at, value) in [
            (MODULES, MODULE),
            (MODULE, MODULES),
            (MODULE + 16, u64::from_le_bytes(*b"kvm_amd\0")),
            (MODULE + 128, (EVIL & !0xfff) + 0x10_0000),
            (MODULE + 136, 0x1000),
        ] {
            memory.set(physical(at), value);
        }
        for (cpu, area) in AREAS.into_iter().enumerate() {
            memory.set(physical(OFFSETS + 8 * cpu as u64), area.wrapping_sub(TABLE));
        }
        let registers = LinuxRegisters {
            cpu: 1,
            gdt_base: table(1),
            gdt_limit: 127,
            sysenter_esp: STACK,
            ..LinuxRegisters::default()
        };
        let machine = FakeMachine { memory, registers, other: None };
        let mut world = Self { machine, profile, check };
        (0..2).for_each(|cpu| world.bring_up(cpu));
        world
    }

    fn bring_up(&mut self, cpu: usize) {
        for (number, fixed) in (0..).zip(FIXED) {
            self.descriptor(cpu, number, fixed);
        }
        let base = task_state(cpu);
        let low = 0x206f | (base & 0xff_ffff) << 16 | 0x8b << ACCESS | (base & 0xff00_0000) << 32;
        self.descriptor(cpu, TASK_STATE, low);
        self.descriptor(cpu, TASK_STATE + 1, base >> 32);
        self.descriptor(cpu, 15, 0x0040_f500_0000_0000);
        (0..5).for_each(|number| self.stack(cpu, number, STACK));
    }

    fn descriptor(&mut self, cpu: usize, number: u64, value: u64) {
        self.machine.memory.set(physical(table(cpu) + 8 * number), value);
    }

    fn stack(&mut self, cpu: usize, number: u64, value: u64) {
        let offset = if number == 0 { ENTRY_STACK } else { STACKS + 8 * (number - 1) };
        self.machine.memory.put(physical(task_state(cpu) + offset), &value.to_le_bytes());
    }

    /// The findings of a few passes.
    fn pass(&mut self) -> Vec<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.machine);
        fake::lines(&mut self.check, &kernel, 16)
    }

    /// The findings for a write on CPU 1: kind, address, words before and after.
    fn judge(&mut self, kind: u32, address: u64, before: [u64; 2], after: [u64; 2]) -> Vec<String> {
        let words = |[first, second]: [u64; 2]| [first, second, 0, 0];
        let (before, after) = (words(before), words(after));
        let write = Write { kind, address, cpu: 1, before, after, ..Write::default() };
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.machine);
        let mut lines = Vec::new();
        let mut found = |f: Finding| lines.push(format!("{}, {}", f.what, f.symbol));
        self.check.judge_writes(&kernel, &[write], &mut found);
        lines
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        Check::<FakeMachine>::stands(&self.check, what, address)
    }
}

#[test]
fn what_linux_sets_is_no_finding() {
    let mut w = World::new();
    assert_eq!(w.pass(), [""; 0]);
    // Segments of user mode, a local table, a task state segment that is not in use, a CPU that has no stack yet.
    w.descriptor(0, 12, 0x00cf_f300_0000_ffff);
    w.descriptor(0, LOCAL_TABLE, 0x0000_8200_0000_0fff | 0x1234 << 16);
    w.descriptor(0, LOCAL_TABLE + 1, 0xffff_8880);
    let low = w.machine.memory.get(physical(table(1) + 64));
    w.descriptor(1, TASK_STATE, low & !(BUSY << ACCESS));
    w.machine.registers.sysenter_esp = 0;
    assert_eq!(w.pass(), [""; 0]);
    assert_eq!(w.check.coverage.unjudged, 0);
    w.bring_up(2);
    (0..5).for_each(|number| w.stack(2, number, 0));
    w.stack(2, 0, NO_STACK);
    assert_eq!(w.pass(), [""; 0]);
    (0..5).for_each(|number| w.stack(2, number, STACK + 0x8000));
    assert_eq!(w.pass(), [""; 0], "it came up");
}

#[test]
fn gates_and_other_segments_are_reported_once() {
    let gate = 0x0000_ec00_0010_0000 | EVIL & 0xffff;
    // Linux has 16; the rest of the page is empty.
    for number in (0..=16).chain([511]).filter(|number| *number != TASK_STATE + 1) {
        let mut w = World::new();
        w.pass();
        w.descriptor(0, number, gate);
        let lines = w.pass();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with(&format!("descriptor {number} changed, CPU 0: ")),
            "{lines:?}"
        );
        assert!(
            lines[0].contains(&format!("{gate:#x}, 0x")),
            "the gate leads somewhere: {lines:?}"
        );
        let what = format!("descriptor {number} changed");
        assert!(w.stands(&what, table(0) + 8 * number));
        assert!(!w.stands(&what, table(1) + 8 * number), "the other CPU's");
        assert_eq!(w.pass(), [""; 0]);
    }
}

#[test]
fn an_amd_processor_keeps_half_of_the_stack() {
    let mut w = World::new();
    w.machine.registers.sysenter_esp = STACK & 0xffff_ffff;
    assert_eq!(w.pass(), [""; 0]);
}

#[test]
fn only_kvm_for_intel_enlarges_the_table() {
    let mut w = World::new();
    w.pass();
    w.machine.registers.gdt_limit = 0xffff;
    let name = physical(MODULE + 16);
    w.machine.memory.put(name, b"kvm_intel\0");
    assert_eq!(w.pass(), [""; 0]);
    let mut w = World::new();
    w.pass();
    w.machine.registers.gdt_limit = 0xffff;
    assert_eq!(w.pass(), ["descriptor table enlarged, CPU 1: 0x7f, 0xffff, nobody"]);
}

#[test]
fn a_cpu_that_is_up_is_judged_without_a_task_state_segment() {
    let mut w = World::new();
    w.pass();
    w.descriptor(0, TASK_STATE, 0);
    w.descriptor(0, TASK_STATE + 1, 0);
    let lines = w.pass();
    assert!(lines.len() == 1 && lines[0].starts_with("descriptor 8 changed, CPU 0"), "{lines:?}");
    // One that was so at the first look, and shows its registers.
    let mut w = World::new();
    w.descriptor(1, TASK_STATE, 0);
    w.descriptor(1, TASK_STATE + 1, 0);
    let lines = w.pass();
    assert!(lines.len() == 1 && lines[0].starts_with("descriptor 8 changed, CPU 1"), "{lines:?}");
}

#[test]
fn what_was_changed_before_the_load_is_reported() {
    let mut w = World::new();
    // User code with the kernel's rights, and a kernel's segment for user mode.
    w.descriptor(0, 6, FIXED[2]);
    w.descriptor(0, 13, FIXED[3]);
    w.descriptor(1, TASK_STATE + 1, 0);
    w.stack(1, 2, EVIL);
    let lines = w.pass();
    let mut starts: Vec<&str> = lines.iter().filter_map(|it| it.split(':').next()).collect();
    starts.sort_unstable();
    let expected = [
        "descriptor 13 changed, CPU 0",
        "descriptor 6 changed, CPU 0",
        "descriptor 8 changed, CPU 1",
        "interrupt stack 2 changed, CPU 1",
    ];
    assert_eq!(starts, expected);
}

#[test]
fn a_changed_stack_is_reported_and_forgotten_when_it_is_back() {
    for (number, what) in [(0, "stack of interrupts changed"), (4, "interrupt stack 4 changed")] {
        for bad in [EVIL, 0, STACK + 8, 0x7fff_0000] {
            let mut w = World::new();
            w.pass();
            w.stack(0, number, bad);
            let line = format!("{what}, CPU 0: {STACK:#x}, {bad:#x}, nobody");
            assert_eq!(w.pass(), [line]);
            let address = task_state(0) + if number == 0 { 4 } else { 60 };
            assert!(w.stands(what, address));
            w.stack(0, number, STACK);
            assert_eq!(w.pass(), [""; 0]);
            assert!(!w.stands(what, address));
        }
    }
}

#[test]
fn registers_lead_to_the_cpus_own_tables() {
    let change: [fn(&mut LinuxRegisters); 6] = [
        |r| r.gdt_base = table(0),
        |r| r.gdt_base = EVIL,
        |r| r.gdt_limit = 63,
        |r| r.sysenter_esp = EVIL,
        |r| r.gdt_limit = 143,
        // Another processor than AMD's uses it.
        |r| r.sysenter_esp = STACK & 0xffff_ffff,
    ];
    for (number, change) in change.into_iter().enumerate() {
        for of_other in [false, true] {
            let mut w = World::new();
            w.pass();
            let mut bad = w.machine.registers;
            if of_other {
                (bad.cpu, bad.gdt_base) = (0, table(0));
                // Its first look decides which half it keeps.
                if [0, 5].contains(&number) {
                    continue;
                }
            }
            change(&mut bad);
            match of_other {
                true => w.machine.other = Some(bad),
                false => w.machine.registers = bad,
            }
            let lines = w.pass();
            assert_eq!(lines.len(), 1, "{number}: {lines:?}");
            let what = if [3, 5].contains(&number) {
                "SYSENTER_ESP changed"
            } else {
                "descriptor table moved"
            };
            assert!(lines[0].starts_with(&format!("{what}, CPU {}: ", bad.cpu)), "{lines:?}");
            assert!(w.stands(what, 0));
        }
    }
}

#[test]
fn writes_that_lead_elsewhere_are_reported_by_the_write() {
    let mut w = World::new();
    w.pass();
    let (gdt, tss) = (table(1), task_state(1));
    let moved = ["descriptor table moved, CPU 1"];
    assert_eq!(w.judge(WRITE_TABLE, TABLE_DESCRIPTORS, [gdt, 127], [EVIL, 127]), moved);
    assert_eq!(w.judge(WRITE_TABLE, TABLE_DESCRIPTORS, [gdt, 127], [gdt, 255]), moved);
    assert_eq!(w.judge(WRITE_TABLE, TABLE_DESCRIPTORS, [EVIL, 127], [gdt, 127]), [""; 0]);
    assert_eq!(
        w.judge(WRITE_TABLE, TABLE_DESCRIPTORS, [0, 0], [EVIL, 127]),
        [""; 0],
        "it comes up"
    );
    let replaced = ["task state segment replaced, CPU 1"];
    assert_eq!(w.judge(WRITE_TABLE, TABLE_TASK, [tss, 0x206f], [EVIL, 0x206f]), replaced);
    let changed = ["SYSENTER_ESP changed, CPU 1"];
    assert_eq!(w.judge(WRITE_REGISTER, SYSENTER_ESP, [STACK, 0], [EVIL, 0]), changed);
    // They stand until a write puts them right.
    let stands = |w: &World| {
        ["task state segment replaced", "SYSENTER_ESP changed"].map(|what| w.stands(what, 0))
    };
    w.pass();
    assert_eq!(stands(&w), [true, true]);
    assert_eq!(w.judge(WRITE_TABLE, TABLE_TASK, [EVIL, 0x206f], [tss, 0x206f]), [""; 0]);
    assert_eq!(stands(&w), [false, true]);
    assert_eq!(w.judge(WRITE_REGISTER, SYSENTER_ESP, [STACK, 0], [0, 0]), [""; 0]);
    assert_eq!(w.judge(WRITE_REGISTER, 0x176, [STACK, 0], [EVIL, 0]), [""; 0]);
    assert_eq!(w.judge(WRITE_TABLE, 0, [gdt, 127], [EVIL, 127]), [""; 0]);
}

#[test]
fn a_cpu_that_cannot_be_read_is_counted() {
    let mut w = World::new();
    w.machine.memory.set(physical(OFFSETS), 0);
    assert_eq!(w.pass(), [""; 0]);
    assert_eq!(w.check.coverage.unjudged, 1);
    // Without the symbols, nothing is judged.
    w.profile = fake::profile(&[(TEXT, b'T', "_text")], &[]);
    w.check = DescriptorCheck::make(&Profile::decode(&w.profile).unwrap(), 1).unwrap();
    assert_eq!(w.pass(), [""; 0]);
    assert_eq!(w.check.coverage.unjudged, 1);
}
