//! The sites in text that Linux patches at run time, found once, from its own tables.

use super::baseline::Baseline;
use super::layout::{Ftrace, Table, TextLayout};
use super::walk;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use alloc::vec::Vec;
use core::ops::Range;

/// Maximum number of sites, and of sites per page; more than any kernel has.
const MAX_SITES: usize = 1 << 18;
const MAX_PAGE_SITES: usize = 1024;
/// Bytes of the longest instruction at a site.
pub(super) const SITE_BYTES: usize = 6;
const END: u32 = u32::MAX;
/// Sites that are judged together.
const PART: usize = 32;

/// The kind of a site, with the records that say what Linux writes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiteKind {
    /// A jump label: address of its key, target, whether it jumps while the key is off.
    Jump { key: u64, target: u64, branch: bool },
    /// A static call: address of its key, whether it is a tail call.
    Call { key: u64, tail: bool },
    /// The trampoline of a static call: address of its key.
    Trampoline { key: u64 },
    /// A function entry: address of ftrace's record.
    Entry { record: u64 },
    /// A call within ftrace.
    Ftrace,
    /// The trampoline of a static call in a module: Linux does not list its key.
    ModuleTrampoline,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub address: u64,
    pub kind: SiteKind,
    next: u32,
}

impl Site {
    /// The next site of the page, for [`Sites::get`].
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }
}

/// All sites of a piece of text, grouped by page. Once sorted, the sites of a page are walked in step with its words.
#[derive(Debug)]
pub(super) struct Sites {
    sites: Vec<Site>,
    /// The first site of each page of the text.
    heads: Vec<u32>,
    text: Range<u64>,
    /// Maximum number of sites, and whether there were more.
    room: usize,
    is_full: bool,
}

impl Sites {
    /// No sites, of the code in `text`.
    pub fn new(text: Range<u64>) -> Self {
        Self::with_room(text, MAX_SITES)
    }

    /// No sites, of which there can be `room`.
    pub fn with_room(text: Range<u64>, room: usize) -> Self {
        Self { sites: Vec::new(), heads: Vec::new(), text, room, is_full: false }
    }

    /// Whether a site was not added for want of room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The text that has the sites.
    pub fn text(&self) -> &Range<u64> {
        &self.text
    }

    /// Adds a site, if it is in the text.
    pub fn add(&mut self, address: u64, kind: SiteKind) {
        if !self.text.contains(&address) || self.is_full {
            return;
        }
        if self.sites.len() >= self.room || self.sites.try_reserve(1).is_err() {
            self.is_full = true;
            return;
        }
        let first = self.text.start & !(PAGE_BYTES - 1);
        self.heads.resize((self.text.end - first).div_ceil(PAGE_BYTES) as usize, END);
        let Some(head) = self.heads.get_mut(((address - first) / PAGE_BYTES) as usize) else {
            return;
        };
        let next = core::mem::replace(head, self.sites.len() as u32);
        self.sites.push(Site { address, kind, next });
    }

    /// All sites.
    pub fn all(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }

    /// Drops the sites that `is` does not accept.
    pub fn keep(&mut self, is: impl Fn(&Site) -> bool) {
        let before = core::mem::take(&mut self.sites);
        let pages = core::mem::take(&mut self.heads).len();
        before.iter().filter(|site| is(site)).for_each(|site| self.add(site.address, site.kind));
        (0..pages).for_each(|page| self.sort_page(page));
    }

    /// Sorts the sites of page `number` by address.
    pub fn sort_page(&mut self, number: usize) {
        let mut order = Vec::new();
        let mut at = self.first(number);
        while let Some(site) = self.sites.get(at as usize).filter(|_| order.len() < MAX_PAGE_SITES)
        {
            order.push((site.address, at));
            at = site.next;
        }
        order.sort_unstable();
        let mut next = END;
        for &(_, at) in order.iter().rev() {
            if let Some(site) = self.sites.get_mut(at as usize) {
                site.next = next;
            }
            next = at;
        }
        if let Some(head) = self.heads.get_mut(number) {
            *head = next;
        }
    }

    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// The first site of page `number` of text, for [`Sites::get`].
    pub fn first(&self, number: usize) -> u32 {
        self.heads.get(number).copied().unwrap_or(END)
    }

