//! Single writes, as the hypervisor shows them.

use super::*;
use crate::fake::IMAGE_BYTES;
use crate::text::writes::linux_space;
use kyozon_abi::layer::{Write, WRITE_REGISTER};

impl World {
    /// The check judges a write of `bytes` at `address` in the address space with `cr3`. Memory is as it was before.
    fn judge(&mut self, address: u64, bytes: &[u8], cr3: u64) {
        let start = (address & !7) - 8;
        let before = core::array::from_fn(|n| self.get(start + 8 * n as u64));
        let old: Vec<u8> = (address..).take(bytes.len()).map(|at| self.byte(at)).collect();
        self.put(address, bytes);
        let after = core::array::from_fn(|n| self.get(start + 8 * n as u64));
        self.put(address, &old);
        let write = Write {
            address: fake::physical(start),
            before,
            after,
            cr3,
            rip: OTHER + 1,
            ..Write::default()
        };
        self.show(write);
    }

    fn show(&mut self, write: Write) {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        self.check.judge_writes(&kernel, &[write], &mut |finding| panic!("{finding:?}"));
    }

    /// The findings after a change by Linux itself that is undone at once.
    fn patched(&mut self, address: u64, bytes: &[u8]) -> Vec<Finding> {
        self.judge(address, bytes, SPACE | 1 << 63 | 7);
        self.passes(2)
    }
}

#[test]
fn changes_that_are_undone_are_reported() {
    let mut world = World::new();
    world.judge(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER + 2), 0x5000);
    let found = world.passes(3);
    assert_eq!(found.len(), 1, "{found:?}");
    let finding = &found[0];
    assert_eq!(finding.what, "kernel text changed for a moment");
    assert_eq!((finding.address, finding.symbol.as_str()), (VICTIM + 9, "victim+0x9"));
    assert_eq!(finding.owner, "other+0x2");
    assert_eq!(finding.found, "e9 f4 00 00 00, written by other+0x1");
    assert!(finding.repairs.is_empty());
    // The same bytes in Linux's own address space are no patch either, since nothing is patched there.
    assert_eq!(world.patched(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER + 2)).len(), 1);
}

/// A probe can have come and gone with its page of slots.
#[test]
fn writes_of_a_time_without_ticks_are_left_to_the_passes() {
    let jump = near(VICTIM + 9, JMP, OTHER + 2);
    let mut world = World::new();
    Check::<FakeMemory>::misses_ticks(&mut world.check);
    world.judge(VICTIM + 9, &jump, SPACE);
    assert_eq!(world.passes(2), vec![]);
    Check::<FakeMemory>::misses_ticks(&mut world.check);
    world.judge(VICTIM + 9, &jump, 0x5000);
    assert_eq!(world.passes(2).len(), 1, "Linux writes in no other space");
    world.judge(VICTIM + 9, &jump, SPACE);
    assert_eq!(world.passes(2).len(), 1, "ticks come again");
    Check::<FakeMemory>::misses_ticks(&mut world.check);
    world.judge(VICTIM + 9, &jump, SPACE);
    world.put(VICTIM + 9, &jump);
    assert_eq!(world.passes(3)[0].what, "kernel text changed");
}

#[test]
fn read_only_data_is_no_code() {
    let mut world = World::new();
    // The first one's bytes are a jump, too.
    for (pointer, owner) in [
        (TEXT + u64::from(JMP), "other+0x1"),
        (OTHER, "other+0x1"),
        (MODULE_SPACE, "0xffffffff81200000 in no listed module"),
    ] {
        world.judge(POINTER, &pointer.to_le_bytes(), SPACE);
        let found = world.passes(2);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].what, "read-only data changed for a moment");
        assert_eq!(found[0].owner, owner);
    }
}

#[test]
fn a_change_that_stands_is_reported_once() {
    let mut world = World::new();
    world.judge(VICTIM + 8, &[1, 2, 3], 0x5000);
    world.put(VICTIM + 8, &[1, 2, 3]);
    let mut found = Vec::new();
    for _ in 0..4 {
        // Not even a page of a pass fits into these slices.
        world.slice(0, &mut found);
    }
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].what, "kernel text changed");
    world.repair(&found[0]);
    assert_eq!(world.passes(3), vec![]);
    // Two steps: the first one's bytes never stand alone.
    world.judge(VICTIM + 8, &[1, 2], 0x5000);
    world.judge(VICTIM + 8, &[1, 2, 3], 0x5000);
    world.put(VICTIM + 8, &[1, 2, 3]);
    let found = world.passes(3);
    assert_eq!((found.len(), found[0].what.as_str()), (1, "kernel text changed"), "{found:?}");
}

