//! The tasks that run on CPUs, beside the lists of tasks.

use super::linux::*;
use super::*;
use crate::cpus::{self, Cpus};
use std::string::ToString;

/// A pointer to nowhere.
const DAMAGED: u64 = 0xdead_0000_0000_0100;

fn cpus(linux: &Linux) -> Cpus {
    let profile = Profile::decode(&linux.profile).unwrap();
    cpus::list(&Kernel::new(&profile, &linux.memory)).unwrap().unwrap()
}

/// Whether the task that runs is in no list, whether it ends, and its name.
fn running(linux: &Linux) -> Option<(bool, bool, String)> {
    let cpus = cpus(linux);
    assert!(cpus.is_complete);
    let task = cpus.cpus.first()?.task.as_ref()?;
    Some((task.is_unlisted, task.is_in_flux, task.name.clone()))
}

#[test]
fn running_task_that_every_structure_lacks_is_unlisted() {
    for ring in [false, true] {
        let linux = Linux::new(ring);
        let is = |is_unlisted, ends, name: &str| Some((is_unlisted, ends, name.to_string()));
        linux.put(AREA + RUN_QUEUE, INIT_TASK);
        assert_eq!(running(&linux), is(false, false, ""));
        let task = linux.spawn("busy", 64, None);
        linux.put(AREA + RUN_QUEUE, task);
        assert_eq!(running(&linux), is(false, false, "busy"));
        // At its end, Linux removes it from all lists while it runs.
        linux.exit(task);
        assert_eq!(running(&linux), is(true, true, "busy"));
        linux.put32(task + FLAGS, 0);
        linux.put32(task + EXIT_STATE, 0);
        assert_eq!(running(&linux), is(true, false, "busy"));
        // What was not walked may have it.
        linux.put(INIT_TASK + TASKS, DAMAGED);
        let all = cpus(&linux);
        assert!(!all.is_complete);
        assert!(all.cpus.iter().flat_map(|cpu| &cpu.task).all(|task| !task.is_unlisted));
    }
}