    /// A site; `None` behind the last one of its page.
    #[inline]
    pub fn get(&self, at: u32) -> Option<&Site> {
        self.sites.get(at as usize)
    }

    /// The sites of page `number` of text.
    pub fn page(&self, number: usize) -> impl Iterator<Item = &Site> {
        let mut at = self.first(number);
        core::iter::from_fn(move || {
            let site = self.sites.get(at as usize)?;
            at = site.next;
            Some(site)
        })
        .take(MAX_PAGE_SITES)
    }

    /// Part `part` of the sites of page `number`, and whether there may be more.
    pub fn part(&self, number: usize, part: usize) -> (impl Iterator<Item = &Site>, bool) {
        let from = part * PART;
        let is_last = self.page(number).nth(from + PART).is_none();
        (self.page(number).skip(from).take(PART), !is_last)
    }
}

/// The stage of the search.
#[derive(Clone, Copy, Debug)]
enum SearchStage {
    Jumps(u64),
    Calls(u64),
    Trampolines(u64),
    /// The `ftrace_page`, the index of the record in it, the number of pages so far.
    Entries(Option<u64>, u64, usize),
    Ftrace,
    Done,
}

/// The search for sites.
#[derive(Debug)]
pub(super) struct SiteSearch(SearchStage);

/// Entries per call of [`SiteSearch::advance`], and trampolines, whose keys are looked up by name.
pub(super) const BATCH: u64 = 32;
const TRAMPOLINES: usize = 4;

impl SiteSearch {
    pub fn new() -> Self {
        Self(SearchStage::Jumps(0))
    }

    /// Adds some sites to `sites`; returns true when the search is complete.
    pub fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        baseline: &Baseline,
        sites: &mut Sites,
    ) -> bool {
        self.0 = match self.0 {
            SearchStage::Jumps(from) => match &layout.jumps {
                Some(table) if !ended(table, from) => {
                    jumps(&|at, bytes| baseline.bytes(at, bytes), table, from, sites);
                    SearchStage::Jumps(from + BATCH)
                }
                _ => SearchStage::Calls(0),
            },
            SearchStage::Calls(from) => match &layout.calls {
                Some(table) if !ended(table, from) => {
                    calls(&|at, bytes| baseline.bytes(at, bytes), table, from, sites);
                    SearchStage::Calls(from + BATCH)
                }
                _ => SearchStage::Trampolines(layout.trampolines.start),
            },
            SearchStage::Trampolines(from) => match trampolines(kernel, layout, from, sites) {
                Some(next) => SearchStage::Trampolines(next),
                None => SearchStage::Entries(
                    layout.ftrace.as_ref().and_then(|ftrace| kernel.u64(ftrace.pages)),
                    0,
                    0,
                ),
            },
            SearchStage::Entries(Some(page), from, pages) if page != 0 && pages < walk::LIMIT => {
                match layout.ftrace.as_ref().and_then(|f| entries(kernel, f, page, from, sites)) {
                    Some(NextEntry::Record(next)) => SearchStage::Entries(Some(page), next, pages),
                    Some(NextEntry::Page(page)) => SearchStage::Entries(Some(page), 0, pages + 1),
                    None => SearchStage::Ftrace,
                }
            }
            SearchStage::Entries(..) => SearchStage::Ftrace,
            SearchStage::Ftrace => {
                for address in layout.ftrace_calls.iter().flatten() {
                    sites.add(*address, SiteKind::Ftrace);
                }
                SearchStage::Done
            }
            SearchStage::Done => SearchStage::Done,
        };
        matches!(self.0, SearchStage::Done) || sites.len() >= MAX_SITES
    }
}

