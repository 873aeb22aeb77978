//! Forks and exits, with their writes in Linux's order.

use super::*;

impl Linux {
    fn locked(&self, lock: u64, change: impl FnOnce()) {
        self.put32(lock, 1);
        change();
        self.put32(lock, 0);
    }

    /// A fork, with its writes in the order of `copy_process`. PID 0: the fork fails.
    pub fn spawn(&self, name: &str, number: u32, leader: Option<u64>) -> u64 {
        let reused = self.free.borrow_mut().pop();
        let task = reused.unwrap_or_else(|| self.alloc(TASK_BYTES));
        let signal = leader.map_or_else(|| self.alloc(64), |leader| self.get(leader + SIGNAL));
        let leads = leader.is_none();
        let leader = leader.unwrap_or(task);
        self.clock.set(self.clock.get() + 1);
        // A word-by-word copy of the parent, before any member is initialized.
        let parent = self.live.borrow().last().copied().unwrap_or(INIT_TASK);
        let family = (leader == task).then_some(parent);
        for word in (0..TASK_BYTES).step_by(8) {
            self.put(task + word, self.get(parent + word));
        }
        if number == 0 {
            self.put32(task + STATE, 0x80);
            self.free.borrow_mut().push(task);
            return 0;
        }
        self.put32(task + STATE, 0x800);
        self.empty(task + CHILDREN);
        self.empty(task + SIBLING);
        self.put32(task + ON_RQ, 0);
        self.put32(task + ON_CPU, 0);
        self.put32(task + EXIT_STATE, 0);
        self.put32(task + EXIT_SIGNAL, if leads { 17 } else { u32::MAX });
        self.put(task + SIGHAND, signal);
        self.put(task + FLAGS, if number == 2 { 0x20_0000 } else { 0 });
        self.put(task + START, self.clock.get());
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
                for (kind, link) in [(2, 32), (3, 48)] {
                    let leads = family.is_none_or(|it| it == INIT_TASK) || number.is_multiple_of(4);
                    let group = if leads { pid } else { self.get(self.of_first(kind)) };
                    self.put(signal + SIGNAL_PIDS + 8 * kind, group);
                    self.hash_add(group + PID_TASKS + 8 * kind, task + LINKS + link);
                }
                let parent = family.unwrap_or(INIT_TASK);
                self.put(task + PARENT, parent);
                self.list_add_tail(task + SIBLING, parent + CHILDREN);
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

    /// Where process 1 keeps the PID of its group or session.
    fn of_first(&self, kind: u64) -> u64 {
        self.get(self.live.borrow()[0] + SIGNAL) + SIGNAL_PIDS + 8 * kind
    }

    /// Makes the children of `task` those of process 1.
    fn give_children_away(&self, task: u64) {
        let first = self.live.borrow()[0];
        while self.get(task + CHILDREN) != task + CHILDREN {
            let child = self.get(task + CHILDREN) - SIBLING;
            self.list_del(child + SIBLING, Unlinked::Stale);
            self.put(child + PARENT, first);
            self.list_add_tail(child + SIBLING, first + CHILDREN);
        }
    }

    /// Lets `running` have the CPU, and `waiting` wait for it: each is the right child of the one before.
    pub fn schedule(&self, running: u64, waiting: &[u64]) {
        self.put(AREA + RUN_QUEUE, running);
        let queue = AREA + RUN_QUEUE + FAIR;
        let is_fair = running != INIT_TASK;
        self.put(queue, if is_fair { running + ENTITY } else { 0 });
        self.hang(queue + FAIR_ROOT, waiting);
    }

    /// Makes the tree at `root` one of the entities of `tasks`.
    pub fn hang(&self, root: u64, tasks: &[u64]) {
        let (mut link, mut parent) = (root, 0);
        for task in tasks {
            let node = task + ENTITY;
            self.put(link, node);
            self.put(node, parent);
            self.put(node + 16, 0);
            (link, parent) = (node + 8, node);
        }
        self.put(link, 0);
    }

    /// An exit, with its writes in the order of `do_exit` and `release_task`.
    pub fn exit(&self, task: u64) {
        let leads = self.get(task + LEADER) == task;
        self.put(task + RUN_TIME, self.get(task + RUN_TIME) + 1);
        self.put32(task + FLAGS, self.get32(task + FLAGS) | 4);
        self.locked(CSS_SET_LOCK, || {
            self.list_del(task + CG_LIST, Unlinked::Alone);
            if leads {
                self.list_add_tail(task + CG_LIST, self.get(task + CGROUPS) + DYING);
            }
        });
        self.locked(TASKLIST_LOCK, || self.give_children_away(task));
        self.put32(task + EXIT_STATE, 0x20);
        self.put32(task + EXIT_STATE, 0x10);
        if leads {
            self.locked(CSS_SET_LOCK, || self.list_del(task + CG_LIST, Unlinked::Alone));
        }
        self.put(task + RUN_TIME, self.get(task + RUN_TIME) + 1);
        self.locked(TASKLIST_LOCK, || {
            self.hash_del(task + LINKS, Unlinked::Poison);
            if leads {
                for link in [16, 32, 48] {
                    self.hash_del(task + LINKS + link, Unlinked::Poison);
                }
                self.list_del(task + TASKS, Unlinked::Stale);
                self.put(task + TASKS + 8, 0xdead_0000_0000_0122);
                self.list_del(task + SIBLING, Unlinked::Alone);
            } else if self.ring {
                self.list_del(task + THREAD_GROUP, Unlinked::Stale);
            }
            self.list_del(task + THREAD_NODE, Unlinked::Stale);
            self.locked(PIDMAP_LOCK, || self.index_remove(task));
            self.put32(self.get(task + THREAD_PID), 0);
            self.put(task + THREAD_PID, 0);
            self.put(task + SIGHAND, 0);
        });
        self.live.borrow_mut().retain(|other| *other != task);
        self.free.borrow_mut().insert(0, task);
    }
}
