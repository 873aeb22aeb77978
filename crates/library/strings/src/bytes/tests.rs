use super::*;

#[test]
fn copies_move_every_length_and_nothing_else() {
    let source: Vec<u8> = (0..600u32).map(|i| i as u8 ^ 0x5a).collect();
    for bytes in 0..560 {
        let mut target = [0xeeu8; 600];
        // SAFETY: both buffers have 600 bytes.
        let end = unsafe { mempcpy(target.as_mut_ptr().add(7), source.as_ptr().add(3), bytes) };
        assert_eq!(end as usize - target.as_ptr() as usize, 7 + bytes);
        assert!(target[..7].iter().chain(&target[7 + bytes..]).all(|&byte| byte == 0xee));
        assert!(target[7..7 + bytes].iter().eq(&source[3..3 + bytes]));
    }
}

#[test]
fn moves_in_one_buffer_keep_what_was_there() {
    for (from, to) in
        [(0, 1), (1, 0), (0, 15), (15, 0), (0, 17), (17, 0), (0, 300), (300, 0), (5, 5)]
    {
        for bytes in 0..560 {
            let before: Vec<u8> = (0..900u32).map(|i| (i * 7) as u8).collect();
            let mut buffer = before.clone();
            // SAFETY: both ranges are in the buffer.
            unsafe { memmove(buffer.as_mut_ptr().add(to), buffer.as_ptr().add(from), bytes) };
            assert!(
                buffer[to..to + bytes].iter().eq(&before[from..from + bytes]),
                "{from} {to} {bytes}"
            );
            assert!(buffer[to + bytes..].iter().eq(&before[to + bytes..]));
            assert!(buffer[..to].iter().eq(&before[..to]));
        }
    }
}

#[test]
fn sets_fill_every_length_and_nothing_else() {
    for bytes in 0..560 {
        let mut buffer = [1u8; 600];
        // SAFETY: the buffer has 600 bytes.
        unsafe { memset(buffer.as_mut_ptr().add(9), 0x1a5, bytes) };
        assert!(buffer[9..9 + bytes].iter().all(|&byte| byte == 0xa5));
        assert!(buffer[..9].iter().chain(&buffer[9 + bytes..]).all(|&byte| byte == 1));
    }
}

#[test]
fn comparisons_order_by_the_first_difference() {
    let a = [7u8; 64];
    for place in 0..64 {
        let mut b = a;
        b[place] = 0xf0;
        // SAFETY: both buffers have 64 bytes.
        unsafe {
            assert!(
                memcmp(a.as_ptr(), b.as_ptr(), 64) < 0 && memcmp(b.as_ptr(), a.as_ptr(), 64) > 0
            );
            assert_eq!(memcmp(a.as_ptr(), b.as_ptr(), place), 0);
            assert_eq!(memchr(b.as_ptr(), 0xf0, 64), b.as_ptr().add(place));
            assert!(memchr(b.as_ptr(), 0xf0, place).is_null());
        }
    }
}
