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
        for word in (0..TASK_BYTES).step_by(8) {
            self.put(task + word, self.get(parent + word));
        }
        if number == 0 {
            self.put32(task + STATE, 0x80);
            self.free.borrow_mut().push(task);
            return 0;
        }
        self.put32(task + STATE, 0x800);
        self.put32(task + ON_RQ, 0);
        self.put32(task + ON_CPU, 0);
        self.put32(task + EXIT_STATE, 0);
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
        self.put32(task + EXIT_STATE, 0x20);
        self.put32(task + EXIT_STATE, 0x10);
        if leads {
            self.locked(CSS_SET_LOCK, || self.list_del(task + CG_LIST, Unlinked::Alone));
        }
        self.put(task + RUN_TIME, self.get(task + RUN_TIME) + 1);
        self.locked(TASKLIST_LOCK, || {
            self.hash_del(task + LINKS, Unlinked::Poison);
            if leads {
                self.hash_del(task + LINKS + 16, Unlinked::Poison);
                self.list_del(task + TASKS, Unlinked::Stale);
                self.put(task + TASKS + 8, 0xdead_0000_0000_0122);
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
