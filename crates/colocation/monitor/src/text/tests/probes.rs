//! Breakpoints and jumps of probes.

use super::*;

pub(super) const AT: u64 = VICTIM + 0x23;
const OPTIMIZED: u64 = 4;
const FTRACE: u64 = 8;

/// Puts a probe at `AT` into its bucket.
pub(super) fn register(world: &World, flags: u64) {
    let bucket = AT.wrapping_mul(0x61c8_8646_80b5_83eb) >> 58;
    world.set(TABLE + bucket * 8, PROBE);
    world.set(PROBE + 16, AT);
    world.set(PROBE + 24, flags | u64::from(world.byte(AT)) << 32);
    world.put(PROBE + 48, &[1, 2, 3, 4].map(|i| world.byte(AT + i)));
    world.set(PROBE + 56, SLOT + 0x80);
}

fn unregister(world: &World) {
    for bucket in 0..64 {
        world.set(TABLE + bucket * 8, 0);
    }
}

pub(super) fn slots(world: &World) {
    world.set(SLOTS, SLOT_PAGE);
    world.set(SLOT_PAGE, SLOTS);
    world.set(SLOT_PAGE + 16, SLOT);
}

#[test]
fn breakpoint_needs_a_registered_probe() {
    let mut world = World::new();
    // Not reported at once: it might be Linux's own.
    assert_eq!(world.assert_forbidden(AT, &[INT3]).len(), 2);
    register(&world, 0);
    world.assert_allowed(AT, &[INT3]);
    world.assert_forbidden(AT + 1, &[INT3]);
    world.assert_forbidden(AT, &[0x90]);
    register(&world, FTRACE);
    world.assert_forbidden(AT, &[INT3]);
}

#[test]
fn jump_needs_the_slot_of_an_optimized_probe() {
    let mut world = World::new();
    let jump = near(AT, JMP, SLOT + 0x80);
    register(&world, OPTIMIZED);
    world.assert_forbidden(AT, &jump);
    slots(&world);
    world.assert_allowed(AT, &jump);
    world.assert_forbidden(AT, &near(AT, JMP, SLOT + 0x84));
    let mut coming = jump.clone();
    coming[0] = INT3;
    world.assert_allowed(AT, &coming);
    register(&world, 0);
    world.assert_forbidden(AT, &jump);
    // A probe being removed.
    unregister(&world);
    world.assert_forbidden(AT, &jump);
    world.set(FREEING, PROBE + 32);
    world.set(PROBE + 32, FREEING);
    world.assert_allowed(AT, &jump);
}

#[test]
fn probe_from_before_the_copy_may_be_removed() {
    for (bytes, flags) in [(vec![INT3], 0), (near(AT, JMP, SLOT + 0x80), OPTIMIZED)] {
        let mut world = World::before_first_pass();
        slots(&world);
        register(&world, flags);
        let old: Vec<u8> = (AT..AT + 5).map(|at| world.byte(at)).collect();
        world.put(AT, &bytes);
        assert_eq!(world.passes(5), vec![]);
        world.put(AT, &old);
        unregister(&world);
        assert_eq!(world.passes(5), vec![]);
        assert_eq!(world.assert_forbidden(AT, &bytes).len(), 3 * bytes.len() - 1);
    }
}
