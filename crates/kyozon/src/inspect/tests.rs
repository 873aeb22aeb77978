use super::description::{bytes_at, Description};
use super::*;
use kyozon_monitor::memory::KernelMemory;
use kyozon_monitor::memory::PAGE_BYTES;
use kyozon_monitor::random::Random;
use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;

const PAGE: usize = PAGE_BYTES as usize;

/// An ELF core with memory of these addresses and lengths; each byte of a page is the page's number.
fn core(ranges: &[(u64, usize)], notes: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..6].copy_from_slice(b"\x7fELF\x02\x01");
    head[16] = 4;
    head[18] = 62;
    head[32..40].copy_from_slice(&64u64.to_le_bytes());
    head[54] = 56;
    head[56] = ranges.len() as u8 + 1;
    let mut contents = notes.to_vec();
    let start = 64 + 56 * (ranges.len() + 1);
    let mut header = |kind: u32, offset: usize, physical: u64, bytes: usize| {
        let mut header = [0; 56];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        for (at, value) in [(8, offset as u64), (24, physical), (32, bytes as u64)] {
            header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        head.extend(header);
    };
    header(4, start, 0, notes.len());
    for &(physical, bytes) in ranges {
        header(1, start + contents.len(), physical, bytes);
        contents.extend((0..bytes as u64).map(|at| (physical.wrapping_add(at) / PAGE_BYTES) as u8));
    }
    head.extend(contents);
    head
}

fn open(bytes: &[u8]) -> Result<Dump> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(bytes)?;
    Dump::open(file.path())
}

fn error(bytes: &[u8]) -> String {
    format!("{:#}", open(bytes).expect_err("no image"))
}

/// The bytes of a page, which are all the same.
fn byte(dump: &Dump, physical: u64) -> Option<u8> {
    let bytes = bytes_at(dump, physical, PAGE)?;
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{physical:#x}");
    Some(bytes[0])
}

#[test]
fn another_look_reads_what_was_written_since() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&core(&[(0x5000, PAGE)], b"")).expect("a core");
    let dump = Dump::open(file.path()).expect("a core");
    let held = dump.page(0x5000).expect("the page");
    let rest = core(&[(0x5000, PAGE)], b"");
    let changed = [&rest[..rest.len() - PAGE], &[7; PAGE]].concat();
    std::fs::write(file.path(), changed).expect("another core");
    assert_eq!(byte(&dump, 0x5000), Some(5));
    dump.look_again();
    assert_eq!((byte(&dump, 0x5000), held[0].load(Relaxed) as u8), (Some(7), 7));
    // Once only.
    std::fs::write(file.path(), rest).expect("the first core");
    assert_eq!(byte(&dump, 0x5000), Some(7));
}

#[test]
fn memory_that_changes_is_read_again_after_some_reads() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let whole = core(&[(0x5000, PAGE)], b"");
    file.write_all(&whole).expect("a core");
    let dump = Dump::open_live(file.path()).expect("a core");
    let first = |dump: &Dump| dump.page(0x5000).expect("the page")[0].load(Relaxed) as u8;
    assert_eq!(first(&dump), 5);
    std::fs::write(file.path(), [&whole[..whole.len() - PAGE], &[7; PAGE]].concat()).expect("more");
    assert!((0..1000).any(|_| first(&dump) == 7));
}

#[test]
fn of_a_running_machine_only_what_is_used_is_read() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let whole = core(&[(0x5000, PAGE)], b"");
    file.write_all(&whole).expect("a core");
    let dump = Dump::open_live(file.path()).expect("a core");
    let byte = |word: usize| dump.page(0x5000).expect("the page")[word].load(Relaxed) as u8;
    let held = dump.page(0x5000).expect("the page");
    let change = |to: u8| {
        let changed = [&whole[..whole.len() - PAGE], &[to; PAGE]].concat();
        std::fs::write(file.path(), changed).expect("another core");
        dump.look_again();
    };
    change(7);
    assert!(dump.part(0x5000, 31..33).is_some());
    let seen = [0, 63, 64, 511].map(|word: usize| held[word].load(Relaxed) as u8);
    assert_eq!(seen, [7, 7, 5, 5]);
    // The rest of the same look.
    assert_eq!([byte(0), byte(64), byte(511)], [7; 3]);
    change(9);
    assert!(dump.part(0x5000, 511..512).is_some());
    assert_eq!([0, 511].map(|word: usize| held[word].load(Relaxed) as u8), [7, 9]);
}

#[test]
fn memory_without_a_physical_address_is_left_out() {
    let dump = open(&core(&[(u64::MAX, PAGE), (0x5000, PAGE)], b"")).expect("a core");
    assert_eq!(dump.extent(), (1, PAGE_BYTES));
}

#[test]
fn pages_that_are_not_there_are_counted() {
    let dump = open(&core(&[(0x5000, PAGE)], b"")).expect("a core");
    assert!(dump.page(0x5000).is_some() && dump.take_lacking().is_empty());
    assert!(dump.page(0x6000).is_none() && dump.page(0x6000).is_none());
    dump.lacks(u64::MAX);
    assert_eq!((dump.take_lacking().len(), dump.take_lacking().len()), (2, 0));
}

