//! The check `mappings`: what the kernel can execute has an owner, and nobody can write it, nor its read-only data.
//!
//! The check reads the kernel's half of Linux's page tables. Executable memory is the kernel's text, or belongs to a
//! listed module, to BPF, to ftrace or to probes. A module that left all of Linux's lists still needs its code. Text
//! and read-only data of the image are writable nowhere: Linux patches them in an address space of its own.
//!
//! A module that comes or goes has code without an owner for a while. So a suspect is looked at again, with the owners
//! of that moment, some time after the look at all of the tables.

pub mod listing;

use crate::check::{About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::owner::{self, OwnerIndex, Owners};
use crate::profile::{Profile, ProfileError};
use crate::walk::{scan_mappings, Mapping};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

/// Steps from the beginning of one pass to that of the next.
const PACE: u32 = 250;
/// Looks in a row that confirm a suspect: one at all of the tables, and others at the suspects alone.
const LOOKS: u32 = 3;
/// Milliseconds between two looks at the suspects.
const LOOK_MS: u64 = 1000;
/// Suspects of which more are left to the next pass.
const MAX_AGAIN: usize = 64;

const HIDDEN: &str = "hidden executable memory";
const WRITABLE: &str = "writable executable memory";
const ALIAS: &str = "read-only memory mapped writable";

/// The page in which user mode calls into a former kernel interface. If it is not user mode's, it is judged.
/// `VSYSCALL_ADDR` in Linux's `vsyscall.h`.
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;

/// Real mode reaches physical memory below this.
const REAL_MODE_END: u64 = 1 << 20;

/// What is judged: memory that begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// It has no owner.
    Hidden(u64),
    /// It is writable.
    Writable(u64),
    /// It is writable and shows text or read-only data of the image, from this physical address on.
    Alias(u64, u64),
}

impl Key {
    fn start(self) -> u64 {
        match self {
            Self::Hidden(start) | Self::Writable(start) | Self::Alias(start, _) => start,
        }
    }
}

/// Where a pass is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Between two passes.
    Rests,
    /// The owners are read.
    Owners,
    /// The next part of the page tables.
    Tables(u64),
    /// Between two looks of a pass, since this time.
    Waits(u64),
    /// The owners are read again, for a report: a module can have come meanwhile.
    Report,
}

/// The check `mappings`.
#[derive(Debug)]
pub struct MappingCheck {
    text: Range<u64>,
    /// Physical addresses of text and read-only data.
    constant: [Range<u64>; 2],
    /// Memory that Linux allocates for code of its image: address of the pointer to it, and its size in bytes.
    pointers: [Option<(u64, u64)>; 2],
    /// That memory, as the first pass found it: Linux can write the pointers.
    copies: Option<[Option<Range<u64>>; 2]>,
    owners: Option<OwnerIndex>,
    stage: Stage,
    /// The last piece of memory without an owner, and of writable memory, which the next page may continue.
    hidden: Range<u64>,
    writable: Range<u64>,
    /// The same of a writable mapping of what is read-only, and the physical address of its beginning.
    alias: Range<u64>,
    shown: u64,
    /// Executable pages of this pass.
    pages: u64,
    /// Tables of this pass that may lead to executable or writable pages and cannot be read: Linux keeps its own in
    /// System RAM.
    unread: u64,
    /// Looks of this pass. If this one is at the suspects alone: where those begin that were not looked at.
    looks: u32,
    again: Option<Vec<u64>>,
    confirm: Confirm<Key>,
    pace: Pace,
    coverage: Coverage,
}

/// Adds `page` to `piece`, if it continues it; else reports the piece, and begins another one.
fn extend(piece: &mut Range<u64>, page: &Mapping, confirm: &mut Confirm<Key>, key: fn(u64) -> Key) {
    if piece.end != page.start || piece.is_empty() {
        end_piece(piece, confirm, key);
        piece.start = page.start;
    }
    piece.end = page.start.saturating_add(page.bytes);
}

