//! The check `module-text`: the code of listed modules is what it was when the monitor saw it first.
//!
//! A module is copied once it is live and Linux has freed its initialization: from then on, Linux changes its code only
//! at the sites that the module's own tables name, and where probes are registered. The rules for these are those of
//! the kernel's text.
//!
//! The next module can be at the same address as one that was removed. What tells them apart is the number of the
//! module's directory in sysfs, which Linux gives only once.

mod copy;
pub mod files;
mod layout;
#[cfg(test)]
mod tests;

use super::compare::{compare_page, Change, FirstLook, FirstSight};
use super::order::Order;
use super::records::Records;
use super::report;
use super::site_rules::SiteRules;
use super::suspects::{self, SuspectChanges};
use crate::check::{About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::profile::{Profile, ProfileError};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use copy::ModuleCopy;
use files::{ModuleFiles, Other};
use layout::{Identity, Layout};

/// Steps from the beginning of one pass to that of the next.
const PACE: u32 = 90;
/// Maximum number of modules, and of pages of their code together (10 MiB); more are not judged.
const MAX_MODULES: usize = 1024;
const MAX_PAGES: usize = 2560;
/// In place of an address: there is no code, or no directory.
const NOWHERE: u64 = 0;
const NO_DIRECTORY: u64 = 1;
/// A bit of an address in [`Watch::missing`]: the module says that its code is not there.
const ELSEWHERE: u64 = 1;
/// Passes in a row that confirm that code is missing.
const MISSING_PASSES: u32 = 3;
/// Maximum length of the list of modules; what follows is ignored.
const MAX_ENTRIES: usize = 4096;

/// Where a pass is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Begin,
    /// Reading Linux's records of listed code.
    Records,
    /// The next link of the list, and the number of entries so far.
    List(u64, usize),
    /// The first looks: the place of the copy among all.
    Learn(usize),
    /// The place in the order of pages.
    Compare(usize),
}

/// The check `module-text`.
#[derive(Debug)]
pub struct ModuleTextCheck {
    layout: Option<Layout>,
    records: Records,
    watch: Watch,
}

impl ModuleTextCheck {
    /// Makes the check for a kernel with `profile`, and with `files` that tell what was changed before the first look.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] if the profile lacks something that the check cannot do without.
    pub fn with_files(
        profile: &Profile<'_>,
        files: Box<dyn ModuleFiles>,
    ) -> Result<Self, ProfileError> {
        let mut check = Self::make(profile, 0)?;
        check.watch.files = Some(files);
        Ok(check)
    }
}

/// The part of the check that changes while the rules about sites are at hand.
#[derive(Debug)]
struct Watch {
    stage: Stage,
    /// The copies, sorted by address.
    copies: Vec<ModuleCopy>,
    /// The pages of this pass: the address of each.
    pages: Vec<u64>,
    order: Order,
    /// The look at a page that the last slice did not complete, or the page whose closer look was left to this slice.
    look: Option<(u64, FirstLook)>,
    waiting: Option<u64>,
    suspects: SuspectChanges,
    /// Code that is no memory any more, or that the module says is elsewhere: the address, and where it is.
    missing: Confirm<u64>,
    slice: u64,
    pass: u64,
    pace: Pace,
    /// Modules whose code this pass does not judge.
    unjudged: u64,
    coverage: Coverage,
    /// What the code of modules was before the first look, if anything tells.
    files: Option<Box<dyn ModuleFiles>>,
    /// The modules of this pass, for their files.
    others: Vec<Other>,
}

/// The number of the page at `address`, of all pages there are.
fn number(address: u64) -> usize {
    (address / PAGE_BYTES) as usize
}

impl Watch {
    /// The copy that has `address`.
    fn find(&mut self, address: u64) -> Option<&mut ModuleCopy> {
        let behind = self.copies.partition_point(|copy| copy.identity.start <= address);
        let copy = self.copies.get_mut(behind.checked_sub(1)?)?;
        (address < copy.identity.end).then_some(copy)
    }

