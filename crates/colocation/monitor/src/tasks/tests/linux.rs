//! A small Linux in fake memory: tasks in all the structures where Linux keeps them.

use crate::fake::{self, physical, FakeMemory, DIRECT, TEXT};
use crate::finding::{Finding, Repair};
use std::cell::{Cell, RefCell};
use std::vec::Vec;

pub const INIT_TASK: u64 = TEXT + 0x1000;
const INIT_PID_NS: u64 = TEXT + 0x2000;
pub const TASKLIST_LOCK: u64 = TEXT + 0x3000;
pub const PIDMAP_LOCK: u64 = TEXT + 0x3040;
/// In the upper half of its word, as in 6.1 and 6.12.
pub const CSS_SET_LOCK: u64 = TEXT + 0x3084;
pub const CSS_SET_TABLE: u64 = TEXT + 0x30a0;

// `task_struct`.
pub const STATE: u64 = 0;
pub const FLAGS: u64 = 8;
pub const EXIT_STATE: u64 = 12;
pub const PID: u64 = 16;
pub const RUN_TIME: u64 = 32;
pub const COMM: u64 = 40;
pub const SIGNAL: u64 = 56;
pub const LEADER: u64 = 64;
pub const THREAD_PID: u64 = 72;
pub const LINKS: u64 = 80;
pub const TASKS: u64 = 144;
pub const THREAD_NODE: u64 = 160;
pub const THREAD_GROUP: u64 = 176;
pub const CGROUPS: u64 = 192;
pub const CG_LIST: u64 = 200;
const TASK_BYTES: u64 = 256;
// `signal_struct`.
const SIGNAL_PIDS: u64 = 0;
pub const THREAD_HEAD: u64 = 32;
// `pid`.
pub const PID_TASKS: u64 = 16;
const NUMBERS: u64 = 48;
// `xa_node`.
const SLOTS: u64 = 40;
const MARKS: u64 = 552;
// `css_set`.
const DYING: u64 = 32;
const HLIST: u64 = 48;

const LAYOUTS: &[(&str, u64, u64)] = &[
    ("list_head.next", 0, 8),
    ("list_head.prev", 8, 8),
    ("hlist_head.first", 0, 8),
    ("hlist_node.next", 0, 8),
    ("hlist_node.pprev", 8, 8),
    ("hlist_node", 0, 16),
    ("qrwlock", 0, 8),
    ("qspinlock", 0, 4),
    ("task_struct.__state", STATE, 4),
    ("task_struct.flags", FLAGS, 4),
    ("task_struct.exit_state", EXIT_STATE, 4),
    ("task_struct.pid", PID, 4),
    ("task_struct.tgid", PID + 4, 4),
    ("task_struct.start_time", 24, 8),
    ("task_struct.se.sum_exec_runtime", RUN_TIME, 8),
    ("task_struct.comm", COMM, 16),
    ("task_struct.signal", SIGNAL, 8),
    ("task_struct.group_leader", LEADER, 8),
    ("task_struct.thread_pid", THREAD_PID, 8),
    ("task_struct.pid_links", LINKS, 64),
    ("task_struct.tasks", TASKS, 16),
    ("task_struct.thread_node", THREAD_NODE, 16),
    ("task_struct.cgroups", CGROUPS, 8),
    ("task_struct.cg_list", CG_LIST, 16),
    ("signal_struct.pids", SIGNAL_PIDS, 32),
    ("signal_struct.thread_head", THREAD_HEAD, 16),
    ("pid.count", 0, 4),
    ("pid.tasks", PID_TASKS, 32),
    ("pid.numbers", NUMBERS, 0),
    ("upid.nr", 0, 4),
    ("pid_namespace.idr", 16, 24),
    ("idr.idr_rt", 0, 16),
    ("xarray.xa_head", 8, 8),
    ("xa_node.shift", 0, 1),
    ("xa_node.count", 2, 1),
    ("xa_node.slots", SLOTS, 512),
    ("xa_node.marks", MARKS, 24),
    ("css_set.tasks", 0, 16),
    ("css_set.mg_tasks", 16, 16),
    ("css_set.dying_tasks", DYING, 16),
    ("css_set.hlist", HLIST, 16),
    ("#PIDTYPE_PID", 0, 0),
    ("#PIDTYPE_TGID", 1, 0),
];

/// How a node is taken out of its list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leave {
    /// `list_del`: poison stays behind.
    Poison,
    /// `list_del_init`: the node points to itself.
    Alone,
    /// The node still points to its neighbours.
    Stale,
}

pub const LEAVES: [Leave; 3] = [Leave::Poison, Leave::Alone, Leave::Stale];

pub struct Linux {
    pub memory: FakeMemory,
    pub profile: Vec<u8>,
    ring: bool,
    next: Cell<u64>,
    clock: Cell<u64>,
    free: RefCell<Vec<u64>>,
    sets: Vec<u64>,
    /// Every live task that was made here.
    pub live: RefCell<Vec<u64>>,
    /// Writes (address, old value, new value) since it was set.
    pub log: RefCell<Option<Vec<(u64, u64, u64)>>>,
}

