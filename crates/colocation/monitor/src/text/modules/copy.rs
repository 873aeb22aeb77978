//! The copy of a module's code, and how it comes about.

use super::super::baseline::Baseline;
use super::super::code::{INT3, JMP, RET};
use super::super::first_look;
use super::super::layout::Ftrace;
use super::super::site_rules::SiteRules;
use super::super::sites::{self, NextEntry, SiteKind, Sites};
use super::layout::{Identity, Layout};
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::walk::chain;

/// What is behind the jump in the trampoline of a static call (`arch/x86/kernel/static_call.c` in Linux: `tramp_ud`).
const TRAMPOLINE_END: [u8; 3] = [0x0f, 0xb9, 0xcc];
/// Bytes of code for each site that is remembered: forged tables name any number. A module with more sites is not
/// judged.
const SITE_SHARE: u64 = 64;
/// A trampoline has 8 bytes, and begins at a multiple of this.
const TRAMPOLINE_ALIGNMENT: usize = 4;
/// Maximum number of `ftrace_page` structures; further ones are ignored.
const MAX_PAGES: usize = 1024;

/// The stage of the first look.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Copy,
    /// The next entry of the table.
    Jumps(u64),
    Calls(u64),
    /// The next page.
    Trampolines(usize),
    /// The search for the module's first `ftrace_page`.
    Pages,
    /// The next one of the module's, and the next record in it.
    Entries(u64, u64),
    /// The next part of all probes.
    Probes(u64),
    /// Correcting the copy of this page, from this part of its sites on.
    Verify(usize, usize),
    /// Comparing it with the module's file, if files are at hand.
    File,
    Done,
}

/// The copy of a module's code with the sites in it.
#[derive(Debug)]
pub(super) struct ModuleCopy {
    pub identity: Identity,
    /// Whether this pass found it in the list.
    pub is_listed: bool,
    pub baseline: Baseline,
    pub sites: Sites,
    /// Whether the copy was compared with the module's file.
    pub has_file: bool,
    stage: Stage,
}

impl ModuleCopy {
    /// An empty copy.
    pub fn new(identity: Identity) -> Self {
        let text = identity.start..identity.end;
        Self {
            identity,
            is_listed: true,
            baseline: Baseline::new(text.clone(), 0..0),
            sites: Sites::with_room(text.clone(), ((text.end - text.start) / SITE_SHARE) as usize),
            has_file: false,
            stage: Stage::Copy,
        }
    }

