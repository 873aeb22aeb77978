//! A closer look at a page that is not as it was.

use super::baseline::Baseline;
use super::code::{INT3, JMP};
use super::probes;
use super::site_rules::{SiteRules, Verdict};
use super::sites::{SiteKind, Sites, SITE_BYTES};
use super::window::{bytes, part, Window, MARGIN};
use crate::memory::{KernelMemory, PAGE_BYTES};
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::MAX_REPAIR_WORDS;

/// Changed bytes with at most so many unchanged ones between them are one change.
const GAP: usize = 8;
/// Places in a page where no probe was found, before no more are asked for.
const MISSES: usize = 16;

/// Changed bytes that no record explains, as many as one transaction can undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub address: u64,
    pub found: Vec<u8>,
    pub expected: Vec<u8>,
    /// Address, what stands there and what should, for each word that has one of the bytes.
    pub words: Vec<(u64, u64, u64)>,
    /// It touches a site, or a breakpoint stands at its beginning: it may be a change under way.
    pub site: bool,
    pub breakpoint: bool,
    /// All of it is at sites of static calls.
    pub calls: bool,
    /// What stands there from up to 4 bytes before: the changed bytes may be the rear of an instruction.
    pub code: Vec<u8>,
    pub code_at: u64,
}

impl Change {
    pub fn end(&self) -> u64 {
        self.address + self.found.len() as u64
    }

    pub fn overlaps(&self, other: &Change) -> bool {
        self.address < other.end() && other.address < self.end()
    }
}

/// The look at one page.
struct Comparison {
    window: Window,
    is_text: bool,
    /// Bytes of sites whose contents are not legal, and whether each is a static call's.
    sites: Vec<(Range<u64>, bool)>,
}

impl Comparison {
    /// Lets the rules decide on sites; on those that are as they were only if `all`.
    fn judge_sites<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        sites: &Sites,
        number: usize,
        all: bool,
    ) {
        let earlier = number.checked_sub(1).into_iter().flat_map(|number| sites.page(number));
        for site in sites.page(number).chain(earlier) {
            let Some(place) = self.window.place(site.address) else { continue };
            let live = bytes::<SITE_BYTES>(&self.window.live, place);
            let before = bytes::<SITE_BYTES>(&self.window.expected, place);
            let (Some(live), Some(before)) = (live, before) else { continue };
            if !all && live == before {
                continue;
            }
            match rules.judge(site, &live, &before) {
                Verdict::Allowed(length) => self.window.accept(place..place + length),
                Verdict::Forbidden(code) => {
                    self.window.set_expected(place, code.bytes());
                    let bytes = site.address..site.address + code.bytes().len() as u64;
                    let is_call =
                        matches!(site.kind, SiteKind::Call { .. } | SiteKind::Trampoline { .. });
                    self.sites.push((bytes, is_call));
                }
            }
        }
    }

    /// Lets registered probes explain what is left.
    fn judge_probes<M: KernelMemory>(&mut self, rules: &SiteRules<'_, '_, M>) {
        let Some(known) = &rules.layout.probes else { return };
        let mut misses = 0;
        let mut next = 0;
        while let Some(at) = self.window.first_difference(next..self.window.len()) {
            next = at + 1;
            for first in (at.saturating_sub(4)..=at).rev() {
                // At the window's end a jump's distance is in no word of it.
                let live = bytes::<5>(&self.window.live, first).or_else(|| {
                    bytes::<1>(&self.window.live, first).map(|[byte]| [byte, 0, 0, 0, 0])
                });
                let Some(live) = live.filter(|live| matches!(live[0], INT3 | JMP)) else {
                    continue;
                };
                if misses == MISSES {
                    return;
                }
                let address = self.window.start + first as u64;
                let length = probes::explained(rules.kernel, known, address, &live);
                if first + length > at {
                    self.window.accept(first..first + length);
                    break;
                }
                misses += 1;
            }
        }
    }

    /// What is left, from `page` on.
    fn changes(&self, page: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(first) = self.window.place(page) else { return changes };
        // What begins in the margin before, and reaches at most the margin's length into the page, is that page's.
        let earlier = first > 0 && self.window.first_difference(0..first).is_some();
        let end = first + PAGE_BYTES as usize;
        let mut at = if earlier { first + MARGIN as usize } else { first };
        while let Some(from) = self.window.first_difference(at..end) {
            let (change, behind) = self.change_from(from);
            changes.push(change);
            at = behind;
        }
        changes
    }

    /// The change that begins at `from`, and the place behind it.
    fn change_from(&self, from: usize) -> (Change, usize) {
        let window = &self.window;
        let limit = (from & !7) + 8 * MAX_REPAIR_WORDS;
        let mut last = from;
        while let Some(at) = window.first_difference(last + 1..limit.min(last + 1 + GAP)) {
            last = at;
        }
        let mut changed = window.start + from as u64..window.start + last as u64 + 1;
        // Data and sites are told of as a whole.
        if !self.is_text {
            changed = changed.start & !7..(changed.end + 7) & !7;
        }
        let all = self.sites.iter().map(|(site, _)| site);
        let sites = || all.clone().filter(|s| s.start < changed.end && changed.start < s.end);
        let start = sites().map(|site| site.start).fold(changed.start, u64::min);
        let end = sites().map(|site| site.end).fold(changed.end, u64::max);
        let code_at = start.saturating_sub(4).max(window.start);
        let place = |address: u64| (address - window.start) as usize;
        let change = Change {
            address: start,
            found: part(&window.live, place(start)..place(end)),
            expected: part(&window.expected, place(start)..place(end)),
            words: self.words(start, end),
            site: sites().next().is_some(),
            calls: self.is_calls(&changed),
            breakpoint: bytes::<1>(&window.live, from) == Some([INT3]),
            code: part(&window.live, place(code_at)..place(end) + 11),
            code_at,
        };
        (change, last + 1)
    }

    /// Whether each changed byte in `range` is a static call's.
    fn is_calls(&self, range: &Range<u64>) -> bool {
        let is_call = |at: u64| self.sites.iter().any(|(site, call)| *call && site.contains(&at));
        range.clone().all(|at| {
            let place = (at - self.window.start) as usize;
            self.window.first_difference(place..place + 1).is_none() || is_call(at)
        })
    }

    /// The words that are not as they should be.
    fn words(&self, start: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let word = |at: u64| {
            let index = self.window.place(at)? / 8;
            Some((at, *self.window.live.get(index)?, *self.window.expected.get(index)?))
        };
        let words = (start & !7..end).step_by(8).filter_map(word);
        words.filter(|(_, live, expected)| live != expected).take(MAX_REPAIR_WORDS).collect()
    }
}

/// What is not explained in page `number`; `None` where it cannot be read.
pub(super) fn compare_page<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    number: usize,
    all: bool,
) -> Option<Vec<Change>> {
    let page = baseline.address(number);
    let window = Window::read(rules.kernel, baseline, number)?;
    let mut comparison = Comparison { window, is_text: baseline.is_text(page), sites: Vec::new() };
    if comparison.is_text {
        comparison.judge_sites(rules, sites, number, all);
        comparison.judge_probes(rules);
    }
    Some(comparison.changes(page))
}
