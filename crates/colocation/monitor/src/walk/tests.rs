mod damaged;

use super::*;
use crate::fake::{profile, FakeMemory, RandomNumbers, DIRECT, TEXT};
use crate::kernel::Kernel;
use std::vec::Vec;

const LAYOUTS: &[(&str, u64, u64)] = &[
    ("list_head.next", 0, 8),
    ("list_head.prev", 8, 8),
    ("hlist_head.first", 0, 8),
    ("hlist_node.next", 0, 8),
    ("hlist_node.pprev", 8, 8),
    ("rb_node.__rb_parent_color", 0, 8),
    ("rb_node.rb_right", 8, 8),
    ("rb_node.rb_left", 16, 8),
    ("xarray.xa_head", 8, 8),
    ("xa_node.shift", 0, 1),
    ("xa_node.count", 2, 1),
    ("xa_node.slots", 40, 512),
    ("xa_node.marks", 552, 24),
];

/// Runs `test` over a memory of 1 MiB.
fn with(test: impl FnOnce(&FakeMemory, &Kernel<'_, FakeMemory>)) {
    let bytes = profile(&[(TEXT, b'T', "_text")], LAYOUTS);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = FakeMemory::new(1 << 20);
    test(&memory, &Kernel::new(&profile, &memory));
}

fn nodes(kernel: &Kernel<'_, FakeMemory>, limit: u32) -> (Vec<u64>, Option<WalkError>) {
    let lists = Lists::new(kernel.profile).unwrap();
    let mut walk = ListWalk::new(DIRECT + 0x1000, limit);
    let mut nodes = Vec::new();
    loop {
        match walk.next(kernel, &lists) {
            Ok(Some(node)) => nodes.push(node.wrapping_sub(DIRECT)),
            Ok(None) => return (nodes, None),
            Err(broken) => return (nodes, Some(broken)),
        }
    }
}

#[test]
fn lists_end_at_their_head_or_with_an_error() {
    with(|memory, kernel| {
        memory.set(0x1000, DIRECT + 0x1000);
        assert_eq!(nodes(kernel, 9), (std::vec![], None));
        memory.set(0x1000, DIRECT + 0x2000);
        memory.set(0x2000, DIRECT + 0x3000);
        memory.set(0x3000, DIRECT + 0x1000);
        assert_eq!(nodes(kernel, 2), (std::vec![0x2000, 0x3000], None));
        assert_eq!(nodes(kernel, 1).1, Some(WalkError::TooLong));
        // A cycle without the head; pointers that are misaligned, unmapped, poisoned, null.
        memory.set(0x3000, DIRECT + 0x2000);
        assert_eq!(nodes(kernel, 9).1, Some(WalkError::TooLong));
        for wild in [DIRECT + 0x2004, DIRECT + (1 << 20), 0xdead_0000_0000_0100, 0] {
            memory.set(0x3000, wild);
            assert_eq!(nodes(kernel, 9).1, Some(WalkError::WildPointer(wild)));
        }
    });
}

#[test]
fn hash_lists_end_at_null_or_with_an_error() {
    with(|memory, kernel| {
        let lists = Lists::new(kernel.profile).unwrap();
        let walk = |limit| {
            let mut walk = HashWalk::new(DIRECT + 0x1000, &lists, limit);
            let mut count = 0;
            loop {
                match walk.next(kernel, &lists) {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => return Ok(count),
                    Err(broken) => return Err(broken),
                }
            }
        };
        assert_eq!(walk(1), Ok(0));
        memory.set(0x1000, DIRECT + 0x2000);
        memory.set(0x2000, DIRECT + 0x3000);
        assert_eq!(walk(2), Ok(2));
        memory.set(0x3000, DIRECT + 0x3000);
        assert_eq!(walk(50), Err(WalkError::TooLong));
        memory.set(0x3000, 0x10);
        assert_eq!(walk(50), Err(WalkError::WildPointer(0x10)));
    });
}

/// An xarray of three levels at 0x800: entries at 5, 70 and 64 * 64 * 2 + 1.
fn tree(memory: &FakeMemory) {
    let node = |at: u64, shift: u64| memory.set(at, shift);
    let link = |at: u64, slot: u64, value: u64| memory.set(at + 40 + 8 * slot, value);
    memory.set(0x808, DIRECT + 0x1002);
    node(0x1000, 12);
    node(0x2000, 6);
    node(0x3000, 0);
    node(0x4000, 0);
    node(0x5000, 6);
    node(0x6000, 0);
    link(0x1000, 0, DIRECT + 0x2002);
    link(0x2000, 0, DIRECT + 0x3002);
    link(0x2000, 1, DIRECT + 0x4002);
    link(0x1000, 2, DIRECT + 0x5002);
    link(0x5000, 0, DIRECT + 0x6002);
    link(0x3000, 5, DIRECT + 0x7000);
    link(0x3000, 6, 0x15); // a value, not a pointer
    link(0x3000, 7, 0x402); // a retry mark
    link(0x4000, 6, DIRECT + 0x7100);
    link(0x6000, 1, DIRECT + 0x7200);
}

/// All entries of the xarray.
fn entries<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    limit: usize,
) -> Result<Vec<(u64, u64)>, WalkError> {
    let xarrays = XArrays::new(kernel.profile).unwrap();
    let (mut found, mut index) = (Vec::new(), 0);
    for _ in 0..limit {
        match xarrays.next(kernel, DIRECT + 0x800, index)? {
            XArrayEntry::Found(at, entry) => {
                assert!(at >= index);
                found.push((at, entry.wrapping_sub(DIRECT)));
                index = at + 1;
            }
            XArrayEntry::Gap(at) => {
                assert!(at > index);
                index = at;
            }
            XArrayEntry::End => return Ok(found),
        }
    }
    Ok(found)
}

