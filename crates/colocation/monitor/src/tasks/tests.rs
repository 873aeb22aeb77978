mod churn;
mod fuzz;
mod linux;

use super::*;
use crate::fake::CallBudget;
use linux::{Leave, Linux, LEAVES};
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Does `steps` slices of `calls` budget calls each, and `between` them something.
fn run(
    linux: &Linux,
    steps: u32,
    calls: u64,
    mut between: impl FnMut(u32),
) -> (Vec<Finding>, u64, u64) {
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = TaskCheck::new(&profile).unwrap();
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

/// What is found within ten slices of a pass each.
fn find(linux: &Linux) -> Vec<Finding> {
    run(linux, 10, 100_000, |_| {}).0
}

/// A small system: a process alone, a process with two threads.
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
fn a_sound_system_gives_no_finding() {
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
        let mut tasks = TaskCheck::new(&profile).unwrap();
        let step = tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| {}, &mut 0);
        assert_eq!(step, Step::Done(linux.live.borrow().len() as u64));
    }
}

/// Takes a task out of the views and says which are its nodes.
fn hide(linux: &Linux, task: u64, views: u8, leave: Leave) {
    for (bit, node) in [
        (view::TASKS, linux::TASKS),
        (view::THREADS, linux::THREAD_NODE),
        (view::GROUP, linux::THREAD_GROUP),
        (view::CGROUP, linux::CG_LIST),
    ] {
        if views & bit != 0 {
            linux.list_del(task + node, leave);
        }
    }
    for (bit, link) in [(view::PID, 0), (view::TGID, 16)] {
        if views & bit != 0 {
            linux.hash_del(task + linux::LINKS + link, leave);
        }
    }
}

/// One finding, of this task, whose repairs put everything right.
fn expect_one(linux: &Linux, task: u64, what: &str, missing: &str) {
    let findings = find(linux);
    let first = findings.first().unwrap_or_else(|| panic!("nothing found: {missing}"));
    assert!(findings.iter().all(|finding| finding.address == task), "{findings:?}");
    assert_eq!((first.what.as_str(), first.expected.as_str()), (what, missing));
    linux.apply_all(first);
    linux.check_sound();
    assert_eq!(find(linux), vec![]);
}

#[test]
fn a_process_that_left_views_is_found_and_put_back() {
    // One of these must still have it: nothing leads to a process's own list of threads but the process.
    let reach = view::TASKS | view::PID | view::TGID | view::CGROUP;
    let all = reach | view::THREADS;
    for leave in LEAVES {
        for views in (1..=all).filter(|views| views & !all == 0 && views & reach != reach) {
            let (linux, [alone, ..]) = system(true);
            hide(&linux, alone, views, leave);
            expect_one(
                &linux,
                alone,
                "hidden process",
                &std::format!("in {}", report::names(views)),
            );
        }
    }
}

#[test]
fn a_thread_that_left_views_is_found_and_put_back() {
    for leave in LEAVES {
        for ring in [false, true] {
            let ring_view = if ring { view::GROUP } else { 0 };
            let all = view::THREADS | ring_view | view::PID | view::CGROUP;
            for views in (1..=all).filter(|views| views & !all == 0 && *views != all) {
                let (linux, [.., thread, last]) = system(ring);
                for task in [thread, last] {
                    hide(&linux, task, views, leave);
                    expect_one(
                        &linux,
                        task,
                        "hidden thread",
                        &std::format!("in {}", report::names(views)),
                    );
                }
            }
        }
    }
}

#[test]
fn a_kernel_thread_and_a_process_with_threads_are_named_as_such() {
    let (linux, [_, leader, thread, _]) = system(true);
    let kthreadd = linux.live.borrow()[1];
    hide(&linux, kthreadd, view::TASKS, Leave::Poison);
    expect_one(&linux, kthreadd, "hidden kernel thread", "in the list of processes");
    hide(&linux, leader, view::TASKS | view::PID | view::TGID, Leave::Poison);
    expect_one(
        &linux,
        leader,
        "hidden process",
        "in the list of processes, the index of process numbers, its number's list of processes",
    );
    hide(&linux, thread, view::THREADS, Leave::Poison);
    let findings = find(&linux);
    assert_eq!(findings[0].symbol, "thread, number 701 of leader, process 700");
    assert_eq!(findings[0].owner, "nobody");
    assert_eq!(
        findings[0].found,
        "not there; in its process's ring of threads, the index of process numbers, its control group"
    );
}

