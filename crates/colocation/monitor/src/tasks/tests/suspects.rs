//! When a suspect becomes a finding, and when it does not.

use super::*;

#[test]
fn no_report_while_a_writer_holds_a_lock() {
    for (lock, value, busy) in [
        (linux::TASKLIST_LOCK, 0xff, true),
        (linux::PIDMAP_LOCK, 1, true),
        (linux::CSS_SET_LOCK, 1, true),
        (linux::TASKLIST_LOCK, 0x200, false),
    ] {
        let (linux, [alone, ..]) = system(false);
        hide(&linux, alone, view::TASKS, Unlinked::Poison);
        linux.put32(lock, value);
        let (findings, retries, _) = run(&linux, 20, 100_000, |_| {});
        assert_eq!((findings.is_empty(), retries > 10), (busy, busy));
        if let Some(finding) = findings.first() {
            // Readers do not defer a look; a repair waits for them.
            assert!(!linux.apply(&finding.repairs[0]));
            linux.put32(lock, 0);
            linux.apply_all(finding);
            linux.check_sound();
        }
        linux.put32(lock, 0);
    }
}

#[test]
fn new_and_dead_tasks_are_not_reported() {
    for (at, value) in [(linux::STATE, 0x800), (linux::EXIT_STATE, 0x10)] {
        let (linux, [alone, ..]) = system(false);
        linux.put(alone + linux::SIGHAND, 0);
        hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
        linux.put32(alone + at, value);
        // A dead task stays in no list.
        let between = |step| {
            if at == linux::EXIT_STATE && step == 5 {
                hide(&linux, alone, view::THREADS | view::CGROUP, Unlinked::Poison);
            }
        };
        assert_eq!(run(&linux, 400, 100_000, between).0, vec![]);
    }
}

#[test]
fn dead_task_that_runs_on_is_reported() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    linux.put32(alone + linux::EXIT_STATE, 0x10);
    linux.put(alone + linux::SIGHAND, 0);
    let run_on = |step| {
        if step % 2 == 0 {
            linux.put(alone + linux::RUN_TIME, u64::from(step));
        }
    };
    let (findings, ..) = run(&linux, 100, 100_000, run_on);
    assert_eq!(findings[0].address, alone);
}

#[test]
fn reused_task_memory_clears_the_suspect() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS, Unlinked::Poison);
    // Each time another task, before there are enough looks; if that went on, the start time would be forged.
    let (findings, ..) = run(&linux, 30, 100_000, |step| {
        linux.put(alone + linux::START, 1000 + u64::from(step) / 2)
    });
    assert_eq!(findings, vec![]);
    let (findings, ..) = run(&linux, 60, 100_000, |_| {});
    assert_eq!(findings[0].address, alone);
}

#[test]
fn passes_follow_each_other_only_while_somebody_is_suspected() {
    let (linux, [alone, ..]) = system(false);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = TaskCheck::new(&profile, 1).unwrap();
    let passes = |tasks: &mut TaskCheck, steps: u32| {
        let step = |_: &u32| {
            let mut budget = CallBudget(100_000);
            matches!(tasks.step(&kernel, &mut budget, &mut |_| {}, &mut 0), Step::Done(_))
        };
        (0..steps).filter(step).count()
    };
    assert_eq!(passes(&mut tasks, 3 * PACE), 3);
    hide(&linux, alone, view::TASKS, Unlinked::Poison);
    assert!(passes(&mut tasks, PACE) > 1, "the looks that confirm it do not wait");
    assert_eq!(passes(&mut tasks, 3 * PACE), 3, "it is reported");
}

#[test]
fn what_hides_again_after_a_repair_is_news() {
    let (linux, [alone, ..]) = system(false);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = TaskCheck::new(&profile, 1).unwrap();
    let found = |tasks: &mut TaskCheck, steps: u32| {
        let mut found = 0;
        for _ in 0..steps {
            tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| found += 1, &mut 0);
        }
        found
    };
    hide(&linux, alone, view::TASKS, Unlinked::Poison);
    found(&mut tasks, 100);
    assert_eq!(found(&mut tasks, PACE + 5), 0, "reports have become rare");
    // It was repaired and hidden again before anybody looked.
    Check::<crate::fake::FakeMemory>::forget(&mut tasks, alone);
    assert!(found(&mut tasks, PACE + 5) > 0);
}

#[test]
fn reports_back_off_exponentially() {
    let (linux, [alone, ..]) = system(false);
    let mut at = Vec::new();
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    hide(&linux, alone, view::TASKS, Unlinked::Poison);
    for step in 0..100 {
        tasks.step(&kernel, &mut CallBudget(100_000), &mut |_| at.push(step), &mut 0);
    }
    assert_eq!(at, [3, 6, 12, 24, 48, 96]);
}

/// A freed page of tasks may be reused and hold anything, while the passes have just seen a task in it. What grows in
/// it is not its CPU time.
#[test]
fn reused_memory_is_no_hidden_thread() {
    for (member, value) in [(linux::SIGNAL, 0), (linux::SIGNAL, 0x1234), (linux::LEADER, 0x5678)] {
        let (linux, [_, _, thread, _]) = system(true);
        hide(&linux, thread, view::THREADS | view::GROUP | view::PID, Unlinked::Poison);
        linux.put(thread + member, value);
        let between = |step| {
            if step == 3 {
                linux.list_del(thread + linux::CG_LIST, Unlinked::Poison);
            }
            linux.put(thread + linux::RUN_TIME, u64::from(step));
        };
        assert_eq!(run(&linux, 400, 100_000, between).0, vec![]);
    }
}
