//! A small Linux in fake memory: tasks in all structures where Linux keeps them.

mod lifecycle;
mod offsets;
mod soundness;

use crate::fake::{self, physical, FakeMemory, DIRECT, TEXT};
use std::cell::{Cell, RefCell};
use std::vec::Vec;

pub use offsets::*;

/// The state of a node after it was unlinked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unlinked {
    /// `list_del`: poisoned pointers.
    Poison,
    /// `list_del_init`: the node points to itself.
    Alone,
    /// Still pointing to its neighbours.
    Stale,
}

pub const UNLINKED_STATES: [Unlinked; 3] = [Unlinked::Poison, Unlinked::Alone, Unlinked::Stale];

pub struct Linux {
    pub memory: FakeMemory,
    pub profile: Vec<u8>,
    ring: bool,
    next: Cell<u64>,
    clock: Cell<u64>,
    free: RefCell<Vec<u64>>,
    sets: Vec<u64>,
    /// All live tasks.
    pub live: RefCell<Vec<u64>>,
    /// The writes (address, old value, new value) since it was set to `Some`.
    pub log: RefCell<Option<Vec<(u64, u64, u64)>>>,
}

impl Linux {
    /// A system with process 1 and kernel thread 2; `ring`: with `thread_group`, as before 6.7.
    pub fn new(ring: bool) -> Self {
        let symbols = [
            (RUN_QUEUE, b'A', "runqueues"),
            (RUN_QUEUE + 16, b'A', "gdt_page"),
            (RUN_QUEUE + 32, b'A', "cpu_tss_rw"),
            (CPU_COUNT, b'D', "nr_cpu_ids"),
            (POSSIBLE_CPUS, b'D', "__cpu_possible_mask"),
            (ONLINE_CPUS, b'D', "__cpu_online_mask"),
            (AREAS, b'D', "__per_cpu_offset"),
            (TEXT, b'T', "_text"),
            (INIT_TASK, b'D', "init_task"),
            (INIT_PID_NS, b'D', "init_pid_ns"),
            (TASKLIST_LOCK, b'D', "tasklist_lock"),
            (PIDMAP_LOCK, b'd', "pidmap_lock"),
            (CSS_SET_LOCK, b'B', "css_set_lock"),
            (CSS_SET_TABLE, b'b', "css_set_table"),
            (CSS_SET_TABLE + 32, b'b', "behind"),
            (INIT_CRED, b'D', "init_cred"),
            (INIT_USER_NS, b'D', "init_user_ns"),
            (KPROBE_TABLE, b'b', "kprobe_table"),
            (OPS_LIST, b'D', "ftrace_ops_list"),
            (EXIT_POINT, b'D', "__tracepoint_sched_process_exit"),
            (CRASH_KEXEC, b'T', "__crash_kexec"),
            (AGGREGATE, b't', "aggr_pre_handler"),
            (ALL_RETURNS, b't', "pre_handler_kretprobe"),
        ];
        let mut layouts = LAYOUTS.to_vec();
        if ring {
            layouts.push(("task_struct.thread_group", THREAD_GROUP, 16));
        }
        let mut linux = Self {
            memory: FakeMemory::new(0x30_0000),
            profile: fake::profile(&symbols, &layouts),
            ring,
            next: Cell::new(DIRECT + 0x20_0000),
            clock: Cell::new(1),
            free: RefCell::default(),
            sets: Vec::new(),
            live: RefCell::default(),
            log: RefCell::default(),
        };
        linux.empty(INIT_TASK + TASKS);
        linux.empty(INIT_TASK + CHILDREN);
        for at in [CPU_COUNT, POSSIBLE_CPUS, ONLINE_CPUS] {
            linux.put(at, 1);
        }
        linux.put(AREAS, AREA);
        linux.put(AREA + RUN_QUEUE + 8, INIT_TASK);
        linux.schedule(INIT_TASK, &[]);
        linux.empty(AREA + RUN_QUEUE + EXTENSIBLE);
        for level in 0..8 {
            linux.empty(AREA + RUN_QUEUE + REAL_TIME + 8 + 16 * level);
        }
        linux.put(AREA + RUN_QUEUE + REAL_TIME, 1 << 8);
        // The other half of each lock's word holds unrelated data.
        linux.put32(PIDMAP_LOCK + 4, 0x1234_5678);
        linux.put32(CSS_SET_LOCK - 4, 0x8765_4321);
        // An index of two levels: PIDs below 4096.
        let top = linux.alloc(576);
        linux.put(top, 6);
        linux.put(top + MARKS, u64::MAX);
        linux.put(INIT_PID_NS + 16 + 8, top + 2);
        for bucket in 0..2 {
            let set = linux.alloc(64);
            for list in [0, 16, DYING] {
                linux.empty(set + list);
            }
            linux.hash_add(CSS_SET_TABLE + 16 * bucket, set + HLIST);
            linux.sets.push(set);
        }
        linux.spawn("init", 1, None);
        linux.spawn("kthreadd", 2, None);
        linux
    }

