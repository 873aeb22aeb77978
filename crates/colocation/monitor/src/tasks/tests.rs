mod churn;
mod cpus;
mod forged;
mod fuzz;
mod hostile;
mod linux;
mod privileges;
mod repairs;
mod suspects;
mod unlisted;
mod verify;

use super::*;
use crate::fake::CallBudget;
use linux::{Linux, Unlinked, UNLINKED_STATES};
use std::string::String;
use std::vec;
use std::vec::Vec;

/// The check with a seed that stays the same.
fn check(profile: &Profile<'_>) -> TaskCheck {
    // Without rests: a step is a pass.
    TaskCheck { pace: Pace::every(0), ..TaskCheck::new(profile, 1).unwrap() }
}

/// Runs `steps` slices of `calls` budget calls each, with a call of `between` after each.
fn run(
    linux: &Linux,
    steps: u32,
    calls: u64,
    mut between: impl FnMut(u32),
) -> (Vec<Finding>, u64, u64) {
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    let (mut findings, mut retries, mut passes) = (Vec::new(), 0, 0);
    for step in 0..steps {
        let mut found = |finding| findings.push(finding);
        if tasks.step(&kernel, &mut CallBudget(calls), &mut found, &mut retries) != Step::Spent {
            passes += 1;
        }
        between(step);
    }
    (findings, retries, passes)
}

/// The findings of ten slices of a pass each.
fn find(linux: &Linux) -> Vec<Finding> {
    run(linux, 10, 100_000, |_| {}).0
}

/// A small system: a single-threaded process, a process with two more threads, and fillers.
fn system(ring: bool) -> (Linux, [u64; 4]) {
    let linux = Linux::new(ring);
    for number in 3..60 {
        linux.spawn("filler", number, None);
    }
    let alone = linux.spawn("alone", 64, None);
    let leader = linux.spawn("leader", 700, None);
    let thread = linux.spawn("thread", 701, Some(leader));
    let last = linux.spawn("last", 702, Some(leader));
    linux.check_sound();
    (linux, [alone, leader, thread, last])
}

#[test]
fn intact_system_gives_no_finding() {
    for ring in [false, true] {
        let (linux, _) = system(ring);
        for calls in [2, 3, 7, 100, 100_000] {
            let (findings, retries, passes) =
                run(&linux, 5000 / calls.min(1000) as u32 + 5, calls, |_| {});
            assert_eq!((findings, retries), (vec![], 0));
            assert!(passes > 0, "{calls}");
        }
        let profile = Profile::decode(&linux.profile).unwrap();
        let kernel = Kernel::new(&profile, &linux.memory);
        let mut tasks = check(&profile);
        let step = tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| {}, &mut 0);
        assert_eq!(step, Step::Done(linux.live.borrow().len() as u64));
    }
}

/// Removes a task from `views`.
fn hide(linux: &Linux, task: u64, views: u8, unlinked: Unlinked) {
    for (bit, node) in [
        (view::TASKS, linux::TASKS),
        (view::THREADS, linux::THREAD_NODE),
        (view::GROUP, linux::THREAD_GROUP),
        (view::CGROUP, linux::CG_LIST),
    ] {
        if views & bit != 0 {
            linux.list_del(task + node, unlinked);
        }
    }
    for (bit, link) in [(view::PID, 0), (view::TGID, 16)] {
        if views & bit != 0 {
            linux.hash_del(task + linux::LINKS + link, unlinked);
        }
    }
}

/// Two processes point to each other, and the list leads past them.
fn hide_in_a_ring(linux: &Linux, tasks: [u64; 2]) {
    for task in tasks {
        hide(linux, task, view::TASKS, Unlinked::Stale);
    }
    let [a, b] = tasks.map(|task| task + linux::TASKS);
    for (from, to) in [(a, b), (b, a)] {
        linux.put(from, to);
        linux.put(from + 8, to);
    }
}

#[test]
fn ring_beside_the_list_is_found() {
    let (linux, [alone, leader, ..]) = system(false);
    hide_in_a_ring(&linux, [alone, leader]);
    let found: Vec<u64> = find(&linux).iter().map(|finding| finding.address).collect();
    assert!(found.contains(&alone) && found.contains(&leader));
}

#[test]
fn damaged_list_is_reported_as_long_as_it_is_damaged() {
    for damage in [0x1234_5678_9abc_def0, 0xffff_8880_3000_0000, 0xdead_0000_0000_0100, 0] {
        let (linux, [alone, leader, ..]) = system(false);
        let next = if damage == 0 { alone + linux::TASKS } else { damage };
        linux.put(leader + linux::TASKS, next);
        let (findings, _, passes) = run(&linux, 2000, 5000, |_| {});
        assert!(passes > 3, "{damage:#x}");
        let of_list =
            findings.iter().filter(|finding| finding.what == "damaged process list").count();
        // After 3, 6, 12 passes, and so on.
        assert!((2..20).contains(&of_list), "{damage:#x}: {of_list} in {passes} passes");
    }
}

#[test]
fn listing_has_every_task_and_what_lacks_it() {
    for ring in [false, true] {
        let (linux, [alone, leader, thread, last]) = system(ring);
        let profile = Profile::decode(&linux.profile).unwrap();
        let kernel = Kernel::new(&profile, &linux.memory);
        let all = listing::list(&kernel).unwrap();
        assert!(all.is_complete && all.tasks.iter().all(|task| task.missing.is_empty()));
        assert_eq!(all.tasks.len(), linux.live.borrow().len());
        let row = |address| {
            let all = listing::list(&kernel).unwrap().tasks;
            all.into_iter().find(|task| task.address == address).unwrap()
        };
        let of_thread = row(thread);
        assert_eq!((of_thread.pid, of_thread.process, of_thread.is_leader), (701, 700, false));
        assert_eq!((row(leader).name.as_str(), row(leader).process), ("leader", 700));
        hide(&linux, alone, view::TASKS | view::PID, Unlinked::Poison);
        hide(&linux, last, view::THREADS, Unlinked::Alone);
        assert_eq!(row(alone).missing, ["the process list", "the PID index"]);
        assert_eq!(row(last).missing, ["its process's thread list"]);
        assert_eq!(listing::list(&kernel).unwrap().tasks.len(), linux.live.borrow().len());
        linux.put(leader + linux::TASKS, 0x1234_5678_9abc_def0);
        assert!(!listing::list(&kernel).unwrap().is_complete);
    }
}

#[test]
fn missing_member_is_named() {
    let bytes = crate::fake::profile(&[], &[("#PIDTYPE_PID", 0, 0), ("#PIDTYPE_TGID", 1, 0)]);
    let profile = Profile::decode(&bytes).unwrap();
    let Err(error) = TaskCheck::new(&profile, 0) else { panic!() };
    assert!(matches!(error, ProfileError::Missing(_)), "{error}");
    let _: String = std::format!("{error}");
}