fn end_piece(piece: &mut Range<u64>, confirm: &mut Confirm<Key>, key: impl FnOnce(u64) -> Key) {
    if !piece.is_empty() {
        confirm.see(key(piece.start), piece.end - piece.start);
    }
    *piece = 0..0;
}

impl MappingCheck {
    /// Begins a look at all of the tables, or at the suspects.
    fn begin(&mut self, again: Option<Vec<u64>>) {
        self.looks = if again.is_some() { self.looks + 1 } else { 1 };
        if again.is_none() {
            (self.pages, self.unread) = (0, 0);
        }
        self.again = again;
        self.stage = Stage::Owners;
    }

    /// Where the suspects begin, the first one last; `None` if there is none that another look can confirm.
    fn suspects(&self) -> Option<Vec<u64>> {
        let keys = self.confirm.keys();
        if !self.confirm.is_waiting() || self.looks >= LOOKS || keys.len() > MAX_AGAIN {
            return None;
        }
        let mut starts: Vec<u64> = keys.map(Key::start).collect();
        starts.sort_unstable_by(|a, b| b.cmp(a));
        Some(starts)
    }

    /// The next part of this look; `next` is where the part before it ended.
    fn next_part(&mut self, next: Option<u64>) -> Option<u64> {
        let Some(again) = &mut self.again else { return next };
        let goes_on = |piece: &Range<u64>| !piece.is_empty() && Some(piece.end) == next;
        if [&self.hidden, &self.writable, &self.alias].into_iter().any(goes_on) {
            return next;
        }
        again.pop()
    }

    /// Reads the next part of the page tables; returns true when the look has seen all.
    fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        index: &OwnerIndex,
        at: u64,
    ) -> bool {
        let Self {
            text,
            constant,
            pointers,
            copies,
            hidden,
            writable,
            alias,
            shown,
            pages,
            unread,
            confirm,
            again,
            ..
        } = self;
        let copies = copies.get_or_insert_with(|| read_copies(kernel, pointers));
        // The code that had the last page.
        let mut owned = 0..0;
        let next = scan_mappings(kernel, at, &mut |page| {
            if !page.is_known {
                let matters = page.is_executable || page.is_writable;
                *unread += u64::from(again.is_none() && matters);
                return;
            }
            let is_excused = page.start == VSYSCALL && page.is_user;
            let is_executable = page.is_executable && !is_excused;
            let meets = |range: &Range<u64>| {
                range.start < page.physical.saturating_add(page.bytes) && page.physical < range.end
            };
            if page.is_writable && !is_executable && constant.iter().any(meets) {
                let goes_on = alias.end == page.start && !alias.is_empty();
                if !goes_on || *shown + (alias.end - alias.start) != page.physical {
                    end_piece(alias, confirm, |start| Key::Alias(start, *shown));
                    (alias.start, *shown) = (page.start, page.physical);
                }
                alias.end = page.start.saturating_add(page.bytes);
            }
            if !is_executable {
                return;
            }
            *pages += if again.is_none() { page.bytes / PAGE_BYTES } else { 0 };
            if page.is_writable {
                extend(writable, &page, confirm, Key::Writable);
            }
            let end = page.start.saturating_add(page.bytes);
            let is_in = |range: &Range<u64>| range.start <= page.start && end <= range.end;
            if is_in(&owned) || is_in(text) || copies.iter().flatten().any(is_in) {
                return;
            }
            match index.code_or_pack(page.start) {
                Some(code) => owned = code.start..code.end,
                None if index.touches(page.start, end) => {}
                None => extend(hidden, &page, confirm, Key::Hidden),
            }
        });
        if let Some(next) = self.next_part(next) {
            self.stage = Stage::Tables(next);
            return false;
        }
        end_piece(&mut self.hidden, &mut self.confirm, Key::Hidden);
        end_piece(&mut self.writable, &mut self.confirm, Key::Writable);
        let shown = self.shown;
        end_piece(&mut self.alias, &mut self.confirm, |start| Key::Alias(start, shown));
        self.confirm.end_look();
        true
    }

    /// The words for a suspect; `None` if it has an owner by now.
    fn finding<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        index: Option<&OwnerIndex>,
        key: Key,
        bytes: u64,
    ) -> Option<Finding> {
        let profile = kernel.profile;
        let image =
            |physical: u64| profile.text_base() + physical.saturating_sub(profile.text_physical());
        let is_owned = |start| index.is_some_and(|index| index.touches(start, start + PAGE_BYTES));
        let shows = match key {
            Key::Alias(_, physical) => image(physical),
            Key::Hidden(start) | Key::Writable(start) => start,
        };
        let (class, what, start, owner) = match key {
            Key::Hidden(start) if is_owned(start) => return None,
            Key::Hidden(start) => (Class::ExecutableHidden, HIDDEN, start, "nobody".into()),
            Key::Alias(start, _) => {
                let owner = if kernel.in_image(start) { "the kernel" } else { "nobody" };
                (Class::ReadOnlyWritable, ALIAS, start, owner.into())
            }
            Key::Writable(start) => {
                let owner = owner::describe(kernel, index, start);
                (Class::ExecutableWritable, WRITABLE, start, owner)
            }
        };
        Some(Finding {
            what: what.into(),
            address: start,
            symbol: owner::symbol(kernel, shows),
            owner,
            found: format!("{} pages", bytes / PAGE_BYTES),
            ..Finding::new(class)
        })
    }
}