#[test]
fn memory_of_a_core_is_found_by_address() {
    // Whole pages only, a range in another one, and one that begins with half a page.
    let ranges = [(0, PAGE + 100), (0x5000, 3 * PAGE), (0x6000, PAGE), (0x9800, 2 * PAGE)];
    let dump = open(&core(&ranges, b"12345")).expect("a core");
    assert_eq!((dump.format, dump.notes.as_slice()), ("ELF core", &b"12345"[..]));
    assert_eq!(dump.extent(), (3, 5 * PAGE_BYTES));
    assert_eq!(dump.pages().collect::<Vec<_>>(), [0, 0x5000, 0x6000, 0x7000, 0xa000]);
    for (physical, found) in
        [(0, Some(0)), (0x1000, None), (0x6000, Some(6)), (0x7000, Some(7)), (0x9000, None)]
    {
        assert_eq!(byte(&dump, physical), found, "{physical:#x}");
    }
    assert_eq!((byte(&dump, 0xa000), byte(&dump, 0xb000)), (Some(10), None));
    assert_eq!(dump.peek(0x6ff0), Some([6; 16]));
    assert_eq!(bytes_at(&dump, 0x5ffe, 4), Some(vec![5, 5, 6, 6]));
    assert_eq!(bytes_at(&dump, 0x7ffe, 4), None);
}

#[test]
fn plain_memory_and_ranges_with_headers_are_read() {
    let dump = open(&[7; 2 * PAGE]).expect("memory");
    assert_eq!((dump.format, dump.extent()), ("plain memory", (1, 2 * PAGE_BYTES)));
    assert_eq!(byte(&dump, 0x1000), Some(7));
    let mut lime = Vec::new();
    for (first, fill) in [(0x1000u64, 1), (0x8000, 2)] {
        lime.extend(0x4c69_4d45u32.to_le_bytes());
        lime.extend(1u32.to_le_bytes());
        lime.extend(first.to_le_bytes());
        lime.extend((first + PAGE_BYTES - 1).to_le_bytes());
        lime.extend([0; 8]);
        lime.extend([fill; PAGE]);
    }
    let dump = open(&lime).expect("memory");
    assert_eq!((dump.format, dump.extent()), ("LiME image", (2, 2 * PAGE_BYTES)));
    assert_eq!([0, 0x1000, 0x8000].map(|at| byte(&dump, at)), [None, Some(1), Some(2)]);
    let end = lime.len();
    lime[32 + PAGE] = 0;
    assert!(error(&lime).contains("there is no range at byte 4128"));
    assert!(error(&lime[..end - PAGE - 20]).contains("read the header of a range"));
}

#[test]
fn a_file_that_is_no_image_is_an_error() {
    assert!(error(b"").contains("since its 0 bytes are not whole pages"));
    assert!(error(&[0; 100]).contains("no memory image"));
    assert!(error(b"KDUMP   \x06").contains("makedumpfile -E"));
    let whole = core(&[(0x1000, PAGE)], b"");
    for (at, value, expected) in [
        (4, 1, "no core of a 64-bit x86 machine"),
        (16, 2, "no core of a 64-bit x86 machine"),
        (18, 3, "no core of a 64-bit x86 machine"),
        (54, 0, "headers of another size"),
        (57, 0xff, "at most 4096 are read"),
        (39, 0xff, "read its headers"),
        (64 + 56 + 31, 0xff, "is impossible"),
        (64 + 35, 0xff, "notes have"),
        (64 + 56, 9, "no page of memory"),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let error = error(&bytes);
        assert!(error.contains(expected), "{at}: {error}");
    }
    assert!(error(&whole[..whole.len() - 1]).contains("it is truncated: the memory at 0x1000"));
    assert!(error(&core(&[(0, PAGE); 3], b"")[..64 + 4 * 56 + PAGE]).contains("it is truncated"));
    let mut same = core(&[(0, PAGE); 9], b"");
    for range in 0..9 {
        let at = 64 + 56 * (range + 1) + 8;
        same[at..at + 8].copy_from_slice(&0u64.to_le_bytes());
    }
    same.truncate(64 + 56 * 10 + PAGE);
    assert!(error(&same).contains("its ranges overlap"));
    let description = Description::find(&open(&whole).expect("a core"));
    assert!(description.err().unwrap().to_string().contains("no Linux kernel found"));
}

#[test]
fn no_image_can_do_harm() {
    let text = "OSRELEASE=6\nNUMBER(phys_base)=0\nSYMBOL(_stext)=ffffffff80000000\n";
    let symbols = ["num_syms", "names", "token_table", "token_index", "offsets", "relative_base"];
    let symbols = symbols.iter().zip(1u64..).map(|(name, n)| {
        format!("SYMBOL(kallsyms_{name})={:x}\n", 0xffff_ffff_8000_0000 + 0x400 * n)
    });
    let text: String = [text.to_owned()].into_iter().chain(symbols).collect();
    let note: Vec<u8> = [11u32, text.len() as u32, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .chain(*b"VMCOREINFO\0\0")
        .chain(text.bytes())
        .collect();
    let whole = core(&[(0, 8 * PAGE)], &note);
    let mut random = Random::new(1);
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(8) {
            // Mostly the headers and the text.
            let end = if random.below(2) == 0 { bytes.len() } else { 800 };
            let at = random.below(end as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        let error = open(&bytes).and_then(|dump| Description::find(&dump).map(drop));
        kinds.insert(format!("{:#}", error.expect_err("there is no kernel")).len());
    }
    assert!(kinds.len() > 5, "{kinds:?}");
}
