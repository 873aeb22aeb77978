//! What the entry gets is what its signature says, whatever the host passes.

use std::time::Duration;

use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_checker::program::Host;
use kyozon_typed_process::{Image, Outcome, Space};

const HOST: Host =
    Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };

#[test]
fn arguments_of_the_entry_fit_its_types() {
    let mut space = Space::new(HOST, 4096).expect("the region's addresses are free");
    for (kind, expected) in
        [("any", 0x8765_4321_8000_1234), ("u32", 0x8000_1234), ("u16", 0x1234), ("u8", 0x34)]
    {
        // The type is a promise to the program: all addresses that it makes of the number lie in the region.
        let source = format!(".func main ({kind}) -> any\nmov %rdi, %rax\n.return\n");
        let file = kyozon_typed_asm::assemble(&source, "entry.s").expect("assembles").to_bytes();
        let (verdict, faults) = verify(&file, HOST, &mut Arena::default()).expect("accepted");
        let image = Image::load(verdict, &faults, &[]).expect("loads");
        let arguments = [0x8765_4321_8000_1234, 0, 0, 0, 0, 0];
        let outcome = image.run(&mut space, arguments, Duration::from_secs(1));
        assert!(
            matches!(outcome, Outcome::Returned(found) if found == expected),
            "{kind}: {outcome:?}, expected {expected:#x}"
        );
    }
}
