use super::*;

/// As in the C library: `syscall; cmp $-4096, %rax`.
const LIBC: [u8; 5] = [0x0f, 0x05, 0x48, 0x3d, 0x00];

#[test]
fn the_stub_lies_where_the_following_bytes_say() {
    let (landing, stub) = stub(0x7f00_0000_1000, LIBC).expect("a stub");
    assert_eq!(landing, 0x7f00_0000_1000 + 5 + 0x003d_4805);
    // The address in rcx is relative to the end of the lea instruction.
    let back = i32::from_le_bytes(stub[3..7].try_into().expect("4 bytes"));
    assert_eq!((landing + 7).wrapping_add_signed(i64::from(back)), 0x7f00_0000_1002);
    assert_eq!(stub[7..], JUMP_GATE);
}

#[test]
fn a_landing_place_outside_user_memory_is_refused() {
    assert!(stub(0x40_0000, [0x0f, 0x05, 0x48, 0x89, 0xc3]).is_none());
    assert!(stub((1 << 47) - 4096, LIBC).is_none());
}

#[test]
fn other_bytes_than_a_system_call_are_left_alone() {
    assert!(stub(0x7f00_0000_1000, [0xe9, 0x05, 0x48, 0x3d, 0x00]).is_none());
    assert!(stub(0x7f00_0000_1000, [0xcd, 0x80, 0x48, 0x3d, 0x00]).is_none());
}
