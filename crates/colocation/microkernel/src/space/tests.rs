use super::*;
use crate::fake::{Fake, LEVEL3, TOP};

fn space(levels: u32) -> (Space, Fake, Memory) {
    let mut fake = Fake::new(64);
    let mut memory = fake.memory;
    let five = [&[0xcccc_0003; 1][..], &[0; 511]].concat().try_into().unwrap();
    let kernel = match levels {
        4 => Kernel { top: &TOP, level4: None, level3: &LEVEL3, low: None, root_bits: 0x7f0 },
        _ => Kernel { top: &five, level4: Some(&TOP), level3: &LEVEL3, low: None, root_bits: 0 },
    };
    let space = Space::new(&mut fake, &mut memory, &kernel).unwrap();
    (space, fake, memory)
}

fn with_page(flags: u64) -> (Space, Fake, u64) {
    let (space, mut fake, mut memory) = space(4);
    let page = memory.take().unwrap();
    space.map(&mut fake, &mut memory, 0x80_0000_0000, page, flags).unwrap();
    let next = memory.take().unwrap();
    space.map(&mut fake, &mut memory, 0x80_0000_1000, next, DATA).unwrap();
    (space, fake, page)
}

#[test]
fn kernel_is_mapped_but_not_for_user_mode() {
    for levels in [4, 5] {
        let (space, mut fake, _) = space(levels);
        let table = *fake.page(space.level4).unwrap();
        assert_eq!((table[0], table[128]), (TOP[0], TOP[128]));
        assert!(space.physical(&mut fake, 0, false).is_none());
        assert!(space.physical(&mut fake, 0x4000_0000_0000, false).is_none());
        assert_eq!(space.root & 0xfff, if levels == 4 { 0x7f0 } else { 0 });
    }
}

#[test]
fn task_window_is_user_readable_only() {
    for levels in [4, 5] {
        let (space, mut fake, _) = space(levels);
        space.open_window(&mut fake);
        let table = *fake.page(space.level4).unwrap();
        assert_eq!(table[128], TOP[128], "the kernel's own window stays supervisor-only");
        assert_eq!(table[192], 0xbbbb_0025 | 1 << 63);
        // Its tables are outside the cokernel's memory: a system call cannot access the window.
        assert!(!space.read(&mut fake, TASK_WINDOW_BASE, &mut [0]));
        assert!(space.shareable(&mut fake, TASK_WINDOW_BASE).is_none());
    }
}

#[test]
fn mapped_memory_is_read_and_written() {
    let (space, mut fake, page) = with_page(DATA);
    let at = 0x80_0000_0ff0;
    assert!(space.write(&mut fake, at, &[1, 2, 3, 4]));
    assert_eq!(fake.page(page).unwrap()[510..], [1, 2]);
    let mut words = [0; 4];
    assert!(space.read(&mut fake, at, &mut words));
    assert_eq!(words, [1, 2, 3, 4]);
    let mut bytes = [9; 17];
    assert!(space.read_bytes(&mut fake, at + 7, &mut bytes));
    assert_eq!(bytes[..3], [0, 2, 0]);
    assert_eq!(bytes[9], 3);
    assert!(space.read_bytes(&mut fake, 5, &mut []), "an empty read always succeeds");
}

#[test]
fn foreign_addresses_are_refused() {
    let (space, mut fake, page) = with_page(RODATA);
    let mut words = [0; 4];
    for bad in [
        0,
        8,
        0x80_0000_0001,
        0x80_0000_1ff0,
        0x80_0000_2000,
        0x7f_ffff_fff0,
        1 << 47,
        1 << 63,
        u64::MAX - 7,
        u64::MAX - 31,
    ] {
        assert!(!space.read(&mut fake, bad, &mut words), "{bad:#x}");
        assert!(!space.write(&mut fake, bad, &words), "{bad:#x}");
    }
    assert!(space.read(&mut fake, 0x80_0000_0000, &mut words));
    assert!(!space.write(&mut fake, 0x80_0000_0000, &words));
    // All or none: the first page is not writable and the second is; then the second is missing.
    assert!(!space.write(&mut fake, 0x80_0000_0ff8, &[7, 7]));
    assert!(space.read(&mut fake, 0x80_0000_1000, &mut words[..1]) && words[0] == 0);
    assert!(!space.write(&mut fake, 0x80_0000_1ff8, &[7, 7]));
    assert!(space.read(&mut fake, 0x80_0000_1ff8, &mut words[..1]) && words[0] == 0);
    assert!(fake.page(page).unwrap().iter().all(|w| *w == 0));
}

#[test]
fn pages_are_shared_in_the_share_window_only() {
    let (space, mut fake, page) = with_page(DATA);
    let entry = space.shareable(&mut fake, 0x80_0000_0000).unwrap();
    assert!(is_writable(entry) && entry & NO_EXECUTE != 0);
    assert!(space.shareable(&mut fake, 0x80_0000_0008).is_none());
    let place = TASK_SHARE_BASE + 0x5000;
    for bad in [0, place + 8, TASK_SHARE_BASE - 4096, TASK_SHARE_BASE + TASK_SHARE_BYTES, u64::MAX]
    {
        assert!(!space.is_free(&mut fake, bad), "{bad:#x}");
        space.share(&mut fake, bad, entry, true);
    }
    assert!(space.is_free(&mut fake, place));
    space.share(&mut fake, place, entry, false);
    assert!(!space.is_free(&mut fake, place));
    assert!(!space.write(&mut fake, place, &[1]));
    assert!(space.write(&mut fake, 0x80_0000_0000, &[5]));
    let mut word = [0];
    assert!(space.read(&mut fake, place, &mut word) && word == [5]);
    space.unmap(&mut fake, place);
    assert!(space.is_free(&mut fake, place) && !space.read(&mut fake, place, &mut word));
    space.share(&mut fake, place, entry, true);
    assert!(space.write(&mut fake, place, &[6]) && fake.page(page).unwrap()[0] == 6);
}

#[test]
fn read_only_pages_are_shared_read_only() {
    let (space, mut fake, _) = with_page(TEXT);
    let entry = space.shareable(&mut fake, 0x80_0000_0000).unwrap();
    space.share(&mut fake, TASK_SHARE_BASE, entry, true);
    assert!(!space.write(&mut fake, TASK_SHARE_BASE, &[1]));
    let shared = *space.leaf(&mut fake, TASK_SHARE_BASE).unwrap();
    assert!(shared & NO_EXECUTE != 0, "a shared page is not executable");
}

#[test]
fn running_out_of_memory_is_reported() {
    for pages in 0..4 {
        let mut fake = Fake::new(pages);
        let mut memory = fake.memory;
        let kernel = Kernel { top: &TOP, level4: None, level3: &LEVEL3, low: None, root_bits: 0 };
        assert!(Space::new(&mut fake, &mut memory, &kernel).is_none(), "{pages}");
    }
}
