//! Looks at repaired links: a second insertion is seen and can be taken back, and nothing else is.

use super::*;
use crate::fake::{FakeMemory, RandomNumbers};
use crate::finding::Repair;
use crate::tasks::verify::verify;
use std::collections::VecDeque;

const LISTS: u8 = view::TASKS | view::THREADS | view::GROUP | view::CGROUP;

/// Hides `task` from `views` and repairs that; returns the links that were written.
fn repaired(linux: &Linux, task: u64, views: u8, unlinked: Unlinked) -> Vec<Links> {
    hide(linux, task, views, unlinked);
    let findings = find(linux);
    linux.apply_all(&findings[0]);
    linux.check_sound();
    findings[0].repairs.iter().filter_map(|repair| repair.links).collect()
}

fn look(linux: &Linux, links: &Links) -> Verdict {
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    Check::<FakeMemory>::verify(&check(&profile), &kernel, links)
}

/// The transaction that takes the repair of torn `links` back.
#[track_caller]
fn taken_back(linux: &Linux, links: &Links) -> Repair {
    match look(linux, links) {
        Verdict::Torn(Some(repair)) => repair,
        other => panic!("{other:x?} for {links:x?}"),
    }
}

/// `list_add(node, prev)` without the test of its arguments that some kernels have.
fn list_add(linux: &Linux, node: u64, prev: u64) {
    let next = linux.get(prev);
    linux.put(next + 8, node);
    linux.put(node, next);
    linux.put(node + 8, prev);
    linux.put(prev, node);
}

/// The head of the list that `links` belong to.
fn head(linux: &Linux, links: &Links) -> u64 {
    let at = |member| linux.get(links.object + member);
    match links.list {
        view::TASKS => linux::INIT_TASK + linux::TASKS,
        view::THREADS => at(linux::SIGNAL) + linux::THREAD_HEAD,
        view::GROUP => at(linux::LEADER) + linux::THREAD_GROUP,
        view::CGROUP => at(linux::CGROUPS),
        _ => links.before,
    }
}

#[test]
fn ordinary_repair_is_consistent() {
    for unlinked in UNLINKED_STATES {
        let (linux, [alone, leader, thread, last]) = system(true);
        let process = view::TASKS | view::PID | view::TGID | view::CGROUP;
        let mut links = Vec::new();
        for (task, views) in [
            (alone, view::TASKS | view::PID | view::TGID),
            (alone, process & !view::TASKS | view::THREADS),
            (leader, process & !view::CGROUP),
            (thread, view::THREADS | view::GROUP | view::PID),
            (last, view::CGROUP | view::GROUP),
        ] {
            links.extend(repaired(&linux, task, views, unlinked));
        }
        assert_eq!(links.len(), 3 + 4 + 3 + 3 + 2);
        assert!(links.iter().all(|links| look(&linux, links) == Verdict::Consistent));
        // Hidden once more: the pass finds that, and no link contradicts another.
        for unlinked in UNLINKED_STATES {
            let log = || linux.log.borrow_mut();
            *log() = Some(Vec::new());
            hide(&linux, alone, view::TASKS | view::PID | view::TGID, unlinked);
            assert!(links.iter().all(|links| look(&linux, links) == Verdict::Consistent));
            let writes = log().take().unwrap();
            writes.iter().rev().for_each(|(address, old, _)| linux.put(*address, *old));
        }
    }
}

#[test]
fn second_insertion_is_taken_back() {
    for unlinked in UNLINKED_STATES {
        for place in 0..4 {
            let (linux, [alone, _, thread, last]) = system(true);
            let mut links = Vec::new();
            for (task, views) in [
                (alone, view::TASKS | view::PID | view::TGID),
                (thread, view::THREADS | view::GROUP | view::PID),
                (last, view::CGROUP | view::PID),
            ] {
                links.extend(repaired(&linux, task, views, unlinked));
            }
            for links in &links {
                let node = links.node;
                let init = linux.live.borrow()[0];
                match place {
                    _ if links.list & LISTS == 0 => linux.hash_add(links.before, node),
                    0 => linux.list_add_tail(node, head(&linux, links)),
                    1 => list_add(&linux, node, links.before),
                    2 => linux.list_add_tail(node, links.behind),
                    // Elsewhere, if the list has another place.
                    _ if links.list == view::TASKS => list_add(&linux, node, init + linux::TASKS),
                    _ => list_add(&linux, node, head(&linux, links)),
                }
                assert!(linux.apply(&taken_back(&linux, links)), "{place} {links:x?}");
                linux.check_sound();
                assert_eq!(look(&linux, links), Verdict::Consistent);
            }
        }
    }
}

