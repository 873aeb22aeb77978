use super::allowed;

const ALL: u64 = 0x1ff_ffff_ffff;

#[test]
fn a_user_without_capabilities_has_all_of_the_library() {
    assert_eq!(allowed(0, 0, ALL), ALL);
}

#[test]
fn root_in_a_container_has_all_of_the_library() {
    assert_eq!(allowed(0xa804_25fb, 0xa804_25fb, ALL), ALL);
}

#[test]
fn what_is_left_after_a_loss_counts() {
    assert_eq!(allowed(0x400, ALL, ALL), 0x400);
    assert_eq!(allowed(0, 0xa804_25fb, ALL), 0);
    // What the task has lost does not come back.
    assert_eq!(allowed(ALL, ALL, 0x400), 0x400);
}
