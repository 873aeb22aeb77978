use super::*;
use crate::fake::{self, CallBudget, FakeMachine, FakeMemory, TEXT};
use alloc::string::ToString;
use kyozon_abi::layer::WRITE_MEMORY;

const ENTRY: u64 = TEXT + 0x1000;
const COMPAT: u64 = TEXT + 0x1100;
const SYSENTER: u64 = TEXT + 0x1200;
const PINNED: u64 = TEXT + 0x8000;
const OFFSETS: u64 = TEXT + 0x9000;
const RECORD: u64 = 0x40;
const AREA: u64 = TEXT + 0xa000;
const MODULES: u64 = TEXT + 0xb000;
const MODULE: u64 = TEXT + 0xc000;
/// Code of the module.
const EVIL: u64 = 0xffff_ffff_c012_3450;

struct World {
    machine: FakeMachine,
    profile: Vec<u8>,
    check: RegisterCheck,
}

impl World {
    fn new() -> Self {
        let symbols = [
            (RECORD, b'd', "cpu_debugreg"),
            (TEXT, b'T', "_text"),
            (ENTRY, b'T', "entry_SYSCALL_64"),
            (COMPAT, b'T', "entry_SYSCALL_compat"),
            (SYSENTER, b'T', "entry_SYSENTER_compat"),
            (PINNED, b'D', "cr4_pinned_bits"),
            (OFFSETS, b'D', "__per_cpu_offset"),
            (MODULES, b'D', "modules"),
        ];
        let profile = fake::profile(&symbols, &fake::MODULES);
        let check = RegisterCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        memory.set(fake::physical(OFFSETS + 8), AREA);
        for (at, value) in [
            (MODULES, MODULE),
            (MODULE, MODULES),
            (MODULE + 16, u64::from_le_bytes(*b"kvm_amd\0")),
            (MODULE + 128, EVIL & !0xfff),
            (MODULE + 136, 0x1000),
        ] {
            memory.set(fake::physical(at), value);
        }
        memory.set(fake::physical(PINNED), 1 << 20 | 1 << 21);
        let registers = LinuxRegisters {
            cpu: 1,
            cr0: 0x8005_0033,
            cr4: 0x37_08f0,
            efer: 0x0d01,
            star: STAR,
            lstar: ENTRY,
            cstar: COMPAT,
            sfmask: 0x25_7fd5,
            sysenter_cs: 0x10,
            sysenter_eip: SYSENTER,
            dr7: 0x400,
            ..LinuxRegisters::default()
        };
        Self { machine: FakeMachine { memory, registers, other: None }, profile, check }
    }

    /// The findings of some looks, as lines.
    fn look(&mut self, looks: usize) -> Vec<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.machine);
        fake::lines(&mut self.check, &kernel, looks)
    }

    fn stands(&self, what: &str) -> bool {
        Check::<FakeMachine>::stands(&self.check, what, 0)
    }
}

#[test]
fn linux_own_values_are_no_findings() {
    let mut world = World::new();
    assert_eq!(world.look(3 * LOOKS_PER_PASS as usize), [""; 0]);
    // Linux changes these while it works: TS, PGE, and a bit that KVM sets.
    world.machine.registers.cr0 |= 8;
    world.machine.registers.cr4 ^= 1 << 7;
    world.machine.registers.efer |= 1 << 12;
    assert_eq!(world.look(3), [""; 0]);
    // A processor that does not use these.
    let mut world = World::new();
    world.machine.registers.cstar = 0;
    world.machine.registers.sysenter_eip = 0;
    assert_eq!(world.look(3), [""; 0]);
    // An AMD processor keeps a half.
    let mut world = World::new();
    world.machine.registers.sysenter_eip = SYSENTER & 0xffff_ffff;
    assert_eq!(world.look(3), [""; 0]);
}

#[test]
fn an_entry_that_was_used_is_not_given_up() {
    let changes: [fn(&mut LinuxRegisters); 2] = [|r| r.cstar = 0, |r| r.sysenter_eip = 0];
    for clear in changes {
        let mut world = World::new();
        assert_eq!(world.look(2), [""; 0]);
        clear(&mut world.machine.registers);
        assert_eq!(world.look(1).len(), 1);
    }
}