    pub fn alloc(&self, bytes: u64) -> u64 {
        let at = self.next.get().next_multiple_of(64);
        self.next.set(at + bytes);
        at
    }

    /// The memory in use: physical start and length.
    pub fn used(&self) -> [(u64, u64); 2] {
        [(physical(TEXT), 0x4000), (0x20_0000, self.next.get() - DIRECT - 0x20_0000)]
    }

    pub fn get(&self, address: u64) -> u64 {
        self.memory.get(physical(address))
    }

    pub fn put(&self, address: u64, value: u64) {
        if let Some(log) = &mut *self.log.borrow_mut() {
            log.push((address, self.get(address), value));
        }
        self.memory.set(physical(address), value);
    }

    pub fn get32(&self, address: u64) -> u32 {
        (self.get(address & !7) >> (8 * (address & 4))) as u32
    }

    pub fn put32(&self, address: u64, value: u32) {
        let shift = 8 * (address & 4);
        let word = self.get(address & !7) & !(0xffff_ffff << shift);
        self.put(address & !7, word | u64::from(value) << shift);
    }

    fn empty(&self, head: u64) {
        self.put(head, head);
        self.put(head + 8, head);
    }

    pub fn list_add_tail(&self, node: u64, head: u64) {
        let last = self.get(head + 8);
        self.put(node, head);
        self.put(node + 8, last);
        self.put(last, node);
        self.put(head + 8, node);
    }

    pub fn list_del(&self, node: u64, unlinked: Unlinked) {
        let (next, prev) = (self.get(node), self.get(node + 8));
        self.put(next + 8, prev);
        self.put(prev, next);
        match unlinked {
            Unlinked::Poison => {
                self.put(node, 0xdead_0000_0000_0100);
                self.put(node + 8, 0xdead_0000_0000_0122);
            }
            Unlinked::Alone => self.empty(node),
            Unlinked::Stale => {}
        }
    }

    pub fn hash_add(&self, head: u64, node: u64) {
        let first = self.get(head);
        self.put(node, first);
        self.put(node + 8, head);
        if first != 0 {
            self.put(first + 8, node);
        }
        self.put(head, node);
    }

    pub fn hash_del(&self, node: u64, unlinked: Unlinked) {
        let (next, link) = (self.get(node), self.get(node + 8));
        self.put(link, next);
        if next != 0 {
            self.put(next + 8, link);
        }
        match unlinked {
            Unlinked::Poison => self.put(node + 8, 0xdead_0000_0000_0122),
            Unlinked::Alone => {
                self.put(node, 0);
                self.put(node + 8, 0);
            }
            Unlinked::Stale => {}
        }
    }

    /// The index node and the slot of a PID.
    pub fn slot(&self, number: u32) -> (u64, u64) {
        let top = self.get(INIT_PID_NS + 24) - 2;
        let link = top + SLOTS + u64::from(number >> 6) * 8;
        if self.get(link) == 0 {
            let node = self.alloc(576);
            self.put(node, u64::from(number >> 6) << 8);
            self.put(node + 8, top);
            self.put(node + MARKS, u64::MAX);
            self.put(link, node + 2);
            self.put(top, self.get(top) + (1 << 16));
        }
        let node = self.get(link) - 2;
        (node, node + SLOTS + u64::from(number & 63) * 8)
    }

    fn index_set(&self, number: u32, pid: u64) {
        let (node, slot) = self.slot(number);
        let bit = 1 << (number & 63);
        let count = self.get(node);
        self.put(node, if pid == 0 { count - (1 << 16) } else { count + (1 << 16) });
        self.put(slot, pid);
        let marks =
            if pid == 0 { self.get(node + MARKS) | bit } else { self.get(node + MARKS) & !bit };
        self.put(node + MARKS, marks);
        let top = self.get(node + 8);
        let bit = 1 << (number >> 6);
        self.put(
            top + MARKS,
            if marks == 0 { self.get(top + MARKS) & !bit } else { self.get(top + MARKS) | bit },
        );
    }

    /// `idr_remove`, also as a rootkit calls it: an empty slot stays as it is.
    pub fn index_remove(&self, task: u64) {
        let number = self.get32(task + PID);
        if self.get(self.slot(number).1) != 0 {
            self.index_set(number, 0);
        }
    }
}