pub(super) fn ended(table: &Table, from: u64) -> bool {
    from * table.size >= table.range.end.saturating_sub(table.range.start)
}

/// Entries `from..from + BATCH` of `table`.
fn batch(table: &Table, from: u64) -> impl Iterator<Item = u64> + '_ {
    (from..from + BATCH)
        .map(|i| table.range.start + i * table.size)
        .take_while(|&at| at < table.range.end)
}

/// Fills the bytes from an address on; `None` if they cannot be read.
pub(super) type Read<'r> = &'r dyn Fn(u64, &mut [u8]) -> Option<()>;

/// The target of the four-byte offset at `at`, which is relative to its own address.
fn relative(read: Read<'_>, at: u64) -> Option<u64> {
    let mut bytes = [0; 4];
    read(at, &mut bytes)?;
    Some(at.wrapping_add(i64::from(i32::from_le_bytes(bytes)) as u64))
}

/// Adds some jump labels of `table`, from entry `from` on.
pub(super) fn jumps(read: Read<'_>, table: &Table, from: u64, sites: &mut Sites) {
    for at in batch(table, from) {
        let mut add = || -> Option<()> {
            let key_at = at + table.key;
            let mut key = [0; 8];
            read(key_at, &mut key)?;
            let key = key_at.wrapping_add(u64::from_le_bytes(key));
            let kind = SiteKind::Jump {
                key: key & !3,
                target: relative(read, at + table.target)?,
                branch: key & 1 != 0,
            };
            sites.add(relative(read, at + table.code)?, kind);
            Some(())
        };
        add();
    }
}

/// Adds some static calls of `table`, from entry `from` on.
pub(super) fn calls(read: Read<'_>, table: &Table, from: u64, sites: &mut Sites) {
    for at in batch(table, from) {
        let mut add = || -> Option<()> {
            let key = relative(read, at + table.key)?;
            let kind = SiteKind::Call { key: key & !3, tail: key & 1 != 0 };
            sites.add(relative(read, at + table.code)?, kind);
            Some(())
        };
        add();
    }
}

/// Adds trampolines of static calls. Their names begin with `__SCT__`, those of their keys with `__SCK__`. Returns the
/// address to continue at.
fn trampolines<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    from: u64,
    sites: &mut Sites,
) -> Option<u64> {
    let mut symbols =
        kernel.profile.symbols_from(from).take_while(|s| s.address < layout.trampolines.end);
    for symbol in symbols.by_ref().take(TRAMPOLINES) {
        let Some(name) = symbol.name.strip_prefix("__SCT__") else { continue };
        if let Some(key) = kernel.profile.symbol(&alloc::format!("__SCK__{name}")) {
            sites.add(symbol.address, SiteKind::Trampoline { key });
        }
    }
    // If the batch ends between symbols at one address, the next batch sees some of them twice.
    symbols.next().map(|symbol| symbol.address).filter(|&next| next > from)
}

/// What follows some of ftrace's records: a record of the same `ftrace_page`, or the next one.
pub(super) enum NextEntry {
    Record(u64),
    Page(u64),
}

/// Adds some function entries of `page`, from record `from` on.
pub(super) fn entries<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    ftrace: &Ftrace,
    page: u64,
    from: u64,
    sites: &mut Sites,
) -> Option<NextEntry> {
    let count = u64::from(kernel.u32(page.wrapping_add(ftrace.page_index))?);
    let records = kernel.u64(page.wrapping_add(ftrace.page_records))?;
    let end = count.min(MAX_SITES as u64).min(from + BATCH);
    for record in (from..end).map(|i| records.wrapping_add(i * ftrace.record)) {
        let address = kernel.u64(record.wrapping_add(ftrace.ip))?;
        sites.add(address, SiteKind::Entry { record });
    }
    if end < count.min(MAX_SITES as u64) {
        return Some(NextEntry::Record(end));
    }
    kernel.u64(page.wrapping_add(ftrace.page_next)).map(NextEntry::Page)
}
