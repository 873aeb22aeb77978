//! Repairs, and whether all structures are sound after them.

use super::*;
use crate::finding::{Finding, Repair};

impl Linux {
    /// Runs a transaction as the layer does; false if a word has changed.
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

    /// The nodes of a circular list, which must be consistent.
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

    /// Asserts that every live task is in every structure, and that the structures are consistent.
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
