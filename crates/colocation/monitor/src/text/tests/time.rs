//! When a change is reported, and how often.

use super::*;
use crate::text::compare::Change;
use crate::text::layout::TextLayout;
use crate::text::suspects::{self, Patching};

#[test]
fn change_gone_within_three_slices_is_not_reported() {
    let mut world = World::new();
    for _ in 0..10 {
        let old = world.get(VICTIM);
        world.set(VICTIM, 0);
        assert_eq!(world.passes(2), vec![]);
        world.set(VICTIM, old);
        assert_eq!(world.pass(), vec![]);
    }
    world.set(VICTIM, 0);
    assert_eq!([world.pass().len(), world.pass().len(), world.pass().len()], [0, 0, 1]);
}

#[test]
fn reports_of_a_lasting_change_back_off() {
    let mut world = World::new();
    world.set(VICTIM, 0);
    let reported: Vec<usize> = (0..40).filter(|_| !world.pass().is_empty()).collect();
    assert_eq!(reported, [2, 3, 5, 9, 17, 33]);
}

#[test]
fn suspect_is_rechecked_in_each_slice() {
    let mut world = World::new();
    world.set(VICTIM, 0);
    let mut found = Vec::new();
    let slices = (1..).find(|_| {
        world.slice(1, &mut found);
        !found.is_empty()
    });
    // Linux's records come first. Then the page is the first of the pass; each later slice rechecks it.
    assert!(slices.is_some_and(|slices| (3..=12).contains(&slices)), "{slices:?}");
}

#[test]
fn pass_ends_with_any_slice_length() {
    let mut world = World::before_first_pass();
    for calls in [1, 2, 7] {
        let mut found = Vec::new();
        let slices = (1..1000).find(|_| world.slice(calls, &mut found));
        assert!(slices.is_some() && found.is_empty());
    }
}

#[test]
fn patching_defers_reports_for_50_slices() {
    let mut world = World::new();
    world.set(MUTEX, 1);
    world.put(VICTIM, &[0x90]);
    assert_eq!(world.passes(49), vec![]);
    assert_eq!(world.retries, 47);
    assert_eq!(world.pass().len(), 1);
}

/// `__static_call_update` changes the key, then each site by itself; `text_mutex` is free in between.
#[test]
fn static_calls_in_flux_are_deferred() {
    let mut world = World::new();
    world.set(CALL_MUTEX, 1);
    world.set(CALL_KEY, OTHER);
    assert_eq!(world.passes(400), vec![]);
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    world.set(CALL_MUTEX, 0);
    assert_eq!(world.passes(20), vec![]);
}

#[test]
fn other_changes_during_static_call_flux_are_reported() {
    let mut world = World::new();
    world.set(CALL_MUTEX, 1);
    world.put(VICTIM, &[0x90]);
    world.put(ENTRY, &near(ENTRY, CALL, UNLISTED_CODE));
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    let reported: Vec<u64> = world.passes(3).iter().map(|finding| finding.address).collect();
    assert_eq!(reported, [VICTIM, ENTRY]);
    let of_calls = |reported: Vec<Finding>| {
        reported.iter().filter(|finding| finding.address == STATIC).count()
    };
    assert_eq!((of_calls(world.passes(496)), of_calls(world.pass())), (0, 1));
}

/// The monitor was cut off behind its look, while Linux ended its patching.
#[test]
fn patching_that_ends_behind_the_look_defers_as_well() {
    let world = World::new();
    let profile = Profile::decode(&world.profile).unwrap();
    let kernel = Kernel::new(&profile, &world.memory);
    let layout = TextLayout::new(&profile).unwrap();
    for (lock, kind) in [(CALL_MUTEX, Patching::StaticCall), (MUTEX, Patching::Site)] {
        let change = Change {
            address: STATIC,
            only_static_calls: kind == Patching::StaticCall,
            ..suspects::tests::change(STATIC, false)
        };
        let ends = |held: u64| {
            world.set(lock, held);
            let before = suspects::Before::read(&kernel, &layout);
            world.set(lock, 0);
            suspects::patching(&kernel, &layout, before, &change)
        };
        assert_eq!((ends(1), ends(0)), (kind, Patching::None));
    }
}

/// A thousand sites, one by one, can take longer than the deferral of a single one.
#[test]
fn progress_extends_the_static_call_deferral() {
    let mut world = World::new();
    world.set(CALL_MUTEX, 1);
    world.set(CALL_KEY, OTHER);
    world.set(TAIL_KEY, OTHER);
    assert_eq!(world.passes(400), vec![]);
    world.put(STATIC_TAIL, &near(STATIC_TAIL, JMP, OTHER));
    world.put(TRAMPOLINE, &near(TRAMPOLINE, JMP, OTHER));
    assert_eq!(world.passes(490), vec![]);
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    world.set(CALL_MUTEX, 0);
    assert_eq!(world.passes(20), vec![]);
}

#[test]
fn static_call_deferral_has_a_maximum() {
    let mut world = World::new();
    world.set(CALL_MUTEX, 1);
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    let right: Vec<u8> = (0..8).map(|at| world.byte(STATIC_TAIL + at)).collect();
    let mut passes = 0;
    while world.pass().iter().all(|finding| finding.address != STATIC) {
        passes += 1;
        match passes % 200 {
            0 => world.put(STATIC_TAIL, &right),
            100 => world.put(STATIC_TAIL, &near(STATIC_TAIL, JMP, VICTIM)),
            _ => {}
        }
    }
    assert_eq!(passes, 29_999);
}

