//! Damaged memory: no walk crashes, every walk ends, and no repair is malformed.

use super::*;
use crate::fake::{rounds, RandomNumbers};
use crate::finding::Repair;
use crate::tasks::verify::verify;

/// A budget that never ends and counts its calls.
struct CountingBudget(u64);

impl Budget for CountingBudget {
    fn spent(&mut self) -> bool {
        self.0 += 1;
        false
    }
}

#[test]
fn damaged_memory_is_survived() {
    let linux = Linux::new(true);
    for number in 3..12 {
        linux.spawn("process", 7 * number, None);
    }
    let leader = linux.spawn("leader", 200, None);
    linux.spawn("thread", 201, Some(leader));
    let hidden = linux.spawn("hidden", 202, None);
    hide(&linux, hidden, view::TASKS | view::PID, Unlinked::Stale);
    let profile = Profile::decode(&linux.profile).unwrap();
    let kernel = Kernel::new(&profile, &linux.memory);
    let used = linux.used();
    let total = used[0].1 + used[1].1;
    let mut numbers = RandomNumbers(0x1234_5678);
    let place = |numbers: &mut RandomNumbers| {
        let at = numbers.below(total) & !7;
        if at < used[0].1 {
            used[0].0 + at
        } else {
            used[1].0 + at - used[0].1
        }
    };
    // Most mutations hit words in use; errors in unused ones have no effect.
    let full: Vec<u64> = (0..total / 8)
        .map(|i| if 8 * i < used[0].1 { used[0].0 + 8 * i } else { used[1].0 + 8 * i - used[0].1 })
        .filter(|at| linux.memory.get(*at) != 0)
        .collect();
    let (mut max_calls, mut reported, mut torn) = (0, 0u64, 0);
    let mut links: Vec<Links> = Vec::new();
    for _ in 0..rounds(1500) {
        let mut undo = Vec::new();
        for _ in 0..=numbers.below(6) {
            let at = match numbers.below(4) {
                0 => place(&mut numbers),
                _ => full[numbers.below(full.len() as u64) as usize],
            };
            let other = linux.memory.get(full[numbers.below(full.len() as u64) as usize]);
            let old = linux.memory.get(at);
            let new = match numbers.below(8) {
                0 => 0,
                1 => numbers.next(),
                2 => old ^ 1 << numbers.below(64),
                3 => crate::fake::DIRECT + place(&mut numbers),
                4 => crate::fake::DIRECT + place(&mut numbers) + 2,
                5 => 0xdead_0000_0000_0100,
                6 => old.wrapping_add(numbers.below(64).wrapping_sub(32)),
                _ => other,
            };
            undo.push((at, old));
            linux.memory.set(at, new);
        }
        let mut tasks = check(&profile);
        let mut budget = CountingBudget(0);
        let expect_well_formed = |repair: &Repair| {
            assert!((1..=16).contains(&repair.words.len()));
            for (i, word) in repair.words.iter().enumerate() {
                assert_eq!(word.address % 8, 0);
                assert!(repair.words[..i].iter().all(|other| other.address != word.address));
            }
        };
        for _ in 0..5 {
            let mut found = |finding: Finding| {
                reported += 1;
                finding.repairs.iter().for_each(expect_well_formed);
                links.extend(finding.repairs.iter().filter_map(|repair| repair.links));
            };
            let step = tasks.step(&kernel, &mut budget, &mut found, &mut 0);
            assert_ne!(step, Step::Spent);
        }
        max_calls = max_calls.max(budget.0);
        // Links of this memory, and of others before.
        let recent = links.len().saturating_sub(64);
        for links in &links[recent..] {
            if let Verdict::Torn(repair) = verify(&kernel, &tasks.layout, links) {
                torn += 1;
                repair.iter().for_each(expect_well_formed);
            }
        }
        for (at, old) in undo.into_iter().rev() {
            linux.memory.set(at, old);
        }
    }
    assert!(reported > 0 && torn > 0);
    // Five passes, each bounded.
    assert!(max_calls < 5 * 16 * (MAX_TASKS as u64 + 1000), "{max_calls}");
}
