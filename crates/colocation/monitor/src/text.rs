//! The check `text`: compares kernel text and read-only data with a copy, except for what Linux itself patches.
//!
//! The first pass makes the copy and finds the patch sites: jump labels, static calls, function entries. Later passes
//! compare page by page; only a page that differs is examined closely. There, a site may hold what Linux's own records
//! allow at that moment, and a registered probe its breakpoint or jump. Any other change is a suspect, reported when it
//! stood unchanged in several slices.
//!
//! The first pass also finds sites whose bytes no record allows. Other tampering from before the load is in the copy.
//! If the profile has fingerprints of the kernel package's image, the first pass compares the copy with them and
//! reports the differences; without them, the copy counts as correct.
//!
//! Function pointers in Linux's records (a registered ftrace handler, the function of a static call) are trusted if
//! they lead to listed code.

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

/// The state of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Copy,
    FindSites,
    /// Correcting the copy of this page.
    Verify(usize),
    /// Comparing the copy with the package's image.
    Compare,
    Watch(usize),
}

/// The check `text`. The copy takes as much memory as text and read-only data, about 25 MB; the sites take about 3 MB.
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
    /// The check for a kernel with `profile`.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Missing`] if the profile lacks something without which Linux's own changes look like tampering.
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

    /// Number of sites found.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// Compares `page` and reports the changes that are confirmed there.
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
        self.suspects.record(page, changes, self.slice);
        let (kernel, layout) = (rules.kernel, rules.layout);
        let patching = |change: &compare::Change| {
            let is_patched =
                probes::is_patching(kernel, &layout.poke, layout.stext, change.address);
            if !layout.text.contains(&change.address) {
                return Patching::None;
            }
            match change.only_static_calls && probes::is_changing_calls(kernel, &layout.poke) {
                true => Patching::StaticCall,
                false if is_patched || change.touches_site && change.starts_with_breakpoint => {
                    Patching::Site
                }
                false => Patching::None,
            }
        };
        *retries += self.suspects.report_confirmed(page, self.pass, patching, |change| {
            found(report::finding(kernel, layout, change));
        });
    }

    /// Corrects the copy of `page`: sites get the bytes that Linux's records require.
    fn verify<M: KernelMemory>(&mut self, rules: &mut SiteRules<'_, '_, M>, page: usize) {
        for change in
            compare_page(rules, &self.baseline, &self.sites, page, true).unwrap_or_default()
        {
            let bytes = if change.touches_site { &change.expected } else { &change.found };
            self.baseline.correct(change.address, bytes);
        }
    }

    /// Does one unit of work; returns the number of pages when the pass is over.
    fn advance<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
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
                    self.correct_probes(kernel);
                }
                (if done { Phase::Verify(0) } else { Phase::FindSites }, false)
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
                match self.baseline.is_unchanged(kernel, page) {
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

    /// Replaces breakpoints and jumps of probes in the copy by the original bytes.
    fn correct_probes<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) {
        let Some(known) = &self.layout.probes else { return };
        let baseline = &mut self.baseline;
        probes::originals(kernel, known, |at, bytes| {
            let mut first = [0];
            if baseline.bytes(at, &mut first).is_some() && matches!(first, [code::INT3 | code::JMP])
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