    /// Notes that `module` is listed.
    fn see<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, layout: &Layout, module: u64) {
        let (directory, now) = (layout.directory(kernel, module), layout.identity(kernel, module));
        // A live module has a directory, which Linux never takes from it.
        let is_same = |copy: &ModuleCopy| {
            Some(copy.identity.directory) == directory
                || directory.is_none() && layout.is_live(kernel, module)
        };
        let known = self.copies.iter_mut().find(|copy| copy.identity.module == module);
        if let Some(copy) = known.filter(|copy| is_same(copy)) {
            copy.is_listed = true;
            self.unjudged += u64::from(layout.is_going(kernel, module));
            if directory.is_none() {
                self.missing.see(copy.identity.start | ELSEWHERE, NO_DIRECTORY);
            } else if now != Some(copy.identity) {
                // Linux never moves a module's code.
                let elsewhere = now.map_or(NOWHERE, |now| now.start);
                self.missing.see(copy.identity.start | ELSEWHERE, elsewhere);
            }
            return;
        }
        let Some(identity) = now else {
            self.unjudged += 1;
            return;
        };
        if identity.start == identity.end {
            return; // It has no code.
        }
        // What has this memory now replaces what had it, but not what still has it.
        let overlaps = |copy: &ModuleCopy| {
            copy.identity.start < identity.end && identity.start < copy.identity.end
        };
        let is_over = |copy: &ModuleCopy| overlaps(copy) && !copy.is_there(kernel, layout);
        while let Some(place) = self.copies.iter().position(is_over) {
            self.drop_copy(place);
        }
        if !layout.is_settled(kernel, module) || self.copies.iter().any(overlaps) {
            self.unjudged += 1;
            return;
        }
        let pages: usize = self.copies.iter().map(ModuleCopy::page_count).sum();
        let new = ModuleCopy::new(identity);
        if self.copies.len() == MAX_MODULES || pages + new.page_count() > MAX_PAGES {
            self.unjudged += 1;
            return;
        }
        let place = self.copies.partition_point(|copy| copy.identity.start < identity.start);
        self.copies.insert(place, new);
    }

    /// Drops the copy at `place`, and what is known about its pages.
    fn drop_copy(&mut self, place: usize) {
        let copy = self.copies.remove(place);
        copy.pages().for_each(|page| self.suspects.clear(number(page), self.slice));
    }

    /// Makes the copy at `place` what its module's file says.
    fn compare_with_file<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        place: usize,
    ) {
        if self.others.is_empty() {
            let other = |copy: &ModuleCopy| {
                let Identity { module, start, .. } = copy.identity;
                let (name, notes) = (layout.name(kernel, module), layout.notes(kernel, module));
                Other { name, notes, start }
            };
            self.others.extend(self.copies.iter().map(other));
        }
        let Some((copy, files)) = self.copies.get_mut(place).zip(self.files.as_deref()) else {
            return;
        };
        copy.has_file = files::compare(kernel, layout, files, copy, &self.others);
        copy.end_learning();
    }

    /// Reports the code that is missing.
    fn report_missing<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        found: &mut dyn FnMut(Finding),
    ) {
        self.missing.end_look();
        for (address, elsewhere) in self.missing.take() {
            let address = address & !ELSEWHERE;
            let Some(copy) = self.find(address) else { continue };
            let name = layout.name(kernel, copy.identity.module);
            found(Finding {
                what: report::MODULE_CHANGED.into(),
                address,
                symbol: format!("module {name}+{:#x}", address - copy.identity.start),
                expected: "the code of its first look".into(),
                found: match elsewhere {
                    NOWHERE => "no memory".into(),
                    NO_DIRECTORY => "a live module without a directory in sysfs".into(),
                    _ => format!("code at {elsewhere:#x}, or of another size"),
                },
                ..Finding::new(Class::ModuleTextModified)
            });
        }
    }

    /// Does one unit of work; returns true when the pass is over.
    fn advance<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        layout: &Layout,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> bool {
        let kernel = rules.kernel;
        let list = layout.text.owners.modules;
        self.stage = match self.stage {
            Stage::Begin => {
                self.copies.iter_mut().for_each(|copy| copy.is_listed = false);
                self.unjudged = 0;
                self.others.clear();
                Stage::Records
            }
            Stage::Records => match rules.records.advance_code(kernel, &layout.text) {
                true => Stage::List(kernel.u64(list.head).unwrap_or(0), 0),
                false => Stage::Records,
            },
            Stage::List(link, count) if link != list.head && link != 0 && count < MAX_ENTRIES => {
                self.see(kernel, layout, link.wrapping_sub(list.link));
                Stage::List(kernel.u64(link).unwrap_or(0), count + 1)
            }
            Stage::List(link, _) => {
                // What follows a damaged link is not known.
                self.unjudged += u64::from(link != list.head);
                self.pages.clear();
                Stage::Learn(0)
            }
            Stage::Learn(place)
                if self.copies.get(place).is_some_and(ModuleCopy::waits_for_file)
                    && self.files.is_some() =>
            {
                self.compare_with_file(kernel, layout, place);
                self.stage
            }
            Stage::Learn(place) => match self.copies.get_mut(place) {
                // One that left the list alone is judged as before.
                Some(copy) if !copy.is_listed && !copy.is_there(kernel, layout) => {
                    self.drop_copy(place);
                    self.stage
                }
                Some(copy) => {
                    if copy.learn(rules, layout) && copy.sites.is_full() {
                        // What Linux patches there is not known.
                        self.unjudged += 1;
                        Stage::Learn(place + 1)
                    } else if copy.has_learned() {
                        self.pages.extend(copy.pages());
                        let lacks_file = self.files.is_some() && !copy.has_file;
                        self.unjudged += u64::from(copy.lacks_pages() || lacks_file);
                        Stage::Learn(place + 1)
                    } else {
                        self.stage
                    }
                }
                None => Stage::Compare(0),
            },
            Stage::Compare(place) => {
                let (page, mut look) = match self.look.take() {
                    Some(look) => look,
                    None if place == self.pages.len() => return true,
                    None => {
                        let place = self.order.take(place, self.pages.len());
                        let Some(&page) = self.pages.get(place) else { return true };
                        (page, FirstLook::new(0))
                    }
                };
                if self.compare(rules, layout, page, &mut look, budget, found, retries) {
                    Stage::Compare(place + 1)
                } else {
                    self.look = Some((page, look));
                    self.stage
                }
            }
        };
        false
    }

    /// Goes on with the look at `page` in the course of a pass; returns false if the slice is over before it.
    #[expect(clippy::too_many_arguments)]
    fn compare<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        layout: &Layout,
        page: u64,
        look: &mut FirstLook,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> bool {
        let Some(copy) = self.find(page) else { return true };
        look.page = copy.number(page);
        let Some(sight) = look.advance(rules, &copy.baseline, &copy.sites, budget) else {
            return false;
        };
        match sight {
            FirstSight::Equal | FirstSight::Explained => {
                self.suspects.clear(number(page), self.slice);
            }
            FirstSight::Unclear if self.suspects.was_seen(number(page), self.slice) => {}
            FirstSight::Unclear if budget.half_spent() => self.waiting = Some(page),
            FirstSight::Unclear => self.recheck(rules, layout, page, found, retries),
        }
        true
    }

    /// Compares `page`, and reports the changes that are confirmed there.
    fn recheck<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        layout: &Layout,
        page: u64,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) {
        let (kernel, slice) = (rules.kernel, self.slice);
        let before = suspects::Before::read(kernel, &layout.text);
        let compared = self.find(page).and_then(|copy| {
            // Linux can have removed the module since the list was read.
            let (module, place) = (copy.identity.module, copy.number(page));
            let is_judged = copy.baseline.page(place).is_some()
                && copy.is_there(kernel, layout)
                && !layout.is_going(kernel, module);
            let changes =
                is_judged.then(|| compare_page(rules, &copy.baseline, &copy.sites, place));
            Some((copy.identity, changes?))
        });
        let Some((identity, changes)) = compared else {
            return self.suspects.clear(number(page), slice);
        };
        let Some(changes) = changes else {
            self.missing.see(page, NOWHERE);
            return self.suspects.clear(number(page), slice);
        };
        self.suspects.record(number(page), changes, slice);
        let patching = |change: &Change| suspects::patching(kernel, &layout.text, before, change);
        *retries += self.suspects.report_confirmed(number(page), self.pass, patching, |change| {
            let name = layout.name(kernel, identity.module);
            let symbol = format!("module {name}+{:#x}", change.address - identity.start);
            found(report::module_finding(kernel, &layout.text, change, symbol));
        });
    }

    /// A step of the check.
    fn step<M: KernelMemory>(
        &mut self,
        rules: &mut SiteRules<'_, '_, M>,
        layout: &Layout,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        // A closer look takes long, and is not interrupted: none begins in the second half of a slice.
        while let Some(page) = self.waiting.take().or_else(|| {
            let page = self.suspects.next_to_recheck(self.slice)?;
            Some(page as u64 * PAGE_BYTES)
        }) {
            self.recheck(rules, layout, page, found, retries);
            if budget.half_spent() {
                break;
            }
        }
        if self.pace.rests(!matches!(self.stage, Stage::Begin)) {
            return Step::Rests;
        }
        loop {
            if self.advance(rules, layout, budget, found, retries) {
                self.report_missing(rules.kernel, layout, found);
                self.stage = Stage::Begin;
                self.pass += 1;
                self.coverage.learning = false;
                self.coverage.unjudged = self.unjudged;
                return Step::Done(self.pages.len() as u64);
            }
            if budget.spent() || self.waiting.is_some() {
                return Step::Spent;
            }
        }
    }
}

