//! The check `text`: compares kernel text and read-only data with a copy, except for what Linux itself patches.
//!
//! The first pass makes the copy and finds the patch sites: jump labels, static calls, function entries. Later passes
//! compare page by page; only a page that differs is examined closely. There, a site may hold what Linux's own records
//! allow at that moment, and a registered probe its breakpoint or jump. Any other change is a suspect, reported when it
//! stood unchanged in several slices.
//!
//! With the hypervisor, each write is judged as well: see `writes`.
//!
//! The first pass also finds sites whose bytes no record allows. Other tampering from before the load is in the copy.
//! If the profile has fingerprints of the kernel package's image, the first pass compares the copy with them and
//! reports the differences; without them, the copy counts as correct.
//!
//! Function pointers in Linux's records (a registered ftrace handler, the probe of a tracepoint, the function of a
//! static call) are trusted if they lead to listed code. Each pass begins with a look at them.
//!
//! A change is repaired only if that undoes it: not towards bytes that the fingerprints refute, nor towards code of no
//! listed owner, nor if the code that is restored calls a hidden probe.

mod baseline;
mod code;
mod compare;
mod first_look;
mod layout;
pub mod modules;
mod order;
mod package;
mod probes;
mod records;
mod report;
mod site_rules;
mod sites;
mod suspects;
#[cfg(test)]
mod tests;
pub mod thunks;
mod walk;
mod wants;
mod window;
mod writes;

use crate::check::{About, Budget, Check, Coverage, Make, Repairs, Step, Watched};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::profile::{Profile, ProfileError};
use crate::random::Random;
use alloc::vec;
use alloc::vec::Vec;
use baseline::Baseline;
pub(crate) use code::near_target;
use compare::{compare_page, forbidden_sites, FirstLook, FirstSight};
use core::ops::Range;
use kyozon_abi::layer::{Write, WRITE_MEMORY};
use layout::TextLayout;
use order::Order;
use package::{Evidence, PackageComparison};
use probes::RecentSlots;
use records::Records;
use site_rules::SiteRules;
use sites::{SiteSearch, Sites};
use suspects::{Patching, SuspectChanges};
use writes::PassingChanges;

/// The state of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Copy,
    FindSites,
    /// Reading Linux's records of code.
    Records,
    /// Correcting the copy of this page, from this part of its sites on.
    Verify(usize, usize),
    /// Comparing the copy with the package's image.
    Compare,
    Watch(usize),
}

/// The check `text`. The copy takes as much memory as text and read-only data, about 25 MB; the sites take about 3 MB.
#[derive(Debug)]
pub struct TextCheck {
    layout: TextLayout,
    records: Records,
    watch: Watch,
}

/// The part of the check that changes while the rules about sites are at hand.
#[derive(Debug)]
struct Watch {
    baseline: Baseline,
    search: SiteSearch,
    sites: Sites,
    /// The pages that differed in the last pass for reasons that sites and probes explain.
    explained: Vec<bool>,
    suspects: SuspectChanges,
    passing: PassingChanges,
    slots: RecentSlots,
    order: Order,
    /// Pages that every other pass leaves out, and the number of those that this pass looked at.
    names: [Range<usize>; 2],
    looked: u64,
    /// Of each page: in which of the passes it has its turn, which Linux must not know; whether it was written since.
    turns: Vec<u8>,
    written: Vec<bool>,
    /// How the looks of a pass are spread, if they are.
    pace: Option<Spread>,
    /// Writes are seen; and the number of passes that look at all pages nevertheless, since some were not judged.
    is_watched: bool,
    whole_passes: u32,
    /// What explains the writes that are shown before the next step may be gone.
    is_late: bool,
    /// The look at a page that the last slice did not complete.
    look: Option<FirstLook>,
    /// The page whose closer look was left to the next slice.
    waiting: Option<usize>,
    package: Option<PackageComparison>,
    phase: Phase,
    slice: u64,
    pass: u64,
    /// Percentage of the first pass that is done.
    learned: u8,
}

/// Passes that together look at every page if writes are seen: these are found by their writes. The rest serves against
/// what writes without the processor.
const WATCHED_PARTS: u64 = 8;
/// Milliseconds that a pass takes, and the same if writes are seen.
const PASS_MS: u64 = 650;
const WATCHED_PASS_MS: u64 = 500;
/// Milliseconds of a step where there is no clock: the default.
const STEP_MS: u64 = 10;

