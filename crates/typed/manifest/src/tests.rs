//! A manifest with one of everything, and its fields one by one with other values.

extern crate std;

use std::vec::Vec;

use super::*;

const RESERVED: u64 = 40 << 30;
/// Places of the parts in [`good`].
const MEMORIES: usize = HEADER;
const CONTENTS: usize = MEMORIES + 2 * MEMORY;
const IMPORTS: usize = CONTENTS + 2 * CONTENT;
const EXPORTS: usize = IMPORTS + IMPORT;
const BYTES: usize = EXPORTS + 4 * EXPORT;

fn put(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
}

/// One page of runtime, two memories, two contents, an import, and an export of each kind.
fn good() -> Vec<u8> {
    let words = b"envlogrun:iIdata";
    let word = |from: u32, length: u32| [BYTES as u32 + from, length];
    let mut out = MAGIC.to_vec();
    put(&mut out, &[(BYTES + words.len()) as u32, PAGE as u32, 2, 2, 1, 4]);
    put(&mut out, &[0x10000, 0, 1, 2]);
    put(&mut out, &[0x40000, 0, 1, MOST_PAGES]);
    for distance in [0xfffc, 0x10000] {
        put(&mut out, &[distance, 0]);
        put(&mut out, &word(12, 4));
    }
    for name in [word(0, 3), word(3, 3), word(9, 2)] {
        put(&mut out, &name);
    }
    for (kind, number, signature) in
        [(0, 7, word(9, 3)), (1, 1, word(0, 0)), (2, 0x20, word(10, 1)), (3, 0x40, word(0, 0))]
    {
        put(&mut out, &[kind, number]);
        put(&mut out, &word(6, 3));
        put(&mut out, &signature);
    }
    out.extend(words);
    out
}

fn changed(at: usize, value: u32) -> Result<(), Malformed> {
    let mut bytes = good();
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    Manifest::parse(&bytes, RESERVED).map(|_| ())
}

#[test]
fn a_manifest_says_what_was_written() {
    let mut bytes = good();
    // What follows a manifest in its file is not its concern.
    bytes.extend([0xff; 8]);
    let manifest = Manifest::parse(&bytes, RESERVED).unwrap();
    assert_eq!(manifest.runtime(), 0x10000);
    let memories: Vec<_> = manifest.memories().collect();
    assert_eq!(memories[0], Memory { distance: 0x10000, initial: 1, most: 2 });
    assert_eq!(memories[1], Memory { distance: 0x40000, initial: 1, most: MOST_PAGES });
    let contents: Vec<_> = manifest.contents().collect();
    assert_eq!(contents[0], Content { distance: 0xfffc, bytes: b"data" });
    assert_eq!(contents[1], Content { distance: 0x10000, bytes: b"data" });
    let imports: Vec<_> = manifest.imports().collect();
    assert_eq!(imports, [Import { module: "env", name: "log", signature: ":i" }]);
    let exports: Vec<_> =
        manifest.exports().map(|e| (e.kind, e.number, e.name, e.signature)).collect();
    assert_eq!(
        exports,
        [
            (Kind::Function, 7, "run", ":iI"),
            (Kind::Memory, 1, "run", ""),
            (Kind::Global, 0x20, "run", "i"),
            (Kind::Table, 0x40, "run", ""),
        ]
    );
}

#[test]
fn a_file_without_a_manifest_is_told_apart() {
    assert_eq!(Manifest::parse(b"", RESERVED).unwrap_err(), Malformed::Magic);
    assert_eq!(Manifest::parse(b"KYZWASM2", RESERVED).unwrap_err(), Malformed::Magic);
}

#[test]
fn a_manifest_that_is_cut_short_is_refused() {
    let bytes = good();
    for length in MAGIC.len()..bytes.len() {
        let result = Manifest::parse(&bytes[..length], RESERVED);
        assert!(matches!(result, Err(Malformed::Truncated(_))), "{length} bytes: {result:?}");
        // Parts that do not fit in the bytes that it says it has.
        if (HEADER..BYTES).contains(&length) {
            assert!(changed(8, length as u32).is_err(), "{length}");
        }
    }
}

#[test]
fn contents_have_no_more_bytes_than_the_manifest() {
    let mut bytes = good();
    let all = bytes.len() as u32;
    for (start, length, expected) in
        [(4, all - 4, Ok(())), (0, all, Err(Malformed::Field("content", 1)))]
    {
        let entry = CONTENTS + CONTENT;
        bytes[entry + 8..entry + 12].copy_from_slice(&u32::to_le_bytes(start));
        bytes[entry + 12..entry + 16].copy_from_slice(&u32::to_le_bytes(length));
        assert_eq!(Manifest::parse(&bytes, RESERVED).map(|_| ()), expected, "{length}");
    }
}