#[test]
fn a_number_taken_out_of_the_index_is_put_back() {
    for (number, counted) in [(64, true), (64, false), (3, true), (70, true)] {
        let (linux, _) = system(false);
        // RandomNumbers 64 to 127 are all in use: their node has nothing free, and its parent says so.
        for number in 65..128 {
            linux.spawn("more", number, None);
        }
        linux.check_sound();
        let task = *linux
            .live
            .borrow()
            .iter()
            .find(|task| linux.get32(**task + linux::PID) == number)
            .unwrap();
        hide(&linux, task, view::TASKS | view::PID | view::TGID, Leave::Poison);
        if counted {
            linux.index_remove(task);
        } else {
            linux.put(linux.slot(number).1, 0);
        }
        let missing = "in the list of processes, the index of process numbers, its number's list of processes";
        expect_one(&linux, task, "hidden process", missing);
    }
}

#[test]
fn a_number_that_is_gone_is_reported_and_what_can_be_is_repaired() {
    // The index's node is gone with its last number.
    let (linux, [_, leader, thread, last]) = system(false);
    hide(&linux, leader, view::TASKS, Leave::Poison);
    let (node, _) = linux.slot(700);
    linux.put(linux.get(node + 8) + 40 + 8 * (700 >> 6), 0);
    let findings = find(&linux);
    for task in [leader, thread, last] {
        assert!(findings.iter().any(|finding| finding.address == task));
    }
    let of_leader = findings.iter().find(|finding| finding.address == leader).unwrap();
    assert_eq!(of_leader.repairs.len(), 1);
    linux.apply_all(of_leader);
    // The number was given to another process.
    let (linux, [alone, ..]) = system(false);
    let pid = linux.get(alone + linux::THREAD_PID);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Leave::Poison);
    linux.index_remove(alone);
    linux.spawn("other", 64, None);
    // It could be what a fork has copied, until it is seen to run.
    assert_eq!(find(&linux), vec![]);
    let (findings, ..) =
        run(&linux, 60, 100_000, |step| linux.put(alone + linux::RUN_TIME, step.into()));
    assert!(findings[0].address == alone && findings[0].repairs.len() == 1);
    // So was the structure.
    linux.put32(pid, 0);
    linux.apply_all(&findings[0]);
}

#[test]
fn links_that_were_bent_one_way_are_bent_back() {
    let (linux, [alone, ..]) = system(false);
    let node = alone + linux::TASKS;
    let (next, prev) = (linux.get(node), linux.get(node + 8));
    linux.put(prev, next);
    expect_one(&linux, alone, "hidden process", "in the list of processes");
    assert_eq!((linux.get(node), linux.get(node + 8)), (next, prev));
}

#[test]
fn a_ring_beside_the_list_is_found() {
    let (linux, [alone, leader, ..]) = system(false);
    hide(&linux, alone, view::TASKS, Leave::Stale);
    hide(&linux, leader, view::TASKS, Leave::Stale);
    let (a, b) = (alone + linux::TASKS, leader + linux::TASKS);
    for (from, to) in [(a, b), (b, a)] {
        linux.put(from, to);
        linux.put(from + 8, to);
    }
    let found: Vec<u64> = find(&linux).iter().map(|finding| finding.address).collect();
    assert!(found.contains(&alone) && found.contains(&leader));
}

