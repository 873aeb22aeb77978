//! Tests on a small kernel with one site of each kind.

use super::code::{CALL, INT3, JMP};
use super::TextCheck;
use crate::check::Check;
use crate::fake::{self, CallBudget, FakeMemory, DIRECT, TEXT};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::profile::{Profile, ProfileError};
use std::string::String;
use std::vec;
use std::vec::Vec;

mod hostile;
mod package;
mod probes;
mod sites;
mod time;
pub(super) mod world;
mod writes;

use world::*;

#[test]
fn changed_function_is_reported_in_full() {
    let mut world = World::new();
    let before = world.get(VICTIM + 8);
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER + 2));
    let found = world.passes(3);
    assert_eq!(found.len(), 1);
    let finding = &found[0];
    assert_eq!(finding.what, "kernel text changed");
    assert_eq!((finding.address, finding.symbol.as_str()), (VICTIM + 9, "victim+0x9"));
    assert_eq!(finding.owner, "other+0x2");
    assert_eq!(finding.found, "e9 f4 00 00 00");
    world.repair(finding);
    assert_eq!(world.get(VICTIM + 8), before);
    assert_eq!(world.passes(3), vec![]);
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER + 2));
    assert_eq!(world.passes(3), found, "the same again is found again");
}

#[test]
fn a_change_at_the_end_of_a_page_hides_none_in_the_next() {
    let mut world = World::new();
    let next = TEXT + 0x3000;
    world.put(next - 7, &[1]);
    world.put(next + 5, &[2]);
    let mut found: Vec<u64> = world.passes(3).iter().map(|finding| finding.address).collect();
    found.sort();
    assert_eq!(found, [next - 7, next + 5]);
    let mut world = World::new();
    world.put(next - 2, &[1, 2, 3, 4]);
    let found: Vec<u64> = world.passes(3).iter().map(|finding| finding.address).collect();
    assert_eq!(found, [next - 2]);
}

#[test]
fn changed_pointer_is_reported_with_symbols() {
    let mut world = World::new();
    world.set(POINTER, OTHER);
    let found = world.passes(3);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].what, "read-only data changed");
    assert_eq!(found[0].symbol, "table+0x8");
    assert_eq!(found[0].owner, "other");
    assert_eq!(found[0].expected, std::format!("{VICTIM:#x} (victim)"));
    world.repair(&found[0]);
    assert_eq!(world.get(POINTER), VICTIM);
}

#[test]
fn missing_symbol_or_member_is_an_error() {
    let without = |name: &str| {
        let symbols: Vec<_> = SYMBOLS.iter().copied().filter(|s| s.2 != name).collect();
        let layouts: Vec<_> = LAYOUTS.iter().copied().filter(|l| l.0 != name).collect();
        TextCheck::new(&Profile::decode(&fake::profile(&symbols, &layouts)).unwrap()).err()
    };
    for name in ["_etext", "__stop___jump_table", "ftrace_regs_caller"] {
        assert_eq!(without(name), Some(ProfileError::Missing(name.into())));
    }
    assert!(without("dyn_ftrace.flags").is_some());
    assert_eq!(without("kprobe_table"), None, "a kernel without probes");
}