#[test]
fn each_change_is_reported_once() {
    type Change = fn(&mut LinuxRegisters);
    let changes: [(Change, &str); 12] = [
        (|r| r.cr0 &= !(1 << 16), "CR0.WP cleared, CPU 1: , 0x80040033, nobody"),
        (|r| r.cr4 &= !(1 << 20), "CR4.SMEP cleared, CPU 1: , 0x2708f0, nobody"),
        (|r| r.cr4 &= !(1 << 21), "CR4.SMAP cleared, CPU 1: , 0x1708f0, nobody"),
        (|r| r.cr4 &= !(1 << 11), "CR4.UMIP cleared, CPU 1: , 0x3700f0, nobody"),
        (|r| r.efer &= !(1 << 11), "EFER changed, CPU 1: the bits 0xd01, 0x501, nobody"),
        (
            |r| r.lstar = EVIL,
            "LSTAR changed, CPU 1: entry_SYSCALL_64, 0xffffffffc0123450, module kvm_amd",
        ),
        (
            |r| r.lstar = ENTRY + 4,
            "LSTAR changed, CPU 1: entry_SYSCALL_64, 0xffffffff81001004, entry_SYSCALL_64+0x4",
        ),
        (
            |r| r.cstar = EVIL,
            "CSTAR changed, CPU 1: entry_SYSCALL_compat, 0xffffffffc0123450, module kvm_amd",
        ),
        (
            |r| r.sysenter_eip = ENTRY,
            "SYSENTER_EIP changed, CPU 1: entry_SYSENTER_compat, 0xffffffff81001000, entry_SYSCALL_64",
        ),
        (|r| r.star = 0, "STAR changed, CPU 1: 0x23001000000000, 0x0, nobody"),
        (|r| r.sfmask = 0, "SFMASK changed, CPU 1: 0x257fd5, 0x0, nobody"),
        (
            |r| (r.breakpoints[2], r.dr7) = (ENTRY, 1 << 5),
            "unrecorded breakpoint DR2, CPU 1: , 0xffffffff81001000, entry_SYSCALL_64",
        ),
    ];
    for (change, line) in changes {
        let mut world = World::new();
        world.look(1);
        let good = world.machine.registers;
        change(&mut world.machine.registers);
        let what = line.split(',').next().unwrap().to_string();
        assert!(!world.stands(&what), "{what}");
        let line = line.replace("0x23001000000000", &format!("{STAR:#x}"));
        assert_eq!(world.look(3), [line]);
        assert!(world.stands(&what) && !world.stands("EFER"), "{what}");
        world.machine.registers = good;
        world.look(1);
        assert!(!world.stands(&what), "{what}");
    }
}

#[test]
fn bits_cleared_before_the_load_are_reported() {
    let mut world = World::new();
    world.machine.registers.cr4 &= !(1 << 20);
    world.machine.registers.lstar = EVIL;
    assert_eq!(world.look(2).len(), 2);
}

#[test]
fn breakpoints_in_linux_own_record_are_no_findings() {
    let mut world = World::new();
    world.machine.registers.breakpoints = [ENTRY, 0x1000, 0, 0];
    world.machine.memory.set(fake::physical(AREA + RECORD), ENTRY);
    world.machine.registers.dr7 = 0xf;
    assert_eq!(world.look(3), [""; 0]);
    world.machine.memory.set(fake::physical(AREA + RECORD), COMPAT);
    assert_eq!(world.look(3).len(), 1);
}

#[test]
fn without_registers_nothing_is_judged() {
    let mut world = World::new();
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.machine.memory);
    let step = world.check.step(&kernel, &mut CallBudget(9), &mut |_| panic!(), &mut 0);
    assert_eq!(step, Step::Done(0));
    assert_eq!(Check::<FakeMemory>::coverage(&world.check).unjudged, REGISTERS);
}

#[test]
fn a_guests_entries_are_not_judged_beside_kvm_for_intel() {
    let mut world = World::new();
    world.look(1);
    let good = world.machine.registers;
    let name = fake::physical(MODULE + 16);
    world.machine.memory.put(name, b"kvm_intel\0");
    let r = &mut world.machine.registers;
    (r.star, r.lstar, r.cstar, r.sfmask) = (0, EVIL, EVIL, 0);
    r.cr0 &= !(1 << 16);
    assert_eq!(world.look(3), ["CR0.WP cleared, CPU 1: , 0x80040033, nobody"]);
    assert_eq!(Check::<FakeMachine>::coverage(&world.check).unjudged, GUESTS);
    world.machine.registers = good;
    assert_eq!(world.look(1), [""; 0]);
    assert_eq!(Check::<FakeMachine>::coverage(&world.check).unjudged, 0);
}

#[test]
fn entries_that_fred_does_not_use_are_not_judged() {
    let mut world = World::new();
    world.machine.registers.cr4 |= CR4_FRED;
    (world.machine.registers.lstar, world.machine.registers.sysenter_eip) = (0, 1);
    assert_eq!(world.look(3), [""; 0]);
}