/// The looks of a pass, spread evenly over the time that it takes: a rest between passes would be a time in which
/// Linux knows that no page is looked at.
#[derive(Clone, Copy, Debug)]
struct Spread {
    pass_ms: u64,
    /// Milliseconds of this pass: those of its steps.
    passed: u64,
    /// The clock at the last step, 0 for none.
    clock: u64,
}

impl Spread {
    fn over(pass_ms: u64) -> Self {
        Self { pass_ms, passed: 0, clock: 0 }
    }

    /// Counts a step at `clock` milliseconds, 0 if there is no clock.
    fn step(&mut self, clock: u64) {
        self.passed += match (core::mem::replace(&mut self.clock, clock), clock) {
            (_, 0) | (0, _) => STEP_MS,
            (last, now) => now.wrapping_sub(last),
        };
    }

    /// The number of looks, of `count` in a pass, that are due by now.
    fn due(&self, count: usize) -> usize {
        let due = count as u64 * self.passed / self.pass_ms;
        usize::try_from(due).unwrap_or(usize::MAX)
    }
}

/// Percentage of the first pass at the beginning of its phases after the copy.
const FIND_SITES_FROM: u64 = 30;
const VERIFY_FROM: u64 = 35;
const COMPARE_FROM: u64 = 60;

impl TextCheck {
    /// The check for a kernel with `profile`. Its passes follow the order of addresses, as fast as they can; see
    /// [`TextCheck::in_random_order`] and [`TextCheck::spread`].
    ///
    /// # Errors
    ///
    /// [`ProfileError::Missing`] if the profile lacks something without which Linux's own changes look like tampering.
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        let layout =
            TextLayout::new(profile).map_err(|missing| ProfileError::Missing(missing.0.into()))?;
        let baseline = Baseline::new(layout.text.clone(), layout.rodata.clone());
        let watch = Watch {
            explained: vec![false; baseline.page_count()],
            search: SiteSearch::new(),
            sites: Sites::new(layout.stext..layout.etext),
            suspects: SuspectChanges::default(),
            passing: PassingChanges::default(),
            slots: RecentSlots::default(),
            order: Order::default(),
            names: layout.names.clone().map(|range| baseline.pages_within(&range)),
            looked: 0,
            turns: (0..baseline.page_count()).map(|page| page as u8).collect(),
            written: vec![false; baseline.page_count()],
            pace: None,
            is_watched: false,
            whole_passes: 0,
            is_late: false,
            look: None,
            waiting: None,
            baseline,
            package: PackageComparison::new(profile),
            phase: Phase::Copy,
            slice: 0,
            pass: 0,
            learned: 0,
        };
        Ok(Self { layout, records: Records::default(), watch })
    }

    /// Each pass takes an order of its own, which Linux does not know if it does not know `seed`.
    #[must_use]
    pub fn in_random_order(self, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let turns = self.watch.turns.iter().map(|_| random.number() as u8).collect();
        let order = Order::random(random.number());
        Self { watch: Watch { order, turns, ..self.watch }, ..self }
    }

    /// Each pass takes a fixed time.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { watch: Watch { pace: Some(Spread::over(PASS_MS)), ..self.watch }, ..self }
    }

    /// Number of sites found.
    pub fn sites(&self) -> usize {
        self.watch.sites.len()
    }
}

