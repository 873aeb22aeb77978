//! The comparison with the kernel package's image.

use super::probes::{register, AT};
use super::*;
use std::string::ToString;

/// Tables in the image only: function entries, returns, indirect branches.
const ENTRIES: u64 = RODATA + RODATA_BYTES;
const RETURNS: u64 = ENTRIES + 0x100;
const INDIRECTS: u64 = ENTRIES + 0x200;
const TABLES_END: u64 = ENTRIES + 0x1000;
const RETURN: u64 = TEXT + 0x1241;
const INDIRECT: u64 = TEXT + 0x12fd;
/// Read-only data that is written at boot.
const WRITTEN: u64 = THUNK_AT;

const MORE: &[(u64, u8, &str)] = &[
    (WRITTEN, b'D', "__start_ro_after_init"),
    (WRITTEN + 0x100, b'D', "__end_ro_after_init"),
    (ENTRIES, b'D', "__start_mcount_loc"),
    (ENTRIES + 16, b'D', "__stop_mcount_loc"),
    (RETURNS, b'D', "__return_sites"),
    (RETURNS + 4, b'D', "__return_sites_end"),
    (INDIRECTS, b'D', "__retpoline_sites"),
    (INDIRECTS + 4, b'D', "__retpoline_sites_end"),
    (THUNK, b'T', "__x86_return_thunk"),
    (THUNK + 0x20, b'T', "__x86_indirect_thunk_rax"),
    (THUNK + 0x40, b'T', "elsewhere"),
];

/// A kernel after boot, with fingerprints of its image.
fn booted() -> World {
    let mut world = World::before_first_pass();
    world.put(RETURN, &near(RETURN, JMP, THUNK));
    world.put(INDIRECT, &near(INDIRECT, CALL, THUNK + 0x20));
    world.put(ENTRY, &near(ENTRY, CALL, OTHER));
    world.put(ENTRY_EDGE, &near(ENTRY_EDGE, CALL, OTHER));
    let mut image: Vec<u8> = (TEXT..TABLES_END).map(|at| world.byte(at)).collect();
    let mut put = |at: u64, bytes: &[u8]| {
        image[(at - TEXT) as usize..][..bytes.len()].copy_from_slice(bytes);
    };
    put(ENTRIES, &ENTRY.to_le_bytes());
    put(ENTRIES + 8, &ENTRY_EDGE.to_le_bytes());
    put(RETURNS, &(RETURN.wrapping_sub(RETURNS) as u32).to_le_bytes());
    put(INDIRECTS, &(INDIRECT.wrapping_sub(INDIRECTS) as u32).to_le_bytes());
    let symbols = [SYMBOLS, MORE].concat();
    let vmlinux = fake::vmlinux(TEXT, &image, &[]);
    world.profile = fake::profile_with(&symbols, LAYOUTS, Some(&vmlinux));
    world.check = TextCheck::new(&Profile::decode(&world.profile).unwrap()).unwrap();
    world.put(RETURN, &[0xc3, INT3, INT3, INT3, INT3]);
    world.put(INDIRECT, &[0xff, 0xd0, 0x0f, 0x1f, 0x00]);
    world.put(ENTRY, &nop5());
    world.put(ENTRY_EDGE, &nop5());
    world
}

/// The findings if `bytes` stood at `address` at the load; they are reported once.
fn found_at_load(address: u64, bytes: &[u8]) -> Vec<Finding> {
    let mut world = booted();
    world.put(address, bytes);
    let found = world.passes(1);
    assert_eq!(world.passes(4), vec![]);
    found
}

#[test]
fn boot_patches_give_no_finding() {
    assert_eq!(booted().passes(4), vec![]);
    for (address, bytes) in [
        (RETURN, near(RETURN, JMP, THUNK)),
        (INDIRECT, near(INDIRECT, CALL, THUNK + 0x20)),
        (INDIRECT, vec![0x0f, 0xae, 0xe8, 0xff, 0xd0]),
        (WRITTEN + 8, vec![0x55; 16]),
    ] {
        assert_eq!(found_at_load(address, &bytes), vec![], "{bytes:02x?} at {address:#x}");
    }
    let mut world = booted();
    world.set(KEY, 1);
    world.put(JUMP_5, &near(JUMP_5, JMP, TARGET));
    world.put(JUMP_2, &[0xeb, (TARGET - JUMP_2 - 2) as u8]);
    assert_eq!(world.passes(4), vec![]);
}

