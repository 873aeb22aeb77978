//! Machines that run code, on hosts with KVM.

use super::*;
use crate::backend::{Cpu, Event, Reason};
use crate::elf;
use crate::memory::block;

/// `movabs $address, %rax; movb $7, (%rax); ud2`.
fn store(address: u64) -> Vec<u8> {
    let code = [&[0x48, 0xb8][..], &address.to_le_bytes(), &[0xc6, 0, 7, 0x0f, 0x0b]];
    code.concat()
}

/// Runs a guest that writes to a region, which it has mapped with the right to `write`. Its page tables allow the
/// write in any case. Returns the guest's end and the region's byte.
fn write_to_region(host: &Host, write: bool) -> (Event, u8) {
    let (bytes, address) = (2 * PAGE, REGION_BASE);
    let mut file = elf::tests::image();
    let code = store(address + PAGE);
    file[0x1010..][..code.len()].copy_from_slice(&code);
    let image = elf::parse(&file).unwrap();
    let layout = Layout::new(&image, 1 << 20).unwrap();
    let memory = Memory::new(&image, &file, layout, false).unwrap();
    let (space, mut cpu) = KvmSpace::new(host, host.create_bare().unwrap(), &memory).unwrap();
    let block = block(bytes, None).unwrap();
    space.map(&Mapping { number: 0, address, bytes, write, block: block.clone() }).unwrap();
    let at = address + PAGE;
    space.tables.lock().unwrap().map(at, at, PAGE, Access::Write).unwrap();
    let event = loop {
        match cpu.enter().unwrap() {
            Event::Interrupted => {}
            event => break event,
        }
    };
    (event, block.get_ref::<u8>(PAGE as usize).unwrap().load())
}

#[test]
fn a_slot_forbids_writes_that_the_tables_allow() {
    let Ok(host) = Host::open() else { return eprintln!("skipped: /dev/kvm cannot be opened") };
    let invalid = Reason::Exception { vector: VECTOR_INVALID_OPCODE, error: 0, address: 0 };
    assert_eq!(write_to_region(&host, true), (Event::Crash(invalid), 7));
    let refused = Reason::Revoked(REGION_BASE + PAGE);
    assert_eq!(write_to_region(&host, false), (Event::Crash(refused), 0));
}
