use super::*;
use crate::fake::{
    self, physical, FakeMemory, RandomNumbers, DIRECT, IMAGE_BYTES, TEXT, TEXT_PHYSICAL,
};
use alloc::vec;

const POINTER_AT: u64 = TEXT + 0x1000;
const DISABLED: u64 = TEXT + 0x1008;
const LOCK: u64 = TEXT + 0x1010;
const RESERVED: u64 = TEXT + 0x1020;
/// Two places for images, and a page table that lies elsewhere.
const IMAGES: [u64; 2] = [DIRECT + 0x2000, DIRECT + 0x3000];
const TABLE: u64 = DIRECT + 0x5000;
/// The reserved memory: the way to the image is in the first two pages and behind the first segment.
const AREA: u64 = 0x4_0000;
const AREA_END: u64 = 0x9_0000;
/// The segments of an image: memory, bytes, bytes of contents. The second one has the headers of the core file.
const SEGMENTS: [[u64; 3]; 3] = [
    [AREA + 0x2000, 0x2000, 0x2000],
    [AREA + 0x8000, 0x1000, 0x1000],
    [AREA + 0xa000, 0x2_0000, 0x3001],
];
const WAY_LAST: u64 = AREA + 0x5fff;
/// The pages that are judged: of the way, of the first segment, of the third one with its tail, and the page table.
const PAGES: u64 = 4 + 2 + 20 + 1;

struct Clock(u64, u32);

impl Budget for Clock {
    fn spent(&mut self) -> bool {
        self.1 = self.1.saturating_sub(1);
        self.1 == 0
    }
    fn clock_ms(&mut self) -> u64 {
        self.0
    }
}

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    check: CrashKernelCheck,
    now: u64,
    /// Calls of a budget until it is spent.
    budget: u32,
}

/// A machine without an image; with `numbered` core headers, the kernel notes which segment has them.
fn world(numbered: bool) -> World {
    let symbols = [
        (TEXT, b'T', "_text"),
        (POINTER_AT, b'B', "kexec_crash_image"),
        (DISABLED, b'b', "kexec_load_disabled"),
        (LOCK, b'B', "__kexec_lock"),
        (RESERVED, b'D', "crashk_res"),
    ];
    let mut layouts = vec![
        ("kexec_segment", 0, 32),
        ("kexec_segment.bufsz", 8, 8),
        ("kexec_segment.mem", 16, 8),
        ("kexec_segment.memsz", 24, 8),
        ("kimage.arch.p4d", 640, 8),
        ("kimage.arch.pte", 664, 8),
        ("kimage.control_code_page", 32, 8),
        ("kimage.control_page", 624, 8),
        ("kimage.head", 0, 8),
        ("kimage.nr_segments", 56, 8),
        ("kimage.segment", 64, 512),
        ("kimage.start", 24, 8),
        ("kimage.vmcoreinfo_data_copy", 48, 8),
        ("resource.end", 8, 8),
        ("resource.start", 0, 8),
    ];
    if numbered {
        layouts.push(("kimage.elfcorehdr_index", 772, 4));
    }
    let profile = fake::profile(&symbols, &layouts);
    let check = CrashKernelCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
    let memory = FakeMemory::new(TEXT_PHYSICAL + IMAGE_BYTES);
    memory.set(physical(RESERVED), AREA);
    memory.set(physical(RESERVED) + 8, AREA_END - 1);
    World { memory, profile, check, now: 0, budget: 1000 }
}

impl World {
    /// Steps every 10 ms for `ms`; the lines, and the number of steps that ended a pass.
    fn run(&mut self, ms: u64) -> (Vec<String>, u64) {
        let profile = Profile::decode(&self.profile).unwrap();
        let (mut lines, mut passes) = (Vec::new(), 0);
        for _ in 0..ms / 10 {
            self.now += 10;
            let kernel = Kernel::new(&profile, &self.memory);
            let mut found = |f: Finding| {
                let kind = if f.restored { "note: " } else { "" };
                lines.push(format!("{kind}{}", f.line()));
            };
            let mut clock = Clock(self.now, self.budget);
            let step = self.check.step(&kernel, &mut clock, &mut found, &mut 0);
            passes += u64::from(matches!(step, Step::Done(_)));
        }
        (lines, passes)
    }

