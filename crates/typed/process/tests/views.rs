//! A program that reads a view of the host's memory.

mod fake;

use std::time::Duration;

use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_annotate::module::Module;
use kyozon_typed_checker::program::Host;
use kyozon_typed_process::{Image, Outcome, Space};

const HOST: Host =
    Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };

const SOURCE: &str = include_str!("../../asm/tests/typed/accept/view-checksum.s");

fn assemble(source: &str) -> Module {
    kyozon_typed_asm::assemble(source, "view-checksum.s").expect("assembles")
}

/// The sum of little-endian words of 8 bytes, and of the single bytes behind them.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.chain(rest.iter().map(|&byte| byte.into())).fold(0, u64::wrapping_add)
}

#[test]
fn a_checksum_over_a_view_is_right_for_each_length() {
    let file = assemble(SOURCE).to_bytes();
    let (verdict, faults) = verify(&file, HOST, &mut Arena::default()).expect("accepted");
    assert!(faults.is_empty(), "the program accesses its view only");
    let mut space = Space::new(HOST, 4096).expect("the region's addresses are free");
    for length in (0..70).chain([4095, 4096]) {
        let image = Image::load(verdict, &faults, &fake::imports(length)).expect("loads");
        let outcome = image.run(&mut space, [0; 6], Duration::from_secs(1));
        let expected = sum(&fake::bytes(length));
        assert!(
            matches!(outcome, Outcome::Returned(found) if found == expected),
            "{length} bytes: {outcome:?}, expected {expected}"
        );
    }
}

#[test]
fn annotations_are_found_for_loops_over_a_view() {
    let heads = |line: &&str| !line.starts_with(".head");
    let mut module = assemble(&SOURCE.lines().filter(heads).collect::<Vec<_>>().join("\n"));
    assert!(module.functions[0].heads.is_empty());
    module.infer(HOST, &mut Arena::default()).expect("annotations");
    assert_eq!(module.functions[0].heads.len(), 2);
    verify(&module.to_bytes(), HOST, &mut Arena::default()).expect("accepted");
}