#[test]
fn fields_out_of_range_are_refused() {
    let cases = [
        ("runtime", 12, 0x1_0001, "runtime's memory", 0),
        ("memory 0 lies in the runtime", MEMORIES, 0, "memory", 0),
        ("memory 0 is not at a page", MEMORIES, 0x10010, "memory", 0),
        ("memory 0 begins with more than its most", MEMORIES + 8, 3, "memory", 0),
        ("memory 0 has more than the most", MEMORIES + 12, MOST_PAGES + 1, "memory", 0),
        ("memory 1 lies in memory 0", MEMORIES + MEMORY, 0x20000, "memory", 1),
        ("memory 1 ends beyond the region", MEMORIES + MEMORY + 4, 10, "memory", 1),
        ("memory 1 is nowhere", MEMORIES + MEMORY + 4, u32::MAX, "memory", 1),
        ("content 0 lies across the runtime's end", CONTENTS, 0xfffd, "content", 0),
        ("content 1 lies beyond the initial pages", CONTENTS + CONTENT, 0x20000, "content", 1),
        ("content 1 is nowhere", CONTENTS + CONTENT + 4, u32::MAX, "content", 1),
        ("content 1 has bytes beyond the end", CONTENTS + CONTENT + 8, u32::MAX, "content", 1),
        ("content 1 is longer than the manifest", CONTENTS + CONTENT + 12, 1 << 20, "content", 1),
        ("the import's module lies beyond the end", IMPORTS, 1 << 20, "import", 0),
        ("the import's name lies beyond the end", IMPORTS + 8, u32::MAX, "import", 0),
        ("the import's type lies beyond the end", IMPORTS + 20, 1 << 20, "import", 0),
        ("the export's kind", EXPORTS, 4, "export", 0),
        ("a function's number is a start function's", EXPORTS + 4, START, "export", 0),
        ("there is no such memory", EXPORTS + EXPORT + 4, 2, "export", 1),
        ("the global ends beyond the runtime", EXPORTS + 2 * EXPORT + 4, 0xfff1, "export", 2),
        ("the global has no type", EXPORTS + 2 * EXPORT + 20, 0, "export", 2),
        ("the table's length is beyond the runtime", EXPORTS + 3 * EXPORT + 4, 0xfffd, "export", 3),
    ];
    for (what, at, value, part, n) in cases {
        assert_eq!(changed(at, value), Err(Malformed::Field(part, n)), "{what}");
    }
}

#[test]
fn names_must_be_utf8() {
    let mut bytes = good();
    bytes[BYTES] = 0xff;
    assert_eq!(Manifest::parse(&bytes, RESERVED).unwrap_err(), Malformed::Field("import", 0));
}

#[test]
fn the_number_of_memories_is_limited() {
    let count = MOST_MEMORIES + 1;
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, &[(HEADER + MEMORY * count as usize) as u32, 0, count, 0, 0, 0]);
    bytes.resize(HEADER + MEMORY * count as usize, 0);
    let result = Manifest::parse(&bytes, RESERVED).unwrap_err();
    assert_eq!(result, Malformed::Field("memory", MOST_MEMORIES));
}

#[test]
fn a_step_is_short_and_all_of_them_are_linear() {
    let steps = |bytes: &[u8]| {
        let mut steps = 0;
        let parsed = Manifest::parse_with(bytes, RESERVED, || steps += 1);
        (parsed.map(|_| ()), steps)
    };
    assert_eq!(steps(&good()), (Ok(()), 2 + 1 + 4), "contents, imports, exports");
    // The module of the import becomes long.
    let long = |length: usize| {
        let mut bytes = good();
        let start = bytes.len() as u32;
        bytes.resize(bytes.len() + length, b'a');
        let size = bytes.len() as u32;
        bytes[8..12].copy_from_slice(&size.to_le_bytes());
        bytes[IMPORTS..IMPORTS + 4].copy_from_slice(&start.to_le_bytes());
        bytes[IMPORTS + 4..IMPORTS + 8].copy_from_slice(&(length as u32).to_le_bytes());
        bytes
    };
    assert_eq!(steps(&long(MOST_TEXT)), (Ok(()), 7 + MOST_TEXT / STEP));
    assert_eq!(steps(&long(MOST_TEXT + 1)).0, Err(Malformed::Field("import", 0)));
    // The same bytes for each export: more in all than the manifest has.
    let mut shared = long(MOST_TEXT);
    let text: [u8; 8] = shared[IMPORTS..IMPORTS + 8].try_into().unwrap();
    shared[EXPORTS + 8..EXPORTS + 16].copy_from_slice(&text);
    assert_eq!(steps(&shared).0, Err(Malformed::Field("export", 0)));
}

#[test]
fn imports_are_found_by_their_numbers() {
    let bytes = good();
    let manifest = Manifest::parse(&bytes, RESERVED).unwrap();
    assert_eq!(manifest.import_bytes(0), Some([&b"env"[..], b"log", b":i"]));
    assert_eq!(manifest.import_bytes(1), None);
}