#[test]
fn an_address_can_be_an_index() {
    with(|memory, kernel| {
        let index = DIRECT + 0x9000;
        memory.set(0x808, DIRECT + 0x1002);
        for level in 0..=10 {
            let (node, shift) = (0x1000 * (level + 1), 60 - 6 * level);
            memory.set(node, shift);
            let below = if shift == 0 { DIRECT + 0xf000 } else { DIRECT + node + 0x1002 };
            memory.set(node + 40 + 8 * (index >> shift & 63), below);
        }
        assert_eq!(entries(kernel, 100), Ok(Vec::from([(index, 0xf000)])));
        // No index has so many bits.
        memory.set(0x1000, 66);
        assert_eq!(entries(kernel, 100), Err(WalkError::WildPointer(DIRECT + 0x1000)));
    });
}

#[test]
fn xarrays_are_walked_in_index_order() {
    with(|memory, kernel| {
        assert_eq!(entries(kernel, 9), Ok(std::vec![]));
        memory.set(0x808, DIRECT + 0x9000);
        assert_eq!(entries(kernel, 9), Ok(std::vec![(0, 0x9000)]));
        tree(memory);
        assert_eq!(entries(kernel, 99), Ok(std::vec![(5, 0x7000), (70, 0x7100), (8193, 0x7200)]));
        let xarrays = XArrays::new(kernel.profile).unwrap();
        let path = |index| xarrays.path_to(kernel, DIRECT + 0x800, index);
        let found = path(8193).unwrap();
        assert_eq!((found.slot, found.value), (DIRECT + 0x6000 + 48, DIRECT + 0x7200));
        assert_eq!(
            found.steps[..found.levels],
            [(DIRECT + 0x1000, 2), (DIRECT + 0x5000, 0), (DIRECT + 0x6000, 1)]
        );
        assert_eq!(path(9).unwrap().value, 0);
        assert!(path(64 * 64).is_none() && path(1 << 18).is_none() && path(u64::MAX).is_none());
    });
}

#[test]
fn cyclic_or_unreadable_nodes_are_errors() {
    with(|memory, kernel| {
        tree(memory);
        memory.set(0x2000 + 40, DIRECT + 0x2002);
        assert_eq!(entries(kernel, 99), Err(WalkError::WildPointer(DIRECT + 0x2000)));
        memory.set(0x2000 + 40, DIRECT + (1 << 20) + 2);
        assert!(entries(kernel, 99).is_err());
        memory.set(0x1000, 13);
        assert!(entries(kernel, 99).is_err());
    });
}
