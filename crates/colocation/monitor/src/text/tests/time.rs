//! When something is told, and how often.

use super::*;

#[test]
fn what_goes_within_three_slices_is_not_told() {
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
fn what_stays_is_told_ever_more_seldom() {
    let mut world = World::new();
    world.set(VICTIM, 0);
    let told: Vec<usize> = (0..40).filter(|_| !world.pass().is_empty()).collect();
    assert_eq!(told, [2, 3, 5, 9, 17, 33]);
}

#[test]
fn a_suspect_is_looked_at_in_each_slice_of_a_pass() {
    let mut world = World::new();
    world.set(VICTIM, 0);
    let mut found = Vec::new();
    let slices = (1..).find(|_| {
        world.slice(1, &mut found);
        !found.is_empty()
    });
    // The page is the pass's first; each later slice looks again, then goes on by one page.
    assert_eq!(slices, Some(3));
}

#[test]
fn a_pass_ends_however_small_the_slices() {
    let mut world = World::unseen();
    for units in [1, 2, 7] {
        let mut found = Vec::new();
        let slices = (1..1000).find(|_| world.slice(units, &mut found));
        assert!(slices.is_some() && found.is_empty());
    }
}

#[test]
fn while_linux_patches_a_change_is_put_off_but_not_for_ever() {
    let mut world = World::new();
    world.set(MUTEX, 1);
    world.put(VICTIM, &[0x90]);
    assert_eq!(world.passes(49), vec![]);
    assert_eq!(world.retries, 47);
    assert_eq!(world.pass().len(), 1);
}

/// `__static_call_update` changes the key, then each site for itself: `text_mutex` is free in between.
#[test]
fn while_static_calls_are_changed_their_sites_are_behind() {
    let mut world = World::new();
    world.set(CALL_MUTEX, 1);
    world.set(CALL_KEY, OTHER);
    assert_eq!(world.passes(400), vec![]);
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    world.set(CALL_MUTEX, 0);
    assert_eq!(world.passes(20), vec![]);
}

#[test]
fn while_static_calls_are_changed_all_else_is_told_at_once_and_they_not_never() {
    let mut world = World::new();
    world.set(CALL_MUTEX, 1);
    world.put(VICTIM, &[0x90]);
    world.put(ENTRY, &near(ENTRY, CALL, NOBODYS));
    world.put(STATIC, &near(STATIC, CALL, OTHER));
    let told: Vec<u64> = world.passes(3).iter().map(|finding| finding.address).collect();
    assert_eq!(told, [VICTIM, ENTRY]);
    let of_calls =
        |told: Vec<Finding>| told.iter().filter(|finding| finding.address == STATIC).count();
    assert_eq!((of_calls(world.passes(496)), of_calls(world.pass())), (0, 1));
}

/// A thousand sites, one by one, can take longer than the patience with the one that is the last.
#[test]
fn while_static_calls_become_right_one_by_one_those_that_follow_are_waited_for() {
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
fn sites_that_become_right_again_and_again_are_no_excuse_for_ever() {
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
fn a_place_that_is_being_patched_is_put_off() {
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
fn a_breakpoint_at_a_site_is_put_off() {
    let mut world = World::new();
    world.put(ENTRY, &[INT3]);
    assert_eq!(world.passes(40), vec![]);
    assert_eq!(world.passes(10).len(), 1);
}

#[test]
fn what_changes_all_the_time_is_told_too() {
    let mut world = World::new();
    let mut told = 0;
    for turn in 0..60 {
        world.put(VICTIM, &[turn, 0x90]);
        told += world.pass().len();
    }
    assert_eq!(told, 1);
}

#[test]
fn large_damage_is_told_in_parts_that_a_transaction_can_undo() {
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
