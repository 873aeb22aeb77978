//! Forks and exits at any moment of a look: no false finding, and no missed one.

use super::super::layout::TaskLayout;
use super::super::pass::{Pass, Progress};
use super::super::seen::SeenTasks;
use super::linux::{self, Linux, Unlinked, LEADER, PID};
use super::{hide, run, view};
use crate::fake::{rounds, RandomNumbers};
use crate::kernel::Kernel;
use crate::profile::Profile;
use crate::random::Random;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

/// Forks or ends a task in the fake kernel, reverts its writes and returns them.
pub fn change(linux: &Linux, numbers: &mut RandomNumbers, spare: &[u64]) -> Vec<(u64, u64, u64)> {
    *linux.log.borrow_mut() = Some(Vec::new());
    let live = linux.live.borrow().clone();
    let followers =
        |task: u64| live.iter().filter(|other| linux.get(**other + LEADER) == task).count() > 1;
    let pick = live[numbers.below(live.len() as u64) as usize];
    let runnable = |linux: &Linux, numbers: &mut RandomNumbers| {
        let live = linux.live.borrow();
        let mut any = || live[numbers.below(live.len() as u64) as usize];
        let mut waiting = vec![any(), any()];
        waiting.dedup();
        linux.schedule(any(), &waiting);
    };
    if live.len() < 60 && numbers.below(2) == 0 {
        let used: Vec<u32> = live.iter().map(|task| linux.get32(task + PID)).collect();
        let number = (0..)
            .map(|_| 3 + numbers.below(200) as u32)
            .find(|number| !used.contains(number))
            .unwrap();
        let leader = (numbers.below(2) == 0)
            .then(|| linux.get(pick + LEADER))
            .filter(|leader| !spare.contains(leader));
        let task = linux.spawn("child", if numbers.below(8) == 0 { 0 } else { number }, leader);
        if task != 0 {
            linux.schedule(task, &[pick]);
        }
    } else if !spare.contains(&pick) && linux.get32(pick + PID) > 2 && !followers(pick) {
        // It has its CPU to the end.
        linux.schedule(pick, &[]);
        linux.exit(pick);
        runnable(linux, numbers);
    }
    let log = linux.log.borrow_mut().take().unwrap();
    for (address, old, _) in log.iter().rev() {
        linux.put(*address, *old);
    }
    log
}

/// Replays the writes of forks and exits, a random number of them between two looks.
fn churn(
    linux: &Linux,
    seed: u64,
    steps: u32,
    calls: u64,
    spare: &[u64],
) -> Vec<crate::finding::Finding> {
    let mut numbers = RandomNumbers(seed);
    let mut pending = VecDeque::new();
    let (findings, _, passes) = run(linux, steps, calls, |_| {
        // The forking CPU sometimes makes little progress between two looks, sometimes much.
        let mut writes = [0, 1, 2, 5, 20, 300][numbers.below(6) as usize];
        while writes > 0 {
            let Some((address, _, new)) = pending.pop_front() else {
                pending.extend(change(linux, &mut numbers, spare));
                writes -= 1;
                continue;
            };
            linux.put(address, new);
            writes -= 1;
        }
    });
    assert!(passes > 2, "{passes} passes in {steps} slices");
    for (address, _, new) in pending {
        linux.put(address, new);
    }
    findings
}

#[test]
fn forks_and_exits_give_no_finding() {
    for seed in 1..=rounds(12) {
        let linux = Linux::new(seed % 2 == 0);
        let calls = [6, 25, 80, 400, 10_000][seed as usize % 5];
        let findings = churn(&linux, seed, 6000, calls, &[]);
        assert_eq!(findings, Vec::new(), "seed {seed}");
        linux.check_sound();
    }
}

#[test]
fn hidden_process_is_found_during_churn() {
    for seed in 1..=rounds(12) {
        let linux = Linux::new(seed % 2 == 0);
        let task = linux.spawn("rootkit", 999, None);
        hide(&linux, task, view::TASKS | view::PID | view::TGID, Unlinked::Poison);
        linux.index_remove(task);
        let findings = churn(&linux, seed, 3000, [25, 80, 10_000][seed as usize % 3], &[task]);
        assert!(
            !findings.is_empty() && findings.iter().all(|finding| finding.address == task),
            "seed {seed}"
        );
    }
}

/// Runs a pass in which `task` is in another list of its control group from the visit of node `at` on. Returns the
/// pass, and whether it ended before.
fn pass_with_move(linux: &Linux, task: u64, at: u32) -> (Pass, bool) {
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let layout = TaskLayout::new(&profile).unwrap();
    let mut random = Random::new(7);
    let mut seen = SeenTasks::new(1000, &mut random);
    let mut pass = Pass::new(&layout, &mut random, 100, 0, 100);
    let mut node = 0;
    let mut advance = |pass: &mut Pass| pass.advance(&kernel, &layout, &mut seen) == Progress::Done;
    let mut is_over = false;
    while node < at && !is_over {
        is_over = advance(&mut pass);
        node += 1;
    }
    linux.list_del(task + linux::CG_LIST, Unlinked::Alone);
    linux.list_add_tail(task + linux::CG_LIST, linux.get(task + linux::CGROUPS) + linux::DYING);
    pass.resume(&kernel, &layout, &mut 0);
    while !is_over && !advance(&mut pass) {}
    (pass, at > node)
}

#[test]
fn a_task_that_moves_to_another_list_leaves_no_damage() {
    for at in 0.. {
        let (linux, [alone, ..]) = super::system(false);
        let (pass, is_over) = pass_with_move(&linux, alone, at);
        assert_eq!((pass.damages, pass.incomplete), (Vec::new(), 0), "{at}");
        if is_over {
            assert!(at > 100);
            break;
        }
    }
}
