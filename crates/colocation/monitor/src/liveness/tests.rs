use super::*;
use crate::fake::{self, physical, FakeMemory, DIRECT, IMAGE_BYTES, TEXT, TEXT_PHYSICAL};

const OFFSETS: u64 = TEXT + 0x1000;
const CPUS: u64 = TEXT + 0x2000;
const WITHOUT_TIMER: u64 = TEXT + 0x2008;
const PANIC: u64 = TEXT + 0x2010;
/// Offsets of the symbols in an area, and where the areas lie.
const QUEUE: u64 = 0x1_0000;
const STATISTICS: u64 = 0x1_0100;
const AREA: [u64; 2] = [DIRECT + 0x1000, DIRECT + 0x2000];
const IDLE: u64 = DIRECT + 0x3000;
const BUSY: u64 = DIRECT + 0x4000;

struct Clock(u64, u32);

impl Budget for Clock {
    fn spent(&mut self) -> bool {
        self.1 = self.1.saturating_sub(1);
        self.1 == 0
    }
    fn clock_ms(&mut self) -> u64 {
        self.0
    }
}

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    check: LivenessCheck,
    now: u64,
    /// Calls of a budget until it is spent.
    budget: u32,
}

impl World {
    fn new() -> Self {
        let symbols = [
            // Offsets are absolute symbols below the image.
            (QUEUE, b'A', "runqueues"),
            (STATISTICS, b'A', "kernel_cpustat"),
            (TEXT, b'T', "_text"),
            (OFFSETS, b'D', "__per_cpu_offset"),
            (CPUS, b'D', "nr_cpu_ids"),
            (WITHOUT_TIMER, b'D', "tick_nohz_full_running"),
            (PANIC, b'D', "panic_cpu"),
        ];
        let layouts = [
            ("kernel_cpustat.cpustat", 0, 80),
            ("rq.curr", 8, 8),
            ("rq.idle", 16, 8),
            ("task_struct.comm", 0, 16),
        ];
        let profile = fake::profile(&symbols, &layouts);
        let check = LivenessCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let memory = FakeMemory::new(TEXT_PHYSICAL + IMAGE_BYTES);
        memory.put(physical(BUSY), b"forever\0");
        memory.set(physical(CPUS), 2);
        memory.set(physical(PANIC), u64::from(NO_CPU));
        for (cpu, area) in AREA.into_iter().enumerate() {
            memory.set(physical(OFFSETS + 8 * cpu as u64), area.wrapping_sub(QUEUE));
            memory.set(physical(area + 16), IDLE);
        }
        let world = Self { memory, profile, check, now: 1, budget: 1000 };
        (0..2).for_each(|cpu| world.run(cpu, IDLE));
        world
    }

    /// Lets `task` run on `cpu`.
    fn run(&self, cpu: usize, task: u64) {
        self.memory.set(physical(AREA[cpu] + 8), task);
    }

    /// Counts a timer interrupt of `cpu`.
    fn interrupt(&self, cpu: usize) {
        let at = physical(AREA[cpu] + STATISTICS - QUEUE + 72);
        self.memory.set(at, self.memory.get(at) + 4_000_000);
    }

    /// Steps every 10 ms for `ms`, with an interrupt of each of `cpus`; the words of the findings.
    fn pass(&mut self, ms: u64, cpus: &[usize]) -> Vec<alloc::string::String> {
        let profile = Profile::decode(&self.profile).unwrap();
        let mut lines = Vec::new();
        for _ in 0..ms / 10 {
            self.now += 10;
            cpus.iter().for_each(|cpu| self.interrupt(*cpu));
            let kernel = Kernel::new(&profile, &self.memory);
            let mut found = |f: Finding| lines.push(format!("{}: {}", f.symbol, f.found));
            self.check.step(&kernel, &mut Clock(self.now, self.budget), &mut found, &mut 0);
        }
        lines
    }

    fn stands(&self, cpu: usize) -> bool {
        Check::<FakeMemory>::stands(&self.check, STALLED, AREA[cpu].wrapping_sub(QUEUE))
    }
}

#[test]
fn a_busy_cpu_without_interrupts_is_found_once() {
    for budget in [1000, 1] {
        let mut w = World { budget, ..World::new() };
        w.run(1, BUSY);
        assert_eq!(w.pass(9_900, &[0]), [""; 0]);
        let lines = w.pass(1_000, &[0]);
        assert_eq!(lines, ["CPU 1: none for 10 s, in the task forever"], "{budget}");
        assert_eq!(w.pass(30_000, &[0]), [""; 0], "reported once");
        assert!(w.stands(1) && !w.stands(0));
        w.pass(300, &[0, 1]);
        assert!(!w.stands(1), "it goes on");
    }
}

#[test]
fn what_goes_on_or_is_idle_is_not_stalled() {
    let mut w = World::new();
    w.run(0, BUSY);
    assert_eq!(w.pass(30_000, &[0]), [""; 0], "one works, the other is idle");
    w.run(1, BUSY);
    w.pass(9_000, &[0]);
    w.run(1, IDLE);
    w.pass(100, &[0]);
    w.run(1, BUSY);
    assert_eq!(w.pass(9_000, &[0]), [""; 0], "it was idle in between");
}

#[test]
fn a_pause_of_the_machine_is_one_look() {
    let mut w = World::new();
    w.run(0, BUSY);
    w.pass(500, &[0]);
    w.now += 60_000;
    assert_eq!(w.pass(500, &[]), [""; 0]);
    assert_eq!(w.pass(500, &[0]), [""; 0]);
}

#[test]
fn cpus_without_a_timer_are_not_judged() {
    let mut w = World::new();
    w.run(0, BUSY);
    w.memory.set(physical(WITHOUT_TIMER), 1);
    assert_eq!(w.pass(30_000, &[]), [""; 0]);
    assert_eq!(Check::<FakeMemory>::coverage(&w.check).unjudged, 1);
}

#[test]
fn a_panic_that_stays_is_found_once() {
    let mut w = World::new();
    assert_eq!(w.pass(3_000, &[0, 1]), [""; 0]);
    // A crash kernel that does not start: Linux goes on.
    w.memory.set(physical(PANIC), 1);
    assert_eq!(w.pass(800, &[0, 1]), [""; 0]);
    w.memory.set(physical(PANIC), u64::from(NO_CPU));
    w.pass(200, &[0, 1]);
    w.memory.set(physical(PANIC), 0);
    let stands = |w: &World| Check::<FakeMemory>::stands(&w.check, PANICKED, 0);
    assert!(!stands(&w));
    assert_eq!(w.pass(2_000, &[0, 1]), ["CPU 0: for 1 s"]);
    assert!(stands(&w));
}