    /// Whether the module is still there, listed or not.
    pub fn is_there<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &Layout) -> bool {
        layout.directory(kernel, self.identity.module) == Some(self.identity.directory)
    }

    /// Number of pages.
    pub fn page_count(&self) -> usize {
        self.baseline.page_count()
    }

    /// The number of the page at `address`.
    pub fn number(&self, address: u64) -> usize {
        ((address - self.identity.start) / PAGE_BYTES) as usize
    }

    /// The addresses of the pages.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.page_count()).map(|number| self.baseline.address(number))
    }

    /// Whether pages have no copy, because they could not be read, or for want of memory.
    pub fn lacks_pages(&self) -> bool {
        self.baseline.covered() < self.page_count() as u64
    }

    /// Goes on with the first look; returns true when it is over.
    pub fn learn<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        layout: &Layout,
    ) -> bool {
        let kernel = rules.kernel;
        let read = |at: u64, bytes: &mut [u8]| kernel.bytes(at, bytes);
        let module = self.identity.module;
        self.stage = match self.stage {
            Stage::Copy if self.baseline.copied() < self.page_count() => {
                self.baseline.copy_next(kernel);
                Stage::Copy
            }
            Stage::Copy => Stage::Jumps(0),
            Stage::Jumps(from) => match layout.jumps(kernel, module) {
                Some(table) if !sites::ended(&table, from) => {
                    sites::jumps(&read, &table, from, &mut self.sites);
                    Stage::Jumps(from + sites::BATCH)
                }
                _ => Stage::Calls(0),
            },
            Stage::Calls(from) => match layout.calls(kernel, module) {
                Some(table) if !sites::ended(&table, from) => {
                    sites::calls(&read, &table, from, &mut self.sites);
                    Stage::Calls(from + sites::BATCH)
                }
                _ => Stage::Trampolines(0),
            },
            Stage::Trampolines(page) if page < self.page_count() => {
                self.add_trampolines(page);
                Stage::Trampolines(page + 1)
            }
            Stage::Trampolines(_) => Stage::Pages,
            Stage::Pages => match self.first_page(kernel, layout) {
                Some(page) => Stage::Entries(page, 0),
                None => Stage::Probes(0),
            },
            Stage::Entries(page, from) => self
                .add_entries(kernel, layout, page, from)
                .map_or(Stage::Probes(0), |(page, from)| Stage::Entries(page, from)),
            Stage::Probes(part) => {
                match first_look::correct_probes(kernel, &layout.text, &mut self.baseline, part) {
                    true => Stage::Probes(part + 1),
                    false => Stage::Verify(0, 0),
                }
            }
            Stage::Verify(page, part) if page < self.page_count() => {
                let Self { baseline, sites, .. } = self;
                match first_look::verify(rules, baseline, sites, page, part) {
                    true => Stage::Verify(page, part + 1),
                    false => Stage::Verify(page + 1, 0),
                }
            }
            Stage::Verify(..) => Stage::File,
            Stage::File | Stage::Done => Stage::Done,
        };
        self.has_learned()
    }

    /// Whether the first look is over.
    pub fn has_learned(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Notes that the copy was compared with a file, or has none.
    pub fn end_learning(&mut self) {
        self.stage = Stage::Done;
    }

    /// Whether the copy can be compared with a file, and was not yet.
    pub fn waits_for_file(&self) -> bool {
        matches!(self.stage, Stage::File)
    }

    /// Adds the trampolines of static calls that begin in page `number`.
    fn add_trampolines(&mut self, number: usize) {
        let start = self.baseline.address(number);
        let Some(words) = self.baseline.page(number) else { return };
        let behind = self.baseline.word(start + PAGE_BYTES).unwrap_or(0);
        for offset in (0..PAGE_BYTES).step_by(TRAMPOLINE_ALIGNMENT) {
            let (at, shift) = ((offset / 8) as usize, offset % 8 * 8);
            let low = words.get(at).copied().unwrap_or(0);
            let high = words.get(at + 1).copied().unwrap_or(behind);
            let bytes = ((u128::from(high) << 64 | u128::from(low)) >> shift) as u64;
            let bytes = bytes.to_le_bytes();
            // A jump, a return, or one of them that Linux is changing.
            if bytes.ends_with(&TRAMPOLINE_END) && matches!(bytes[0], JMP | RET | INT3) {
                self.sites.add(start + offset, SiteKind::ModuleTrampoline);
            }
        }
    }

    /// Whether the `ftrace_page` at `page` has records of the module: it has those of one module, or of the kernel.
    fn has_page<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        ftrace: &Ftrace,
        page: u64,
    ) -> bool {
        let records = kernel.u64(page.wrapping_add(ftrace.page_records));
        let first = records.and_then(|records| kernel.u64(records.wrapping_add(ftrace.ip)));
        first.is_some_and(|first| self.sites.text().contains(&first))
    }

    /// The module's first `ftrace_page`. They are searched without a pause: other modules' can go, and lead nowhere.
    fn first_page<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &Layout) -> Option<u64> {
        let ftrace = layout.text.ftrace.as_ref()?;
        let mut pages = chain(kernel, ftrace.pages, ftrace.page_next).take(MAX_PAGES);
        pages.find(|&page| self.has_page(kernel, ftrace, page))
    }

    /// Adds some function entries from record `from` of the `ftrace_page` at `page` on; returns what follows.
    fn add_entries<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        page: u64,
        from: u64,
    ) -> Option<(u64, u64)> {
        let ftrace = layout.text.ftrace.as_ref()?;
        match sites::entries(kernel, ftrace, page, from, &mut self.sites)? {
            NextEntry::Record(next) => Some((page, next)),
            NextEntry::Page(0) => None,
            NextEntry::Page(next) => self.has_page(kernel, ftrace, next).then_some((next, 0)),
        }
    }
}
