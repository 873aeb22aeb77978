//! Attackers who leave the structures as they are, and forge what leads from one to another.

use super::linux::*;
use super::*;

/// The slices within which a hidden task must be found: a second at the default rate.
const SOON: u32 = 100;

/// The findings of `steps` slices, which are about `task` only.
fn found(linux: &Linux, task: u64, steps: u32, between: impl FnMut(u32)) -> Vec<Finding> {
    let (findings, ..) = run(linux, steps, 100_000, between);
    assert!(findings.iter().all(|finding| finding.address == task), "{findings:?}");
    assert!(!findings.is_empty(), "not found");
    findings
}

/// Makes `task` the second one in the list of type `kind` at `pid`.
fn put_behind(linux: &Linux, task: u64, pid: u64, kind: u64) {
    let node = task + LINKS + 16 * kind;
    linux.hash_del(node, Unlinked::Alone);
    let first = linux.get(pid + PID_TASKS + 8 * kind);
    linux.put(node, linux.get(first));
    linux.put(node + 8, first);
    linux.put(first, node);
}

/// Linux looks at the first task of a PID only. What leads to another one would go on to after a repair.
#[test]
fn second_task_of_a_pid_is_hidden_and_stays_there() {
    for kinds in [0..1, 1..2, 0..2] {
        for shares_number in [false, true] {
            let (linux, [alone, leader, ..]) = system(false);
            let (own, pid) = (linux.get(alone + THREAD_PID), linux.get(leader + THREAD_PID));
            kinds.clone().for_each(|kind| put_behind(&linux, alone, pid, kind));
            linux.put(linux.slot(64).1, 0);
            if shares_number {
                linux.put(alone + THREAD_PID, pid);
            }
            let findings = found(&linux, alone, SOON, |_| {});
            assert_eq!(findings[0].expected, "in the PID index, its PID's process list");
            assert_eq!(findings[0].repairs, vec![]);
            let _ = own;
        }
    }
}

/// A listing of `/proc` shows the number of the structure, which is another process's.
#[test]
fn pid_structure_with_the_number_of_another_process_is_found() {
    let (linux, [alone, ..]) = system(false);
    linux.put32(linux.get(alone + THREAD_PID) + NUMBERS, 700);
    let findings = found(&linux, alone, SOON, |_| {});
    assert_eq!(findings[0].symbol, "alone, pid 64 (its pid structure: 700)");
    assert_eq!(findings[0].repairs, vec![]);
}

/// A listing of a process's threads leaves out those without a number.
#[test]
fn thread_without_its_pid_structure_is_found_and_gets_it_back() {
    let (linux, [.., thread, _]) = system(true);
    linux.put(thread + THREAD_PID, 0);
    let findings = found(&linux, thread, SOON, |_| {});
    assert_eq!(findings[0].expected, "in the PID index");
    linux.apply_all(&findings[0]);
    linux.check_sound();
    assert_eq!(find(&linux), vec![]);
}

#[test]
fn task_of_no_process_is_found_by_its_lists_and_not_put_back() {
    for (member, value) in [(LEADER, INIT_TASK), (LEADER, 0x5678), (SIGNAL, 0x1234)] {
        let (linux, [_, _, thread, _]) = system(false);
        hide(&linux, thread, view::PID, Unlinked::Alone);
        linux.list_del(thread + THREAD_NODE, Unlinked::Alone);
        linux.put(thread + member, value);
        let findings = found(&linux, thread, SOON, |_| {});
        assert!(findings[0].repairs.is_empty() && !findings[0].held.is_empty());
    }
}

/// A system, and a process that nothing but a run queue has.
fn running_system() -> (Linux, u64) {
    let (linux, _) = system(false);
    let task = linux.spawn("rootkit", 65, None);
    hide(&linux, task, EVERYTHING, Unlinked::Alone);
    linux.index_remove(task);
    linux.list_del(task + SIBLING, Unlinked::Alone);
    for link in [32, 48] {
        linux.hash_del(task + LINKS + link, Unlinked::Alone);
    }
    linux.schedule(task, &[]);
    (linux, task)
}

#[test]
fn number_of_cpus_that_is_too_small_hides_no_queue() {
    let (linux, task) = running_system();
    linux.put32(CPU_COUNT, 0);
    found(&linux, task, SOON, |_| {});
}

