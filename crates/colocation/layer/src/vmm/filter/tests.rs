use super::*;

/// xorshift64*: the same numbers from the same seed.
fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

fn after(marked: &[u8; 16], offset: usize, bytes: &[u8]) -> [u8; 16] {
    let mut after = *marked;
    after[offset..offset + bytes.len()].copy_from_slice(bytes);
    after
}

#[test]
fn marks_avoid_actual_and_likely_values() {
    for byte in 0..=255u8 {
        for salt in 0..256 {
            for mark in mark(&[byte; 16], salt) {
                let far = mark.wrapping_sub(byte);
                assert!((64..=191).contains(&far), "{byte:#x} {mark:#x}");
                assert!(mark != 0 && mark != 0xff);
            }
        }
    }
}

#[test]
fn marks_depend_on_the_salt_in_every_byte() {
    let seen = |i: usize| {
        let mut marks: Vec<_> = (0..4096).map(|salt| mark(&[0x5a; 16], salt)[i]).collect();
        marks.sort_unstable();
        marks.dedup();
        marks.len()
    };
    assert!((0..16).all(|i| seen(i) > 120));
    assert_eq!(mark(&[1; 16], 7), mark(&[1; 16], 7));
}

#[test]
fn writes_that_differ_from_marks_are_found() {
    let mut state = 1;
    let mut checked = 0;
    while checked < 20_000 {
        let marked = mark(&u128::from(random(&mut state)).to_le_bytes(), random(&mut state));
        let (offset, bytes) = (random(&mut state) as usize % 8, 1 << (random(&mut state) % 4));
        let value = random(&mut state).to_le_bytes();
        if (0..bytes).any(|i| value[i] == marked[offset + i]) {
            continue;
        }
        let mut want = [0; 8];
        want[..bytes].copy_from_slice(&value[..bytes]);
        let write = Write { offset, bytes, value: u64::from_le_bytes(want) };
        assert_eq!(written(&marked, &after(&marked, offset, &value[..bytes]), offset), Some(write));
        checked += 1;
    }
}

#[test]
fn small_values_are_found_with_any_salt() {
    let mut state = 5;
    for salt in 0..20_000 {
        let marked = mark(&u128::from(random(&mut state)).to_le_bytes(), salt);
        // For any lower half: 0 and 0xff are no marks.
        for value in [salt as u32 & 0xffff, salt as u32 | 0xffff_0000, 0, u32::MAX] {
            let found = written(&marked, &after(&marked, 0, &value.to_le_bytes()), 0);
            assert_eq!(found, Some(Write { offset: 0, bytes: 4, value: u64::from(value) }));
        }
    }
}

#[test]
fn bytes_equal_to_their_marks_are_written() {
    let marked: [u8; 16] = core::array::from_fn(|i| 0xa0 + i as u8);
    let found = |offset, bytes: &[u8]| {
        written(&marked, &after(&marked, offset, bytes), offset).map(|w| (w.bytes, w.value))
    };
    assert_eq!(found(4, &[1, 2, 3, 0xa7]), Some((4, 0xa703_0201)), "the last");
    assert_eq!(found(4, &[0xa4, 2, 3, 4]), Some((4, 0x0403_02a4)), "the first");
    assert_eq!(found(4, &[1, 0xa5, 0xa6, 4]), Some((4, 0x04a6_a501)), "between");
    assert_eq!(found(0, &[0xa0, 0xa1, 0xa2, 4]), Some((4, 0x04a2_a1a0)), "all but one");
    assert_eq!(found(0, &[1, 2, 3, 4, 5, 0xa5, 0xa6, 0xa7]).map(|f| f.0), Some(8));
    // The documented limits.
    assert_eq!(found(4, &[1, 2, 0xa6, 0xa7]), Some((2, 0x0201)), "the upper half");
    assert_eq!(found(4, &[0xa4, 0xa5, 0xa6, 0xa7]), None, "all");
}

#[test]
fn no_single_write_means_none() {
    let marked = mark(&[0; 16], 3);
    let zeros = |offset, bytes| after(&marked, offset, &vec![0; bytes]);
    assert_eq!(written(&marked, &marked, 0), None, "nothing");
    assert_eq!(written(&marked, &zeros(0, 9), 0), None, "9 bytes");
    assert_eq!(written(&marked, &zeros(0, 16), 0), None, "16 bytes");
    assert_eq!(written(&marked, &zeros(3, 4), 4), None, "below the address");
    assert_eq!(written(&marked, &zeros(12, 4), 4), None, "9 to 12 bytes behind it");
    assert_eq!(written(&marked, &zeros(8, 8), 7).map(|w| w.bytes), None, "9 bytes from 7 on");
    assert_eq!(written(&marked, &zeros(7, 8), 7).map(|w| w.bytes), Some(8));
    assert_eq!(written(&marked, &zeros(13, 3), 13), None, "would be 4 and leave the window");
    assert_eq!(written(&marked, &zeros(15, 1), 15).map(|w| w.bytes), Some(1));
    assert_eq!(written(&marked, &zeros(15, 1), 16), None, "no offset of the window");
    assert_eq!(written(&marked, &zeros(15, 1), usize::MAX), None);
}
