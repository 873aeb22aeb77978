use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};
use alloc::string::String;
use std::vec;

const TASKS: u64 = DIRECT + 0x1000;
const TASK_BYTES: u64 = 0x100;
const RECORDS: u64 = DIRECT + 0x2000;
const RECORD_BYTES: u64 = 0x40;
const RINGS: u64 = DIRECT + 0x3000;
const RING_BYTES: u64 = 0x100;
const NODES: u64 = DIRECT + 0x4000;
const ENTRIES: u64 = DIRECT + 0x8000;
const DATA: u64 = DIRECT + 0x9000;
/// Open files; the operations of a ring's.
const FILES: u64 = DIRECT + 0xa000;
const OPERATIONS: u64 = TEXT + 0x1000;

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
}

impl World {
    /// Some tasks without rings.
    fn new() -> Self {
        let layouts = [
            ("fdtable.fd", 8, 8),
            ("fdtable.max_fds", 0, 4),
            ("file.f_op", 16, 8),
            ("file.private_data", 24, 8),
            ("files_struct.fdt", 8, 8),
            ("io_ring_ctx.cq_entries", 4, 4),
            ("io_ring_ctx.flags", 8, 4),
            ("io_ring_ctx.nr_user_bufs", 12, 4),
            ("io_ring_ctx.nr_user_files", 16, 4),
            ("io_ring_ctx.sq_data", 24, 8),
            ("io_ring_ctx.sq_entries", 0, 4),
            ("io_sq_data.thread", 8, 8),
            ("io_tctx_node.ctx", 16, 8),
            ("io_uring_task.xa", 8, 16),
            ("task_struct.files", 24, 8),
            ("task_struct.io_uring", 8, 8),
            ("task_struct.pid", 16, 4),
            ("xa_node.count", 2, 1),
            ("xa_node.marks", 552, 24),
            ("xa_node.shift", 0, 1),
            ("xa_node.slots", 40, 512),
            ("xarray.xa_head", 8, 8),
        ];
        let symbols = [(TEXT, b'T', "_text"), (OPERATIONS, b'd', "io_uring_fops")];
        let profile = fake::profile(&symbols, &layouts);
        Self { memory: FakeMemory::new(0x1_0000), profile }
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    /// Task `number` has used `rings`. Their indices are small here: each has a place of the record's only node.
    fn uses(&self, number: u64, rings: &[u64]) {
        let record = RECORDS + RECORD_BYTES * number;
        let node = NODES + 0x400 * number;
        self.set(TASKS + TASK_BYTES * number + 8, record);
        self.set(record + 16, node + 2);
        for (place, ring) in rings.iter().enumerate() {
            let entry = ENTRIES + 0x100 * number + 0x20 * place as u64;
            self.set(entry + 16, RINGS + RING_BYTES * ring);
            self.set(node + 40 + 8 * (place as u64 + 3), entry);
        }
    }

    /// Tasks `numbers` have, as open files, something else and `ring`, in a table of `places` places.
    fn opens(&self, numbers: &[u64], ring: u64, places: u64) {
        let [table, open, file] = [0x40, 0x80, 0x100].map(|at| FILES + at);
        for number in numbers {
            self.set(TASKS + TASK_BYTES * number + 24, FILES);
        }
        self.set(FILES + 8, table);
        self.set(table, places);
        self.set(table + 8, open);
        for (place, operations) in [(1, OPERATIONS + 8), (3, OPERATIONS)] {
            let file = file + 0x40 * place;
            self.set(open + 8 * place, file);
            self.set(file + 16, operations);
            self.set(file + 24, RINGS + RING_BYTES * (ring + 3 - place));
        }
    }

    /// A ring for `entries` requests.
    fn ring(&self, number: u64, entries: u64, flags: u32, registered: [u32; 2]) {
        let ring = RINGS + RING_BYTES * number;
        self.set(ring, entries | (2 * entries) << 32);
        self.set(ring + 8, u64::from(flags) | u64::from(registered[1]) << 32);
        self.set(ring + 16, registered[0].into());
    }

    fn list(&self, processes: &[u32]) -> Rings {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        let task = |(number, process): (usize, &u32)| Task {
            address: TASKS + TASK_BYTES * number as u64,
            pid: number as u32 + 1,
            process: *process,
            start: 0,
            name: String::from("task"),
            is_leader: false,
            is_kernel_thread: false,
            missing: vec![],
            is_in_flux: false,
        };
        let tasks: Vec<Task> = processes.iter().enumerate().map(task).collect();
        of_tasks(&kernel, &Layout::new(&profile).unwrap(), &tasks, true)
    }
}

/// The process, the thread, and the ring's number.
fn short(rings: &Rings) -> Vec<(u32, u32, u64)> {
    let number = |ring: &Ring| (ring.address - RINGS) / RING_BYTES;
    rings.rings.iter().map(|it| (it.user.process, it.user.pid, number(it))).collect()
}

#[test]
fn a_process_has_each_of_its_rings_once() {
    let world = World::new();
    (0..3).for_each(|number| world.ring(number, 8, 0, [0, 0]));
    world.uses(0, &[2]);
    world.uses(1, &[0, 2]);
    world.uses(3, &[0]);
    let rings = world.list(&[20, 20, 10, 10]);
    assert!(rings.is_complete);
    assert_eq!(short(&rings), [(10, 4, 0), (20, 2, 0), (20, 1, 2)]);
}

#[test]
fn a_ring_is_an_open_file() {
    let world = World::new();
    (0..4).for_each(|number| world.ring(number, 8, 0, [0, 0]));
    world.uses(2, &[1]);
    world.opens(&[0, 1, 2], 1, 64);
    let rings = world.list(&[10, 10, 20, 30]);
    assert_eq!((short(&rings), rings.is_complete), (vec![(10, 1, 1), (20, 3, 1)], true));
    world.opens(&[0], 1, MAX_FILES + 1);
    assert!(!world.list(&[10]).is_complete);
    world.set(FILES + 8, 0x1000);
    assert!(!world.list(&[10]).is_complete);
}

#[test]
fn a_ring_says_how_it_is_served() {
    let world = World::new();
    world.ring(0, 64, 0, [3, 4]);
    world.ring(1, 8, POLLED, [0, 0]);
    world.ring(2, 8, POLLED, [0, 0]);
    world.set(RINGS + RING_BYTES + 24, DATA);
    world.set(DATA + 8, TASKS + TASK_BYTES);
    world.set(TASKS + TASK_BYTES + 16, 77);
    world.uses(0, &[0, 1, 2]);
    let rings = world.list(&[10]).rings;
    let shown: Vec<_> =
        rings.iter().map(|ring| (ring.entries, ring.polled_by, ring.registered)).collect();
    let none = [Some(0), Some(0)];
    assert_eq!(
        shown,
        [
            ([64, 128], None, [Some(3), Some(4)]),
            ([8, 16], Some(77), none),
            ([8, 16], Some(0), none)
        ]
    );
}

#[test]
fn damaged_records_end_the_walk_of_one_task() {
    let world = World::new();
    world.ring(0, 8, 0, [0, 0]);
    world.uses(0, &[0]);
    world.uses(1, &[0]);
    world.set(RECORDS + 16, 0x1000_0002);
    let rings = world.list(&[10, 20]);
    assert!(!rings.is_complete);
    assert_eq!(short(&rings), [(20, 2, 0)]);
    // A ring that is no memory.
    world.uses(0, &[0]);
    world.set(ENTRIES + 16, 0x1000);
    let rings = world.list(&[10, 20]);
    assert_eq!((rings.is_complete, short(&rings)), (true, vec![(20, 2, 0)]));
}
