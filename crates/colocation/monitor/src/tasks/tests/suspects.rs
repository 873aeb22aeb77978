//! When a suspect becomes a finding, and when it does not.

use super::*;

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
