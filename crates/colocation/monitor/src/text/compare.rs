//! The detailed comparison of a page that differs from its copy.

use super::baseline::Baseline;
use super::code::{Code, INT3, JMP, NEAR_BYTES};
use super::probes;
use super::site_rules::{SiteRules, Verdict};
use super::sites::{Site, SiteKind, Sites, SITE_BYTES};
use super::window::{bytes, part, Window};
use crate::check::Budget;
use crate::memory::{KernelMemory, Page, BLOCK_WORDS as BLOCK, PAGE_BYTES, PAGE_WORDS};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::MAX_REPAIR_WORDS;

/// Maximum distance between neighbouring changed bytes of one change.
const MAX_GAP: usize = 8;
/// Fruitless searches for a probe after which a comparison makes no more.
const MAX_MISSES: usize = 16;

/// Changed bytes that no record explains, at most as many as one transaction can repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub address: u64,
    pub found: Vec<u8>,
    pub expected: Vec<u8>,
    /// Address, live value and expected value of each word with changed bytes.
    pub words: Vec<(u64, u64, u64)>,
    /// The change touches a site.
    pub touches_site: bool,
    /// A breakpoint stands at its start: it may be a change in progress.
    pub starts_with_breakpoint: bool,
    /// All changed bytes belong to sites of static calls.
    pub only_static_calls: bool,
    /// The expected bytes of a static call are those of its record, and not the copy's.
    pub by_record: bool,
    /// The live and the expected bytes from up to 4 bytes earlier: the changed bytes may be the end of an instruction.
    pub code: Vec<u8>,
    pub expected_code: Vec<u8>,
    pub code_address: u64,
}

impl Change {
    pub fn end(&self) -> u64 {
        self.address + self.found.len() as u64
    }

    pub fn overlaps(&self, other: &Change) -> bool {
        self.address < other.end() && other.address < self.end()
    }
}

/// The comparison of one page.
struct Comparison {
    window: Window,
    is_text: bool,
    /// The sites with forbidden contents.
    sites: Vec<ForbiddenSite>,
}

/// A site whose contents its record forbids.
struct ForbiddenSite {
    bytes: Range<u64>,
    is_call: bool,
    /// See [`Change::by_record`].
    by_record: bool,
}

