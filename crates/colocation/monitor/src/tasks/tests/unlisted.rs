//! Tasks that every structure of tasks lacks: what is left is what Linux needs to run them, and their relatives.

use super::linux::*;
use super::*;

/// Everything that a task must be in.
const EVERYTHING: u8 = view::ALL & !view::QUEUE;

/// A system, and a process with a second thread that no list has; `kept` links of relatives stay.
fn hidden_system(ring: bool, keeps_parent: bool, keeps_groups: bool) -> (Linux, u64) {
    let (linux, _) = system(ring);
    let task = linux.spawn("rootkit", 65, None);
    remove(&linux, task, keeps_parent, keeps_groups);
    (linux, task)
}

fn remove(linux: &Linux, task: u64, keeps_parent: bool, keeps_groups: bool) {
    hide(linux, task, EVERYTHING & !view::GROUP, Unlinked::Alone);
    linux.index_remove(task);
    if !keeps_parent {
        linux.list_del(task + SIBLING, Unlinked::Alone);
    }
    if !keeps_groups {
        linux.hash_del(task + LINKS + 32, Unlinked::Alone);
        linux.hash_del(task + LINKS + 48, Unlinked::Alone);
    }
    linux.live.borrow_mut().retain(|other| *other != task);
}

fn texts(findings: &[Finding]) -> Vec<(u64, &str, &str)> {
    findings.iter().map(|it| (it.address, it.what.as_str(), it.found.as_str())).collect()
}

const QUEUED: &str = "only in a CPU's run queue";
const RELATED: &str = "only by its parent, process group, session or threads";

#[test]
fn sleeping_task_without_any_entry_is_not_found() {
    let (linux, _) = hidden_system(false, false, false);
    assert_eq!(find(&linux), vec![]);
}

#[test]
fn running_task_is_found_and_put_back() {
    for ring in [false, true] {
        let (linux, task) = hidden_system(ring, false, false);
        linux.schedule(task, &[]);
        let findings = find(&linux);
        assert_eq!(texts(&findings)[0], (task, "hidden process", QUEUED));
        linux.apply_all(&findings[0]);
        linux.live.borrow_mut().push(task);
        linux.check_sound();
    }
}

/// The places in which a task that waits or runs may be.
const PLACES: [&str; 6] =
    ["fair", "group", "current of a group", "real time", "deadline", "extensible"];

/// Puts `task` into a queue, in this place only.
fn enqueue(linux: &Linux, task: u64, place: &str) {
    let queue = AREA + RUN_QUEUE;
    let others: Vec<u64> = linux.live.borrow()[4..9].to_vec();
    let group = linux.alloc(32);
    let member = linux.alloc(TASK_BYTES);
    linux.put(member + ENTITY + GROUP_QUEUE, group);
    match place {
        "fair" => linux.schedule(others[0], &[others[1], others[2], task]),
        "group" => {
            linux.hang(queue + FAIR + FAIR_ROOT, &[member]);
            linux.hang(group + FAIR_ROOT, &[task]);
        }
        "current of a group" => {
            linux.put(queue + FAIR, member + ENTITY);
            linux.put(group, task + ENTITY);
        }
        "real time" => {
            linux.list_add_tail(task + RT_NODE, queue + REAL_TIME + 8 + 16 * 3);
            linux.put(queue + REAL_TIME, 1 << 8 | 1 << 3);
        }
        "deadline" => {
            // An entity of the run queue itself comes before the task's.
            let own = queue + 280;
            linux.put(queue + DEADLINE, own);
            linux.put(own + 8, task + DL_NODE);
            linux.put(task + DL_NODE, own);
        }
        "extensible" => linux.list_add_tail(task + SCX_NODE, queue + EXTENSIBLE),
        _ => panic!("{place}"),
    }
}

#[test]
fn waiting_task_is_found_in_the_queue_of_each_class() {
    for place in PLACES {
        let (linux, task) = hidden_system(false, false, false);
        enqueue(&linux, task, place);
        assert_eq!(texts(&find(&linux))[0], (task, "hidden process", QUEUED), "{place}");
    }
}

#[test]
fn what_is_queued_without_a_task_is_no_finding() {
    let (linux, [alone, ..]) = system(false);
    let queue = AREA + RUN_QUEUE;
    // An idle CPU, with an entity of the run queue's own.
    linux.put(queue + DEADLINE, queue + 280);
    assert_eq!(find(&linux), vec![]);
    let idle = linux.spawn("idle", 66, None);
    remove(&linux, idle, false, false);
    linux.put(queue, idle);
    linux.put(queue + 8, idle);
    assert_eq!(find(&linux), vec![]);
    // Nor is what a queue shows while it changes.
    for wild in [0, 8, 0xdead_0000_0000_0100, alone + 8, alone + 64, queue] {
        for at in [queue, queue + FAIR, queue + FAIR + FAIR_ROOT, queue + DEADLINE] {
            linux.put(at, wild);
            linux.put(queue + EXTENSIBLE, wild);
            linux.put(queue + REAL_TIME + 8, wild);
            linux.put(queue + REAL_TIME, 1);
            assert_eq!(find(&linux), vec![], "{wild:#x} at {at:#x}");
        }
    }
}

