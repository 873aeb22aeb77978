//! Changes that are not explained, until they are confirmed or gone.

use super::look::Run;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Unchanged in so many slices, a change is no update under way.
const LOOKS: u32 = 3;
/// In so many, whatever Linux says of patching, and however it changes meanwhile.
const PATIENCE: u32 = 50;
/// The same where Linux changes static calls: a thousand sites, one by one, each with three interrupts to all CPUs. As
/// long as sites become right it may take longer,
const LONG_PATIENCE: u32 = 500;
/// but no longer than this: an attacker, too, can put sites right.
const LONGEST_PATIENCE: u32 = 30_000;
/// Suspects at a time; more wait for the next pass.
const LIMIT: usize = 64;
/// Those that were told of and are still there.
const TOLD_LIMIT: usize = 1024;

/// What Linux may be doing at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    None,
    /// One place, or one batch of them.
    Short,
    /// All sites of a static call.
    Long,
}

#[derive(Clone, Debug)]
struct Suspect {
    run: Run,
    page: usize,
    /// Slices in which it was seen as it is, and in which it was seen at all.
    looks: u32,
    seen: u32,
    /// The slice in which it was seen last.
    slice: u64,
    /// The pass in which it is told of again, and the passes until the time after that.
    again: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Suspects {
    all: Vec<Suspect>,
    /// Changes at sites of static calls, by page, as last seen.
    behind: BTreeMap<usize, usize>,
    /// The slice in which there were fewer in a page than before.
    progress: u64,
}

impl Suspects {
    /// What is not explained in `page`, as seen in `slice`, once in a slice: of others there the suspicion is gone.
    pub fn note(&mut self, page: usize, runs: Vec<Run>, slice: u64) {
        self.count(page, runs.iter().filter(|run| run.calls).count(), slice);
        let mut old: Vec<Suspect> = Vec::new();
        self.all.retain(|suspect| {
            if suspect.page == page {
                old.push(suspect.clone());
            }
            suspect.page != page
        });
        let mut waiting = self.all.iter().filter(|suspect| suspect.again.is_none()).count();
        for run in runs {
            let known = old.iter().find(|suspect| suspect.run == run).or_else(|| {
                old.iter().find(|suspect| suspect.again.is_none() && suspect.run.overlaps(&run))
            });
            let new = Suspect { run, page, looks: 1, seen: 1, slice, again: None };
            match known {
                Some(known) => {
                    let same = known.run == new.run;
                    let looks = if same { known.looks + 1 } else { 1 };
                    let again = known.again.filter(|_| same);
                    self.all.push(Suspect { looks, seen: known.seen + 1, again, ..new });
                }
                None if waiting < LIMIT && self.all.len() < TOLD_LIMIT => {
                    waiting += 1;
                    self.all.push(new);
                }
                None => {}
            }
        }
    }

    /// Nothing is suspected in `page`, as seen in `slice`.
    pub fn clear(&mut self, page: usize, slice: u64) {
        self.count(page, 0, slice);
        if !self.all.is_empty() {
            self.all.retain(|suspect| suspect.page != page);
        }
    }

    /// There are so many changes at sites of static calls in `page`.
    fn count(&mut self, page: usize, changes: usize, slice: u64) {
        let before = match changes {
            0 => self.behind.remove(&page),
            _ => self.behind.insert(page, changes),
        };
        if before.is_some_and(|before| changes < before) {
            self.progress = slice;
        }
    }

    /// Whether something in `page` was seen in `slice`.
    pub fn seen(&self, page: usize, slice: u64) -> bool {
        self.all.iter().any(|suspect| suspect.page == page && suspect.slice == slice)
    }

    /// The page that waits longest for another look in `slice`.
    pub fn waiting(&self, slice: u64) -> Option<usize> {
        let waiting =
            self.all.iter().filter(|suspect| suspect.again.is_none() && suspect.slice != slice);
        waiting.min_by_key(|suspect| suspect.slice).map(|suspect| suspect.page)
    }

    /// Calls `tell` for those of `page` that are confirmed in `pass`. `work` says whether Linux may be at work
    /// there; returns how many are put off for that.
    pub fn confirmed(
        &mut self,
        page: usize,
        pass: u64,
        work: impl Fn(&Run) -> Work,
        mut tell: impl FnMut(&Run),
    ) -> u64 {
        let mut put_off = 0;
        let progress = self.progress;
        for suspect in self.all.iter_mut().filter(|suspect| suspect.page == page) {
            let gap = match suspect.again {
                Some((when, _)) if pass < when => continue,
                Some((_, gap)) => gap,
                None if suspect.looks < LOOKS && suspect.seen < PATIENCE => continue,
                None => {
                    let patience = match work(&suspect.run) {
                        Work::None => 0,
                        Work::Short => PATIENCE,
                        Work::Long if suspect.slice - progress < LONG_PATIENCE.into() => {
                            LONGEST_PATIENCE
                        }
                        Work::Long => LONG_PATIENCE,
                    };
                    if suspect.seen < patience {
                        put_off += 1;
                        continue;
                    }
                    1
                }
            };
            suspect.again = Some((pass + gap, gap.saturating_mul(2)));
            tell(&suspect.run);
        }
        put_off
    }
}
