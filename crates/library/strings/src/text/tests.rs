use super::*;

fn offset(text: &core::ffi::CStr, found: *const u8) -> Option<usize> {
    (!found.is_null()).then(|| found as usize - text.as_ptr() as usize)
}

#[test]
fn searches_find_the_first_or_the_last_place() {
    let text = c"one two one";
    let at = text.as_ptr().cast::<u8>();
    let part = |part: &core::ffi::CStr| part.as_ptr().cast::<u8>();
    // SAFETY: zeros end all texts.
    unsafe {
        assert_eq!((strlen(at), strnlen(at, 4), strnlen(at, 40)), (11, 4, 11));
        assert_eq!(offset(text, strchr(at, b'o'.into())), Some(0));
        assert_eq!(offset(text, strrchr(at, b'o'.into())), Some(8));
        assert_eq!(offset(text, strchr(at, 0)), Some(11));
        assert_eq!((strchr(at, b'x'.into()), strrchr(at, b'x'.into())), (null(), null()));
        assert_eq!(offset(text, strchrnul(at, b'x'.into())), Some(11));
        assert_eq!(offset(text, strstr(at, part(c"two"))), Some(4));
        assert_eq!(offset(text, strstr(at, part(c""))), Some(0));
        assert_eq!(strstr(at, part(c"three")), null());
        assert_eq!((strspn(at, part(c"eno")), strcspn(at, part(c" "))), (3, 3));
        assert_eq!((strspn(at, part(c"eno tw")), strcspn(at, part(c""))), (11, 11));
        assert_eq!(offset(text, strpbrk(at, part(c"tw"))), Some(4));
        assert_eq!(strpbrk(at, part(c"xyz")), null());
    }
}

#[test]
fn comparisons_are_of_unsigned_bytes_up_to_the_zero() {
    let text = |text: &'static core::ffi::CStr| text.as_ptr().cast::<u8>();
    // SAFETY: zeros end all texts.
    unsafe {
        assert!(strcmp(text(c"a"), text(c"a\xff")) < 0 && strcmp(text(c"\xff"), text(c"a")) > 0);
        assert_eq!(
            (strcmp(text(c"ab"), text(c"ab")), strncmp(text(c"abc"), text(c"abd"), 2)),
            (0, 0)
        );
        assert!(strcasecmp(text(c"aB"), text(c"Ab")) == 0 && strcmp(text(c"aB"), text(c"Ab")) > 0);
        assert!(strncasecmp(text(c"ABx"), text(c"aby"), 2) == 0);
    }
}

#[test]
fn copies_end_with_a_zero_or_fill_up() {
    let mut buffer = [9u8; 8];
    let from = c"abc".as_ptr().cast::<u8>();
    // SAFETY: the text and its zero fit.
    unsafe {
        assert_eq!(stpcpy(buffer.as_mut_ptr(), from), buffer.as_mut_ptr().add(3));
        assert_eq!(buffer, *b"abc\0\x09\x09\x09\x09");
        strncpy(buffer.as_mut_ptr(), from, 7);
        assert_eq!(buffer, *b"abc\0\0\0\0\x09");
        strncpy(buffer.as_mut_ptr(), from, 2);
        assert_eq!(buffer[..4], *b"abc\0");
    }
}