impl Linux {
    /// With process 1 and kernel thread 2; `ring`: as before 6.7, with `thread_group`.
    pub fn new(ring: bool) -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (INIT_TASK, b'D', "init_task"),
            (INIT_PID_NS, b'D', "init_pid_ns"),
            (TASKLIST_LOCK, b'D', "tasklist_lock"),
            (PIDMAP_LOCK, b'd', "pidmap_lock"),
            (CSS_SET_LOCK, b'B', "css_set_lock"),
            (CSS_SET_TABLE, b'b', "css_set_table"),
            (CSS_SET_TABLE + 32, b'b', "behind"),
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
        // What lies behind pidmap_lock in its word is somebody else's.
        linux.put32(PIDMAP_LOCK + 4, 0x1234_5678);
        linux.put32(CSS_SET_LOCK - 4, 0x8765_4321);
        // An index of two levels: numbers below 4096.
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

    /// The bytes that are in use, as physical addresses.
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

    fn list_add_tail(&self, node: u64, head: u64) {
        let last = self.get(head + 8);
        self.put(node, head);
        self.put(node + 8, last);
        self.put(last, node);
        self.put(head + 8, node);
    }

    pub fn list_del(&self, node: u64, leave: Leave) {
        let (next, prev) = (self.get(node), self.get(node + 8));
        self.put(next + 8, prev);
        self.put(prev, next);
        match leave {
            Leave::Poison => {
                self.put(node, 0xdead_0000_0000_0100);
                self.put(node + 8, 0xdead_0000_0000_0122);
            }
            Leave::Alone => self.empty(node),
            Leave::Stale => {}
        }
    }

    fn hash_add(&self, head: u64, node: u64) {
        let first = self.get(head);
        self.put(node, first);
        self.put(node + 8, head);
        if first != 0 {
            self.put(first + 8, node);
        }
        self.put(head, node);
    }

    pub fn hash_del(&self, node: u64, leave: Leave) {
        let (next, link) = (self.get(node), self.get(node + 8));
        self.put(link, next);
        if next != 0 {
            self.put(next + 8, link);
        }
        match leave {
            Leave::Poison => self.put(node + 8, 0xdead_0000_0000_0122),
            Leave::Alone => {
                self.put(node, 0);
                self.put(node + 8, 0);
            }
            Leave::Stale => {}
        }
    }

    /// The node and the slot of a number.
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

    /// `idr_remove` as a rootkit calls it.
    pub fn index_remove(&self, task: u64) {
        self.index_set(self.get32(task + PID), 0);
    }

    fn locked(&self, lock: u64, change: impl FnOnce()) {
        self.put32(lock, 1);
        change();
        self.put32(lock, 0);
    }

    /// A fork, in the order of `copy_process`; every write is in the log. Number 0: it fails.
    pub fn spawn(&self, name: &str, number: u32, leader: Option<u64>) -> u64 {
        let reused = self.free.borrow_mut().pop();
        let task = reused.unwrap_or_else(|| self.alloc(TASK_BYTES));
        let signal = leader.map_or_else(|| self.alloc(64), |leader| self.get(leader + SIGNAL));
        let leads = leader.is_none();
        let leader = leader.unwrap_or(task);
        self.clock.set(self.clock.get() + 1);
        // The copy of whoever forks, word by word, before anything in it is made its own.
        let parent = self.live.borrow().last().copied().unwrap_or(INIT_TASK);
        for word in (0..TASK_BYTES).step_by(8) {
            self.put(task + word, self.get(parent + word));
        }
        if number == 0 {
            // It fails.
            self.put32(task + STATE, 0x80);
            self.free.borrow_mut().push(task);
            return 0;
        }
        self.put32(task + STATE, 0x800);
        self.put32(task + EXIT_STATE, 0);
        self.put(task + FLAGS, if number == 2 { 0x20_0000 } else { 0 });
        self.put(task + 24, self.clock.get());
        self.put32(task + PID, number);
        self.put32(task + PID + 4, self.get32(leader + PID));
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        for (i, word) in comm.chunks(8).enumerate() {
            self.put(task + COMM + 8 * i as u64, u64::from_le_bytes(word.try_into().unwrap()));
        }
        self.put(task + SIGNAL, signal);
        self.put(task + LEADER, leader);
        let set = self.sets[number as usize % 2];
        self.put(task + CGROUPS, set);
        let pid = self.alloc(64);
        self.put32(pid, 1);
        self.put32(pid + NUMBERS, number);
        self.put(task + THREAD_PID, pid);
        self.locked(PIDMAP_LOCK, || self.index_set(number, pid));
        self.locked(TASKLIST_LOCK, || {
            if leads {
                self.empty(signal + THREAD_HEAD);
                self.put(signal + SIGNAL_PIDS + 8, pid);
                self.empty(task + THREAD_GROUP);
                self.hash_add(pid + PID_TASKS + 8, task + LINKS + 16);
                self.list_add_tail(task + TASKS, INIT_TASK + TASKS);
            } else if self.ring {
                self.list_add_tail(task + THREAD_GROUP, leader + THREAD_GROUP);
            }
            self.list_add_tail(task + THREAD_NODE, signal + THREAD_HEAD);
            self.hash_add(pid + PID_TASKS, task + LINKS);
        });
        self.locked(CSS_SET_LOCK, || self.list_add_tail(task + CG_LIST, set));
        self.put32(task + STATE, 0);
        self.live.borrow_mut().push(task);
        task
    }