impl Make for ModuleTextCheck {
    const ABOUT: About = About {
        name: "module-text",
        wants: &[layout::WANTS],
        share: 5,
        pass_ms: 0,
        repairs: Repairs::Nothing,
    };

    fn make(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            layout: Layout::new(profile)?,
            records: Records::default(),
            watch: Watch {
                stage: Stage::Begin,
                copies: Vec::new(),
                pages: Vec::new(),
                order: Order::random(seed),
                look: None,
                waiting: None,
                suspects: SuspectChanges::default(),
                missing: Confirm::new(MISSING_PASSES),
                slice: 0,
                pass: 0,
                pace: Pace::every(PACE),
                unjudged: 0,
                coverage: Coverage {
                    learning: true,
                    item_bytes: PAGE_BYTES,
                    ..Coverage::default()
                },
                files: None,
                others: Vec::new(),
            },
        })
    }
}

impl<M: KernelMemory> Check<M> for ModuleTextCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.watch.coverage
    }

    fn stands(&self, _what: &str, address: u64) -> bool {
        self.watch.suspects.is_reported(address)
            || self.watch.missing.stands(|at| at & !ELSEWHERE == address)
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        let Self { layout, records, watch } = self;
        let Some(layout) = layout else {
            watch.coverage = Coverage { unjudged: 1, ..Coverage::default() };
            return if watch.pace.rests(false) { Step::Rests } else { Step::Done(0) };
        };
        watch.slice += 1;
        let mut rules = SiteRules::new(kernel, &layout.text, records, watch.slice);
        watch.step(&mut rules, layout, budget, found, retries)
    }
}