/// The memory to which `pointers` lead. CPUs start in real mode: that memory is below 1 MiB.
fn read_copies<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    pointers: &[Option<(u64, u64)>; 2],
) -> [Option<Range<u64>>; 2] {
    let read = |copy: Option<(u64, u64)>| {
        let (pointer, bytes) = copy?;
        let start = kernel.u64(pointer)?;
        Some(start..start.checked_add(bytes)?)
    };
    let [real_mode, hypercalls] = pointers.map(read);
    let is_low = |start| kernel.physical(start).is_some_and(|at| at < REAL_MODE_END);
    [real_mode.filter(|copy| is_low(copy.start)), hypercalls]
}

/// The physical addresses of the pages with text, and of those with read-only data; empty if that has no symbols.
fn constant(profile: &Profile<'_>) -> [Range<u64>; 2] {
    let physical = |at: u64| profile.text_physical() + at.wrapping_sub(profile.text_base());
    [("_text", "_etext"), ("__start_rodata", "__end_rodata")].map(|(start, end)| {
        let range = profile.symbol(start).zip(profile.symbol(end));
        // What is behind the end on its page stays read-only, too (`mark_rodata_ro` in Linux's `init_64.c`).
        range.map_or(0..0, |(start, end)| {
            physical(start)..physical(end.next_multiple_of(PAGE_BYTES))
        })
    })
}

/// Where CPUs start in real mode, and the page for calls of Hyper-V.
fn pointers(profile: &Profile<'_>) -> [Option<(u64, u64)>; 2] {
    let real_mode = || {
        let start = profile.symbol("real_mode_blob")?;
        let bytes = profile.symbol("real_mode_blob_end")?.checked_sub(start)?;
        Some((profile.symbol("real_mode_header")?, bytes.next_multiple_of(PAGE_BYTES)))
    };
    [real_mode(), profile.symbol("hv_hypercall_pg").map(|pointer| (pointer, PAGE_BYTES))]
}

