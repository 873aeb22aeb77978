//! Hidden tasks are found, and the repairs put every structure right.

use super::*;
use crate::finding::Marking;

/// Expects findings for `task` only, whose repairs restore everything.
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
fn hidden_process_is_found_and_repaired() {
    // At least one of these must remain: only the process itself leads to its thread list.
    let reach = view::TASKS | view::PID | view::TGID | view::CGROUP;
    let all = reach | view::THREADS;
    for unlinked in UNLINKED_STATES {
        for views in (1..=all).filter(|views| views & !all == 0 && views & reach != reach) {
            let (linux, [alone, ..]) = system(true);
            hide(&linux, alone, views, unlinked);
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
fn hidden_thread_is_found_and_repaired() {
    for unlinked in UNLINKED_STATES {
        for ring in [false, true] {
            let ring_view = if ring { view::GROUP } else { 0 };
            let all = view::THREADS | ring_view | view::PID | view::CGROUP;
            for views in (1..=all).filter(|views| views & !all == 0 && *views != all) {
                let (linux, [.., thread, last]) = system(ring);
                for task in [thread, last] {
                    hide(&linux, task, views, unlinked);
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
fn findings_name_the_kind_of_task() {
    let (linux, [_, leader, thread, _]) = system(true);
    let kthreadd = linux.live.borrow()[1];
    hide(&linux, kthreadd, view::TASKS, Unlinked::Poison);
    expect_one(&linux, kthreadd, "hidden kernel thread", "in the process list");
    hide(&linux, leader, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    expect_one(
        &linux,
        leader,
        "hidden process",
        "in the process list, the PID index, its PID's process list",
    );
    hide(&linux, thread, view::THREADS, Unlinked::Poison);
    let findings = find(&linux);
    assert_eq!(findings[0].symbol, "thread, tid 701 of leader, pid 700");
    assert_eq!(findings[0].owner, "nobody");
    assert_eq!(
        findings[0].found,
        "only in its process's thread_group list, the PID index, its control group"
    );
}

#[test]
fn pid_is_put_back_into_the_index() {
    for (number, counted) in [(64, true), (64, false), (3, true), (70, true)] {
        let (linux, _) = system(false);
        // PIDs 64 to 127 are all in use: their node has no free slot, and its parent's mark says so.
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
        hide(&linux, task, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
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
fn lost_pid_is_reported_and_partly_repaired() {
    // The index's node was freed with its last PID.
    let (linux, [_, leader, thread, last]) = system(false);
    hide(&linux, leader, view::TASKS, Unlinked::Poison);
    let (node, _) = linux.slot(700);
    linux.put(linux.get(node + 8) + 40 + 8 * (700 >> 6), 0);
    let findings = find(&linux);
    for task in [leader, thread, last] {
        assert!(findings.iter().any(|finding| finding.address == task));
    }
    let of_leader = findings.iter().find(|finding| finding.address == leader).unwrap();
    assert_eq!(of_leader.repairs.len(), 1);
    linux.apply_all(of_leader);
    // The PID was given to another process.
    let (linux, [alone, ..]) = system(false);
    let pid = linux.get(alone + linux::THREAD_PID);
    hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
    linux.index_remove(alone);
    linux.spawn("other", 64, None);
    // It could be the copy made by a fork, but that would soon be in no list.
    assert_eq!(run(&linux, 5, 100_000, |_| {}).0, vec![]);
    let findings = find(&linux);
    assert!(findings[0].address == alone && findings[0].repairs.len() == 1);
    // The structure was freed, too.
    linux.put32(pid, 0);
    linux.apply_all(&findings[0]);
}

/// A handler in a module, and one in the kernel's image.
const MODULE: u64 = 0xffff_ffff_c000_0000;
const IMAGE: u64 = crate::fake::TEXT + 0x500;

/// Registers a probe at `at` and returns it.
fn probe(linux: &Linux, at: u64, handlers: [u64; 3]) -> u64 {
    let probe = linux.alloc(80);
    linux.put(probe, linux.get(linux::KPROBE_TABLE + 8));
    linux.put(linux::KPROBE_TABLE + 8, probe);
    linux.put(probe + 32, at);
    for (offset, handler) in [48, 56, 64].into_iter().zip(handlers) {
        linux.put(probe + offset, handler);
    }
    probe
}

#[test]
fn repairs_are_held_while_a_module_has_hooks() {
    let held = |hook: &dyn Fn(&Linux)| {
        let (linux, [alone, ..]) = system(false);
        hide(&linux, alone, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
        hook(&linux);
        let findings = find(&linux);
        assert!(!findings.is_empty());
        assert!(findings.iter().all(|f| f.address == alone));
        assert!(findings.iter().all(|f| f.repairs.is_empty() != f.held.is_empty()));
        !findings[0].held.is_empty()
    };
    let ops = |linux: &Linux, func, saved| {
        let ops = linux.alloc(64);
        linux.put(ops, func);
        linux.put(ops + 16, saved);
        linux.put(linux::OPS_LIST, ops);
    };
    let several = |linux: &Linux, handler| {
        let all = probe(linux, IMAGE, [linux::AGGREGATE, 0, 0]);
        let one = linux.alloc(80);
        linux.put(one + 48, handler);
        for (from, to) in [(all + 16, one + 16), (one + 16, all + 16)] {
            linux.put(from, to);
        }
    };
    let exit_point = |linux: &Linux, function| {
        let handlers = linux.alloc(96);
        linux.put(handlers, IMAGE);
        linux.put(handlers + 24, function);
        linux.put(linux::EXIT_POINT + 24, handlers);
    };
    assert!(!held(&|_| {}));
    // Tracers and BPF: their handlers are Linux's own.
    assert!(!held(&|linux| {
        probe(linux, IMAGE, [IMAGE, 0, 0]);
        probe(linux, IMAGE + 64, [linux::ALL_RETURNS, 0, IMAGE]);
        probe(linux, linux::CRASH_KEXEC + 4, [MODULE, 0, 0]);
        several(linux, IMAGE);
        ops(linux, IMAGE, IMAGE);
        exit_point(linux, IMAGE);
    }));
    assert!(held(&|linux| {
        probe(linux, IMAGE, [MODULE, 0, 0]);
    }));
    assert!(held(&|linux| {
        probe(linux, IMAGE, [0, MODULE, 0]);
    }));
    assert!(held(&|linux| {
        probe(linux, IMAGE, [linux::ALL_RETURNS, 0, MODULE]);
    }));
    assert!(held(&|linux| several(linux, MODULE)));
    assert!(held(&|linux| ops(linux, MODULE, 0)));
    assert!(held(&|linux| ops(linux, IMAGE, MODULE)));
    assert!(held(&|linux| exit_point(linux, MODULE)));
}

#[test]
fn one_sided_unlink_is_repaired() {
    let (linux, [alone, ..]) = system(false);
    let node = alone + linux::TASKS;
    let (next, prev) = (linux.get(node), linux.get(node + 8));
    linux.put(prev, next);
    expect_one(&linux, alone, "hidden process", "in the process list");
    assert_eq!((linux.get(node), linux.get(node + 8)), (next, prev));
}

#[test]
fn node_that_a_neighbour_leads_to_is_not_moved() {
    // Two processes side by side, past which the list leads forwards only: each neighbour still leads back to them.
    let (linux, [alone, leader, ..]) = system(false);
    let [first, last] = [alone, leader].map(|task| task + linux::TASKS);
    let (before, behind) = (linux.get(first + 8), linux.get(last));
    linux.put(before, behind);
    for _ in 0..4 {
        let findings = find(&linux);
        assert!(findings.iter().any(|finding| finding.address == alone));
        for repair in findings.iter().flat_map(|finding| &finding.repairs) {
            linux.apply(repair);
        }
    }
    let back = [behind, last, first, before];
    assert!(back.windows(2).all(|pair| linux.get(pair[0] + 8) == pair[1]));
    assert_eq!((linux.get(before), linux.get(first), linux.get(last)), (behind, last, behind));
}

/// An exit unlinks what is left. A node that is alone, and an empty slot of the index, do not change by it.
#[test]
fn nothing_is_repaired_once_the_task_exits() {
    for (views, unlinked) in [(view::CGROUP, Unlinked::Alone), (0, Unlinked::Poison)] {
        let (linux, [alone, ..]) = system(true);
        hide(&linux, alone, views, unlinked);
        if views == 0 {
            linux.index_remove(alone);
        }
        let findings = find(&linux);
        assert!(!findings.is_empty() && findings.iter().all(|f| !f.repairs.is_empty()));
        linux.exit(alone);
        for repair in findings.iter().flat_map(|finding| &finding.repairs) {
            assert!(!linux.apply(repair), "{views:#x}: {repair:?}");
        }
        linux.check_sound();
    }
}

/// Other memory at the same address has another start time.
#[test]
fn nothing_is_repaired_in_a_new_task() {
    let (linux, [alone, ..]) = system(true);
    hide(&linux, alone, view::CGROUP, Unlinked::Alone);
    let findings = find(&linux);
    linux.put(alone + linux::START, linux.get(alone + linux::START) + 1);
    let repairs: Vec<_> = findings.iter().flat_map(|finding| &finding.repairs).collect();
    assert!(!repairs.is_empty() && repairs.iter().all(|repair| !linux.apply(repair)));
}

#[test]
fn a_process_is_ended_by_a_signal_for_each_thread() {
    let (linux, [alone, leader, thread, _]) = system(true);
    hide(&linux, alone, view::TASKS, Unlinked::Alone);
    let read = |address: u64| Some(linux.memory.get(address));
    let apply = |marking: &Marking| {
        marking.transaction(read).is_some_and(|transaction| linux.apply(&transaction))
    };
    let [stop] = &find(&linux)[0].stop[..] else { panic!("one thread") };
    let handlers = linux.get(alone + linux::SIGHAND);
    // The lock is held.
    linux.put32(handlers + linux::SIGLOCK, 1);
    assert!(!apply(stop));
    linux.put32(handlers + linux::SIGLOCK, 0);
    // What shares words with flags and lock may change.
    linux.put32(handlers + linux::SIGLOCK + 4, 77);
    assert!(apply(stop));
    // SIGKILL is number 9; TIF_SIGPENDING is bit 2.
    let pending = |task: u64| (linux.get(task + linux::WAITING), linux.get(task + linux::TO_DO));
    assert_eq!(pending(alone), (1 << 8, 4));
    linux.put(alone + linux::WAITING, 0);
    linux.put(alone + linux::START, linux.get(alone + linux::START) + 1);
    assert!(!apply(stop), "another task");
    // Each thread gets one, the one that was found first.
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let layout = TaskLayout::new(&profile).unwrap();
    let stop = |task| repair::stop(&kernel, &layout, task, linux.get(task + linux::START));
    let threads = stop(thread);
    assert!(threads.len() >= 2);
    assert!(apply(&threads[0]));
    assert_eq!((pending(thread), pending(leader)), ((1 << 8, 4), (0, 0)));
    assert!(threads.iter().all(apply));
    assert_eq!(pending(leader), (1 << 8, 4));
    // Nothing else is ended: the first process, the kernel's own, what ends anyway, and what is another task by now.
    assert_eq!(repair::stop(&kernel, &layout, thread, 1), []);
    linux.put32(thread + linux::PID + 4, 1);
    assert_eq!(stop(thread), []);
    for flag in [0x20_0000, 4, 0x10, 0x4000] {
        linux.put32(alone + linux::FLAGS, flag);
        assert_eq!(stop(alone), [], "{flag:#x}");
    }
}