    fn lines(&mut self, ms: u64) -> Vec<String> {
        self.run(ms).0
    }

    /// Fills the memory of `segments` with contents of `load`, and describes them in the image at `at`.
    fn describe(&self, at: u64, load: u64, segments: &[[u64; 3]]) {
        let place = physical(at);
        for (number, &[memory, bytes, contents]) in segments.iter().enumerate() {
            let entry = place + 64 + 32 * number as u64;
            let words = [0xffff_c900_0000_0000 + (load << 20), contents, memory, bytes];
            (entry..).step_by(8).zip(words).for_each(|(at, word)| self.memory.set(at, word));
        }
        let start = AREA + 0x2000;
        let members =
            [(0, 4), (24, start), (32, 0x7000), (48, 0x8000), (56, segments.len() as u64)];
        members.iter().for_each(|&(offset, value)| self.memory.set(place + offset, value));
        self.memory.set(place + 624, WAY_LAST);
        self.memory.set(place + 640, TABLE);
        self.memory.set(place + 664, 0);
        self.memory.put(place + 772, &u32::MAX.to_le_bytes());
    }

    fn fill(&self, load: u64) {
        let mut random = RandomNumbers(load + 1);
        (AREA..WAY_LAST).step_by(8).for_each(|at| self.memory.set(at, random.next()));
        for [memory, bytes, contents] in SEGMENTS {
            let end = memory + bytes;
            (memory..end).step_by(8).for_each(|at| self.memory.set(at, 0));
            let words = (memory..memory + contents).step_by(8);
            words.for_each(|at| self.memory.set(at, random.next()));
        }
        self.memory.put(SEGMENTS[1][0], b"\x7fELF");
    }

    /// Has Linux load an image within `ms`.
    fn load(&mut self, number: usize, load: u64, ms: u64) -> Vec<String> {
        self.set_pointer(0);
        self.fill(load);
        self.describe(IMAGES[number], load, &SEGMENTS);
        let lines = self.lines(ms);
        self.set_pointer(IMAGES[number]);
        lines
    }

    fn set_pointer(&self, address: u64) {
        self.memory.set(physical(POINTER_AT), address);
    }

    fn flip(&self, at: u64) {
        self.memory.set(at, self.memory.get(at) ^ 1 << 40);
    }

    /// The answer before a restart, and after how many slices it comes.
    fn is_sound(&mut self) -> (Option<bool>, usize) {
        let profile = Profile::decode(&self.profile).unwrap();
        let kernel = Kernel::new(&profile, &self.memory);
        for slice in 1.. {
            let sound = self.check.is_sound(&kernel, &mut Clock(self.now, self.budget));
            if sound.is_some() {
                return (sound, slice);
            }
        }
        unreachable!("it goes on")
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        Check::<FakeMemory>::stands(&self.check, what, address)
    }

    fn coverage(&self) -> Coverage {
        Check::<FakeMemory>::coverage(&self.check)
    }
}

/// A machine whose image was loaded and learned before the monitor's first look.
fn with_image() -> World {
    let mut w = world(true);
    w.load(0, 1, 0);
    assert_eq!(w.run(1000), (vec![], 1));
    assert_eq!((w.coverage().learning, w.coverage().unjudged), (false, 0));
    w
}

