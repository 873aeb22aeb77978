//! Attackers who know the check: forged members, held locks, decoys, more tasks than the check has room for.

use super::*;

/// The slices within which a hidden task must be found, whatever its members say: a second at the default rate.
const SOON: u32 = 100;

/// Whether `task` is found within `steps` slices with a call of `between` after each.
fn is_found(linux: &Linux, task: u64, steps: u32, between: impl FnMut(u32)) -> bool {
    let (findings, ..) = run(linux, steps, 100_000, between);
    assert!(findings.iter().all(|finding| finding.address == task), "{findings:?}");
    !findings.is_empty()
}

#[test]
fn suspects_leave_time_for_the_pass() {
    // Suspects that stay: hidden processes that nothing repairs.
    let (linux, [alone, ..]) = system(false);
    let hidden: Vec<u64> = linux.live.borrow()[10..40].to_vec();
    for task in &hidden {
        hide(&linux, *task, view::TASKS, Unlinked::Poison);
    }
    for calls in 1..8 {
        let mut found = false;
        let (findings, _, passes) = run(&linux, 4000, calls, |step| {
            if step == 2000 {
                hide(&linux, alone, view::TASKS, Unlinked::Poison);
                found = true;
            }
        });
        assert!(found && passes > 3, "{passes} passes with {calls} calls");
        assert!(findings.iter().any(|finding| finding.address == alone), "{calls}");
        // Back into the list, for the next round.
        let (next, prev) =
            (linux.get(linux::INIT_TASK + linux::TASKS), linux::INIT_TASK + linux::TASKS);
        linux.put(alone + linux::TASKS, next);
        linux.put(alone + linux::TASKS + 8, prev);
        linux.put(prev, alone + linux::TASKS);
        linux.put(next + 8, alone + linux::TASKS);
    }
}

#[test]
fn threads_made_in_a_row_do_not_stop_the_pass() {
    let (linux, [alone, ..]) = system(false);
    let mut number = 1000;
    let (findings, _, passes) = run(&linux, 3000, 4, |step| {
        // As many as modules start when they are loaded: each is behind the walk over the process list.
        if step < 1000 && step % 7 == 0 {
            linux.spawn("kworker", number, None);
            number += 1;
        }
        if step == 1200 {
            hide(&linux, alone, view::TASKS, Unlinked::Poison);
        }
    });
    assert!(passes > 10, "{passes}");
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding.address == alone));
}

#[test]
fn forged_pid_hides_nothing() {
    let all = view::TASKS | view::PID | view::TGID;
    for pid in [0, u32::MAX, 5 << 20] {
        for views in [view::TASKS, view::PID | view::TGID, all, all | view::THREADS] {
            let (linux, [alone, ..]) = system(true);
            hide(&linux, alone, views, Unlinked::Poison);
            linux.put32(alone + linux::PID, pid);
            assert!(is_found(&linux, alone, SOON, |_| {}), "{pid} {views}");
        }
    }
}

#[test]
fn decoy_in_the_process_list_hides_nothing() {
    for pid in [0, 64] {
        let (linux, [alone, leader, ..]) = system(false);
        let decoy = linux.alloc(linux::TASK_BYTES);
        linux.put32(decoy + linux::PID, pid);
        let first = linux.get(linux::INIT_TASK + linux::TASKS);
        linux.put(decoy + linux::TASKS, first);
        linux.put(decoy + linux::TASKS + 8, linux::INIT_TASK + linux::TASKS);
        linux.put(first + 8, decoy + linux::TASKS);
        linux.put(linux::INIT_TASK + linux::TASKS, decoy + linux::TASKS);
        hide_in_a_ring(&linux, [alone, leader]);
        let found: Vec<u64> = find(&linux).iter().map(|finding| finding.address).collect();
        assert!(found.contains(&alone) && found.contains(&leader), "{pid}: {found:x?}");
    }
}

#[test]
fn rewritten_start_time_hides_nothing() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    let rewrite = |step| linux.put(alone + linux::START, 1_000_000 + u64::from(step));
    assert!(is_found(&linux, alone, SOON, rewrite));
}