#[test]
fn task_of_no_process_is_found_when_it_runs() {
    let (linux, task) = running_system();
    linux.put(task + LEADER, INIT_TASK);
    assert_eq!(find(&linux), vec![], "it may be the rest of a task that has just ended");
    let runs = |step| linux.put(task + RUN_TIME, u64::from(step));
    let findings = found(&linux, task, SOON, runs);
    assert_eq!(findings[0].found, "only in a CPU's run queue");
}

/// A dead first thread is no excuse for a process that lives.
#[test]
fn dead_first_thread_that_is_no_task_is_found_and_not_put_back() {
    let (linux, [alone, ..]) = system(false);
    let decoy = linux.alloc(TASK_BYTES);
    for (member, value) in [
        (LEADER, decoy),
        (SIGNAL, linux.get(alone + SIGNAL)),
        (START, linux.get(alone + START)),
        (PID, linux.get(alone + PID)),
        (STATE, 0x80),
    ] {
        linux.put(decoy + member, value);
    }
    linux.put32(decoy + EXIT_STATE, 0x10);
    hide(&linux, alone, view::TGID, Unlinked::Alone);
    linux.put(alone + LEADER, decoy);
    let findings = found(&linux, decoy, SOON, |_| {});
    assert!(findings[0].repairs.is_empty() && !findings[0].held.is_empty());
}

/// An array of list nodes that lead from one to the next; `first` and `last` are the ends.
fn chain(linux: &Linux, count: u64, bytes: u64) -> (u64, u64) {
    // The members of what seems to be a task lie before its node.
    let nodes = linux.alloc(count * bytes + 4096) + 2048 + THREAD_NODE % 16;
    let at = |number: u64| nodes + bytes * number;
    for number in 1..count {
        linux.put(at(number - 1), at(number));
        linux.put(at(number) + 8, at(number - 1));
    }
    (at(0), at(count - 1))
}

#[test]
fn crowd_in_a_thread_list_is_damage_and_hides_nothing() {
    let (linux, [alone, leader, _, last]) = system(false);
    let (first, end) = chain(&linux, 20_000, 16);
    let head = linux.get(leader + SIGNAL) + THREAD_HEAD;
    for (from, to) in [(last + THREAD_NODE, first), (end, head)] {
        linux.put(from, to);
        linux.put(to + 8, from);
    }
    hide(&linux, alone, view::TASKS, Unlinked::Poison);
    let (findings, _, passes) = run(&linux, 200, 100, |_| {});
    assert!(passes > 10, "{passes}");
    assert!(findings.iter().any(|finding| finding.address == alone));
    assert!(findings.iter().any(|finding| finding.what == "damaged thread list"));
}

/// A list that is longer than there are PIDs leaves room for the rest.
#[test]
fn endless_list_ends_the_pass_and_not_the_check() {
    let (linux, [alone, ..]) = system(false);
    let (first, end) = chain(&linux, 40_000, 16);
    let head = INIT_TASK + TASKS;
    for (from, to) in [(linux.get(head + 8), first), (end, head)] {
        linux.put(from, to);
        linux.put(to + 8, from);
    }
    hide(&linux, alone, view::PID | view::TGID, Unlinked::Poison);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = check(&profile);
    let (mut found, mut cut) = (false, 0);
    for _ in 0..60 {
        let mut see = |finding: Finding| found |= finding.address == alone;
        tasks.step(&kernel, &mut CallBudget(100_000), &mut see, &mut 0);
        cut += u64::from(Check::<crate::fake::FakeMemory>::coverage(&tasks).unjudged > 0);
    }
    assert!(found && cut > 0, "{found} {cut}");
}

#[test]
fn process_that_seems_to_change_hides_no_thread_of_another() {
    for ends in [false, true] {
        let (linux, [.., last]) = system(false);
        let crowd = linux.spawn("crowd", 800, None);
        for number in 801..900 {
            linux.spawn("thread", number, Some(crowd));
        }
        let mate = linux.alloc(16);
        let node = last + THREAD_NODE;
        linux.list_del(node, Unlinked::Stale);
        for (from, to) in [(node, mate), (mate, node)] {
            linux.put(from, to);
            linux.put(from + 8, to);
        }
        if ends {
            linux.put32(crowd + STATE, 0x80);
            linux.put32(crowd + EXIT_STATE, 0x20);
        }
        let (findings, ..) = run(&linux, 3000, 10, |step| {
            if !ends {
                linux.put(crowd + START, 1000 + u64::from(step));
            }
        });
        assert!(!findings.is_empty() && findings.iter().all(|it| it.address == last), "{ends}");
    }
}