impl Comparison {
    /// Applies the rules to the changed sites of the page.
    fn judge_sites<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        sites: &Sites,
        number: usize,
    ) {
        let earlier = number.checked_sub(1).into_iter().flat_map(|number| sites.page(number));
        for site in sites.page(number).chain(earlier) {
            let Some(offset) = self.window.offset(site.address) else { continue };
            let live = bytes::<SITE_BYTES>(&self.window.live, offset);
            let before = bytes::<SITE_BYTES>(&self.window.expected, offset);
            let (Some(live), Some(before)) = (live, before) else { continue };
            if live == before {
                continue;
            }
            match rules.judge(site, &live, &before) {
                Verdict::Allowed(length) => self.window.accept(offset..offset + length),
                Verdict::Forbidden(code) => {
                    self.window.set_expected(offset, code.bytes());
                    let bytes = site.address..site.address + code.bytes().len() as u64;
                    let is_call = matches!(
                        site.kind,
                        SiteKind::Call { .. }
                            | SiteKind::Trampoline { .. }
                            | SiteKind::ModuleTrampoline
                    );
                    let length = code.bytes().len();
                    let by_record = is_call && before[..length] != *code.bytes();
                    self.sites.push(ForbiddenSite { bytes, is_call, by_record });
                }
            }
        }
    }

    /// Accepts the breakpoints and jumps of registered probes.
    fn judge_probes<M: KernelMemory>(&mut self, rules: &SiteRules<'_, '_, M>) {
        let Some(known) = &rules.layout.probes else { return };
        let mut misses = 0;
        let mut next = 0;
        while let Some(at) = self.window.first_difference(next..self.window.len()) {
            next = at + 1;
            for first in (at.saturating_sub(4)..=at).rev() {
                // At the window's end, the jump's distance may be cut off.
                let live = bytes::<5>(&self.window.live, first).or_else(|| {
                    bytes::<1>(&self.window.live, first).map(|[byte]| [byte, 0, 0, 0, 0])
                });
                let Some(live) = live.filter(|live| matches!(live[0], INT3 | JMP)) else {
                    continue;
                };
                if misses == MAX_MISSES {
                    return;
                }
                let address = self.window.start + first as u64;
                let length = probes::probe_bytes(rules.kernel, known, address, &live);
                if first + length > at {
                    self.window.accept(first..first + length);
                    break;
                }
                misses += 1;
            }
        }
    }

    /// The remaining changes from address `page` on.
    fn changes(&self, page: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(first) = self.window.offset(page) else { return changes };
        let end = first + PAGE_BYTES as usize;
        // A change that begins in the margin belongs to the previous page.
        let mut at = first;
        let mut earlier = self.window.first_difference(0..first);
        while let Some(from) = earlier {
            let (_, behind) = self.change_from(from);
            at = at.max(behind);
            earlier = self.window.first_difference(behind..first.max(behind));
        }
        while let Some(from) = self.window.first_difference(at..end) {
            let (change, behind) = self.change_from(from);
            changes.push(change);
            at = behind;
        }
        changes
    }

    /// The change that begins at offset `from`, and the offset of its end.
    fn change_from(&self, from: usize) -> (Change, usize) {
        let window = &self.window;
        let limit = (from & !7) + 8 * MAX_REPAIR_WORDS;
        let mut last = from;
        while let Some(at) = window.first_difference(last + 1..limit.min(last + 1 + MAX_GAP)) {
            last = at;
        }
        let mut changed = window.start + from as u64..window.start + last as u64 + 1;
        // Data is reported in whole words, a site as a whole.
        if !self.is_text {
            changed = changed.start & !7..(changed.end + 7) & !7;
        }
        let touches = |site: &&ForbiddenSite| {
            site.bytes.start < changed.end && changed.start < site.bytes.end
        };
        let sites = || self.sites.iter().filter(touches);
        let start = sites().map(|site| site.bytes.start).fold(changed.start, u64::min);
        let end = sites().map(|site| site.bytes.end).fold(changed.end, u64::max);
        let code_address = start.saturating_sub(4).max(window.start);
        let offset = |address: u64| (address - window.start) as usize;
        let change = Change {
            address: start,
            found: part(&window.live, offset(start)..offset(end)),
            expected: part(&window.expected, offset(start)..offset(end)),
            words: self.words(start, end),
            touches_site: sites().next().is_some(),
            only_static_calls: self.is_static_calls(&changed),
            by_record: sites().any(|site| site.by_record),
            starts_with_breakpoint: bytes::<1>(&window.live, from) == Some([INT3]),
            code: part(&window.live, offset(code_address)..offset(end) + 11),
            expected_code: part(&window.expected, offset(code_address)..offset(end) + 11),
            code_address,
        };
        (change, last + 1)
    }

    /// Whether every changed byte in `range` belongs to a static call.
    fn is_static_calls(&self, range: &Range<u64>) -> bool {
        let is_call =
            |at: u64| self.sites.iter().any(|site| site.is_call && site.bytes.contains(&at));
        range.clone().all(|at| {
            let offset = (at - self.window.start) as usize;
            self.window.first_difference(offset..offset + 1).is_none() || is_call(at)
        })
    }

    /// The words in `start..end` that differ from the expected ones.
    fn words(&self, start: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let word = |at: u64| {
            let index = self.window.offset(at)? / 8;
            Some((at, *self.window.live.get(index)?, *self.window.expected.get(index)?))
        };
        let words = (start & !7..end).step_by(8).filter_map(word);
        words.filter(|(_, live, expected)| live != expected).take(MAX_REPAIR_WORDS).collect()
    }
}

/// How a page compares with its copy, at first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstSight {
    Equal,
    /// Sites and probes explain all that differs.
    Explained,
    /// It takes a closer look: a change, a site across the page's end, a page that cannot be read.
    Unclear,
}

/// Differing blocks between two looks at the clock.
const GROUP: u32 = 8;