    /// An exit, in the order of `do_exit` and `release_task`.
    pub fn exit(&self, task: u64) {
        let leads = self.get(task + LEADER) == task;
        self.put(task + RUN_TIME, self.get(task + RUN_TIME) + 1);
        self.put32(task + FLAGS, self.get32(task + FLAGS) | 4);
        self.locked(CSS_SET_LOCK, || {
            self.list_del(task + CG_LIST, Leave::Alone);
            if leads {
                self.list_add_tail(task + CG_LIST, self.get(task + CGROUPS) + DYING);
            }
        });
        self.put32(task + EXIT_STATE, 0x20);
        self.put32(task + EXIT_STATE, 0x10);
        if leads {
            self.locked(CSS_SET_LOCK, || self.list_del(task + CG_LIST, Leave::Alone));
        }
        self.put(task + RUN_TIME, self.get(task + RUN_TIME) + 1);
        self.locked(TASKLIST_LOCK, || {
            self.hash_del(task + LINKS, Leave::Poison);
            if leads {
                self.hash_del(task + LINKS + 16, Leave::Poison);
                self.list_del(task + TASKS, Leave::Stale);
                self.put(task + TASKS + 8, 0xdead_0000_0000_0122);
            } else if self.ring {
                self.list_del(task + THREAD_GROUP, Leave::Stale);
            }
            self.list_del(task + THREAD_NODE, Leave::Stale);
            self.locked(PIDMAP_LOCK, || self.index_remove(task));
            self.put32(self.get(task + THREAD_PID), 0);
            self.put(task + THREAD_PID, 0);
        });
        self.live.borrow_mut().retain(|other| *other != task);
        self.free.borrow_mut().insert(0, task);
    }

    /// Does what the layer does with a transaction.
    pub fn apply(&self, repair: &Repair) -> bool {
        assert!((1..=16).contains(&repair.words.len()));
        let good = repair.words.iter().all(|word| self.memory.get(word.address) == word.expected);
        if good {
            repair.words.iter().for_each(|word| self.memory.set(word.address, word.value));
        }
        good
    }

    pub fn apply_all(&self, finding: &Finding) {
        for repair in &finding.repairs {
            assert!(self.apply(repair), "{finding:?}");
        }
    }

    /// Nodes of a circular list, which must be sound.
    fn list(&self, head: u64) -> Vec<u64> {
        let (mut nodes, mut at) = (Vec::new(), head);
        loop {
            let next = self.get(at);
            assert_eq!(self.get(next + 8), at);
            if next == head {
                return nodes;
            }
            nodes.push(next);
            at = next;
            assert!(nodes.len() < 10_000);
        }
    }

    /// Every live task is in every structure, and the structures are sound.
    pub fn check_sound(&self) {
        let live = self.live.borrow();
        let tasks = self.list(INIT_TASK + TASKS);
        let groups: Vec<_> = self
            .sets
            .iter()
            .flat_map(|set| [*set, set + DYING])
            .flat_map(|l| self.list(l))
            .collect();
        let leaders: Vec<u64> =
            live.iter().copied().filter(|task| self.get(task + LEADER) == *task).collect();
        assert_eq!(tasks.len(), leaders.len());
        assert_eq!(groups.len(), live.len());
        for &task in live.iter() {
            let leader = self.get(task + LEADER);
            let pid = self.get(task + THREAD_PID);
            let (node, slot) = self.slot(self.get32(task + PID));
            assert_eq!(self.get(slot), pid);
            let used = (0..64).filter(|i| self.get(node + SLOTS + 8 * i) != 0).count() as u64;
            assert_eq!(self.get(node) >> 16 & 0xff, used);
            let marks = (0..64)
                .filter(|i| self.get(node + SLOTS + 8 * i) == 0)
                .map(|i| 1 << i)
                .sum::<u64>();
            assert_eq!(self.get(node + MARKS), marks);
            assert_eq!(self.get(pid + PID_TASKS), task + LINKS);
            assert_eq!((self.get(task + LINKS), self.get(task + LINKS + 8)), (0, pid + PID_TASKS));
            assert!(self
                .list(self.get(task + SIGNAL) + THREAD_HEAD)
                .contains(&(task + THREAD_NODE)));
            assert!(groups.contains(&(task + CG_LIST)));
            if task == leader {
                assert!(tasks.contains(&(task + TASKS)));
                assert_eq!(self.get(pid + PID_TASKS + 8), task + LINKS + 16);
            } else if self.ring {
                assert!(self.list(leader + THREAD_GROUP).contains(&(task + THREAD_GROUP)));
            }
        }
    }
}
