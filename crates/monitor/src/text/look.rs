//! A closer look at a page that is not as it was.

use super::baseline::Baseline;
use super::code::{INT3, JMP};
use super::legal::{Law, Verdict};
use super::probes;
use super::sites::{Sites, SITE_BYTES};
use crate::memory::{KernelMemory, PAGE_BYTES};
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::MAX_REPAIR_WORDS;

/// Bytes looked at on either side of a page: an instruction may lie across its edge.
const MARGIN: u64 = 8;
/// Changed bytes with at most so many unchanged ones between them are one change.
const GAP: usize = 8;
/// Places in a page where no probe was found, before no more are asked for.
const MISSES: usize = 16;

/// Changed bytes that no record explains, as many as one transaction can undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub address: u64,
    pub found: Vec<u8>,
    pub expected: Vec<u8>,
    /// Address, what stands there and what should, for each word that has one of the bytes.
    pub words: Vec<(u64, u64, u64)>,
    /// It touches a site, or a breakpoint stands at its beginning: it may be a change under way.
    pub site: bool,
    pub breakpoint: bool,
    /// What stands there from up to 4 bytes before: the changed bytes may be the rear of an instruction.
    pub code: Vec<u8>,
    pub code_at: u64,
}

impl Run {
    pub fn end(&self) -> u64 {
        self.address + self.found.len() as u64
    }

    pub fn overlaps(&self, other: &Run) -> bool {
        self.address < other.end() && other.address < self.end()
    }
}

/// A page and its margins: what stands there, and what should.
struct Window {
    start: u64,
    is_text: bool,
    live: Vec<u8>,
    wanted: Vec<u8>,
    /// Bytes of sites whose contents are not legal.
    sites: Vec<(u64, u64)>,
}

impl Window {
    fn read<M: KernelMemory>(
        law: &Law<'_, '_, M>,
        baseline: &Baseline,
        number: usize,
    ) -> Option<Self> {
        let page = baseline.address(number);
        let has = |address| baseline.word(address).is_some();
        let start = if has(page.wrapping_sub(MARGIN)) { page - MARGIN } else { page };
        let end = page + PAGE_BYTES + if has(page + PAGE_BYTES) { MARGIN } else { 0 };
        let bytes = (end - start) as usize;
        let mut window = Self {
            start,
            is_text: baseline.is_text(page),
            live: alloc::vec![0; bytes],
            wanted: alloc::vec![0; bytes],
            sites: Vec::new(),
        };
        // A margin that is no memory is the page's own loss only.
        baseline.bytes(start, &mut window.wanted)?;
        law.kernel.bytes(start, &mut window.live)?;
        Some(window)
    }

