use super::*;
use crate::fake::{profile, FakeMemory, RandomNumbers, DIRECT, TEXT, TEXT_PHYSICAL};
use std::vec::Vec;

const TOP: u64 = TEXT + 0x2000;
const FIVE: u64 = TEXT + 0x3000;
const BASE: u64 = TEXT + 0x3008;
const END: u64 = TEXT + 0x3010;

fn symbols() -> Vec<(u64, u8, &'static str)> {
    std::vec![
        (TEXT, b'T', "_text"),
        (TOP, b'D', "init_top_pgt"),
        (FIVE, b'D', "__pgtable_l5_enabled"),
        (BASE, b'D', "page_offset_base"),
        (END, b'D', "vmalloc_base"),
    ]
}

/// Memory in which the two direct-map variables are set.
fn memory() -> FakeMemory {
    let memory = FakeMemory::new(4 << 20);
    memory.set(TEXT_PHYSICAL + 0x3008, 0xffff_9000_0000_0000);
    memory.set(TEXT_PHYSICAL + 0x3010, 0xffff_a000_0000_0000);
    memory
}

#[test]
fn image_and_direct_map_are_translated_by_rule() {
    let bytes = profile(&symbols(), &[]);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = memory();
    memory.put(TEXT_PHYSICAL + 0x5ffd, b"hello\x01\0");
    memory.put(0x1ffd, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let kernel = Kernel::new(&profile, &memory);
    assert_eq!(kernel.c_string(TEXT + 0x5ffd, 16).unwrap(), "hello?");
    assert_eq!(kernel.c_string(TEXT + 0x5ffd, 3).unwrap(), "hel");
    assert_eq!(kernel.u64(0xffff_9000_0000_1ffd), Some(0x0807_0605_0403_0201));
    assert_eq!(kernel.u32(0xffff_9000_0000_1ffe), Some(0x0504_0302));
    assert_eq!(kernel.u16(0xffff_9000_0000_1fff), Some(0x0403));
    assert_eq!(kernel.u8(0xffff_9000_0000_2000), Some(4));
    assert_eq!(kernel.uint(0xffff_9000_0000_2000, 3), None);
    // Unmapped: after the memory's end, across it, the null page, user addresses, another kernel's direct map.
    for address in
        [0xffff_9000_0040_0000, 0xffff_9000_003f_fffc, 0, 8, 0x7fff_ffff_f000, DIRECT, u64::MAX - 3]
    {
        assert_eq!(kernel.u64(address), None, "{address:#x}");
    }
}

#[test]
fn kernel_without_variables_has_default_direct_map() {
    let bytes = profile(&[(TEXT, b'T', "_text")], &[]);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = FakeMemory::new(1 << 20);
    memory.set(0x8000, 7);
    let kernel = Kernel::new(&profile, &memory);
    assert_eq!(kernel.u64(DIRECT + 0x8000), Some(7));
    assert_eq!(kernel.u64(0xffff_c900_0000_0000), None);
}

#[test]
fn other_addresses_go_through_page_tables() {
    let bytes = profile(&symbols(), &[]);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = memory();
    let kernel = Kernel::new(&profile, &memory);
    let top = TEXT_PHYSICAL + 0x2000;
    let address = 0xffff_c900_4060_3000u64;
    let index = |level: u64| (address >> (12 + 9 * level) & 511) * 8;
    let no_execute = 1 << 63;
    memory.set(top + index(3), 0x20_0067);
    memory.set(0x20_0000 + index(2), 0x20_1067);
    memory.set(0x20_1000 + index(1), 0x20_2067);
    memory.set(0x20_2000 + index(0), 0x20_3063 | no_execute);
    memory.set(0x20_3018, 0x1234);
    assert_eq!(kernel.u64(address + 0x18), Some(0x1234));
    assert_eq!(kernel.physical(address + 0x1000), None);
    // The same tables as the lower four of five levels.
    memory.set(TEXT_PHYSICAL + 0x3000, 1);
    assert_eq!(kernel.physical(address), None);
    memory.set(top + 511 * 8, 0x20_4067);
    memory.set(0x20_4000 + index(3), 0x20_0067);
    assert_eq!(kernel.u64(address + 0x18), Some(0x1234));
    memory.set(TEXT_PHYSICAL + 0x3000, 0);
    // A page of 2 MiB whose attribute bit 12 is set, then one of 1 GiB.
    memory.set(0x20_1000 + index(1), 0x20_0000 | 1 << 12 | 0xe3);
    assert_eq!(kernel.physical(address + 5), Some(0x20_3005));
    memory.set(0x20_0000 + index(2), 0xe3);
    assert_eq!(kernel.physical(address + 5), Some(0x60_3005));
    // A table after the end of memory, and one that refers to itself.
    memory.set(0x20_0000 + index(2), 0x7fff_f067);
    assert_eq!(kernel.physical(address), None);
    memory.set(top + index(3), top | 0x67);
    assert!(kernel.physical(address).is_none_or(|physical| physical < 1 << 52));
}

#[test]
fn words_are_read_across_pages_and_those_that_cannot_be_are_left_out() {
    let bytes = profile(&symbols(), &[]);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = memory();
    let kernel = Kernel::new(&profile, &memory);
    let words = |physical: u64, count| {
        let mut seen = Vec::new();
        kernel.words(kernel.direct(physical), count, |address, word| seen.push((address, word)));
        seen
    };
    let first = 0x4000 - 16;
    (0..4).for_each(|n| memory.set(first + 8 * n, n + 1));
    let expected: Vec<_> = (0..4).map(|n| (kernel.direct(first + 8 * n), n + 1)).collect();
    assert_eq!(words(first, 4), expected);
    // The memory's end.
    let last = memory.bytes() - 8;
    memory.set(last, 7);
    assert_eq!(words(last, 3), [(kernel.direct(last), 7)]);
}

#[test]
fn damaged_page_tables_are_survived() {
    let bytes = profile(&symbols(), &[]);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = memory();
    let mut numbers = RandomNumbers(1);
    for page in (0x1000..memory.bytes()).step_by(8 * 37) {
        memory.set(page, (numbers.next() & 0x3f_f000) | (numbers.next() & 0xe7));
    }
    let kernel = Kernel::new(&profile, &memory);
    for _ in 0..20_000 {
        kernel.u64(numbers.next() | 0xffff_0000_0000_0000);
        kernel.c_string(numbers.next() | 0xffff_f000_0000_0000, 32);
    }
}
