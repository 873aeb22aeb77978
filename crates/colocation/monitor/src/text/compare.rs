//! The detailed comparison of a page that differs from its copy.

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
    /// The live bytes from up to 4 bytes earlier: the changed bytes may be the end of an instruction.
    pub code: Vec<u8>,
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
    /// The addresses of sites with forbidden contents, and whether each is a static call.
    sites: Vec<(Range<u64>, bool)>,
}

impl Comparison {
    /// Applies the rules to the sites of the page; to unchanged ones only if `include_unchanged`.
    fn judge_sites<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        sites: &Sites,
        number: usize,
        include_unchanged: bool,
    ) {
        let earlier = number.checked_sub(1).into_iter().flat_map(|number| sites.page(number));
        for site in sites.page(number).chain(earlier) {
            let Some(offset) = self.window.offset(site.address) else { continue };
            let live = bytes::<SITE_BYTES>(&self.window.live, offset);
            let before = bytes::<SITE_BYTES>(&self.window.expected, offset);
            let (Some(live), Some(before)) = (live, before) else { continue };
            if !include_unchanged && live == before {
                continue;
            }
            match rules.judge(site, &live, &before) {
                Verdict::Allowed(length) => self.window.accept(offset..offset + length),
                Verdict::Forbidden(code) => {
                    self.window.set_expected(offset, code.bytes());
                    let bytes = site.address..site.address + code.bytes().len() as u64;
                    let is_call =
                        matches!(site.kind, SiteKind::Call { .. } | SiteKind::Trampoline { .. });
                    self.sites.push((bytes, is_call));
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
        // A change that begins in the margin belongs to the previous page; it reaches at most a margin's length into
        // this one.
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
        let all = self.sites.iter().map(|(site, _)| site);
        let sites = || all.clone().filter(|s| s.start < changed.end && changed.start < s.end);
        let start = sites().map(|site| site.start).fold(changed.start, u64::min);
        let end = sites().map(|site| site.end).fold(changed.end, u64::max);
        let code_address = start.saturating_sub(4).max(window.start);
        let offset = |address: u64| (address - window.start) as usize;
        let change = Change {
            address: start,
            found: part(&window.live, offset(start)..offset(end)),
            expected: part(&window.expected, offset(start)..offset(end)),
            words: self.words(start, end),
            touches_site: sites().next().is_some(),
            only_static_calls: self.is_static_calls(&changed),
            starts_with_breakpoint: bytes::<1>(&window.live, from) == Some([INT3]),
            code: part(&window.live, offset(code_address)..offset(end) + 11),
            code_address,
        };
        (change, last + 1)
    }

    /// Whether every changed byte in `range` belongs to a static call.
    fn is_static_calls(&self, range: &Range<u64>) -> bool {
        let is_call = |at: u64| self.sites.iter().any(|(site, call)| *call && site.contains(&at));
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

/// The changes in page `number` that nothing explains; `None` if it cannot be read.
pub(super) fn compare_page<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    number: usize,
    include_unchanged: bool,
) -> Option<Vec<Change>> {
    let page = baseline.address(number);
    let window = Window::read(rules.kernel, baseline, number)?;
    let mut comparison = Comparison { window, is_text: baseline.is_text(page), sites: Vec::new() };
    if comparison.is_text {
        comparison.judge_sites(rules, sites, number, include_unchanged);
        comparison.judge_probes(rules);
    }
    Some(comparison.changes(page))
}
