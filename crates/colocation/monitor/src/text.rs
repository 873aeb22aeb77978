//! The check `text`: kernel text and read-only data are what they were, but for what Linux itself patches.
//!
//! The first pass copies both and finds the sites: jump labels, static calls, functions' entries. Later passes compare
//! page by page; only a page that differs is looked at closer. There, a site may hold what Linux's own records allow at
//! that moment, and a registered probe its breakpoint or jump. What is left is suspected, and reported when it stood
//! unchanged in several slices.
//!
//! Sites whose bytes nothing allows are found in the first pass too. Other tampering from before it is in the copy:
//! where the profile has fingerprints of the kernel package's image, the copy is compared with them once, and what
//! differs is told; without them it is taken as right. Function pointers that records name (a registered handler of
//! ftrace, the function of a static call) are believed where they lead to listed code.

mod baseline;
mod code;
mod compare;
mod layout;
mod owner;
mod package;
mod probes;
mod report;
mod site_rules;
mod sites;
mod suspects;
#[cfg(test)]
mod tests;
mod walk;
mod window;

use crate::check::{Budget, Check, Step};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use baseline::Baseline;
use compare::compare_page;
use layout::TextLayout;
use package::PackageComparison;
use site_rules::SiteRules;
use sites::{SiteSearch, Sites};
use suspects::{Patching, SuspectChanges};

/// What the pass is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Copy,
    SiteSearch,
    /// Of the copy: the next page.
    Verify(usize),
    /// With the package's image.
    Compare,
    Watch(usize),
}

/// The check `text`. Its copy takes as much memory as text and read-only data, about 25 MB; the sites about 3 MB.
#[derive(Debug)]
pub struct TextCheck {
    layout: TextLayout,
    baseline: Baseline,
    search: SiteSearch,
    sites: Sites,
    suspects: SuspectChanges,
    package: Option<PackageComparison>,
    phase: Phase,
    slice: u64,
    pass: u64,
}

impl TextCheck {
    /// For a kernel with this profile. What it lacks is the error: nothing could be told from tampering.
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        let layout =
            TextLayout::new(profile).map_err(|missing| ProfileError::Missing(missing.0.into()))?;
        Ok(Self {
            baseline: Baseline::new(layout.text.clone(), layout.rodata.clone()),
            layout,
            search: SiteSearch::new(),
            sites: Sites::default(),
            suspects: SuspectChanges::default(),
            package: PackageComparison::new(profile),
            phase: Phase::Copy,
            slice: 0,
            pass: 0,
        })
    }

    /// How many sites were found.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// Looks at `page` again, and tells what is confirmed there.
    fn recheck_page<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        page: usize,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) {
        let Some(changes) = compare_page(rules, &self.baseline, &self.sites, page, false) else {
            self.suspects.clear(page, self.slice);
            return;
        };
        self.suspects.note(page, changes, self.slice);
        let (kernel, layout) = (rules.kernel, rules.layout);
        let is_patching = |change: &compare::Change| {
            let now = probes::is_patching(kernel, &layout.poke, layout.stext, change.address);
            if !layout.text.contains(&change.address) {
                return Patching::None;
            }
            match change.calls && probes::is_changing_calls(kernel, &layout.poke) {
                true => Patching::StaticCall,
                false if now || change.site && change.breakpoint => Patching::Site,
                false => Patching::None,
            }
        };
        *retries += self.suspects.report_confirmed(page, self.pass, is_patching, |change| {
            found(report::finding(kernel, layout, change));
        });
    }

    /// Makes the copy of `page` what should stand there.
    fn verify<M: KernelMemory>(&mut self, rules: &mut SiteRules<'_, '_, M>, page: usize) {
        for change in
            compare_page(rules, &self.baseline, &self.sites, page, true).unwrap_or_default()
        {
            let right = if change.site { &change.expected } else { &change.found };
            self.baseline.correct(change.address, right);
        }
    }

    /// One unit of work; the number of pages when the pass is over.
    fn advance<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Option<u64> {
        let kernel = rules.kernel;
        let (phase, over) = match self.phase {
            Phase::Copy if self.baseline.taken() < self.baseline.page_count() => {
                self.baseline.take(kernel);
                (Phase::Copy, false)
            }
            Phase::Copy => (Phase::SiteSearch, false),
            Phase::SiteSearch => {
                let done =
                    self.search.advance(kernel, rules.layout, &self.baseline, &mut self.sites);
                if done {
                    self.correct_probes(kernel);
                }
                (if done { Phase::Verify(0) } else { Phase::SiteSearch }, false)
            }
            Phase::Verify(page) if self.baseline.is_text(self.baseline.address(page)) => {
                self.verify(rules, page);
                (Phase::Verify(page + 1), false)
            }
            Phase::Verify(_) => (Phase::Compare, false),
            Phase::Compare => {
                let done = self.package.as_mut().is_none_or(|package| {
                    package.advance(kernel, rules.layout, &mut self.baseline, found)
                });
                (if done { Phase::Watch(0) } else { Phase::Compare }, done)
            }
            Phase::Watch(page) if page < self.baseline.page_count() => {
                match self.baseline.same(kernel, page) {
                    Some(false) if self.suspects.was_seen(page, self.slice) => {}
                    Some(false) => self.recheck_page(rules, page, found, retries),
                    _ => self.suspects.clear(page, self.slice),
                }
                (Phase::Watch(page + 1), false)
            }
            Phase::Watch(_) => (Phase::Watch(0), true),
        };
        self.phase = phase;
        over.then(|| self.baseline.covered())
    }

    /// Where a probe stands, the copy has what stood there before.
    fn correct_probes<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) {
        let Some(known) = &self.layout.probes else { return };
        let baseline = &mut self.baseline;
        probes::originals(kernel, known, |at, bytes| {
            let mut stands = [0];
            if baseline.bytes(at, &mut stands).is_some()
                && matches!(stands, [code::INT3 | code::JMP])
            {
                baseline.correct(at, bytes);
            }
        });
    }
}

impl<M: KernelMemory> Check<M> for TextCheck {
    fn name(&self) -> &'static str {
        "text"
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        self.slice += 1;
        let layout = self.layout.clone();
        let mut rules = SiteRules::new(kernel, &layout);
        while let Some(page) = self.suspects.next_to_recheck(self.slice) {
            self.recheck_page(&mut rules, page, found, retries);
            if budget.spent() {
                break;
            }
        }
        loop {
            if let Some(pages) = self.advance(&mut rules, found, retries) {
                self.pass += 1;
                return Step::Done(pages);
            }
            if budget.spent() {
                return Step::Spent;
            }
        }
    }
}