/// A first look at a page, which may take more than one slice: a page of a traced kernel has up to two hundred calls.
///
/// A traced kernel has differences in each page, in each pass: blocks that differ and sorted sites are walked in step.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstLook {
    pub page: usize,
    /// The number of blocks, from the page's beginning, that were looked at.
    block: usize,
    /// The block that was explained last, and the bits behind it that were judged with it.
    judged: (usize, u64),
    differs: bool,
}

impl FirstLook {
    pub fn new(page: usize) -> Self {
        Self { page, block: 0, judged: (0, 0), differs: false }
    }

    /// Goes on with the comparison; `None` if the slice is over before the page.
    pub fn advance<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        baseline: &Baseline,
        sites: &Sites,
        budget: &mut dyn Budget,
    ) -> Option<FirstSight> {
        let page = baseline.address(self.page);
        let (memory, physical) = (rules.kernel.memory, rules.kernel.physical(page));
        let live = physical.and_then(|physical| Some((physical, memory.page(physical)?)));
        let Some(((physical, live), copy)) = live.zip(baseline.page(self.page)) else {
            return Some(FirstSight::Unclear);
        };
        let mut walk = StepWalk { page, live, copy, sites, next: sites.first(self.page) };
        let Some(all) = memory.differing_blocks(physical, copy) else {
            return Some(FirstSight::Unclear);
        };
        let mut blocks = all & u64::MAX << self.block;
        for turn in 1.. {
            if blocks == 0 {
                break;
            }
            let block = blocks.trailing_zeros() as usize;
            self.differs = true;
            let (behind, judged) = self.judged;
            let judged = if behind + 1 == block { judged } else { 0 };
            let left = walk.differences(block, judged);
            let Some(judged) = left.and_then(|left| walk.explain(rules, left)) else {
                return Some(FirstSight::Unclear);
            };
            self.judged = (block, judged);
            blocks &= blocks - 1;
            if turn % GROUP == 0 && blocks != 0 && budget.spent() {
                self.block = block + 1;
                return None;
            }
        }
        Some(if self.differs { FirstSight::Explained } else { FirstSight::Equal })
    }
}

/// A walk over the blocks of a page and its sites.
struct StepWalk<'p> {
    page: u64,
    live: &'p Page,
    copy: &'p [u64; PAGE_WORDS],
    sites: &'p Sites,
    /// The first site that may touch the next block.
    next: u32,
}

impl StepWalk<'_> {
    /// The differences of a block but for the bits `judged` of its first word.
    fn differences(&self, block: usize, judged: u64) -> Option<Differences> {
        let start = block * BLOCK;
        let live = self.live.get(start..)?.first_chunk::<BLOCK>()?;
        let copy = self.copy.get(start..)?.first_chunk::<BLOCK>()?;
        let mut words = [u64::MAX; BLOCK + 2];
        for ((word, live), copy) in words.iter_mut().skip(1).zip(live).zip(copy) {
            *word = live.load(Relaxed) ^ copy;
        }
        words[1] &= !judged;
        Some(Differences { start: 8 * start, words })
    }

    /// Explains what is left of a block's differences by sites and probes; `None` if something remains. Returns the
    /// bits of the next block's first word that were judged with it.
    fn explain<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        mut left: Differences,
    ) -> Option<u64> {
        while let Some(site) = self.sites.get(self.next) {
            let offset = site.address.wrapping_sub(self.page) as usize;
            if offset >= left.start + BLOCK * 8 {
                break;
            }
            self.next = site.next();
            if offset + SITE_BYTES <= left.start {
                continue;
            }
            if offset / 8 == PAGE_WORDS - 1 && !left.has(offset / 8) {
                // What it has on the next page is judged there.
                continue;
            }
            let live = six_bytes(offset, |word| Some(self.live.get(word)?.load(Relaxed)))?;
            // Most sites of a traced kernel. Where the copy has the same call, nothing is left to explain.
            if rules.is_usual_call(site, live) {
                left.accept(offset, NEAR_BYTES);
                continue;
            }
            let before = six_bytes(offset, |word| self.copy.get(word).copied())?;
            if live == before {
                continue;
            }
            match rules.judge(site, &site_bytes(live), &site_bytes(before)) {
                Verdict::Allowed(length) => left.accept(offset, length),
                Verdict::Forbidden(_) => return None,
            }
        }
        while let Some(offset) = left.first() {
            let probes = rules.layout.probes.as_ref()?;
            let live = six_bytes(offset, |word| Some(self.live.get(word)?.load(Relaxed)))?;
            let at = self.page + offset as u64;
            match probes::probe_bytes(rules.kernel, probes, at, &site_bytes(live)) {
                0 => return None,
                length => left.accept(offset, length),
            }
        }
        Some(!left.words[BLOCK + 1])
    }
}