#[test]
fn cycles_in_a_queue_end() {
    let (linux, [alone, leader, ..]) = system(false);
    let queue = AREA + RUN_QUEUE;
    linux.schedule(alone, &[leader]);
    let node = leader + ENTITY;
    for (at, value) in [
        (node + 8, node),
        (node + 16, node),
        (node + GROUP_QUEUE, queue + FAIR),
        (leader + SCX_NODE, leader + SCX_NODE),
        (queue + EXTENSIBLE, leader + SCX_NODE),
        (queue + REAL_TIME, u64::MAX),
        (queue + REAL_TIME + 8, leader + SCX_NODE),
    ] {
        linux.put(at, value);
        let (findings, _, passes) = run(&linux, 10, 100_000, |_| {});
        assert_eq!((findings, passes), (vec![], 10), "{at:#x}");
    }
}

#[test]
fn thread_on_a_cpu_leads_to_its_process() {
    let (linux, [_, leader, thread, last]) = system(false);
    for task in [leader, thread, last] {
        let kept = if task == leader { 0 } else { view::TGID };
        hide(&linux, task, EVERYTHING & !view::GROUP & !kept, Unlinked::Alone);
        linux.index_remove(task);
    }
    linux.list_del(leader + SIBLING, Unlinked::Alone);
    linux.hash_del(leader + LINKS + 32, Unlinked::Alone);
    linux.hash_del(leader + LINKS + 48, Unlinked::Alone);
    linux.schedule(thread, &[]);
    let findings = find(&linux);
    let found = texts(&findings);
    assert!(found.contains(&(thread, "hidden thread", QUEUED)), "{found:?}");
    assert!(found.contains(&(leader, "hidden process", RELATED)), "{found:?}");
}

#[test]
fn sleeping_process_is_found_by_its_relatives() {
    for (keeps_parent, keeps_groups) in [(true, false), (false, true)] {
        let (linux, task) = hidden_system(false, keeps_parent, keeps_groups);
        let (findings, ..) = run(&linux, 100, 100_000, |_| {});
        assert_eq!(texts(&findings)[0], (task, "hidden process", RELATED));
    }
}

#[test]
fn task_that_ends_on_its_cpu_is_no_finding_and_no_suspect() {
    let (linux, [alone, ..]) = system(false);
    linux.exit(alone);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let mut tasks = TaskCheck::new(&profile, 1).unwrap();
    linux.schedule(alone, &[]);
    let mut findings = Vec::new();
    let mut step = |tasks: &mut TaskCheck| {
        tasks.step(&kernel, &mut CallBudget(100_000), &mut |it| findings.push(it), &mut 0)
    };
    assert!(matches!(step(&mut tasks), Step::Done(_)));
    assert!(tasks.suspects.is_empty(), "the next pass need not come at once");
    // It has ended by the next pass.
    linux.schedule(INIT_TASK, &[]);
    (0..200).for_each(|_| {
        step(&mut tasks);
    });
    assert_eq!(findings, vec![]);
}

#[test]
fn task_that_claims_to_be_dead_and_runs_is_found() {
    let (linux, task) = hidden_system(false, false, false);
    linux.put32(task + EXIT_STATE, 0x10);
    linux.put(task + SIGHAND, 0);
    linux.schedule(task, &[]);
    let run_on = |step| linux.put(task + RUN_TIME, u64::from(step));
    let (findings, ..) = run(&linux, 100, 100_000, run_on);
    assert_eq!(texts(&findings)[0], (task, "hidden process", QUEUED));
}

#[test]
fn cpus_that_cannot_be_there_have_no_queue() {
    let (linux, task) = hidden_system(false, false, false);
    linux.schedule(task, &[]);
    linux.put(POSSIBLE_CPUS, 0);
    assert_eq!(find(&linux), vec![]);
}

#[test]
fn listing_has_a_task_that_only_a_queue_has() {
    let (linux, task) = hidden_system(false, false, false);
    linux.schedule(task, &[]);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let all = listing::list(&kernel).unwrap();
    let row = all.tasks.iter().find(|row| row.address == task).unwrap();
    assert_eq!((row.pid, row.missing.len(), row.is_in_flux), (65, 5, false));
    let known = listing::in_lists(&kernel).unwrap();
    assert_eq!(known.tasks.len() + 1, all.tasks.len());
}