#[test]
fn a_change_that_is_repeated_after_its_repair_is_news() {
    let mut world = World::new();
    for turn in 0..3 {
        world.judge(VICTIM + 8, &[1, 2, 3], 0x5000);
        world.put(VICTIM + 8, &[1, 2, 3]);
        let mut found = Vec::new();
        for _ in 0..4 {
            world.slice(0, &mut found);
        }
        assert_eq!(found.len(), 1, "turn {turn}: {found:?}");
        world.repair(&found[0]);
    }
}

#[test]
fn linux_patches_neighbours_together() {
    let mut world = World::new();
    let jumps = [JUMP_2, NEXT_2, LAST_2];
    jumps.iter().for_each(|at| world.put(*at, &[INT3, (TARGET - at - 2) as u8]));
    world.judge(JUMP_2 + 1, &[0x90], SPACE);
    jumps.iter().for_each(|at| world.put(*at, &[0x66, 0x90]));
    assert_eq!(world.passes(2), vec![]);
}

#[test]
fn a_change_behind_one_in_the_page_before_is_found() {
    let mut world = World::new();
    let edge = TEXT + 0x1000;
    let last = world.byte(edge - 1);
    // A lone breakpoint of Linux's is not shown.
    world.put(edge - 1, &[INT3]);
    world.judge(edge, &[0x31, 0xc0, 0xc3], SPACE);
    world.put(edge - 1, &[last]);
    let found = world.passes(3);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].what, "kernel text changed for a moment");
}

#[test]
fn a_neighbour_that_was_judged_before_is_not_judged_again() {
    let mut world = World::new();
    let neighbour = VICTIM + 8;
    let original: Vec<u8> = (neighbour..).take(5).map(|at| world.byte(at)).collect();
    // A probe's jump that nothing explains any more, and a write before it.
    world.put(neighbour, &near(neighbour, JMP, OTHER));
    let first = world.byte(VICTIM + 5);
    world.judge(VICTIM + 5, &[INT3], SPACE);
    world.put(VICTIM + 5, &[INT3]);
    world.judge(VICTIM + 5, &[first], SPACE);
    world.put(VICTIM + 5, &[first]);
    // This one is Linux's neither in kind nor by its place.
    world.judge(VICTIM + 6, &[0xc3, 0xc3], SPACE);
    world.put(neighbour, &original);
    let found = world.passes(2);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].address, VICTIM + 6);
}

#[test]
fn a_page_of_slots_that_linux_has_freed_is_remembered_for_a_while() {
    let jump = near(VICTIM + 9, JMP, SLOT + 0x80);
    let mut world = World::new();
    assert_eq!(world.patched(VICTIM + 9, &jump).len(), 1, "no such page");
    let mut world = World::new();
    probes::slots(&world);
    world.passes(1);
    world.set(SLOTS, SLOTS);
    assert_eq!(world.patched(VICTIM + 9, &jump), []);
    world.passes(200);
    assert_eq!(world.patched(VICTIM + 9, &jump).len(), 1, "long ago");
    // One that Linux had when another write was judged, and at no step.
    let mut world = World::new();
    probes::slots(&world);
    world.judge(OTHER, &[INT3], SPACE);
    world.set(SLOTS, SLOTS);
    assert_eq!(world.patched(VICTIM + 9, &jump), []);
}

/// The instruction by which Linux copies the bytes of a jump was interrupted.
#[test]
fn a_jump_of_a_probe_can_be_written_in_parts() {
    for parts in 1..4 {
        let mut world = World::new();
        probes::slots(&world);
        let at = VICTIM + 9;
        let jump = near(at, JMP, SLOT + 0x80);
        let old: Vec<u8> = (at..).take(5).map(|at| world.byte(at)).collect();
        world.put(at, &[INT3]);
        world.judge(at + 1, &jump[1..1 + parts], SPACE);
        world.put(at, &old);
        assert_eq!(world.passes(2), [], "{parts} bytes");
        // Another one than to a slot.
        let other = near(at, JMP, SLOT + 0x2000);
        world.put(at, &[INT3]);
        world.judge(at + 1, &other[1..1 + parts], SPACE);
        world.put(at, &old);
        // The lowest byte alone tells no page.
        assert_eq!(world.passes(2).len(), usize::from(parts > 1), "{parts} bytes");
        // Nor is a part of a jump that nobody has stopped the callers of a probe's.
        let mut world = World::new();
        probes::slots(&world);
        world.judge(at + 1, &jump[1..1 + parts], SPACE);
        assert_eq!(world.passes(2).len(), 1, "{parts} bytes");
    }
}