#[test]
fn a_watched_write_is_a_finding_if_its_value_is_wrong() {
    let mut world = World::new();
    assert_eq!(world.look(4), Vec::<String>::new());
    let lstar = Write {
        kind: WRITE_REGISTER,
        cpu: 3,
        address: 0xc000_0082,
        after: [EVIL, 0, 0, 0],
        ..Write::default()
    };
    let good = Write { after: [ENTRY, 0, 0, 0], ..lstar };
    let star = Write { address: 0xc000_0081, ..lstar };
    let others = [
        Write { kind: WRITE_MEMORY, ..lstar },
        Write { address: 0xc000_0085, ..lstar },
        Write { address: u64::MAX, ..lstar },
    ];
    let mut found = Vec::new();
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.machine);
    let writes: Vec<Write> = [good, lstar, star].into_iter().chain(others).collect();
    world.check.judge_writes(&kernel, &writes, &mut |finding: Finding| {
        found.push((finding.what, finding.symbol, finding.found));
    });
    let evil = alloc::format!("{EVIL:#x}");
    let all =
        ["LSTAR changed", "STAR changed"].map(|what| (what.into(), "CPU 3".into(), evil.clone()));
    assert_eq!(found, all);
}

#[test]
fn a_bit_that_a_watched_write_clears_is_a_finding() {
    let mut world = World::new();
    assert_eq!(world.look(4), Vec::<String>::new());
    let LinuxRegisters { cr0, cr4, efer, .. } = world.machine.registers;
    let write = |kind, address, before: u64, after: u64| {
        let words = |word| [word, 0, 0, 0];
        Write {
            kind,
            cpu: 3,
            address,
            before: words(before),
            after: words(after),
            ..Write::default()
        }
    };
    let (wp, smep_and_smap) = (1 << 16, 3 << 20);
    assert_eq!((cr0 & wp, cr4 & smep_and_smap), (wp, smep_and_smap));
    let mut judge = |write: Write| {
        let mut found = Vec::new();
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.machine);
        world.check.judge_writes(&kernel, &[write], &mut |finding: Finding| {
            assert_eq!(finding.symbol, "CPU 3");
            found.push(finding.what);
        });
        found
    };
    assert_eq!(judge(write(WRITE_CONTROL, 0, cr0, cr0 & !wp)), ["CR0.WP cleared"]);
    assert_eq!(
        judge(write(WRITE_CONTROL, 4, cr4, cr4 & !smep_and_smap)),
        ["CR4.SMEP cleared", "CR4.SMAP cleared"]
    );
    assert_eq!(judge(write(WRITE_REGISTER, 0xc000_0080, efer, efer & !1)), ["EFER changed"]);
    // Other bits; bits that come; a CPU that begins; other registers.
    assert_eq!(judge(write(WRITE_CONTROL, 4, cr4, cr4 ^ 1 << 7)), [""; 0]);
    assert_eq!(judge(write(WRITE_CONTROL, 0, cr0 & !wp, cr0)), [""; 0]);
    assert_eq!(judge(write(WRITE_CONTROL, 4, 0, 1 << 5)), [""; 0]);
    assert_eq!(judge(write(WRITE_REGISTER, 0xc000_0080, 0, 1 << 8)), [""; 0]);
    assert_eq!(judge(write(WRITE_CONTROL, 3, cr0, 0)), [""; 0]);
}

#[test]
fn another_cpu_is_judged_when_it_shows_its_registers() {
    let mut world = World::new();
    let good = LinuxRegisters { cpu: 2, ..world.machine.registers };
    let bad = LinuxRegisters { lstar: EVIL, ..good };
    for (shown, expected) in [(good, 0), (bad, 1), (bad, 0)] {
        world.machine.other = Some(shown);
        let found = world.look(1);
        assert_eq!(found.len(), expected, "{found:?}");
        assert!(found.iter().all(|line| line.starts_with("LSTAR changed, CPU 2: ")));
    }
    // It stands until the CPU shows something else.
    world.machine.other = None;
    assert_eq!(world.look(5), [""; 0]);
    assert!(world.stands("LSTAR changed"));
    world.machine.registers.lstar = EVIL;
    assert_eq!(world.look(1).len(), 1, "the other CPU is another object");
    world.machine.registers.lstar = ENTRY;
    world.look(1);
    assert!(world.stands("LSTAR changed"));
    world.machine.other = Some(good);
    world.look(1);
    assert!(!world.stands("LSTAR changed"));
}
