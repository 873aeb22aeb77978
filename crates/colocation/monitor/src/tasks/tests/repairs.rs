//! Hidden tasks are found, and the repairs put every structure right.

use super::*;

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
    expect_one(&linux, kthreadd, "hidden kernel thread", "in the process list");
    hide(&linux, leader, view::TASKS | view::PID | view::TGID, Leave::Poison);
    expect_one(
        &linux,
        leader,
        "hidden process",
        "in the process list, the PID index, its PID's process list",
    );
    hide(&linux, thread, view::THREADS, Leave::Poison);
    let findings = find(&linux);
    assert_eq!(findings[0].symbol, "thread, tid 701 of leader, pid 700");
    assert_eq!(findings[0].owner, "nobody");
    assert_eq!(
        findings[0].found,
        "only in its process's thread_group list, the PID index, its control group"
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
        let missing = "in the process list, the PID index, its PID's process list";
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
    expect_one(&linux, alone, "hidden process", "in the process list");
    assert_eq!((linux.get(node), linux.get(node + 8)), (next, prev));
}
