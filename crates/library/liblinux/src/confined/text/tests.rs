use super::*;

#[test]
fn control_characters_do_not_reach_a_terminal() {
    assert_eq!(printable(b" a\x1b[2Jb\tc\xff \n"), "a?[2Jb?c\u{fffd}");
    assert_eq!(printable(&[b'x'; 1000]).len(), MAX);
}

#[test]
fn the_panic_is_found_before_its_trace() {
    assert_eq!(last_words(b"one\ntwo\n\n"), "two");
    assert_eq!(last_words(b""), "");
    let log = b"Kernel panic - not syncing: why\nCall Trace:\n---[ end Kernel panic - why ]---\n";
    assert_eq!(last_words(log), "Kernel panic - not syncing: why");
}