/// The [`SITE_BYTES`] bytes at `offset` of a page, the first one lowest; `None` near the page's end.
#[inline]
fn six_bytes(offset: usize, word: impl Fn(usize) -> Option<u64>) -> Option<u64> {
    let (at, shift) = (offset / 8, offset % 8 * 8);
    let both = u128::from(word(at)?) | u128::from(word(at + 1)?) << 64;
    Some((both >> shift) as u64 & ((1 << (8 * SITE_BYTES)) - 1))
}

/// The differing bits of a block that nothing has explained, with those of the word before it and of the one behind it.
struct Differences {
    /// The offset of the block in its page.
    start: usize,
    words: [u64; BLOCK + 2],
}

impl Differences {
    /// Explains the `length` bytes at `offset`, 1 to 8, which is at most a word before the block.
    #[inline]
    fn accept(&mut self, offset: usize, length: usize) {
        let place = (offset + 8).wrapping_sub(self.start);
        let (bits, shift) = (u64::MAX >> (64 - 8 * length), place % 8 * 8);
        if let Some(word) = self.words.get_mut(place / 8) {
            *word &= !(bits << shift);
        }
        if shift + 8 * length > 64 {
            if let Some(word) = self.words.get_mut(place / 8 + 1) {
                *word &= !(bits >> (64 - shift));
            }
        }
    }

    /// Whether word `word` of the page, which is in the block, differs.
    fn has(&self, word: usize) -> bool {
        self.words.get((word + 1).wrapping_sub(self.start / 8)).is_none_or(|word| *word != 0)
    }

    /// The offset of the first byte in the block that differs.
    fn first(&self) -> Option<usize> {
        let words = self.words.get(1..=BLOCK)?;
        // Mostly, nothing is left.
        if words.iter().fold(0, |all, word| all | word) == 0 {
            return None;
        }
        let word = words.iter().position(|word| *word != 0)?;
        Some(self.start + 8 * word + words.get(word)?.trailing_zeros() as usize / 8)
    }
}

fn site_bytes(bits: u64) -> [u8; SITE_BYTES] {
    let [a, b, c, d, e, f, ..] = bits.to_le_bytes();
    [a, b, c, d, e, f]
}

/// Those of `sites` whose live bytes no record allows, with the bytes that the records require.
pub(super) fn forbidden_sites<'s, M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: impl Iterator<Item = &'s Site>,
) -> Vec<(u64, Code)> {
    let mut forbidden = Vec::new();
    for site in sites {
        let (mut live, mut before) = ([0; SITE_BYTES], [0; SITE_BYTES]);
        let readable = rules.kernel.bytes(site.address, &mut live).is_some()
            && baseline.bytes(site.address, &mut before).is_some();
        if !readable {
            continue;
        }
        if let Verdict::Forbidden(code) = rules.judge(site, &live, &before) {
            forbidden.push((site.address, code));
        }
    }
    forbidden
}

/// The changes in page `number` that nothing explains; `None` if it cannot be read.
pub(super) fn compare_page<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    number: usize,
) -> Option<Vec<Change>> {
    compare_with(rules, baseline, sites, number, 0, &[])
}

/// The same with `bytes` at `address` in the page in place of the live ones.
pub(super) fn compare_with<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    number: usize,
    address: u64,
    bytes: &[u8],
) -> Option<Vec<Change>> {
    let page = baseline.address(number);
    let mut window = Window::read(rules.kernel, baseline, number)?;
    if let Some(offset) = window.offset(address) {
        window.set_live(offset, bytes);
    }
    let mut comparison = Comparison { window, is_text: baseline.is_text(page), sites: Vec::new() };
    if comparison.is_text {
        comparison.judge_sites(rules, sites, number);
        comparison.judge_probes(rules);
    }
    Some(comparison.changes(page))
}
