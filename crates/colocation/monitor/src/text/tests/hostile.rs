//! Forged records: nothing panics, and every slice ends.

use super::*;
use crate::fake::RandomNumbers;
use crate::memory::{KernelMemory, Page};
use core::cell::Cell;

/// Memory that counts its reads.
struct CountingMemory<'a>(&'a FakeMemory, Cell<u64>);

impl KernelMemory for CountingMemory<'_> {
    fn page(&self, physical: u64) -> Option<&Page> {
        self.1.set(self.1.get() + 1);
        self.0.page(physical)
    }
}

/// Maximum number of reads in a slice of 40 budget calls.
const MAX_READS: u64 = 1_000_000;

fn run(world: &mut World, slices: u64) -> u64 {
    let profile = Profile::decode(&world.profile).unwrap();
    let memory = CountingMemory(&world.memory, Cell::new(0));
    let kernel = Kernel::new(&profile, &memory);
    let mut max_reads = 0;
    for _ in 0..slices {
        memory.1.set(0);
        let mut retries = 0;
        let _ = world.check.step(&kernel, &mut CallBudget(40), &mut |_| {}, &mut retries);
        max_reads = max_reads.max(memory.1.get());
    }
    max_reads
}

#[test]
fn cyclic_lists_end() {
    let mut world = World::new();
    // Every list leads to an entry that leads to itself.
    for head in [MODULES, BPF, UNOPTIMIZING, FREEING, OPS_TRAMPOLINES, SLOTS, OPS] {
        world.set(head, USER);
    }
    for offset in [0, 8, 16] {
        world.set(USER + offset, USER);
    }
    world.set(HASH, 16);
    world.set(BUCKETS, USER);
    for bucket in 0..64 {
        world.set(TABLE + 8 * bucket, USER);
    }
    world.set(CALL_KEY, UNLISTED_CODE);
    world.put(STATIC, &near(STATIC, CALL, UNLISTED_CODE));
    world.put(ENTRY, &near(ENTRY, CALL, UNLISTED_CODE));
    for at in (VICTIM..VICTIM + 0x80).step_by(1) {
        world.put(at, &[INT3]);
    }
    let max_reads = run(&mut world, 40);
    assert!(max_reads < MAX_READS, "{max_reads}");
}

#[test]
fn tables_of_any_length_end() {
    let mut world = World::before_first_pass();
    world.set(FTRACE_PAGE, FTRACE_PAGE);
    world.set(FTRACE_PAGE + 16, u64::MAX);
    let max_reads = run(&mut world, 2_000);
    assert!(max_reads < MAX_READS, "{max_reads}");
}

#[test]
fn damaged_memory_is_survived() {
    let mut numbers = RandomNumbers(0x6b79_6f7a_6f6e);
    for round in 0..crate::fake::rounds(40) {
        let mut world = if round % 2 == 0 { World::new() } else { World::before_first_pass() };
        let places = [
            KEY,
            TABLE,
            JUMP_TABLE,
            CALL_TABLE,
            RECORDS,
            FTRACE_PAGE,
            USER,
            HASH,
            BUCKETS,
            PROBE,
            MODULE,
            KSYM,
            MODULES,
            OPS,
            UNOPTIMIZING,
            SLOTS,
            POKE,
            PAGES,
        ];
        let values =
            [0, 1, u64::MAX, TEXT, DATA, RODATA, USER, TABLE, DIRECT, ENTRY, TEXT + TEXT_BYTES - 1];
        for _ in 0..numbers.below(60) {
            let place = places[numbers.below(places.len() as u64) as usize] + 8 * numbers.below(40);
            let value =
                values[numbers.below(values.len() as u64) as usize].wrapping_add(numbers.below(64));
            world.set(place, if numbers.below(4) == 0 { numbers.next() } else { value });
        }
        for _ in 0..numbers.below(30) {
            let byte = [INT3, CALL, JMP, 0x0f, 0x48][numbers.below(5) as usize];
            world.put(TEXT + numbers.below(TEXT_BYTES), &[byte]);
        }
        let max_reads = run(&mut world, 60);
        assert!(max_reads < MAX_READS, "round {round}: {max_reads}");
    }
}

/// Linux's lists are read in steps, once per pass, not once per slice.
#[test]
fn many_users_of_ftrace_do_not_lengthen_a_slice() {
    const COUNT: u64 = 200;
    let mut world = World::new();
    world.set(OPS, USERS);
    for user in 0..COUNT {
        let at = USERS + 64 * user;
        world.set(at, VICTIM);
        world.set(at + 8, if user + 1 == COUNT { OPS_END } else { at + 64 });
        world.set(at + 16, MODULE_SPACE + 64 * user);
    }
    let last = MODULE_SPACE + 64 * (COUNT - 1);
    for entry in [ENTRY, ENTRY_EDGE] {
        world.put(entry, &near(entry, CALL, last));
    }
    world.put(FTRACE_CALL, &near(FTRACE_CALL, CALL, VICTIM));
    assert_eq!(world.passes(3), vec![]);
    let profile = Profile::decode(&world.profile).unwrap();
    let memory = CountingMemory(&world.memory, Cell::new(0));
    let kernel = Kernel::new(&profile, &memory);
    let (mut most, mut all) = (0, 0);
    loop {
        memory.1.set(0);
        let step = world.check.step(&kernel, &mut CallBudget(1), &mut |_| panic!(), &mut 0);
        most = most.max(memory.1.get());
        all += memory.1.get();
        if step != crate::check::Step::Spent {
            break;
        }
    }
    assert!(most <= 150, "{most} reads in a slice");
    assert!(all <= 8 * COUNT, "{all} reads in a pass");
}