impl Make for MappingCheck {
    const ABOUT: About =
        About { name: "mappings", wants: &[], share: 5, pass_ms: 0, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        let end = profile.symbol("_etext").unwrap_or(0).next_multiple_of(PAGE_BYTES);
        Ok(Self {
            text: profile.text_base()..end,
            constant: constant(profile),
            pointers: pointers(profile),
            copies: None,
            owners: Owners::new(profile).ok().map(OwnerIndex::new),
            stage: Stage::Rests,
            hidden: 0..0,
            writable: 0..0,
            alias: 0..0,
            shown: 0,
            pages: 0,
            unread: 0,
            looks: 0,
            again: None,
            confirm: Confirm::new(LOOKS),
            pace: Pace::every(PACE),
            coverage: Coverage { learning: true, item_bytes: PAGE_BYTES, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for MappingCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn waiting(&self) -> u64 {
        self.confirm.waiting().count() as u64
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        self.confirm.stands(|key| match key {
            Key::Hidden(start) => what == HIDDEN && start == address,
            Key::Writable(start) => what == WRITABLE && start == address,
            Key::Alias(start, _) => what == ALIAS && start == address,
        })
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _retries: &mut u64,
    ) -> Step {
        if self.pace.rests(!matches!(self.stage, Stage::Rests)) {
            return Step::Rests;
        }
        let Some(mut index) = self.owners.take() else {
            self.coverage = Coverage { unjudged: 1, ..Coverage::default() };
            return Step::Done(0);
        };
        let done = loop {
            match self.stage {
                Stage::Rests => self.begin(None),
                Stage::Owners => {
                    if index.advance(kernel) {
                        let first = self.again.as_mut().map_or(Some(0), Vec::pop);
                        self.stage = Stage::Tables(first.unwrap_or(0));
                    }
                }
                Stage::Tables(at) => {
                    if self.advance(kernel, &index, at) {
                        if self.confirm.is_due() {
                            self.stage = Stage::Report;
                        } else if self.suspects().is_some() {
                            self.stage = Stage::Waits(budget.clock_ms());
                            break false;
                        } else {
                            break true;
                        }
                    }
                }
                Stage::Waits(since) => {
                    // A clock that stands at 0 is none.
                    let now = budget.clock_ms();
                    if now != 0 && now.wrapping_sub(since) < LOOK_MS {
                        self.owners = Some(index);
                        return Step::Rests;
                    }
                    let suspects = self.suspects();
                    self.begin(suspects);
                }
                Stage::Report => {
                    if index.advance(kernel) {
                        break true;
                    }
                }
            }
            if budget.spent() {
                break false;
            }
        };
        self.owners = Some(index);
        if !done {
            return Step::Spent;
        }
        self.stage = Stage::Rests;
        // Whoever shows other tables than those in use shows fewer.
        let text = (self.text.end - self.text.start) / PAGE_BYTES;
        self.coverage.unjudged = u64::from(self.pages < text) + self.unread;
        self.coverage.learning = false;
        for (key, bytes) in self.confirm.take() {
            let finding = Self::finding(kernel, self.owners.as_ref(), key, bytes);
            finding.into_iter().for_each(&mut *found);
        }
        Step::Done(self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, CallBudget, FakeMemory, DIRECT, TEXT, TEXT_PHYSICAL};
    use std::string::String;

    const TOP: u64 = TEXT + 0x4000;
    const MODULES: u64 = TEXT + 0x9000;
    const MODULE: u64 = DIRECT + 0x1000;
    const HEADER: u64 = TEXT + 0x9010;
    /// Tables: two levels for the image and modules, one for each of them.
    const UPPER: u64 = 0x10_0000 + 0x5000;
    const MIDDLE: u64 = UPPER + 0x1000;
    const IMAGE: u64 = MIDDLE + 0x1000;
    const OUTSIDE: u64 = IMAGE + 0x1000;
    const CODE: u64 = 0xffff_ffff_8120_0000;
    /// A mapping's flags: present and executable, and writable.
    const EXECUTABLE: u64 = 1;
    const READ_WRITE: u64 = 3;

    struct World {
        memory: FakeMemory,
        profile: Vec<u8>,
        check: MappingCheck,
    }

    impl World {
        /// A text of three pages, and a module of two.
        fn new() -> Self {
            let symbols = [
                (TEXT, b'T', "_text"),
                (TEXT + 0x2ffc, b'T', "_etext"),
                (TOP, b'D', "init_top_pgt"),
                (MODULES, b'D', "modules"),
                (TEXT + 0x6000, b'R', "__start_rodata"),
                (TEXT + 0x8000, b'R', "__end_rodata"),
                (HEADER, b'B', "real_mode_header"),
                (TEXT + 0xa000, b'D', "real_mode_blob"),
                (TEXT + 0xb264, b'D', "real_mode_blob_end"),
            ];
            let profile = fake::profile(&symbols, &fake::MODULES);
            let check = MappingCheck::make(&Profile::decode(&profile).unwrap(), 1).unwrap();
            let world =
                Self { memory: FakeMemory::new(TEXT_PHYSICAL + fake::IMAGE_BYTES), profile, check };
            for (table, entry, value) in [
                (fake::physical(TOP), 511, UPPER | 3),
                (UPPER, 510, MIDDLE | 3),
                (MIDDLE, 8, IMAGE | 3),
                (MIDDLE, 9, OUTSIDE | 3),
                (fake::physical(MODULES), 0, MODULE),
                (fake::physical(MODULE), 0, MODULES),
                (fake::physical(MODULE), 2, u64::from_le_bytes(*b"mod\0\0\0\0\0")),
                (fake::physical(MODULE), 16, CODE),
                (fake::physical(MODULE), 17, 0x1100),
            ] {
                world.memory.set(table + 8 * entry, value);
            }
            (0..3).for_each(|page| world.map(TEXT + 4096 * page, EXECUTABLE));
            (0..2).for_each(|page| world.map(CODE + 4096 * page, EXECUTABLE));
            world
        }

        fn map(&self, at: u64, flags: u64) {
            let table = if at < CODE { IMAGE } else { OUTSIDE };
            self.memory.set(table + 8 * (at >> 12 & 511), 0x3000 | flags);
        }

        /// The findings of some steps, as lines. Without a clock, each step has a look.
        fn steps(&mut self, steps: u32) -> Vec<String> {
            let profile = Profile::decode(&self.profile).unwrap();
            let kernel = Kernel::new(&profile, &self.memory);
            fake::lines(&mut self.check, &kernel, steps as usize)
        }

        /// The same of some passes.
        fn pass(&mut self, passes: u32) -> Vec<String> {
            self.steps(passes * PACE)
        }
    }

    #[test]
    fn owned_code_is_no_finding() {
        let mut world = World::new();
        // Code that starts CPUs, wherever Linux copied it.
        world.memory.set(fake::physical(HEADER), CODE + 0x7000);
        (7..9).for_each(|page| world.map(CODE + 4096 * page, EXECUTABLE));
        // Data is not judged.
        world.map(CODE + 0x5000, READ_WRITE | 1 << 63);
        assert_eq!(world.pass(6), [""; 0]);
    }

    #[test]
    fn code_of_nobody_is_found_in_one_piece() {
        let mut world = World::new();
        world.map(TEXT + 0x3000, EXECUTABLE);
        (4..8).for_each(|page| world.map(CODE + 4096 * page, EXECUTABLE));
        assert_eq!(world.steps(LOOKS - 1), [""; 0]);
        assert_eq!(
            world.steps(1),
            [
                "hidden executable memory, _etext+0x4: , 1 pages, nobody",
                "hidden executable memory, 0xffffffff81204000: , 4 pages, nobody",
            ]
        );
        assert!(Check::<FakeMemory>::stands(&world.check, HIDDEN, CODE + 0x4000));
        assert_eq!(world.pass(3), [""; 0], "each is reported once");
        assert!(Check::<FakeMemory>::stands(&world.check, HIDDEN, CODE + 0x4000));
        (4..8).for_each(|page| world.map(CODE + 4096 * page, 0));
        world.pass(1);
        assert!(!Check::<FakeMemory>::stands(&world.check, HIDDEN, CODE + 0x4000));
    }

    #[test]
    fn code_where_others_are_excused_is_found() {
        // As the code of starting CPUs: after the first pass, and above 1 MiB.
        let mut world = World::new();
        assert_eq!(world.pass(1), [""; 0]);
        world.memory.set(fake::physical(HEADER), CODE + 0x7000);
        world.map(CODE + 0x7000, EXECUTABLE);
        let found = ["hidden executable memory, 0xffffffff81207000: , 1 pages, nobody"];
        assert_eq!(world.pass(1), found);
        let mut world = World::new();
        world.memory.set(fake::physical(HEADER), CODE + 0x7000);
        world.memory.set(OUTSIDE + 8 * 7, 0x20_0000 | EXECUTABLE);
        assert_eq!(world.pass(1), found);
        // At the address that user mode calls.
        for (page, user, found) in
            [(0x3000, 4, false), (0x3000, 0, true), (TEXT_PHYSICAL | 2, 4, true)]
        {
            let mut world = World::new();
            let (middle, lowest) = (OUTSIDE + 0x1000, OUTSIDE + 0x2000);
            world.memory.set(fake::physical(TOP) + 8 * 511, UPPER | 7);
            world.memory.set(UPPER + 8 * 511, middle | 7);
            world.memory.set(middle + 8 * 507, lowest | 7);
            world.memory.set(lowest, page | EXECUTABLE | user);
            assert_eq!(world.pass(1).len(), usize::from(found), "{user}");
        }
    }

    #[test]
    fn a_module_that_leaves_the_list_is_found_and_one_that_enters_is_not() {
        let mut world = World::new();
        world.memory.set(fake::physical(MODULES), MODULES);
        assert_eq!(
            world.pass(1),
            ["hidden executable memory, 0xffffffff81200000: , 2 pages, nobody"]
        );
        let mut world = World::new();
        world.memory.set(fake::physical(MODULES), MODULES);
        assert_eq!(world.steps(LOOKS - 1), [""; 0]);
        world.memory.set(fake::physical(MODULES), MODULE);
        assert_eq!(world.pass(2), [""; 0]);
    }

    #[test]
    fn code_that_can_be_written_is_found() {
        let mut world = World::new();
        world.map(TEXT + 0x1000, READ_WRITE);
        world.map(CODE, READ_WRITE);
        assert_eq!(
            world.pass(1),
            [
                "writable executable memory, _text+0x1000: , 1 pages, _text+0x1000",
                "writable executable memory, 0xffffffff81200000: , 1 pages, module mod",
            ]
        );
    }

    #[test]
    fn read_only_memory_that_is_mapped_writable_is_found() {
        let mut world = World::new();
        let shows = |page: u64, physical: u64, flags: u64| {
            world.memory.set(OUTSIDE + 8 * page, physical | flags | 1 << 63);
        };
        // Two pages of text, and one that does not continue them; read-only data by another mapping, and by its own.
        shows(16, TEXT_PHYSICAL, READ_WRITE);
        shows(17, TEXT_PHYSICAL + 0x1000, READ_WRITE);
        shows(18, TEXT_PHYSICAL, READ_WRITE);
        shows(20, TEXT_PHYSICAL + 0x7000, READ_WRITE);
        // The last page of text, behind its end.
        shows(28, TEXT_PHYSICAL + 0x2000, READ_WRITE);
        world.memory.set(IMAGE + 8 * 6, (TEXT_PHYSICAL + 0x6000) | READ_WRITE | 1 << 63);
        // Read-only mappings, and what is between and behind them.
        shows(22, TEXT_PHYSICAL + 0x1000, EXECUTABLE);
        shows(24, TEXT_PHYSICAL + 0x3000, READ_WRITE);
        shows(25, TEXT_PHYSICAL + 0x8000, READ_WRITE);
        shows(26, TEXT_PHYSICAL - 0x1000, READ_WRITE);
        assert_eq!(
            world.pass(1),
            [
                "read-only memory mapped writable, __start_rodata: , 1 pages, the kernel",
                "read-only memory mapped writable, _text: , 2 pages, nobody",
                "read-only memory mapped writable, _text: , 1 pages, nobody",
                "read-only memory mapped writable, __start_rodata+0x1000: , 1 pages, nobody",
                "read-only memory mapped writable, _text+0x2000: , 1 pages, nobody",
            ]
        );
        assert!(Check::<FakeMemory>::stands(&world.check, ALIAS, CODE + 0x1_0000));
        world.memory.set(OUTSIDE + 8 * 16, 0);
        world.pass(1);
        assert!(!Check::<FakeMemory>::stands(&world.check, ALIAS, CODE + 0x1_0000));
    }

    #[test]
    fn the_list_has_each_piece_with_its_owner() {
        let world = World::new();
        world.map(CODE, READ_WRITE);
        (5..7).for_each(|page| world.map(CODE + 4096 * page, EXECUTABLE));
        let profile = Profile::decode(&world.profile).unwrap();
        let list = |world: &World| listing::list(&Kernel::new(&profile, &world.memory)).unwrap();
        let found = list(&world);
        let lines: Vec<_> = found
            .pieces
            .iter()
            .map(|it| (it.start, (it.end - it.start) / 4096, it.is_writable, it.owner.as_deref()))
            .collect();
        assert_eq!(
            lines,
            [
                (TEXT, 3, false, Some("the kernel")),
                (CODE, 1, true, Some("module mod")),
                (CODE + 0x1000, 1, false, Some("module mod")),
                (CODE + 0x5000, 2, false, None),
            ]
        );
        assert!(found.is_complete);
        world.map(TEXT, 0);
        assert!(!list(&world).is_complete);
    }

    #[test]
    fn the_shortest_slices_are_enough_for_a_report() {
        let mut world = World::new();
        world.map(CODE + 0x4000, EXECUTABLE);
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        let mut reports = 0;
        for _ in 0..2 * PACE {
            world.check.step(&kernel, &mut CallBudget(1), &mut |_| reports += 1, &mut 0);
        }
        assert_eq!(reports, 1);
    }

    /// A slice that ends soon, with a clock.
    struct Slice(CallBudget, u64);

    impl Budget for Slice {
        fn spent(&mut self) -> bool {
            self.0.spent()
        }

        fn clock_ms(&mut self) -> u64 {
            self.1
        }
    }

    #[test]
    fn looks_at_a_suspect_are_apart_and_at_the_suspects_alone() {
        let mut world = World::new();
        for page in [4, 5, 9] {
            world.map(CODE + 4096 * page, EXECUTABLE);
        }
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        let (mut found, mut pages) = (Vec::new(), 0);
        for ms in (1..4 * LOOK_MS).step_by(10) {
            let mut slice = Slice(CallBudget(100), ms);
            let step = world.check.step(&kernel, &mut slice, &mut |_| found.push(ms), &mut 0);
            if let Step::Done(count) = step {
                pages = count;
                break;
            }
        }
        let expected = u64::from(LOOKS - 1) * LOOK_MS;
        assert_eq!(found.len(), 2);
        assert!((expected..expected + 100).contains(&found[0]), "{found:?}");
        assert_eq!(pages, 3 + 2 + 3, "each page of the first look counts once");
    }

    #[test]
    fn a_pass_takes_as_many_slices_as_it_needs() {
        let mut world = World::new();
        let profile = Profile::decode(&world.profile).unwrap();
        let kernel = Kernel::new(&profile, &world.memory);
        let mut steps = (0..).map(|_| {
            Check::step(&mut world.check, &kernel, &mut CallBudget(2), &mut |_| {}, &mut 0)
        });
        let slices = steps.by_ref().take_while(|step| *step == Step::Spent).count();
        assert!((3..50).contains(&slices), "{slices}");
    }
}