#[test]
fn nobody_is_reported_while_linux_changes_the_structures() {
    for (lock, value, busy) in [
        (linux::TASKLIST_LOCK, 0xff, true),
        (linux::PIDMAP_LOCK, 1, true),
        (linux::CSS_SET_LOCK, 1, true),
        (linux::TASKLIST_LOCK, 0x200, false),
    ] {
        let (linux, [alone, ..]) = system(false);
        hide(&linux, alone, view::TASKS, Leave::Poison);
        linux.put32(lock, value);
        let (findings, retries, _) = run(&linux, 20, 100_000, |_| {});
        assert_eq!((findings.is_empty(), retries > 10), (busy, busy));
        if let Some(finding) = findings.first() {
            // Readers do not disturb a look; a repair waits for them.
            assert!(!linux.apply(&finding.repairs[0]));
            linux.put32(lock, 0);
            linux.apply_all(finding);
            linux.check_sound();
        }
        linux.put32(lock, 0);
    }
}

#[test]
fn the_newborn_and_the_dead_are_not_reported() {
    for (at, value) in [(linux::STATE, 0x800), (linux::EXIT_STATE, 0x10)] {
        let (linux, [alone, ..]) = system(false);
        hide(&linux, alone, view::TASKS | view::PID | view::TGID, Leave::Poison);
        linux.put32(alone + at, value);
        assert_eq!(run(&linux, 400, 100_000, |_| {}).0, vec![]);
    }
}

#[test]
fn a_task_that_only_claims_to_be_dead_is_reported() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Leave::Poison);
    linux.put32(alone + linux::EXIT_STATE, 0x10);
    let run_on = |step| {
        if step % 2 == 0 {
            linux.put(alone + linux::RUN_TIME, u64::from(step));
        }
    };
    let (findings, ..) = run(&linux, 100, 100_000, run_on);
    assert_eq!(findings[0].address, alone);
}

#[test]
fn a_suspect_whose_memory_becomes_another_task_is_let_go() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS, Leave::Poison);
    // Another task each time before the looks are enough.
    let (findings, ..) =
        run(&linux, 60, 100_000, |step| linux.put(alone + 24, 1000 + u64::from(step) / 2));
    assert_eq!(findings, vec![]);
    let (findings, ..) = run(&linux, 60, 100_000, |_| {});
    assert_eq!(findings[0].address, alone);
}

#[test]
fn a_finding_comes_after_three_looks_and_then_less_and_less_often() {
    let (linux, [alone, ..]) = system(false);
    let mut at = Vec::new();
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = TaskCheck::new(&profile).unwrap();
    hide(&linux, alone, view::TASKS, Leave::Poison);
    for step in 0..100 {
        tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| at.push(step), &mut 0);
    }
    assert_eq!(at, [3, 6, 12, 24, 48, 96]);
}

#[test]
fn a_damaged_list_is_one_finding_and_the_pass_goes_on() {
    for damage in [0x1234_5678_9abc_def0, 0xffff_8880_3000_0000, 0xdead_0000_0000_0100, 0] {
        let (linux, [alone, leader, ..]) = system(false);
        let next = if damage == 0 { alone + linux::TASKS } else { damage };
        linux.put(leader + linux::TASKS, next);
        let (findings, _, passes) = run(&linux, 2000, 5000, |_| {});
        assert!(passes > 3, "{damage:#x}");
        let of_list =
            findings.iter().filter(|finding| finding.what == "damaged list of processes").count();
        assert_eq!(of_list, 1, "{damage:#x}");
    }
}

#[test]
fn what_the_profile_lacks_is_named() {
    let bytes = crate::fake::profile(&[], &[("#PIDTYPE_PID", 0, 0), ("#PIDTYPE_TGID", 1, 0)]);
    let profile = Profile::decode(&bytes).unwrap();
    let Err(error) = TaskCheck::new(&profile) else { panic!() };
    assert!(matches!(error, ProfileError::Missing(_)), "{error}");
    let _: String = std::format!("{error}");
}

/// A page of tasks that Linux gives to someone else holds anything; a pass may have seen a task there a moment ago.
#[test]
fn memory_that_was_a_task_is_no_hidden_thread() {
    for (member, value) in [(linux::SIGNAL, 0), (linux::SIGNAL, 0x1234), (linux::LEADER, 0x5678)] {
        let (linux, [_, _, thread, _]) = system(true);
        hide(&linux, thread, view::THREADS | view::GROUP | view::PID, Leave::Poison);
        linux.put(thread + member, value);
        assert_eq!(run(&linux, 400, 100_000, |_| {}).0, vec![]);
    }
}