#[test]
fn a_changed_page_is_found_once_and_gone_when_it_is_restored() {
    let [first, _, third] = SEGMENTS;
    let places = [
        (first[0] + 0x1008, "segment 0+0x1000"),
        (third[0], "segment 2+0x0"),
        (third[0] + 0x3ff8, "segment 2+0x3000"),
        (third[0] + 0x1_3ff8, "segment 2+0x13000"),
        (AREA + 0x10, "the way to it+0x0"),
        (AREA + 0x4000, "the way to it+0x0"),
        (physical(TABLE) + 8, "the page table arch.p4d"),
    ];
    for (at, name) in places {
        let mut w = with_image();
        assert_eq!(w.lines(30_000), [""; 0]);
        w.flip(at);
        let page = at & !0xfff;
        let address = DIRECT + page;
        let words = "expected the page of the first look, found another";
        let line =
            format!("crash kernel changed: {name}, physical {page:#x} at {address:#x}: {words}");
        assert_eq!(w.lines(11_000), [line]);
        assert!(w.stands(CHANGED, address) && !w.stands(CHANGED, address + 0x1000));
        assert_eq!(w.lines(30_000), [""; 0], "it is reported once");
        w.flip(at);
        w.lines(21_000);
        assert!(!w.stands(CHANGED, address));
    }
}

#[test]
fn before_a_restart_all_of_the_image_is_looked_at() {
    let mut w = with_image();
    assert_eq!(w.is_sound(), (Some(true), 1));
    // Several slices.
    w.budget = 5;
    let slices = PAGES.div_ceil(5) as usize;
    assert_eq!(w.is_sound(), (Some(true), slices));
    for at in [AREA + 0x10, SEGMENTS[2][0] + 0x1_3ff8, physical(IMAGES[0]) + 24] {
        w.flip(at);
        assert_eq!(w.is_sound().0, Some(false), "{at:#x}");
        w.flip(at);
        assert_eq!(w.is_sound(), (Some(true), slices));
    }
    // Root may load another one, or none, unless Linux has been told to load no other.
    w.load(1, 2, 0);
    assert_eq!(w.is_sound().0, Some(true));
    w.set_pointer(0);
    assert_eq!(w.is_sound().0, Some(true));
    let mut w = with_image();
    w.memory.set(physical(DISABLED), 1);
    w.lines(500);
    assert_eq!(w.is_sound().0, Some(true));
    w.set_pointer(0);
    assert_eq!(w.is_sound().0, Some(false));
    assert_eq!(world(true).is_sound(), (Some(true), 1));
}

#[test]
fn a_part_is_reported_once_however_much_of_it_is_changed() {
    let mut w = with_image();
    (AREA..AREA_END).step_by(8).for_each(|at| w.flip(at));
    let lines = w.lines(30_000);
    assert_eq!(lines.len(), 4, "{lines:#?}");
}

#[test]
fn what_linux_writes_or_unpacks_is_not_judged() {
    for numbered in [true, false] {
        let mut w = world(numbered);
        w.load(0, 1, 0);
        w.lines(1000);
        // Behind the judged tail, outside of all segments, and the headers of the core file.
        [SEGMENTS[2][0] + 0x1_4000, AREA + 0x7000, AREA + 0x3_0000]
            .iter()
            .for_each(|at| w.flip(*at));
        w.flip(SEGMENTS[1][0] + 0x100);
        // Linux takes the pointer away while it writes the headers, and notes their number.
        w.set_pointer(0);
        w.lines(20);
        w.set_pointer(IMAGES[0]);
        w.memory.put(physical(IMAGES[0]) + 772, &1u32.to_le_bytes());
        let lines = w.lines(30_000);
        // A kernel that does not note the segment never writes it; this looks like another load.
        let expected = if numbered { 0 } else { 1 };
        assert_eq!(lines.len(), expected, "{lines:?}");
        w.flip(SEGMENTS[1][0] + 0x200);
        assert_eq!(w.lines(30_000).len(), expected, "a kernel that writes them stays silent");
    }
}