#[test]
fn linux_patches_its_sites() {
    let mut world = World::new();
    let kernel = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&kernel, &world.memory);
    assert_eq!(linux_space(&kernel, &world.check.layout), Some(SPACE));
    let module = near(STATIC, CALL, MODULE_SPACE + 4);
    for (site, bytes) in [
        (JUMP_5, near(JUMP_5, JMP, TARGET)),
        (JUMP_2, vec![0xeb, (TARGET - JUMP_2 - 2) as u8]),
        // A breakpoint, or the rest of an instruction behind one.
        (STATIC, vec![INT3]),
        (STATIC, vec![INT3, 1, 2, 3, 4]),
        // For other records than those of now.
        (STATIC, near(STATIC, CALL, OTHER)),
        (STATIC, nop5()),
        (STATIC_TAIL, vec![0xc3, INT3, INT3, INT3, INT3]),
        (ENTRY, near(ENTRY, CALL, CALLER)),
        (ENTRY_EDGE, near(ENTRY_EDGE, CALL, REGS_CALLER)),
        (FTRACE_CALL, near(FTRACE_CALL, CALL, OTHER)),
        // A probe.
        (VICTIM + 5, vec![INT3]),
    ] {
        assert_eq!(world.patched(site, &bytes), vec![], "{bytes:02x?} at {site:#x}");
    }
    for (site, bytes) in [
        (JUMP_5, near(JUMP_5, JMP, OTHER)),
        (STATIC, module.clone()),
        (STATIC, vec![0x90; 5]),
        (ENTRY, near(ENTRY, CALL, OTHER)),
        (ENTRY, near(ENTRY, JMP, CALLER)),
        (ENTRY_EDGE, near(ENTRY_EDGE, CALL, MODULE_SPACE)),
        // A jump that is not a probe's, and a breakpoint together with something else.
        (VICTIM + 5, near(VICTIM + 5, JMP, OTHER)),
        (VICTIM + 5, vec![INT3, 1, 2, 3, 4, 5, 6]),
    ] {
        assert_eq!(world.patched(site, &bytes).len(), 1, "{bytes:02x?} at {site:#x}");
    }
    world.list_module(MODULE_SPACE, 0x1000, 0);
    assert_eq!(world.patched(STATIC, &module), vec![]);
}

#[test]
fn nonsense_is_left_alone() {
    let mut world = World::new();
    let changed = Write { after: [1; 4], before: [2; 4], ..Write::default() };
    for address in [0, 1, u64::MAX, fake::TEXT_PHYSICAL - 8, fake::TEXT_PHYSICAL + IMAGE_BYTES] {
        world.show(Write { address, ..changed });
    }
    world.show(Write { kind: WRITE_REGISTER, address: fake::physical(VICTIM), ..changed });
    // Bytes of before the first pass, and none at all.
    let old = [0, 8, 16, 24].map(|at| world.get(VICTIM + at));
    world.show(Write { address: fake::physical(VICTIM), after: old, ..changed });
    world.show(Write { address: fake::physical(VICTIM), before: old, after: old, ..changed });
    assert_eq!(world.passes(2), vec![]);
    // At the edges of text and of read-only data.
    for start in [TEXT, TEXT + TEXT_BYTES - 32, RODATA, RODATA + RODATA_BYTES - 32] {
        world.show(Write { address: fake::physical(start), ..changed });
        assert_eq!(world.passes(2).len(), 1, "{start:#x}");
    }
    // More than there is room for.
    for at in (TEXT + 0x3000..TEXT + 0x3000 + 80 * 32).step_by(32) {
        world.show(Write { address: fake::physical(at), ..changed });
    }
    let found = world.passes(3).len();
    assert_eq!((found, Check::<FakeMemory>::coverage(&world.check).dropped), (64, 16));
}

/// Linux's records can explain a write at one moment and not at the next.
#[test]
fn the_next_pass_looks_at_what_was_written() {
    let mut world = World::new();
    Check::<FakeMemory>::sees_writes(&mut world.check, true);
    world.passes(2);
    let mut count = |is_written: bool| {
        let mut pages = 0;
        for _ in 0..8 {
            if is_written {
                world.judge(JUMP_2, &[INT3], SPACE);
            }
            assert_eq!(world.pass(), vec![]);
            pages += world.pages;
        }
        pages
    };
    let quiet = count(false);
    assert_eq!(count(true), quiet + 7);
}
