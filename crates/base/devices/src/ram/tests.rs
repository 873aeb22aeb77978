use super::*;
use vm_memory::{Bytes, GuestMemory, Permissions};

#[test]
fn addresses_are_those_of_the_process_and_end_with_the_range() {
    let mut bytes = vec![0_u8; 8192];
    let start = bytes.as_mut_ptr();
    let at = start as u64;
    // SAFETY: the vector lives until the end of the test, and is not borrowed before that.
    let ram = unsafe { Ram::new(start, 4096) };
    ram.write_slice(&[1, 2, 3], GuestAddress(at + 4093)).unwrap();
    assert!(ram.write_slice(&[4; 2], GuestAddress(at + 4096)).is_err());
    let inside =
        |at, bytes| GuestMemory::check_range(&ram, GuestAddress(at), bytes, Permissions::Read);
    assert!(inside(at, 4096) && inside(at + 4095, 1));
    for (at, bytes) in
        [(at - 1, 1), (at, 4097), (at + 4096, 1), (u64::MAX, 2), (0, 1), (at + 1, usize::MAX)]
    {
        assert!(!inside(at, bytes), "{at:#x} {bytes}");
    }
    assert_eq!(bytes[4090..4098], [0, 0, 0, 1, 2, 3, 0, 0]);
}