#[test]
fn another_image_is_learned_and_then_compared() {
    for (number, load, pause) in [(1, 2, 500), (0, 2, 500), (0, 2, 10), (1, 1, 30), (0, 2, 5_000)] {
        let mut w = with_image();
        let unloaded = w.load(number, load, pause);
        let expected = "note: crash kernel unloaded: kexec_crash_image at 0xffffffff81001000: none";
        assert_eq!(unloaded, vec![expected; usize::from(pause > 2000)]);
        let lines = w.lines(30_000);
        let words = format!("{PAGES} pages in 3 segments");
        let note =
            format!("note: crash kernel loaded: kexec_crash_image at 0xffffffff81001000: {words}");
        assert_eq!(lines, [note], "{number} {load} {pause}");
        w.flip(SEGMENTS[0][0]);
        assert_eq!(w.lines(12_000).len(), 1);
    }
    // The same contents in the place of those before are no news.
    let mut w = with_image();
    assert_eq!((w.load(0, 1, 500), w.lines(30_000)), (vec![], vec![]));
}

#[test]
fn an_image_that_takes_the_place_of_another_between_two_looks_is_no_change() {
    let mut w = with_image();
    // The tick misses it: the pointer is the same, and the contents come from other addresses.
    w.load(0, 2, 0);
    let lines = w.lines(30_000);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("note: crash kernel loaded"), "{lines:?}");
}

#[test]
fn an_image_that_was_unloaded_is_forgotten() {
    let mut w = with_image();
    w.flip(SEGMENTS[0][0]);
    assert_eq!(w.lines(11_000).len(), 1);
    w.set_pointer(0);
    assert_eq!(w.lines(1_700), [""; 0]);
    assert_eq!(w.lines(400).len(), 1);
    assert!(!w.stands(CHANGED, DIRECT + SEGMENTS[0][0]));
    w.fill(7);
    assert_eq!(w.run(60_000), (vec![], 6));
}

#[test]
fn a_machine_without_an_image_learns_at_once() {
    let mut w = world(true);
    assert_eq!(w.run(10), (vec![], 1));
    assert_eq!(w.run(20_000), (vec![], 2));
    w.load(0, 1, 100);
    assert_eq!(w.lines(1000).len(), 1);
}

#[test]
fn once_linux_loads_none_another_image_is_found() {
    for (number, load) in [(1, 2), (0, 2)] {
        let mut w = with_image();
        w.memory.set(physical(DISABLED), 1);
        w.lines(500);
        w.load(number, load, 100);
        let lines = w.lines(30_000);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("crash kernel replaced: kexec_crash_image"), "{lines:?}");
        assert!(w.stands(REPLACED, POINTER_AT));
    }
    let mut w = with_image();
    w.memory.set(physical(DISABLED), 1);
    w.lines(500);
    // The headers of the core file, and then the contents.
    w.set_pointer(0);
    w.lines(500);
    w.set_pointer(IMAGES[0]);
    assert_eq!(w.lines(15_000), [""; 0]);
    w.set_pointer(0);
    w.flip(SEGMENTS[0][0]);
    w.lines(500);
    w.set_pointer(IMAGES[0]);
    let lines = w.lines(20_000);
    assert!(
        lines.len() == 1 && lines[0].starts_with("crash kernel changed: segment 0"),
        "{lines:?}"
    );
    w.set_pointer(0);
    let lines = w.lines(3_000);
    assert!(lines.len() == 1 && lines[0].ends_with("found none"), "{lines:?}");
}

#[test]
fn a_load_that_began_before_linux_loads_none_is_no_finding() {
    let mut w = world(true);
    w.lines(500);
    w.memory.set(physical(LOCK), 1);
    w.memory.set(physical(DISABLED), 1);
    w.load(0, 1, 3_000);
    w.lines(50);
    w.memory.set(physical(LOCK), 0);
    let lines = w.lines(20_000);
    assert!(lines.len() == 1 && lines[0].starts_with("note: "), "{lines:?}");
}

