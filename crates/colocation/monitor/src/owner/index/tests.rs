use super::*;
use crate::fake::{self, CallBudget, FakeMemory, DIRECT, TEXT};
use crate::owner::describe;
use crate::profile::Profile;

const MODULES: u64 = TEXT + 0x8000;
const BPF: u64 = TEXT + 0x8010;
const TRAMPOLINES: u64 = TEXT + 0x8020;
const SLOTS: u64 = TEXT + 0x8030;
const PACKS: u64 = TEXT + 0x8040;
const NODES: u64 = TEXT + 0x8050;
const MODULE: u64 = DIRECT + 0x1000;
const PROGRAM: u64 = DIRECT + 0x2000;
const USER: u64 = DIRECT + 0x3000;
const PAGE: u64 = DIRECT + 0x4000;
const PACK: u64 = DIRECT + 0x5000;
const THUNKS: u64 = DIRECT + 0x6000;
const CODE: u64 = 0xffff_ffff_c000_0000;

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (TEXT + 0x100, b'T', "handler"),
            (MODULES, b'D', "modules"),
            (BPF, b'D', "bpf_kallsyms"),
            (TRAMPOLINES, b'D', "ftrace_ops_trampoline_list"),
            (SLOTS, b'D', "kprobe_insn_slots"),
            (PACKS, b'd', "pack_list"),
            (NODES, b'D', "nr_node_ids"),
        ];
        let layouts = [
            ("module.list", 0, 16),
            ("module.name", 16, 56),
            ("module.mem", 128, 112),
            ("module_memory", 0, 16),
            ("module_memory.base", 0, 8),
            ("module_memory.size", 8, 4),
            ("module.its_num_pages", 256, 4),
            ("module.its_page_array", 264, 8),
            ("bpf_prog_pack.list", 0, 16),
            ("bpf_prog_pack.ptr", 16, 8),
            ("bpf_ksym.start", 0, 8),
            ("bpf_ksym.end", 8, 8),
            ("bpf_ksym.lnode", 16, 16),
            ("bpf_ksym.name", 32, 512),
            ("ftrace_ops.func", 0, 8),
            ("ftrace_ops.trampoline", 16, 8),
            ("ftrace_ops.list", 24, 16),
            ("ftrace_ops.trampoline_size", 40, 8),
            ("kprobe_insn_cache.pages", 0, 16),
            ("kprobe_insn_page.list", 0, 16),
            ("kprobe_insn_page.insns", 16, 8),
        ];
        let profile = fake::profile(&symbols, &layouts);
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
        let world = Self { memory, profile };
        let nodes = [
            (MODULES, MODULE),
            (BPF, PROGRAM + 16),
            (TRAMPOLINES, USER + 24),
            (SLOTS, PAGE),
            (PACKS, PACK),
        ];
        for (head, node) in nodes {
            world.set(head, node);
            world.set(node, head);
        }
        for (start, text) in [(MODULE + 16, b"evil_mod"), (PROGRAM + 32, b"progname")] {
            world.set(start, u64::from_le_bytes(*text));
        }
        world.set(MODULE + 128, CODE);
        world.set(MODULE + 136, 0x3000);
        world.set(PROGRAM, CODE + 0x4000);
        world.set(PROGRAM + 8, CODE + 0x4100);
        world.set(USER, TEXT + 0x100);
        world.set(USER + 16, CODE + 0x6000);
        world.set(USER + 40, 0x80);
        world.set(PAGE + 16, CODE + 0x8000);
        world.set(PACK + 16, CODE + 0x4000 - (2 << 20));
        world.set(NODES, 2);
        world.set(MODULE + 256, 2);
        world.set(MODULE + 264, THUNKS);
        world.set(THUNKS, CODE + 0x50_0000);
        world.set(THUNKS + 8, CODE + 0x60_0000);
        world
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    fn read(&self, index: &mut OwnerIndex) {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        let slices = (0..100).take_while(|_| !index.refresh(&kernel, &mut CallBudget(1))).count();
        assert!((1..20).contains(&slices), "{slices}");
    }

    fn index(&self) -> OwnerIndex {
        let owners = Owners::new(&Profile::decode(&self.profile).unwrap()).unwrap();
        let mut index = OwnerIndex::new(owners);
        self.read(&mut index);
        index
    }

    fn name(&self, index: &OwnerIndex, address: u64) -> Option<String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let name = describe(&Kernel::new(&profile, &self.memory), Some(index), address);
        Some(name).filter(|name| !name.ends_with(" in no listed module"))
    }
}

#[test]
fn every_kind_of_code_has_an_owner() {
    let world = World::new();
    let index = world.index();
    for (address, name) in [
        (TEXT + 0x104, Some("handler+0x4")),
        (CODE - 1, Some("free memory of BPF programs")),
        (CODE + 0x4000 - (2 << 20) - 1, None),
        (CODE, Some("module evil_mod")),
        (CODE + 0x2fff, Some("module evil_mod")),
        (CODE + 0x3000, Some("free memory of BPF programs")),
        (CODE + 0x40ff, Some("bpf progname")),
        (CODE + 0x4100, Some("free memory of BPF programs")),
        (CODE + 0x6010, Some("ftrace's trampoline to handler")),
        (CODE + 0x8fff, Some("a kprobe's copied instructions")),
        (CODE + 0x9000, Some("free memory of BPF programs")),
        (CODE + 0x4000 + (2 << 20), None),
        (CODE + 0x50_0fff, Some("module evil_mod")),
        (CODE + 0x50_1000, None),
        (CODE + 0x60_0000, Some("module evil_mod")),
        (0, None),
        (u64::MAX, None),
    ] {
        assert_eq!(world.name(&index, address).as_deref(), name, "{address:#x}");
    }
}

#[test]
fn ranges_that_overlap_a_page_touch_it() {
    let world = World::new();
    world.set(PACKS, PACKS);
    let index = world.index();
    for (start, touched) in [
        (CODE - 4096, false),
        (CODE + 0x2000, true),
        (CODE + 0x3000, false),
        (CODE + 0x4000, true),
        (CODE + 0x5000, false),
        (CODE + 0x60_1000, false),
    ] {
        assert_eq!(index.touches(start, start + 4096), touched, "{start:#x}");
    }
    assert!(index.touches(CODE - (1 << 20), CODE + (1 << 20)));
}

#[test]
fn generation_changes_with_the_code() {
    let world = World::new();
    let mut index = world.index();
    assert_eq!(index.generation(), 1);
    world.read(&mut index);
    assert_eq!(index.generation(), 1);
    world.set(MODULES, MODULES);
    world.read(&mut index);
    assert_eq!(index.generation(), 2);
    assert_eq!(world.name(&index, CODE).as_deref(), Some("free memory of BPF programs"));
}

#[test]
fn hostile_lists_end() {
    let world = World::new();
    // A list that never returns to its head, a range without end, and one that wraps.
    world.set(MODULE, MODULE);
    world.set(PROGRAM + 8, 0);
    world.set(PACK + 16, u64::MAX - 4096);
    world.set(MODULE + 256, u64::from(u32::MAX));
    world.set(USER + 16, u64::MAX - 8);
    let owners = Owners::new(&Profile::decode(&world.profile).unwrap()).unwrap();
    let mut index = OwnerIndex::new(owners);
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.memory);
    assert!((0..2 * MAX_RANGES / BATCH).any(|_| index.advance(&kernel)));
    assert_eq!(world.name(&index, CODE).as_deref(), Some("module evil_mod"));
    assert_eq!((index.find(CODE + 0x4000), index.find(u64::MAX - 4)), (None, None));
}