#[test]
fn links_that_have_changed_are_not_taken_back() {
    let (linux, [alone, leader, ..]) = system(false);
    let [links] = repaired(&linux, alone, view::TASKS, Unlinked::Poison)[..] else { panic!() };
    assert_eq!(links.behind, linux::INIT_TASK + linux::TASKS);
    list_add(&linux, links.node, linux::INIT_TASK + linux::TASKS);
    let repair = taken_back(&linux, &links);
    // A new task behind it, or a lock that is held: the transaction fails.
    for (at, value) in [(links.behind + 8, leader), (linux::TASKLIST_LOCK, 0x200)] {
        let old = linux.get(at);
        linux.put(at, value);
        assert!(!linux.apply(&repair));
        linux.put(at, old);
    }
    // The same before the look: there is no transaction.
    linux.put(links.behind + 8, links.before);
    assert_eq!(look(&linux, &links), Verdict::Torn(None));
    // A neighbour that something else unlinked on one side.
    let (linux, [alone, ..]) = system(false);
    let [links] = repaired(&linux, alone, view::TASKS, Unlinked::Stale)[..] else { panic!() };
    linux.put(linux.get(links.before + 8), links.node);
    assert_eq!(look(&linux, &links), Verdict::Torn(None));
}

type Change<'a> = &'a dyn Fn(&Linux, u64);

#[test]
fn task_that_is_gone_is_unknown() {
    let torn = |linux: &Linux, links: &Links| linux.hash_add(links.before, links.node);
    let cases: [Change<'_>; 5] = [
        &|linux, task| linux.exit(task),
        &|linux, task| {
            linux.exit(task);
            linux.spawn("another", 64, None);
        },
        &|linux, task| linux.put(task + linux::START, 77),
        &|linux, _| linux.put32(linux::TASKLIST_LOCK, 0xff),
        &|linux, task| linux.put32(task + linux::EXIT_STATE, 0x10),
    ];
    for (number, end) in cases.into_iter().enumerate() {
        let (linux, [alone, ..]) = system(false);
        let views = view::PID | view::TGID;
        let links = repaired(&linux, alone, views, Unlinked::Poison);
        let mut repair = None;
        if number > 1 {
            torn(&linux, &links[0]);
            repair = Some(taken_back(&linux, &links[0]));
        }
        end(&linux, alone);
        assert!(links.iter().all(|links| look(&linux, links) == Verdict::Unknown), "{number}");
        // The transaction of an earlier look does not run either, unless the task is only about to end.
        if let Some(repair) = repair.filter(|_| number < 4) {
            assert!(!linux.apply(&repair), "{number}");
        }
    }
}

#[test]
fn forks_and_exits_tear_nothing() {
    for seed in 1..=crate::fake::rounds(12) {
        let linux = Linux::new(seed % 2 == 0);
        for number in 3..20 {
            linux.spawn("filler", number, None);
        }
        let process = linux.spawn("process", 900, None);
        let thread = linux.spawn("thread", 901, Some(process));
        for number in 20..30 {
            linux.spawn("filler", number, None);
        }
        let unlinked = UNLINKED_STATES[seed as usize % 3];
        let mut links = Vec::new();
        let views = view::TASKS | view::PID | view::TGID;
        links.extend(repaired(&linux, process, views, unlinked));
        let views = view::THREADS | view::CGROUP;
        links.extend(repaired(&linux, thread, views, unlinked));
        let mut numbers = RandomNumbers(seed);
        let profile = Profile::decode(&linux.profile).unwrap();
        let kernel = Kernel::new(&profile, &linux.memory);
        let layout = TaskLayout::new(&profile).unwrap();
        let (mut pending, mut consistent) = (VecDeque::new(), 0);
        for step in 0..4000 {
            let spare: &[u64] = if step < 3000 { &[process, thread] } else { &[process] };
            if pending.is_empty() {
                pending.extend(churn::change(&linux, &mut numbers, spare));
            }
            for _ in 0..numbers.below(5) {
                let Some((address, _, new)) = pending.pop_front() else { break };
                linux.put(address, new);
            }
            for links in &links {
                let verdict = verify(&kernel, &layout, links);
                assert!(!matches!(verdict, Verdict::Torn(_)), "seed {seed}: {links:x?}");
                consistent += u32::from(verdict == Verdict::Consistent);
            }
        }
        assert!(consistent > 1000, "{consistent}");
    }
}
