use super::*;
use alloc::{vec, vec::Vec};

const DYNAMIC: u64 = 0x200;
const RELA: u64 = 0x300;
const RELR: u64 = 0x400;
const DATA: u64 = 0x500;

/// A file with one segment of code and data, and the tables that a test fills.
struct File(Vec<u8>);

impl File {
    fn new() -> Self {
        let mut file = Self(vec![0; 0x1000]);
        file.0[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        file.put(16, &3u16.to_le_bytes()); // ET_DYN
        file.put(18, &62u16.to_le_bytes()); // EM_X86_64
        file.put(20, &1u32.to_le_bytes());
        file.put(24, &0x180u64.to_le_bytes()); // entry
        file.put(32, &64u64.to_le_bytes()); // program headers
        file.put(52, &64u16.to_le_bytes());
        file.put(54, &56u16.to_le_bytes());
        file.put(56, &2u16.to_le_bytes());
        file.header(0, 1, 7, 0, 0x1000, 0x2000);
        file.header(1, 2, 6, DYNAMIC, 0x100, 0x100);
        file
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn header(
        &mut self,
        index: usize,
        kind: u32,
        flags: u32,
        at: u64,
        file_bytes: u64,
        memory_bytes: u64,
    ) {
        let start = 64 + index * 56;
        self.put(start, &kind.to_le_bytes());
        self.put(start + 4, &flags.to_le_bytes());
        for (i, value) in [at, at, at, file_bytes, memory_bytes, 4096].into_iter().enumerate() {
            self.put(start + 8 + i * 8, &value.to_le_bytes());
        }
    }

    fn words(&mut self, at: u64, words: &[u64]) {
        for (i, word) in words.iter().enumerate() {
            self.put(at as usize + i * 8, &word.to_le_bytes());
        }
    }

    fn refused(&self) -> String {
        Image::parse(&self.0).expect_err("a broken file").0
    }
}

#[test]
fn both_kinds_of_relocations_are_found() {
    let mut file = File::new();
    file.words(DYNAMIC, &[7, RELA, 8, 24, 36, RELR, 35, 24, 0, 0]);
    file.words(RELA, &[DATA, 8, 0x123]);
    // An address, then bits for the words 1 and 62 behind it, then one for the 64th.
    file.words(RELR, &[DATA + 8, 1 | 1 << 1 | 1 << 63, 1 | 1 << 1]);
    file.words(DATA + 8, &[0x10]);
    file.words(DATA + 16, &[0x20]);
    file.words(DATA + 16 + 62 * 8, &[0x30]);
    file.words(DATA + 16 + 63 * 8, &[0x40]);
    let image = Image::parse(&file.0).expect("a good file");
    let found: Vec<_> = image.relocations.iter().map(|r| (r.address - DATA, r.value)).collect();
    assert_eq!(
        found,
        [(0, 0x123), (8, 0x10), (16, 0x20), (16 + 62 * 8, 0x30), (16 + 63 * 8, 0x40)]
    );
    assert_eq!((image.entry, image.bytes), (0x180, 0x2000));
}

#[test]
fn anything_else_is_refused_by_its_reason() {
    assert_eq!(Image::parse(b"#!/bin/sh").expect_err("a script").0, "no 64-bit ELF header");
    let mut file = File::new();
    file.put(18, &183u16.to_le_bytes());
    assert!(file.refused().contains("for x86-64"));
    let mut file = File::new();
    file.header(0, 1, 7, 0, 0x1001, 0x2000);
    assert!(file.refused().contains("outside the file"));
    let mut file = File::new();
    file.header(0, 1, 7, 0, 0x1000, 1 << 40);
    assert!(file.refused().contains("beyond 1 GiB"));
    let mut file = File::new();
    file.header(0, 1, 6, 0, 0x1000, 0x2000);
    assert!(file.refused().contains("entry"));
    let mut file = File::new();
    file.words(DYNAMIC, &[1, 1, 0, 0]);
    assert!(file.refused().contains("imports"));
    let mut file = File::new();
    file.words(DYNAMIC, &[7, RELA, 8, 24, 0, 0]);
    file.words(RELA, &[DATA, 6, 0]);
    assert!(file.refused().contains("not relative"));
    let mut file = File::new();
    file.words(DYNAMIC, &[7, RELA, 8, 24, 0, 0]);
    file.words(RELA, &[0xffc, 8, 0]);
    assert!(file.refused().contains("outside its segments"));
    let mut file = File::new();
    file.words(DYNAMIC, &[7, RELA, 8, 24, 0, 0]);
    file.words(RELA, &[DATA, 8, 0x9000]);
    assert!(file.refused().contains("outside the image"));
    let mut file = File::new();
    file.words(DYNAMIC, &[36, u64::MAX - 4, 35, 64, 0, 0]);
    assert!(file.refused().contains("outside its segments"));
}