/// Its neighbours may have gone to another control group together.
#[test]
fn process_goes_back_to_its_own_control_group() {
    let (linux, [alone, leader, ..]) = system(false);
    let node = alone + CG_LIST;
    let before = linux.get(node + 8) - CG_LIST;
    assert_eq!(linux.get(node) - CG_LIST, leader);
    hide(&linux, alone, view::CGROUP, Unlinked::Stale);
    let (own, other) = (linux.get(alone + CGROUPS), linux.get(linux.live.borrow()[0] + CGROUPS));
    assert_ne!(own, other);
    for task in [before, leader] {
        linux.list_del(task + CG_LIST, Unlinked::Alone);
        linux.put(task + CGROUPS, other);
        linux.list_add_tail(task + CG_LIST, other);
    }
    let findings = found(&linux, alone, SOON, |_| {});
    linux.apply_all(&findings[0]);
    linux.check_sound();
    assert_eq!(linux.get(own + 8), node);
    // They go when the repair is on its way.
    let (linux, [alone, leader, ..]) = system(false);
    hide(&linux, alone, view::CGROUP, Unlinked::Stale);
    let findings = found(&linux, alone, SOON, |_| {});
    linux.put(leader + CGROUPS, other);
    assert!(!linux.apply(&findings[0].repairs[0]));
}

/// Linux takes a first thread that is the last one of the list for the only one, and forgets the others.
#[test]
fn first_thread_goes_back_to_the_front() {
    for forged in [false, true] {
        let (linux, [_, leader, thread, last]) = system(false);
        hide(&linux, leader, view::THREADS, Unlinked::Alone);
        if forged {
            linux.put(leader + THREAD_NODE, last + THREAD_NODE);
            linux.put(leader + THREAD_NODE + 8, thread + THREAD_NODE);
        }
        linux.apply_all(&found(&linux, leader, SOON, |_| {})[0]);
        linux.check_sound();
        let head = linux.get(leader + SIGNAL) + THREAD_HEAD;
        assert_eq!(linux.get(head), leader + THREAD_NODE, "{forged}");
    }
    // Nor does another one come before it.
    let (linux, [_, leader, thread, last]) = system(false);
    let head = linux.get(leader + SIGNAL) + THREAD_HEAD;
    hide(&linux, thread, view::THREADS, Unlinked::Alone);
    linux.put(thread + THREAD_NODE, leader + THREAD_NODE);
    linux.put(thread + THREAD_NODE + 8, head);
    linux.apply_all(&found(&linux, thread, SOON, |_| {})[0]);
    assert_eq!([linux.get(head), linux.get(head + 8)], [leader, thread].map(|it| it + THREAD_NODE));
    let _ = last;
}

/// Linux would not take it out again when it ends.
#[test]
fn thread_that_says_it_is_the_first_is_not_put_among_processes() {
    let (linux, [_, _, thread, _]) = system(false);
    linux.put(thread + LEADER, thread);
    let findings = found(&linux, thread, SOON, |_| {});
    assert_eq!(findings[0].expected, "in the process list, its PID's process list");
    assert_eq!(findings[0].repairs, vec![]);
}

/// A fork reserves a slot of the index before it fills it.
#[test]
fn reserved_slots_of_the_index_count() {
    let (linux, [alone, ..]) = system(false);
    let reserved = linux.spawn("fork", 66, None);
    hide(&linux, reserved, EVERYTHING, Unlinked::Alone);
    linux.put(linux.slot(66).1, 0);
    hide(&linux, alone, view::PID | view::TGID, Unlinked::Alone);
    linux.index_remove(alone);
    let findings = find(&linux);
    let finding = findings.iter().find(|finding| finding.address == alone).unwrap();
    linux.apply_all(finding);
    let (node, slot) = linux.slot(64);
    assert_eq!(linux.get(slot), linux.get(alone + THREAD_PID));
    let used = u64::from(64 - linux.get(node + MARKS).count_ones());
    assert_eq!((used, linux.get(node) >> 16 & 0xff), (2, 2));
}

/// Everything that a task must be in.
const EVERYTHING: u8 = view::ALL & !view::QUEUE & !view::GROUP;