#[test]
fn a_changed_entry_is_found() {
    for (offset, name) in [(24, "start"), (0, "head"), (32, "control_code_page")] {
        let mut w = with_image();
        w.flip(physical(IMAGES[0]) + offset);
        let lines = w.lines(1_000);
        let begin =
            format!("crash kernel changed: kexec_crash_image->{name} at 0xffff888000002000: ");
        assert!(lines.len() == 1 && lines[0].starts_with(&begin), "{lines:?}");
        assert!(w.stands(CHANGED, IMAGES[0]));
        w.flip(physical(IMAGES[0]) + offset);
        assert_eq!(w.lines(1_000), [""; 0]);
        assert!(!w.stands(CHANGED, IMAGES[0]));
        // Another load may have another entry.
        w.flip(physical(IMAGES[0]) + offset);
        w.set_pointer(0);
        w.lines(100);
        w.set_pointer(IMAGES[0]);
        let lines = w.lines(1_000);
        assert!(lines.len() == 1 && lines[0].starts_with("note: "), "{lines:?}");
    }
}

#[test]
fn hostile_descriptions_are_bounded() {
    let mut random = RandomNumbers(5);
    for round in 0..fake::rounds(200) {
        let mut w = world(true);
        w.load(0, 1, 0);
        w.lines(200);
        for _ in 0..1 + random.below(4) {
            let place = match random.below(3) {
                0 => physical(IMAGES[0]) + 8 * random.below(100),
                1 => physical(RESERVED) + 8 * random.below(2),
                _ => physical(IMAGES[0]) + 56 + 8 * random.below(13),
            };
            let values = [
                0,
                1,
                17,
                u64::MAX,
                u64::MAX << 12,
                1 << 63,
                AREA,
                AREA_END,
                DIRECT,
                random.next(),
            ];
            w.memory.set(place, values[random.below(values.len() as u64) as usize]);
        }
        w.lines(2_000);
        let known = w.check.known.as_ref().unwrap();
        assert!(known.pages as u64 <= 1 << 16 && known.parts.len() < 64, "{round}");
    }
}

#[test]
fn a_large_image_is_judged_in_part() {
    let mut w = world(true);
    w.load(0, 1, 0);
    w.memory.set(physical(RESERVED) + 8, (1 << 40) - 1);
    w.describe(IMAGES[0], 1, &[[AREA, 1 << 35, 1 << 34]]);
    w.lines(100);
    let known = w.check.known.as_ref().unwrap();
    assert_eq!((known.pages, known.unjudged > (1 << 22) - (1 << 16)), (1 << 16, true));
    // What cannot be read is not judged either, and no slice takes more than its pages.
    w.describe(IMAGES[0], 2, &[[AREA, 17 << 20, 17 << 20]]);
    assert_eq!(w.lines(700), [""; 0]);
    let known = w.check.known.as_ref().unwrap();
    assert!(known.pages == 4353 && known.sums.len() as u64 <= 20 * LEARN_PAGES);
    assert_eq!(w.lines(3_000).len(), 1);
    assert_eq!(w.coverage().unjudged, (AREA + (17 << 20) - w.memory.bytes()) / PAGE_BYTES);
}

#[test]
fn a_kernel_without_crash_kernels_has_nothing_to_judge() {
    for (symbol, unjudged) in [("kexec_crash_image", 1), ("other", 0)] {
        let profile = fake::profile(&[(TEXT, b'T', "_text"), (POINTER_AT, b'B', symbol)], &[]);
        let check = CrashKernelCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
        let mut w = World { profile, check, ..world(true) };
        assert_eq!(w.run(20_010), (vec![], 3));
        assert_eq!(w.coverage().unjudged, unjudged);
    }
}

#[test]
fn a_slice_that_is_always_over_goes_on() {
    let mut w = world(true);
    w.budget = 1;
    w.load(0, 1, 0);
    assert_eq!(w.run(10 * PAGES), (vec![], 1));
    w.flip(SEGMENTS[2][0]);
    assert_eq!(w.lines(20_000).len(), 1);
}