impl Watch {
    /// Notes the pages with slots of optimized probes that Linux has now.
    fn note_slots<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, layout: &TextLayout) {
        if let Some(probes) = &layout.probes {
            self.slots.note(kernel, probes, self.slice);
        }
    }

    /// Compares `page`, and reports the changes that are confirmed there and those that are over.
    fn recheck_page<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        page: usize,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) {
        self.recheck_standing(rules, page, found, retries);
        let over = self.passing.take_over(rules.kernel, page, &self.suspects, self.slice);
        for passing in &over {
            found(report::passed(rules.kernel, rules.layout, passing));
        }
    }

    /// Compares `page` and reports the changes that are confirmed there.
    fn recheck_standing<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        page: usize,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) {
        self.accept_restored(rules, page, found);
        let before = suspects::Before::read(rules.kernel, rules.layout);
        let Some(changes) = compare_page(rules, &self.baseline, &self.sites, page) else {
            self.suspects.clear(page, self.slice);
            return;
        };
        if !self.suspects.record(page, changes, self.slice) {
            self.distrust_writes();
        }
        let (kernel, layout) = (rules.kernel, rules.layout);
        let patching = |change: &compare::Change| match layout.text.contains(&change.address) {
            true => suspects::patching(kernel, layout, before, change),
            false => Patching::None,
        };
        let (package, baseline) = (&mut self.package, &self.baseline);
        *retries += self.suspects.report_confirmed(page, self.pass, patching, |change| {
            let evidence = package.as_mut().map_or(Evidence::Unknown, |package| {
                package.evidence(kernel, baseline, &(change.address..change.end()))
            });
            found(report::finding(rules, change, evidence));
        });
    }

    /// Writes were not judged: the present pass and the next one look at all pages.
    fn distrust_writes(&mut self) {
        self.whole_passes = 2;
    }

    /// The next pass looks at the pages of `writes`, even if these are explained at the moment.
    fn note_written<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, writes: &[Write]) {
        for write in writes.iter().filter(|write| write.kind == WRITE_MEMORY) {
            let last = write.address.wrapping_add(core::mem::size_of_val(&write.after) as u64 - 1);
            for at in [write.address, last] {
                let page = writes::virtual_address(kernel, at)
                    .and_then(|address| self.baseline.page_number(address));
                let written = page.and_then(|page| self.written.get_mut(page));
                written.into_iter().for_each(|written| *written = true);
            }
        }
    }

    /// The place in the order of this pass up to which looks are due. All are, until writes that were not judged are
    /// made up for.
    fn due(&self) -> usize {
        let pages = self.baseline.page_count();
        match &self.pace {
            Some(pace) if self.whole_passes == 0 => pace.due(pages),
            _ => pages,
        }
    }

    /// Whether this pass leaves `page` out: half of the names, in turn, or most pages if writes are seen and none was
    /// seen there.
    fn leaves_out(&self, page: usize) -> bool {
        let parts = match &self.names {
            _ if self.is_watched && self.whole_passes == 0 => WATCHED_PARTS,
            names if names.iter().any(|names| names.contains(&page)) => 2,
            _ => return false,
        };
        let turn = self.turns.get(page).copied().map_or(0, u64::from);
        let is_written = self.written.get(page).copied().unwrap_or(true);
        !is_written && !(turn + self.pass).is_multiple_of(parts)
    }

    /// Goes on in the course of a pass with the pages that equal their copies, nearly all of them. Returns the place in
    /// the order of the first page that does not, with a look at it, or of the next page if the slice is over.
    fn pass_equal_pages<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        mut place: usize,
        budget: &mut dyn Budget,
    ) -> (usize, Option<FirstLook>) {
        let (count, due) = (self.baseline.page_count(), self.due());
        while place < count.min(due) {
            let page = self.order.take(place, count);
            if self.leaves_out(page) {
                place += 1;
                continue;
            }
            self.looked += u64::from(self.baseline.page(page).is_some());
            self.written.get_mut(page).into_iter().for_each(|written| *written = false);
            // A page that was explained the last time probably still is. For others, the plain comparison is faster.
            if self.explained.get(page).copied().unwrap_or(false)
                || self.baseline.is_unchanged(kernel, page) == Some(false)
            {
                return (place, Some(FirstLook::new(page)));
            }
            self.suspects.clear(page, self.slice);
            place += 1;
            if budget.spent() {
                break;
            }
        }
        (place, None)
    }

    /// Goes on with a look in the course of a pass; returns false if the slice is over before it.
    fn watch<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        look: &mut FirstLook,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> bool {
        let page = look.page;
        let is_text = self.baseline.is_text(self.baseline.address(page));
        let sight = match is_text {
            true => match look.advance(rules, &self.baseline, &self.sites, budget) {
                Some(sight) => sight,
                None => return false,
            },
            false => FirstSight::Unclear,
        };
        if let Some(explained) = self.explained.get_mut(page) {
            *explained = sight == FirstSight::Explained;
        }
        match sight {
            FirstSight::Unclear if self.suspects.was_seen(page, self.slice) => {}
            FirstSight::Unclear if budget.half_spent() => self.waiting = Some(page),
            FirstSight::Unclear => self.recheck_page(rules, page, found, retries),
            FirstSight::Equal | FirstSight::Explained => self.suspects.clear(page, self.slice),
        }
        true
    }

    /// Makes the live bytes of `page` the copy where they are the kernel package's and the copy is not: a change from
    /// before the load was undone.
    fn accept_restored<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        page: usize,
        found: &mut dyn FnMut(Finding),
    ) {
        let Some(package) = self.package.as_mut().filter(|package| package.is_refuted(page)) else {
            return;
        };
        let ranges = package.restored(rules.kernel, &mut self.baseline, page);
        if ranges.is_empty() {
            return;
        }
        for (address, code) in forbidden_sites(rules, &self.baseline, self.sites.page(page)) {
            if ranges.iter().any(|range| range.contains(&address)) {
                self.baseline.correct(address, code.bytes());
            }
        }
        for range in &ranges {
            found(report::restored(rules.kernel, rules.layout, range));
        }
    }

    /// The percentage of the first pass that is done.
    fn first_pass_percent(&self, profile: &Profile<'_>) -> u64 {
        let pages = self.baseline.page_count().max(1) as u64;
        let between = |from, to, percent: u64| from + (to - from) * percent / 100;
        match self.phase {
            Phase::Copy => between(0, FIND_SITES_FROM, 100 * self.baseline.copied() as u64 / pages),
            Phase::FindSites | Phase::Records => FIND_SITES_FROM,
            Phase::Verify(page, _) => between(VERIFY_FROM, COMPARE_FROM, 100 * page as u64 / pages),
            Phase::Compare => {
                let percent = self.package.as_ref().map_or(100, |p| p.progress(profile));
                between(COMPARE_FROM, 100, percent)
            }
            Phase::Watch(_) => 100,
        }
    }

    /// Does one unit of work; returns the number of pages when the pass is over.
    fn advance<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Option<u64> {
        let kernel = rules.kernel;
        let (phase, over) = match self.phase {
            Phase::Copy if self.baseline.copied() < self.baseline.page_count() => {
                self.baseline.copy_next(kernel);
                (Phase::Copy, false)
            }
            Phase::Copy => (Phase::FindSites, false),
            Phase::FindSites => {
                let done =
                    self.search.advance(kernel, rules.layout, &self.baseline, &mut self.sites);
                if done {
                    for part in 0..probes::PARTS {
                        let baseline = &mut self.baseline;
                        first_look::correct_probes(kernel, rules.layout, baseline, part);
                    }
                }
                (if done { Phase::Records } else { Phase::FindSites }, false)
            }
            Phase::Records => {
                let done = rules.records.advance(kernel, rules.layout, found);
                let next = if self.pass == 0 { Phase::Verify(0, 0) } else { Phase::Watch(0) };
                (if done { next } else { Phase::Records }, false)
            }
            Phase::Verify(page, part) if self.baseline.is_text(self.baseline.address(page)) => {
                let (baseline, sites) = (&mut self.baseline, &mut self.sites);
                let more = first_look::verify(rules, baseline, sites, page, part);
                let next = if more { (page, part + 1) } else { (page + 1, 0) };
                (Phase::Verify(next.0, next.1), false)
            }
            Phase::Verify(..) => (Phase::Compare, false),
            Phase::Compare => {
                let done = self.package.as_mut().is_none_or(|package| {
                    package.advance(kernel, rules.layout, &mut self.baseline, found)
                });
                (if done { Phase::Records } else { Phase::Compare }, done)
            }
            Phase::Watch(place) if place < self.baseline.page_count() => {
                let (place, look) = match self.look.take() {
                    Some(look) => (place, Some(look)),
                    None => self.pass_equal_pages(kernel, place, budget),
                };
                let done = look.is_some_and(|mut look| {
                    let done = self.watch(rules, &mut look, budget, found, retries);
                    self.look = (!done).then_some(look);
                    done
                });
                (Phase::Watch(place + usize::from(done)), false)
            }
            Phase::Watch(_) => (Phase::Records, true),
        };
        self.phase = phase;
        over.then(|| match core::mem::take(&mut self.looked) {
            0 => self.baseline.covered(),
            looked => looked,
        })
    }

    /// A step of the check.
    fn step<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        // A closer look takes long, and is not interrupted: none begins in the second half of a slice.
        while let Some(page) = self
            .waiting
            .take()
            .or_else(|| self.passing.next_page(self.slice))
            .or_else(|| self.suspects.next_to_recheck(self.slice))
        {
            self.recheck_page(rules, page, found, retries);
            if budget.half_spent() {
                break;
            }
        }
        if let Some(pace) = &mut self.pace {
            pace.step(budget.clock_ms());
            if budget.is_whole() {
                pace.passed = pace.passed.max(pace.pass_ms);
            }
        }
        loop {
            if self.look.is_none()
                && matches!(self.phase, Phase::Watch(at) if at >= self.due() && at < self.baseline.page_count())
            {
                return Step::Rests;
            }
            if let Some(pages) = self.advance(rules, budget, found, retries) {
                self.pass += 1;
                self.whole_passes = self.whole_passes.saturating_sub(1);
                self.pace.iter_mut().for_each(|pace| pace.passed = 0);
                self.learned = 100;
                return Step::Done(pages);
            }
            if budget.spent() || self.waiting.is_some() {
                if self.pass == 0 {
                    self.learned = self.first_pass_percent(rules.kernel.profile) as u8;
                }
                return Step::Spent;
            }
        }
    }
}

