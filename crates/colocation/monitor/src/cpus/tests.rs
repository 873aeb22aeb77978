use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};

const AREAS: u64 = TEXT + 0x8000;
const COUNT: u64 = TEXT + 0x8100;
const POSSIBLE: u64 = TEXT + 0x8200;
const ONLINE: u64 = TEXT + 0x8300;
// Offsets in an area, and in a task.
const QUEUE: u64 = 0x100;
const TABLE: u64 = 0x200;
const SEGMENT: u64 = 0x300;
const PID: u64 = 8;
const START: u64 = 16;
const NAME: u64 = 24;

fn area(cpu: u64) -> u64 {
    DIRECT + 0x1000 * (cpu + 1)
}

fn task(number: u64) -> u64 {
    DIRECT + 0x1_0000 + 0x100 * number
}

fn set(memory: &FakeMemory, address: u64, value: u64) {
    memory.set(fake::physical(address), value);
}

fn put_task(memory: &FakeMemory, number: u64, pid: u64) {
    set(memory, task(number) + PID, pid);
    set(memory, task(number) + START, 100 + number);
    memory.put(fake::physical(task(number) + NAME), b"task\0");
}

/// Calls `test` with a machine that can have four CPUs and has three, of which Linux runs on two. The first one is
/// busy.
fn with(test: impl FnOnce(&FakeMemory, &dyn Fn() -> (Cpus, BTreeSet<u64>))) {
    let symbols = [
        (QUEUE, b'A', "runqueues"),
        (TABLE, b'A', "gdt_page"),
        (SEGMENT, b'A', "cpu_tss_rw"),
        (TEXT, b'T', "_text"),
        (AREAS, b'D', "__per_cpu_offset"),
        (COUNT, b'D', "nr_cpu_ids"),
        (POSSIBLE, b'D', "__cpu_possible_mask"),
        (ONLINE, b'D', "__cpu_online_mask"),
    ];
    let layouts = [
        ("rq.curr", 16, 8),
        ("rq.idle", 24, 8),
        ("task_struct.pid", PID, 4),
        ("task_struct.start_time", START, 8),
        ("task_struct.comm", NAME, 16),
    ];
    let bytes = fake::profile(&symbols, &layouts);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = FakeMemory::new(fake::TEXT_PHYSICAL + fake::IMAGE_BYTES);
    set(&memory, COUNT, 4);
    set(&memory, POSSIBLE, 0b1011);
    set(&memory, ONLINE, 0b0011);
    for cpu in 0..4 {
        set(&memory, AREAS + 8 * cpu, area(cpu));
        put_task(&memory, cpu, 0);
        set(&memory, area(cpu) + QUEUE + 16, task(cpu));
        set(&memory, area(cpu) + QUEUE + 24, task(cpu));
    }
    put_task(&memory, 9, 77);
    set(&memory, area(0) + QUEUE + 16, task(9));
    let layout = Layout::new(&profile).unwrap();
    let kernel = Kernel::new(&profile, &memory);
    test(&memory, &|| layout.walk(&kernel));
}

#[test]
fn possible_cpus_are_listed_with_their_tasks() {
    with(|_, walk| {
        let (all, busy) = walk();
        let cpu = |number, is_online, at: u64, pid| Cpu {
            number,
            is_online,
            task: Some(Running {
                address: task(at),
                pid,
                start: 100 + at,
                name: "task".into(),
                is_unlisted: false,
                is_in_flux: false,
            }),
            descriptors: area(number) + TABLE,
            task_state: area(number) + SEGMENT,
        };
        let cpus = [cpu(0, true, 9, 77), cpu(1, true, 1, 0), cpu(3, false, 3, 0)];
        assert_eq!((all.cpus.as_slice(), all.is_complete), (&cpus[..], true));
        assert_eq!(busy, BTreeSet::from([task(9)]));
    });
}

#[test]
fn task_that_calls_itself_idle_is_not() {
    with(|memory, walk| {
        put_task(memory, 9, 0);
        assert_eq!(walk().1, BTreeSet::from([task(9)]));
    });
}

#[test]
fn damaged_memory_ends_the_walk() {
    let wild = DIRECT + 0x800_0000;
    for at in [area(1) + QUEUE + 16, AREAS + 8] {
        for wild in [wild, wild + 4, 0, u64::MAX] {
            with(|memory, walk| {
                set(memory, at, wild);
                let (all, _) = walk();
                assert_eq!((all.cpus.len(), all.is_complete), (3, false), "{at:#x} {wild:#x}");
                assert_eq!(all.cpus.get(1).and_then(|cpu| cpu.task.as_ref()), None);
            });
        }
    }
    // Nobody needs a task of a CPU on which Linux does not run.
    with(|memory, walk| {
        set(memory, area(3) + QUEUE + 16, wild);
        assert!(walk().0.is_complete);
    });
    // More CPUs than there can be.
    with(|memory, walk| {
        set(memory, COUNT, u64::MAX);
        (0..128).for_each(|word| set(memory, POSSIBLE + 8 * word, u64::MAX));
        let (all, _) = walk();
        assert!(all.cpus.len() <= 8192 && all.cpus.len() > 4);
    });
}

#[test]
fn kernel_that_does_not_describe_its_cpus_has_no_list() {
    let bytes = fake::profile(&[(TEXT, b'T', "_text")], &[]);
    let memory = FakeMemory::new(fake::TEXT_PHYSICAL);
    let profile = Profile::decode(&bytes).unwrap();
    assert_eq!(list(&Kernel::new(&profile, &memory)), Ok(None));
}