#[test]
fn tampering_before_load_is_reported_once() {
    let found = found_at_load(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].what, "kernel text changed before load");
    assert_eq!((found[0].address, found[0].symbol.as_str()), (VICTIM, "victim"));
    assert_eq!(
        found[0].found,
        "64-byte block differs from the kernel package's image (contains victim)"
    );
    assert_eq!(found[0].repairs, vec![]);
    let found = found_at_load(POINTER, &OTHER.to_le_bytes());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].what, "read-only data changed before load");
    for (address, bytes) in [
        (RETURN, near(RETURN, JMP, OTHER)),
        (RETURN, vec![0xc3, 0x90, INT3, INT3, INT3]),
        (INDIRECT, near(INDIRECT, CALL, THUNK + 0x40)),
        (INDIRECT, vec![0xff, 0xd0, 0x0f, 0x05, 0x00]),
        (INDIRECT + 5, vec![0x7f]),
        (RODATA + RODATA_BYTES - 1, vec![0x7f]),
        (WRITTEN + 0x100, vec![0x7f]),
    ] {
        let found = found_at_load(address, &bytes);
        assert!(!found.is_empty(), "{bytes:02x?} at {address:#x}");
    }
}

/// The attacker takes back what was there at the load.
#[test]
fn return_to_the_package_is_restored_and_the_new_baseline() {
    let mut world = booted();
    let original = world.get(VICTIM + 8);
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, MODULE_SPACE));
    let found = world.passes(3);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].owner, std::format!("{MODULE_SPACE:#x} in no listed module"));
    world.set(VICTIM + 8, original);
    let found = world.passes(4);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].what.as_str(), found[0].address), ("kernel text restored", VICTIM));
    assert!(found[0].restored && found[0].repairs.is_empty());
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, MODULE_SPACE));
    let found = world.passes(3);
    world.repair(&found[0]);
    assert_eq!(world.get(VICTIM + 8), original, "repaired to the package's bytes");
}

#[test]
fn repair_does_not_lead_back_to_refuted_bytes() {
    let mut world = booted();
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER));
    assert_eq!(world.passes(3).len(), 1);
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, OTHER + 16));
    let found = world.passes(3);
    assert_eq!((found.len(), found[0].repairs.len()), (1, 0), "{found:?}");
    assert_eq!(found[0].held, "the copy was taken after an earlier change");
}

#[test]
fn owner_of_the_target_is_reported() {
    let world = booted();
    let mut world = World {
        check: TextCheck::new(&Profile::decode(&world.profile).unwrap()).unwrap(),
        ..world
    };
    world.set(MODULES, MODULE);
    world.set(MODULE, MODULES);
    world.put(MODULE + 16, b"evil\0");
    world.set(MODULE + 128, DATA + 0xe_0000);
    world.set(MODULE + 136, 0x1000);
    world.put(VICTIM + 9, &near(VICTIM + 9, JMP, DATA + 0xe_0010));
    let found = world.passes(1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].owner, "module evil");
}

#[test]
fn adjacent_blocks_are_one_finding_up_to_a_page() {
    let found = found_at_load(TEXT + 0x2040, &[0x11; 0x1f00]);
    let text: Vec<_> =
        found.iter().map(|finding| (finding.address, finding.found.clone())).collect();
    let words =
        |bytes: u64| std::format!("{bytes}-byte range differs from the kernel package's image");
    assert_eq!(text, [(TEXT + 0x2040, words(4096)), (TEXT + 0x3040, words(0xf00))]);
}

#[test]
fn copy_made_during_patching_is_corrected() {
    let mut world = booted();
    world.set(POINTER, OTHER);
    let pages = (TEXT_BYTES + RODATA_BYTES) / crate::memory::PAGE_BYTES;
    assert!(!world.slice(pages + 1, &mut vec![]));
    world.set(POINTER, VICTIM);
    assert_eq!(world.passes(4), vec![]);
    world.set(POINTER, OTHER);
    assert_eq!(world.passes(3).len(), 1, "the copy has the correct word");
}

#[test]
fn probe_from_before_the_load_gives_no_finding() {
    let mut world = booted();
    register(&world, 0);
    world.put(AT, &[INT3]);
    assert_eq!(world.passes(4), vec![]);
}

#[test]
fn damaged_fingerprints_are_survived() {
    let mut numbers = fake::RandomNumbers(11);
    let good = booted().profile;
    for _ in 0..fake::rounds(100) {
        let mut world = booted();
        let start = good.len() - Profile::decode(&good).unwrap().fingerprint_bytes() as usize;
        for _ in 0..1 + numbers.below(4) {
            let at = start + numbers.below((good.len() - start) as u64) as usize;
            world.profile[at] ^= 1 << numbers.below(8);
        }
        match Profile::decode(&world.profile) {
            Ok(_) => drop(world.passes(2)),
            Err(error) => assert!(error.to_string().contains("malformed"), "{error}"),
        }
    }
}