#[test]
fn forged_state_hides_nothing() {
    for (at, value) in [(linux::STATE, 0x800), (linux::EXIT_STATE, 0x10), (linux::EXIT_STATE, 0x30)]
    {
        let (linux, [alone, ..]) = system(false);
        hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
        linux.put32(alone + at, value);
        // Its CPU time is forged as well; that it waits for a CPU is not.
        linux.put32(alone + linux::ON_RQ, 1);
        assert!(is_found(&linux, alone, SOON, |_| {}), "{at} {value:#x}");
    }
}

#[test]
fn sleeping_task_that_claims_to_be_new_is_found_in_the_end() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS, Unlinked::Poison);
    linux.put32(alone + linux::STATE, 0x800);
    assert!(is_found(&linux, alone, 6000, |_| {}));
}

#[test]
fn lock_that_is_always_held_hides_nothing() {
    for (lock, views) in [
        (linux::TASKLIST_LOCK, view::TASKS),
        (linux::PIDMAP_LOCK, view::PID),
        (linux::CSS_SET_LOCK, view::CGROUP),
        (linux::CSS_SET_LOCK, view::TASKS),
    ] {
        let (linux, [alone, ..]) = system(false);
        hide(&linux, alone, views, Unlinked::Poison);
        linux.put32(lock, 1);
        assert!(is_found(&linux, alone, 200, |_| {}), "{lock:#x} {views}");
    }
}

#[test]
fn more_tasks_than_the_table_holds_are_no_damage() {
    let linux = Linux::new(false);
    for number in 3..400 {
        linux.spawn("filler", number, None);
    }
    let victim = linux.live.borrow()[200];
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = TaskCheck::with_room(&profile, 1, 100).unwrap();
    tasks.pace = Pace::every(0);
    let mut findings = Vec::new();
    let slices = |tasks: &mut TaskCheck, count| {
        let mut findings = Vec::new();
        for _ in 0..count {
            tasks.step(&kernel, &mut CallBudget(100_000), &mut |f| findings.push(f), &mut 0);
        }
        findings
    };
    findings.extend(slices(&mut tasks, 50));
    assert_eq!(findings, vec![]);
    let coverage = Check::<crate::fake::FakeMemory>::coverage(&tasks);
    assert!((200..400).contains(&coverage.unjudged), "{coverage:?}");
    // Each pass judges other tasks: nothing hides behind the crowd.
    hide(&linux, victim, view::TASKS, Unlinked::Poison);
    findings.extend(slices(&mut tasks, 100));
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding.address == victim));
    // When the crowd is gone, everything is judged again.
    let crowd: Vec<u64> = linux.live.borrow()[30..200].to_vec();
    let more: Vec<u64> = linux.live.borrow()[201..].to_vec();
    crowd.into_iter().chain(more).for_each(|task| linux.exit(task));
    slices(&mut tasks, 20);
    assert_eq!(Check::<crate::fake::FakeMemory>::coverage(&tasks).unjudged, 0);
}

#[test]
fn damaged_thread_list_is_reported_and_stays() {
    let (linux, [_, leader, thread, _]) = system(false);
    linux.put(thread + linux::THREAD_NODE, 0xdead_0000_0000_0100);
    let (findings, _, passes) = run(&linux, 60, 100_000, |_| {});
    let of_list: Vec<_> =
        findings.iter().filter(|finding| finding.what == "damaged thread list").collect();
    assert!(passes >= 50 && of_list.len() >= 3, "{findings:?}");
    assert!(of_list[0].symbol.contains("leader"), "{}", of_list[0].symbol);
    let _ = leader;
}

#[test]
fn dropped_suspects_are_counted() {
    let (linux, _) = system(false);
    for number in 1000..1100 {
        linux.spawn("victim", number, None);
    }
    for task in linux.live.borrow()[70..].iter() {
        hide(&linux, *task, view::TASKS, Unlinked::Poison);
    }
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    let mut found = std::collections::BTreeSet::new();
    for _ in 0..400 {
        tasks.step(
            &kernel,
            &mut CallBudget(100_000),
            &mut |finding| {
                found.insert(finding.address);
            },
            &mut 0,
        );
    }
    assert!(Check::<crate::fake::FakeMemory>::coverage(&tasks).dropped > 0);
    // Those that had to wait get their turn once others are reported, and these still stand.
    assert!(found.len() > 90, "{}", found.len());
    let stands = |task| Check::<crate::fake::FakeMemory>::stands(&tasks, "hidden process", task);
    assert!(found.iter().all(|task| stands(*task)));
}

