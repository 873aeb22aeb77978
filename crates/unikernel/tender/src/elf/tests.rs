//! Valid and invalid images, built by hand.

use super::*;

/// Offset of the program headers in [`image`].
const HEADERS: usize = 64;

fn put(file: &mut [u8], at: usize, bytes: usize, value: u64) {
    file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

/// A valid image with code, data that is longer in memory, a note and thread-local data.
pub fn image() -> Vec<u8> {
    let mut file = vec![0; 0x3000];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    put(&mut file, 16, 2, 2);
    put(&mut file, 18, 2, 62);
    put(&mut file, 24, 8, GUEST_IMAGE_BASE + 0x10);
    put(&mut file, 0x20, 8, HEADERS as u64);
    put(&mut file, 0x36, 2, 56);
    put(&mut file, 0x38, 2, 4);
    let mut header = |n: usize, kind, flags, offset, address, in_file, bytes| {
        let at = HEADERS + n * 56;
        for (field, width, value) in [
            (0, 4, kind),
            (4, 4, flags),
            (8, 8, offset),
            (16, 8, address),
            (32, 8, in_file),
            (40, 8, bytes),
            (48, 8, 8),
        ] {
            put(&mut file, at + field, width, value);
        }
    };
    header(0, PT_LOAD.0.into(), 5, 0x1000, GUEST_IMAGE_BASE, 0x800, 0x800);
    header(1, PT_LOAD.0.into(), 6, 0x2000, GUEST_IMAGE_BASE + 0x1000, 0x10, 0x2345);
    header(2, PT_NOTE.0.into(), 4, 0x400, 0, 24, 24);
    header(3, PT_TLS.0.into(), 4, 0x2000, GUEST_IMAGE_BASE + 0x1000, 8, 0x20);
    put(&mut file, 0x400, 4, 7);
    put(&mut file, 0x404, 4, 4);
    put(&mut file, 0x408, 4, u64::from(NOTE_VERSION));
    file[0x40c..0x412].copy_from_slice(b"Kyozon");
    put(&mut file, 0x414, 4, u64::from(UNIKERNEL_VERSION));
    file
}

/// A valid image whose data end with `bytes` zeros that are not in the file.
pub fn image_with_zeros(bytes: u64) -> Vec<u8> {
    let mut file = image();
    put(&mut file, HEADERS + 56 + 40, 8, 0x10 + bytes);
    file
}

#[test]
fn a_valid_image_is_accepted() {
    let image = parse(&image()).unwrap();
    assert_eq!(image.entry, GUEST_IMAGE_BASE + 0x10);
    let [text, data] = &image.segments[..] else { panic!("{image:?}") };
    assert!(text.execute && !text.write && data.write && !data.execute);
    assert_eq!((text.file.clone(), data.bytes), (0x1000..0x1800, 0x2345));
    assert_eq!(data.pages(), GUEST_IMAGE_BASE + 0x1000..GUEST_IMAGE_BASE + 0x4000);
    assert_eq!(image.tls, Tls { file: 0x2000..0x2008, bytes: 0x20, align: 8 });
}

#[test]
fn only_writable_segments_are_private() {
    let flags = |n: usize| HEADERS + n * 56 + 4;
    let mut file = image();
    put(&mut file, flags(0), 4, 5 | u64::from(SEGMENT_PRIVATE));
    put(&mut file, flags(1), 4, 6 | u64::from(SEGMENT_PRIVATE));
    let image = parse(&file).unwrap();
    assert_eq!(image.segments.iter().map(|s| s.private).collect::<Vec<_>>(), [false, true]);
    put(&mut file, HEADERS + 56 + 40, 8, MAX_PRIVATE_BYTES + 1);
    let error = format!("{:#}", parse(&file).unwrap_err());
    assert!(error.contains("private segments have more than 16M"), "{error}");
}

#[test]
fn each_broken_rule_has_its_error() {
    let header = |n: usize, field: usize| HEADERS + n * 56 + field;
    let far = GUEST_IMAGE_END - 0x1000;
    // Offset, size and value of a field, and a part of the error.
    let cases: &[(usize, usize, u64, &str)] = &[
        (0, 1, 0, "not an ELF file"),
        (4, 1, 1, "not an ELF64 file for x86-64"),
        (5, 1, 2, "not an ELF64 file for x86-64"),
        (18, 2, 183, "not an ELF64 file for x86-64"),
        (16, 2, 3, "not linked at a fixed address"),
        (0x20, 8, u64::MAX - 8, "a program header extends past"),
        (0x20, 8, 0x2ff0, "a program header extends past"),
        (0x36, 2, 32, "32 bytes instead of 56"),
        (0x38, 2, 0xffff, "are 65535 program headers"),
        (0x38, 2, 0, "no note named"),
        (24, 8, GUEST_IMAGE_BASE + 0x800, "is not in executable memory"),
        (24, 8, GUEST_IMAGE_BASE + 0x1000, "is not in executable memory"),
        (header(0, 0), 4, PT_INTERP.0.into(), "a program for an operating system"),
        (header(0, 4), 4, 7, "writable and executable"),
        (header(0, 8), 8, u64::MAX, "extends past the end of the file"),
        (header(0, 8), 8, 0x2900, "extends past the end of the file"),
        (header(0, 16), 8, GUEST_IMAGE_BASE - 0x1000, "is outside"),
        (header(0, 32), 8, 0x801, "longer in the file than in memory"),
        (header(0, 40), 8, 0x1001, "share a page"),
        (header(1, 16), 8, GUEST_IMAGE_BASE + 0xfff, "share a page"),
        (header(1, 16), 8, far, "is outside"),
        (header(1, 40), 8, u64::MAX, "is outside"),
        (header(2, 8), 8, 0x2ff8, "a note extends past"),
        (header(2, 32), 8, 20, "no 4 bytes at offset 0x14"),
        (header(3, 32), 8, 0x21, "thread-local data is longer"),
        (header(3, 40), 8, MAX_TLS_BYTES + 1, "more than 1048576 bytes"),
        (header(3, 48), 8, 12, "has alignment 12:"),
        (header(3, 48), 8, 8192, "has alignment 8192:"),
        (header(1, 0), 4, PT_TLS.0.into(), "more than one segment of thread-local data"),
        (0x400, 4, u64::from(u32::MAX), "no note named"),
        (0x40c, 1, 0x21, "no note named"),
        (0x414, 4, 99, "version 99"),
    ];
    for (at, bytes, value, expected) in cases {
        let mut file = image();
        put(&mut file, *at, *bytes, *value);
        let error = format!("{:#}", parse(&file).expect_err(expected));
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert!(parse(&[]).is_err());
}

#[test]
fn random_bytes_never_break_an_invariant() {
    // xorshift64* with a fixed seed.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    };
    let valid = image();
    for length in 0..0x420 {
        fuzz(&valid[..length]);
    }
    let interesting =
        [0, 1, 0x7f, 0xff, 0x1000, 0x7fff_ffff, u64::MAX, GUEST_IMAGE_BASE, GUEST_IMAGE_END];
    for _ in 0..20_000 {
        let mut file = valid.clone();
        for _ in 0..=random(4) {
            let (at, bytes) = (random(0x418), [1, 2, 4, 8][random(4)]);
            let value = match random(2) {
                0 => interesting[random(interesting.len())],
                _ => random(1 << 30) as u64 * 37,
            };
            put(&mut file, at, bytes, value);
        }
        fuzz(&file);
    }
}

#[test]
fn an_address_inside_a_symbol_finds_it() {
    let mut file = image();
    let (sections, symbols, names) = (0x500, 0x700, 0x780);
    put(&mut file, 0x28, 8, sections as u64);
    put(&mut file, 0x3a, 2, 64);
    put(&mut file, 0x3c, 2, 2);
    let mut section = |n: usize, kind, offset: usize, bytes, link| {
        put(&mut file, sections + n * 64 + 4, 4, kind);
        put(&mut file, sections + n * 64 + 24, 8, offset as u64);
        put(&mut file, sections + n * 64 + 32, 8, bytes);
        put(&mut file, sections + n * 64 + 40, 4, link);
    };
    section(0, SHT_SYMTAB.0.into(), symbols, 48, 1);
    section(1, 3, names, 32, 0);
    file[names..names + 16].copy_from_slice(b"\0main\0_ZN1a1bE\0x");
    for (n, name, base, bytes) in [(0, 1, 0x10, 0x20), (1, 6, 0x30, 8)] {
        put(&mut file, symbols + n * 24, 4, name);
        put(&mut file, symbols + n * 24 + 4, 1, 2);
        put(&mut file, symbols + n * 24 + 8, 8, GUEST_IMAGE_BASE + base);
        put(&mut file, symbols + n * 24 + 16, 8, bytes);
    }
    let at = |offset: u64| symbol(&file, GUEST_IMAGE_BASE + offset).map(|s| (s.name, s.offset));
    assert_eq!(at(0x1f), Some(("main".into(), 15)));
    assert_eq!(at(0x37), Some(("_ZN1a1bE".into(), 7)));
    assert_eq!((at(0x38), at(0xf)), (None, None));
    fuzz(&file);
    // The offset of the name is outside the table of names.
    put(&mut file, symbols, 4, 0xffff_ffff);
    assert_eq!(symbol(&file, GUEST_IMAGE_BASE + 0x10), None);
}

/// A valid program: the image above, moved to 0, with the note of the seam.
fn program() -> Vec<u8> {
    let mut file = image();
    put(&mut file, 16, 2, 3);
    put(&mut file, 24, 8, 0x10);
    put(&mut file, HEADERS + 16, 8, 0);
    put(&mut file, HEADERS + 8, 8, 0);
    put(&mut file, HEADERS + 56 + 16, 8, 0x1000);
    put(&mut file, 0x408, 4, u64::from(NOTE_SEAM));
    put(&mut file, 0x414, 4, u64::from(SEAM_VERSION));
    file
}

/// An image and a program behind it.
fn hosted(program: &[u8]) -> Result<Image> {
    let host = image();
    let file = [host.as_slice(), program].concat();
    parse(&host).unwrap().with_program(&file, host.len())
}

#[test]
fn a_program_is_moved_behind_its_host() {
    assert!(is_program(&program()) && !is_program(&image()) && !is_program(b"\x7fELF"));
    let image = hosted(&program()).unwrap();
    let base = GUEST_PROGRAM_BASE;
    assert_eq!(image.program, Program { base, bytes: 0x4000, entry: base + 0x10, file: 0x3000 });
    assert_eq!(image.entry, GUEST_IMAGE_BASE + 0x10);
    let [.., text, data] = &image.segments[..] else { panic!("{image:?}") };
    assert_eq!((text.base, text.file.clone()), (base, 0x3000..0x3800));
    assert_eq!((data.base, data.file.clone(), data.write), (base + 0x1000, 0x5000..0x5010, true));
    // Its data are the whole family's.
    let mut file = program();
    put(&mut file, HEADERS + 56 + 4, 4, 6 | u64::from(SEGMENT_PRIVATE));
    assert!(hosted(&file).unwrap().segments.iter().all(|segment| !segment.private));
}

#[test]
fn each_broken_rule_of_a_program_has_its_error() {
    // Offset, size and value of a field, and a part of the error.
    let cases: &[(usize, usize, u64, &str)] = &[
        (16, 2, 2, "not a position-independent program"),
        (18, 2, 183, "not a position-independent program"),
        (0x414, 4, 2, "version 2 of its host's interface instead of 1"),
        (24, 8, 0x1000, "is not in executable memory"),
        (24, 8, u64::MAX, "is not in executable memory"),
        (HEADERS + 3 * 56, 4, PT_INTERP.0.into(), "is not static"),
        (HEADERS + 8, 8, 0x1000, "does not begin with the file's header"),
        (HEADERS + 4, 4, 7, "writable and executable"),
        (HEADERS + 56 + 16, 8, u64::MAX, "address of a segment overflows"),
        (HEADERS + 56 + 16, 8, GUEST_IMAGE_END - GUEST_PROGRAM_BASE, "is outside"),
        (HEADERS + 56 + 16, 8, 0x7ff, "share a page"),
        (HEADERS + 56 + 8, 8, 0x2ff8, "extends past the end of the file"),
    ];
    for &(at, bytes, value, expected) in cases {
        let mut file = program();
        put(&mut file, at, bytes, value);
        let error = format!("{:#}", hosted(&file).unwrap_err());
        assert!(error.contains(expected), "{at:#x}: {error}");
    }
}