impl Make for TextCheck {
    const ABOUT: About = About {
        name: "text",
        wants: &[wants::WANTS],
        share: 80,
        pass_ms: 1000,
        repairs: Repairs::Always,
    };

    fn make(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError> {
        Ok(Self::new(profile)?.in_random_order(seed).spread())
    }
}

impl<M: KernelMemory> Check<M> for TextCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        let (learning, learned) = (self.watch.pass == 0, self.watch.learned);
        let dropped = self.watch.passing.dropped;
        Coverage { learning, learned, item_bytes: PAGE_BYTES, dropped, ..Coverage::default() }
    }

    fn watched(&self, kernel: &Kernel<'_, M>) -> Vec<Watched> {
        let space = writes::linux_space(kernel, &self.layout).unwrap_or(0);
        let watched = |(range, space): (&Range<u64>, u64)| {
            let start = kernel.physical(range.start)?;
            Some(Watched { range: start..start + (range.end - range.start), space })
        };
        let ranges = [(&self.layout.text, space), (&self.layout.rodata, 0)];
        ranges.into_iter().filter_map(watched).collect()
    }

    fn sees_writes(&mut self, all: bool) {
        if all {
            self.watch.pace = Some(Spread::over(WATCHED_PASS_MS));
            self.watch.is_watched = true;
        }
        // Nor were the writes until now.
        self.watch.distrust_writes();
    }

    fn misses_ticks(&mut self) {
        self.watch.is_late = true;
        self.watch.distrust_writes();
    }

    fn judge_writes(
        &mut self,
        kernel: &Kernel<'_, M>,
        writes: &[Write],
        _found: &mut dyn FnMut(Finding),
    ) {
        let Self { layout, records, watch } = self;
        let space = writes::linux_space(kernel, layout);
        watch.note_slots(kernel, layout);
        // The records are read again for the step that follows.
        let mut rules = SiteRules::new(kernel, layout, records, watch.slice + 1);
        let dropped = watch.passing.dropped;
        watch.note_written(kernel, writes);
        for write in writes {
            if watch.is_late && writes::is_linuxs(write, space) {
                // The two whole passes see what stands.
                continue;
            }
            // A flood of them must not use up the monitor's time.
            if watch.passing.is_full() {
                watch.passing.dropped += 1;
                continue;
            }
            let Watch { baseline, sites, slots, .. } = &*watch;
            let judged = writes::unexplained(&mut rules, baseline, sites, write, space, slots);
            if let Some((page, changes)) = judged {
                watch.passing.add(page, changes, write.rip);
            }
        }
        if watch.passing.dropped > dropped {
            watch.distrust_writes();
        }
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        // What was found before the load is compared once.
        package::is_before_load(what)
            || self.watch.suspects.is_reported(address)
            || self.records.is_hidden(address)
    }

    fn forget(&mut self, address: u64) {
        self.watch.suspects.forget(address);
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        let Self { layout, records, watch } = self;
        watch.slice += 1;
        watch.is_late = false;
        watch.note_slots(kernel, layout);
        let mut rules = SiteRules::new(kernel, layout, records, watch.slice);
        watch.step(&mut rules, budget, found, retries)
    }
}