/// Slices so short that a pass takes hundreds of them: six passes are not over when 20 looks have seen it run.
#[test]
fn pid_that_leads_to_another_task_does_not_hide_one_that_runs() {
    let (linux, [alone, ..]) = system(false);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    linux.index_remove(alone);
    linux.spawn("other", 64, None);
    let runs = |step| linux.put(alone + linux::RUN_TIME, u64::from(step));
    let (findings, _, passes) = run(&linux, 150, 2, runs);
    assert!(passes < 6, "{passes}");
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding.address == alone));
    assert_eq!(run(&linux, 150, 2, |_| {}).0, vec![]);
}

/// It has a `pid` structure of its own, and sleeps.
#[test]
fn pid_that_leads_to_another_task_hides_nothing() {
    let (linux, [alone, leader, ..]) = system(false);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    let (_, slot) = linux.slot(64);
    linux.put(slot, linux.get(leader + linux::THREAD_PID));
    assert!(is_found(&linux, alone, SOON, |_| {}));
}

/// A task whose memory looks like the copy that a fork makes of process 1, except that it is in no list of that PID.
fn with_pid_of_init(linux: &Linux, task: u64) -> u64 {
    hide(linux, task, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    let init = linux.live.borrow()[0];
    linux.put(task + linux::THREAD_PID, linux.get(init + linux::THREAD_PID));
    init
}

#[test]
fn forged_pid_structure_hides_nothing_and_harms_nobody() {
    for (shown, symbol) in [(64, "alone, pid 64 (its pid structure: 1)"), (1, "alone, pid 1")] {
        let (linux, [alone, ..]) = system(false);
        let init = with_pid_of_init(&linux, alone);
        linux.put32(alone + linux::PID, shown);
        let findings = find(&linux);
        assert!(!findings.is_empty() && findings.iter().all(|finding| finding.address == alone));
        assert_eq!((findings[0].symbol.as_str(), findings[0].repairs.len()), (symbol, 1));
        linux.apply_all(&findings[0]);
        // The process list has it again, and process 1 has its PID for itself.
        let pid = linux.get(init + linux::THREAD_PID);
        for kind in 0..2 {
            let node = init + linux::LINKS + 16 * kind;
            assert_eq!((linux.get(pid + linux::PID_TASKS + 8 * kind), linux.get(node)), (node, 0));
        }
    }
}

/// A session keeps the PID of its first process when that has ended.
#[test]
fn pid_that_no_task_has_is_not_given_to_a_hidden_one() {
    let (linux, [alone, leader, ..]) = system(false);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    let pid = linux.get(leader + linux::THREAD_PID);
    hide(&linux, leader, view::PID | view::TGID, Unlinked::Alone);
    linux.put(leader + linux::SIGNAL, 0);
    linux.put(alone + linux::THREAD_PID, pid);
    let findings = find(&linux);
    let finding = findings.iter().find(|finding| finding.address == alone).unwrap();
    finding.repairs.iter().for_each(|repair| assert!(linux.apply(repair)));
    assert_eq!(linux.get(pid + linux::PID_TASKS), 0);
    assert_eq!(finding.repairs.len(), 1);
}

/// Passes take longer than the looks after which the memory of an exited task is dropped.
#[test]
fn pid_that_leads_to_another_task_hides_nothing_from_long_passes() {
    let (linux, [alone, ..]) = system(false);
    with_pid_of_init(&linux, alone);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let layout = check(&profile).layout;
    let mut task = suspect::judge(&kernel, &layout, alone, view::CGROUP, 0).unwrap();
    let confirmed = (0..10).any(|_| {
        for _ in 0..2000 {
            match task.recheck(&kernel, &layout) {
                Recheck::Clear => panic!("dropped in the middle of a pass"),
                Recheck::Confirmed(_) => return true,
                _ => {}
            }
        }
        task.another_pass(view::LISTED, 0);
        task.pass_ended();
        false
    });
    assert!(confirmed);
}