    fn index(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.start)?).ok()
    }

    /// The first byte in `places` that is not as it should be.
    fn difference(&self, places: Range<usize>) -> Option<usize> {
        const WORD: usize = 8;
        let live = self.live.get(places.clone())?;
        let wanted = self.wanted.get(places.clone())?;
        let words = live.chunks(WORD).zip(wanted.chunks(WORD));
        let skipped = WORD * words.take_while(|(live, wanted)| live == wanted).count();
        let mut rest = live.iter().zip(wanted).skip(skipped);
        Some(places.start + skipped + rest.position(|(live, wanted)| live != wanted)?)
    }

    /// Lets the law decide on sites; on those that are as they were only if `all`.
    fn judge_sites<M: KernelMemory>(
        &mut self,
        law: &mut Law<'_, '_, M>,
        sites: &Sites,
        number: usize,
        all: bool,
    ) {
        for site in
            sites.page(number).chain(number.checked_sub(1).into_iter().flat_map(|n| sites.page(n)))
        {
            let Some(at) = self.index(site.address) else { continue };
            let place = at..at + SITE_BYTES;
            let Some(live) = self.live.get(place.clone()).and_then(|live| live.try_into().ok())
            else {
                continue;
            };
            let Some(before) = self.wanted.get_mut(place) else { continue };
            let before: &mut [u8; SITE_BYTES] = match before.try_into() {
                Ok(before) => before,
                Err(_) => continue,
            };
            if !all && live == *before {
                continue;
            }
            match law.judge(site, &live, before) {
                Verdict::Legal(bytes) => before[..bytes].copy_from_slice(&live[..bytes]),
                Verdict::Illegal(code) => {
                    let bytes = code.bytes();
                    before[..bytes.len()].copy_from_slice(bytes);
                    self.sites.push((site.address, site.address + bytes.len() as u64));
                }
            }
        }
    }

    /// Lets registered probes explain what is left.
    fn judge_probes<M: KernelMemory>(&mut self, law: &Law<'_, '_, M>) {
        let Some(known) = &law.layout.probes else { return };
        let mut misses = 0;
        let mut next = 0;
        while let Some(at) = self.difference(next..self.live.len()) {
            next = at + 1;
            for first in (at.saturating_sub(4)..=at).rev() {
                let Some(live) = self
                    .live
                    .get(first..)
                    .filter(|live| matches!(live.first(), Some(&(INT3 | JMP))))
                else {
                    continue;
                };
                if misses == MISSES {
                    return;
                }
                let bytes = probes::explained(law.kernel, known, self.start + first as u64, live);
                if first + bytes > at {
                    let (Some(to), Some(from)) = (
                        self.wanted.get_mut(first..first + bytes),
                        self.live.get(first..first + bytes),
                    ) else {
                        continue;
                    };
                    to.copy_from_slice(from);
                    break;
                }
                misses += 1;
            }
        }
    }

    /// What is left, from `page` on.
    fn runs(&self, page: u64) -> Vec<Run> {
        let mut runs = Vec::new();
        let Some(first) = self.index(page) else { return runs };
        // What begins in the margin before, and reaches at most the margin's length into the page, is that page's.
        let earlier = self.difference(0..first).is_some();
        let end = (first + PAGE_BYTES as usize).min(self.live.len());
        let mut at = if earlier { first + MARGIN as usize } else { first };
        while let Some(from) = self.difference(at..end) {
            let (run, behind) = self.run(from);
            runs.push(run);
            at = behind.min(end);
        }
        runs
    }

    /// The change that begins at `from`, and the place behind it.
    fn run(&self, from: usize) -> (Run, usize) {
        let address = self.start + from as u64;
        let limit = self.live.len().min(from - (address % 8) as usize + 8 * MAX_REPAIR_WORDS);
        let mut last = from;
        while let Some(at) = self.difference(last + 1..limit.min(last + 1 + GAP)) {
            last = at;
        }
        let mut changed = address..self.start + last as u64 + 1;
        // Data and sites are told of as a whole.
        if !self.is_text {
            changed = changed.start & !7..(changed.end + 7) & !7;
        }
        let sites =
            || self.sites.iter().filter(|site| site.0 < changed.end && changed.start < site.1);
        let address = sites().map(|site| site.0).fold(changed.start, u64::min);
        let end = sites().map(|site| site.1).fold(changed.end, u64::max);
        let part = |from: &[u8], start: u64, end: u64| {
            let place = self.index(start).zip(self.index(end));
            let bytes = place.and_then(|(start, end)| from.get(start..end.min(from.len())));
            bytes.unwrap_or(&[]).to_vec()
        };
        let code_at = address.saturating_sub(4).max(self.start);
        let run = Run {
            address,
            found: part(&self.live, address, end),
            expected: part(&self.wanted, address, end),
            words: self.words(address & !7, end),
            site: sites().next().is_some(),
            breakpoint: self.live.get(from) == Some(&INT3),
            code: part(&self.live, code_at, end + 11),
            code_at,
        };
        (run, last + 1)
    }

    fn words(&self, start: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let word = |from: &[u8], at| {
            let at = self.index(at)?;
            Some(u64::from_le_bytes(from.get(at..at + 8)?.try_into().ok()?))
        };
        (start..end)
            .step_by(8)
            .filter_map(|at| Some((at, word(&self.live, at)?, word(&self.wanted, at)?)))
            .filter(|(_, live, wanted)| live != wanted)
            .collect()
    }
}

/// What is not explained in page `number`; `None` where it cannot be read.
pub(super) fn look<M: KernelMemory>(
    law: &mut Law<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    number: usize,
    all: bool,
) -> Option<Vec<Run>> {
    let page = baseline.address(number);
    let mut window = Window::read(law, baseline, number)?;
    if window.is_text {
        window.judge_sites(law, sites, number, all);
        window.judge_probes(law);
    }
    Some(window.runs(page))
}
