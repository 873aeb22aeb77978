use super::*;
use kyozon_abi::layer::LAYER_VERSION;

const FILE: usize = 0x3000;

/// Text at `TASK_BASE`, read-only data and data behind it.
pub(crate) fn image() -> Vec<u8> {
    let mut file = vec![0u8; FILE];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(16, &[2, 0, 62, 0]);
    put(24, &(TASK_BASE + 0x10).to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(54, &[56, 0, 3, 0]);
    for (i, (flags, offset, address, in_file, in_memory)) in [
        (5u32, 0x1000u64, TASK_BASE, 0x800u64, 0x800u64),
        (4, 0x2000, TASK_BASE + 0x1000, 0x10, 0x10),
        (6, 0x2010, TASK_BASE + 0x2000, 0x11, 0x1800),
    ]
    .into_iter()
    .enumerate()
    {
        let at = 64 + 56 * i;
        put(at, &1u32.to_le_bytes());
        put(at + 4, &flags.to_le_bytes());
        for (place, value) in [(8, offset), (16, address), (32, in_file), (40, in_memory)] {
            put(at + place, &value.to_le_bytes());
        }
    }
    file[0x2010..0x2021].fill(0x5a);
    let mut image = vec![0u8; PAGE as usize];
    image[..8].copy_from_slice(&IMAGE_MAGIC.to_le_bytes());
    image[8..12].copy_from_slice(&LAYER_VERSION.to_le_bytes());
    image[12..16].copy_from_slice(&IMAGE_TASK.to_le_bytes());
    image[40..48].copy_from_slice(&(FILE as u64).to_le_bytes());
    image.extend(file);
    image
}

#[test]
fn segments_are_read_as_linked() {
    let bytes = image();
    let read = Image::read(&bytes).unwrap();
    assert_eq!(read.entry, TASK_BASE + 0x10);
    let all: Vec<_> = read
        .segments()
        .iter()
        .map(|s| (s.address - TASK_BASE, s.bytes.len(), s.pages, s.write, s.execute))
        .collect();
    assert_eq!(
        all,
        [
            (0, 0x800, 1, false, true),
            (0x1000, 0x10, 1, false, false),
            (0x2000, 0x11, 2, true, false)
        ]
    );
    assert_eq!(read.segments()[2].bytes, [0x5a; 0x11]);
}

#[test]
fn each_inconsistency_is_refused() {
    let segment = |n: usize, field: usize| PAGE as usize + 64 + 56 * n + field;
    let edits: &[(usize, &[u8])] = &[
        (0, &[0]),
        (8, &[LAYER_VERSION as u8 + 1]),
        (12, &[2]),
        (40, &[0xff; 8]),
        (40, &[1, 0x30]),
        (40, &[0, 1]),
        (4096, &[0]),
        (4096 + 4, &[1]),
        (4096 + 16, &[3]),
        (4096 + 18, &[3]),
        (4096 + 24, &[0xff; 8]),
        (4096 + 24, &[0, 0x10]),
        (4096 + 32, &[0xff; 8]),
        (4096 + 32, &[0xc1, 0x2f]),
        (4096 + 54, &[57]),
        (4096 + 56, &[65]),
        (segment(0, 4), &[7]),
        (segment(0, 4), &[4]),
        (segment(0, 8), &[0xff; 8]),
        (segment(0, 16), &[8]),
        (segment(0, 16), &[0xff; 8]),
        (segment(0, 16), &[0; 8]),
        (segment(1, 16), &[0, 0, 0, 0, 0x80]),
        (segment(1, 16), &[0, 0x20, 0, 0, 0x80]),
        (segment(2, 32), &[0, 0x20]),
        (segment(2, 40), &[0xff; 8]),
        (segment(2, 40), &[0, 0, 0, 0x10]),
    ];
    for (i, (at, bytes)) in edits.iter().enumerate() {
        let mut image = image();
        image[*at..at + bytes.len()].copy_from_slice(bytes);
        assert!(Image::read(&image).is_err(), "edit {i}");
    }
    let whole = image();
    for bytes in [0, 1, 16, 4095, 4096, 4096 + 63, 4096 + 64, 4096 + 200, 4096 + 0x1800] {
        assert!(Image::read(&whole[..bytes]).is_err(), "{bytes}");
    }
}

/// Mutated images never panic, and every accepted image keeps the rules.
#[test]
fn mutated_images_keep_the_rules() {
    let whole = image();
    let mut state = 1u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..20_000 {
        let mut image = whole.clone();
        for _ in 0..=random() % 4 {
            let at = (4096 + random() % 256) as usize;
            image[at] = random() as u8;
        }
        let Ok(read) = Image::read(&image) else { continue };
        for (i, s) in read.segments().iter().enumerate() {
            assert!(s.address % PAGE == 0 && s.address >= TASK_BASE && !(s.write && s.execute));
            assert!(s.address + s.pages * PAGE <= TASK_IMAGE_END);
            assert!(s.bytes.len() as u64 <= s.pages * PAGE);
            for other in &read.segments()[..i] {
                assert!(
                    s.address + s.pages * PAGE <= other.address
                        || other.address + other.pages * PAGE <= s.address
                );
            }
        }
    }
}
