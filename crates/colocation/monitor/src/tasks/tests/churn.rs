//! Forks and exits at any moment of a look: no false finding, and no missed one.

use super::linux::{Linux, Unlinked, LEADER, PID};
use super::{hide, run, view};
use crate::fake::{rounds, RandomNumbers};
use std::collections::VecDeque;
use std::vec::Vec;

/// Forks or ends a task in the fake kernel, reverts its writes and returns them.
pub fn change(linux: &Linux, numbers: &mut RandomNumbers, spare: &[u64]) -> Vec<(u64, u64, u64)> {
    *linux.log.borrow_mut() = Some(Vec::new());
    let live = linux.live.borrow().clone();
    let followers =
        |task: u64| live.iter().filter(|other| linux.get(**other + LEADER) == task).count() > 1;
    let pick = live[numbers.below(live.len() as u64) as usize];
    if live.len() < 60 && numbers.below(2) == 0 {
        let used: Vec<u32> = live.iter().map(|task| linux.get32(task + PID)).collect();
        let number = (0..)
            .map(|_| 3 + numbers.below(200) as u32)
            .find(|number| !used.contains(number))
            .unwrap();
        let leader = (numbers.below(2) == 0)
            .then(|| linux.get(pick + LEADER))
            .filter(|leader| !spare.contains(leader));
        linux.spawn("child", if numbers.below(8) == 0 { 0 } else { number }, leader);
    } else if !spare.contains(&pick) && linux.get32(pick + PID) > 2 && !followers(pick) {
        linux.exit(pick);
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