#[test]
fn address_being_patched_is_deferred() {
    let mut world = World::new();
    world.set(POKE, USER);
    world.set(POKE + 8, 1 << 32 | 2);
    world.set(USER + 16, VICTIM - TEXT);
    world.set(USER + 24, 5);
    world.put(VICTIM + 4, &[0x90]);
    world.put(OTHER, &[0x90]);
    let found = world.passes(20);
    assert!(found.iter().all(|finding| finding.address == OTHER) && !found.is_empty());
    world.set(POKE + 8, 0);
    assert_eq!(world.pass().iter().filter(|finding| finding.address == VICTIM + 4).count(), 1);
}

#[test]
fn breakpoint_at_a_site_is_deferred() {
    let mut world = World::new();
    world.put(ENTRY, &[INT3]);
    assert_eq!(world.passes(40), vec![]);
    assert_eq!(world.passes(10).len(), 1);
}

#[test]
fn varying_change_is_reported() {
    let mut world = World::new();
    let mut reported = 0;
    for turn in 0..60 {
        world.put(VICTIM, &[turn, 0x90]);
        reported += world.pass().len();
    }
    assert_eq!(reported, 1);
}

#[test]
fn large_change_is_split_into_repairable_parts() {
    let mut world = World::new();
    let old: Vec<u64> = (0..100).map(|i| world.get(VICTIM + 8 * i)).collect();
    for i in 0..100 {
        world.set(VICTIM + 8 * i, !old[i as usize]);
    }
    let found = world.passes(3);
    assert_eq!(found.len(), 7);
    assert!(found.iter().all(|finding| finding.repairs[0].words.len() <= 16));
    for finding in &found {
        world.repair(finding);
    }
    assert_eq!(old, (0..100).map(|i| world.get(VICTIM + 8 * i)).collect::<Vec<_>>());
}

/// The attacker is faster than the first pass.
#[test]
fn change_between_the_copy_and_the_first_comparison_is_found() {
    let mut world = World::before_first_pass();
    let pages = (TEXT_BYTES + RODATA_BYTES) / crate::memory::PAGE_BYTES;
    assert!(!world.slice(pages + 1, &mut vec![]));
    let before = world.get(VICTIM);
    world.put(VICTIM, &[0x31, 0xc0, 0xc3]);
    let found = world.passes(4);
    assert_eq!(found.len(), 1, "{found:?}");
    world.repair(&found[0]);
    assert_eq!(world.get(VICTIM), before);
}

#[test]
fn every_other_pass_looks_at_a_page_of_names() {
    let mut world = World::new();
    let pages = (TEXT_BYTES + RODATA_BYTES) / 4096;
    for _ in 0..3 {
        assert_eq!(world.pass(), vec![]);
        assert_eq!(world.pages, pages - 1);
    }
    for at in [NAMES, NAMES + 0x1ff8] {
        world.set(at, 1);
        let found = world.passes(4);
        assert_eq!(found.iter().map(|finding| finding.address).collect::<Vec<_>>(), [at]);
        world.set(at, 0);
        assert_eq!(world.passes(4), vec![]);
    }
}

#[test]
fn looks_are_spread_over_the_time_of_a_pass() {
    let mut world = World::new();
    world.check = TextCheck::new(&Profile::decode(&world.profile).unwrap()).unwrap().spread();
    world.pass();
    let mut found = Vec::new();
    let mut steps = || (1..1000).find(|_| world.slice(u64::MAX, &mut found));
    assert_eq!((steps(), steps()), (Some(65), Some(65)));
}

#[test]
fn seen_writes_leave_an_eighth_of_the_pages_to_a_pass() {
    let mut world = World::new();
    let pages = (TEXT_BYTES + RODATA_BYTES) / 4096;
    Check::<FakeMemory>::sees_writes(&mut world.check, true);
    // What was written until then was not seen.
    for _ in 0..2 {
        assert_eq!(world.pass(), vec![]);
        assert_eq!(world.pages, pages - 1);
    }
    let mut found = Vec::new();
    let mut steps = || (1..1000).find(|_| world.slice(u64::MAX, &mut found));
    assert_eq!((steps(), steps(), steps()), (Some(50), Some(50), Some(50)));
    let counts: Vec<u64> = (0..8).map(|_| (world.pass(), world.pages).1).collect();
    assert_eq!(counts.iter().sum::<u64>(), pages, "{counts:?}");
    // What was written without the processor.
    world.set(VICTIM, 0);
    let found = world.passes(8);
    assert_eq!(found.len(), 1, "{found:?}");
    // Some writes were lost: the present pass and the next one have all pages, half of the names in each.
    Check::<FakeMemory>::sees_writes(&mut world.check, false);
    let counts: Vec<u64> = (0..3).map(|_| (world.pass(), world.pages).1).collect();
    assert!(counts[..2] == [pages - 1; 2] && counts[2] <= 2, "{counts:?}");
}
