//! Changes that are not explained, until they are confirmed or gone.

use super::compare::Change;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Unchanged in so many slices, a change is no update under way.
const CONFIRM_SLICES: u32 = 3;
/// In so many, whatever Linux says of patching, and however it changes meanwhile.
const DEFER_SLICES: u32 = 50;
/// The same where Linux changes static calls: a thousand sites, one by one, each with three interrupts to all CPUs. As
/// long as sites become right it may take longer,
const CALL_DEFER_SLICES: u32 = 500;
/// but no longer than this: an attacker, too, can put sites right.
const MAX_DEFER_SLICES: u32 = 30_000;
/// SuspectChanges at a time; more wait for the next pass.
const MAX_SUSPECTS: usize = 64;
/// Those that were told of and are still there.
const MAX_TRACKED: usize = 1024;

/// What Linux may be doing at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patching {
    None,
    /// One place, or one batch of them.
    Site,
    /// All sites of a static call.
    StaticCall,
}

#[derive(Clone, Debug)]
struct SuspectChange {
    change: Change,
    page: usize,
    /// Slices in which it was seen as it is, and in which it was seen at all.
    unchanged: u32,
    slices: u32,
    /// The slice in which it was seen last.
    last_slice: u64,
    /// The pass in which it is told of again, and the passes until the time after that.
    next_report: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct SuspectChanges {
    all: Vec<SuspectChange>,
    /// Changes at sites of static calls, by page, as last seen.
    call_changes: BTreeMap<usize, usize>,
    /// The slice in which there were fewer in a page than before.
    last_progress: u64,
}

impl SuspectChanges {
    /// What is not explained in `page`, as seen in `slice`, once in a slice: of others there the suspicion is gone.
    pub fn note(&mut self, page: usize, changes: Vec<Change>, slice: u64) {
        self.count_call_changes(page, changes.iter().filter(|change| change.calls).count(), slice);
        let mut old: Vec<SuspectChange> = Vec::new();
        self.all.retain(|suspect| {
            if suspect.page == page {
                old.push(suspect.clone());
            }
            suspect.page != page
        });
        let mut waiting = self.all.iter().filter(|suspect| suspect.next_report.is_none()).count();
        for change in changes {
            let known = old.iter().find(|suspect| suspect.change == change).or_else(|| {
                old.iter().find(|suspect| {
                    suspect.next_report.is_none() && suspect.change.overlaps(&change)
                })
            });
            let new = SuspectChange {
                change,
                page,
                unchanged: 1,
                slices: 1,
                last_slice: slice,
                next_report: None,
            };
            match known {
                Some(known) => {
                    let same = known.change == new.change;
                    let unchanged = if same { known.unchanged + 1 } else { 1 };
                    let next_report = known.next_report.filter(|_| same);
                    self.all.push(SuspectChange {
                        unchanged,
                        slices: known.slices + 1,
                        next_report,
                        ..new
                    });
                }
                None if waiting < MAX_SUSPECTS && self.all.len() < MAX_TRACKED => {
                    waiting += 1;
                    self.all.push(new);
                }
                None => {}
            }
        }
    }

    /// Nothing is suspected in `page`, as seen in `slice`.
    pub fn clear(&mut self, page: usize, slice: u64) {
        self.count_call_changes(page, 0, slice);
        if !self.all.is_empty() {
            self.all.retain(|suspect| suspect.page != page);
        }
    }

    /// There are so many changes at sites of static calls in `page`.
    fn count_call_changes(&mut self, page: usize, changes: usize, slice: u64) {
        let before = match changes {
            0 => self.call_changes.remove(&page),
            _ => self.call_changes.insert(page, changes),
        };
        if before.is_some_and(|before| changes < before) {
            self.last_progress = slice;
        }
    }

    /// Whether something in `page` was seen in `slice`.
    pub fn was_seen(&self, page: usize, slice: u64) -> bool {
        self.all.iter().any(|suspect| suspect.page == page && suspect.last_slice == slice)
    }

    /// The page that waits longest for another look in `slice`.
    pub fn next_to_recheck(&self, slice: u64) -> Option<usize> {
        let waiting = self
            .all
            .iter()
            .filter(|suspect| suspect.next_report.is_none() && suspect.last_slice != slice);
        waiting.min_by_key(|suspect| suspect.last_slice).map(|suspect| suspect.page)
    }

    /// Calls `report` for those of `page` that are confirmed in `pass`. `patching` says whether Linux may be at
    /// patching there; returns how many are put off for that.
    pub fn report_confirmed(
        &mut self,
        page: usize,
        pass: u64,
        patching: impl Fn(&Change) -> Patching,
        mut report: impl FnMut(&Change),
    ) -> u64 {
        let mut deferred = 0;
        let last_progress = self.last_progress;
        for suspect in self.all.iter_mut().filter(|suspect| suspect.page == page) {
            let gap = match suspect.next_report {
                Some((when, _)) if pass < when => continue,
                Some((_, gap)) => gap,
                None if suspect.unchanged < CONFIRM_SLICES && suspect.slices < DEFER_SLICES => {
                    continue
                }
                None => {
                    let limit = match patching(&suspect.change) {
                        Patching::None => 0,
                        Patching::Site => DEFER_SLICES,
                        Patching::StaticCall
                            if suspect.last_slice - last_progress < CALL_DEFER_SLICES.into() =>
                        {
                            MAX_DEFER_SLICES
                        }
                        Patching::StaticCall => CALL_DEFER_SLICES,
                    };
                    if suspect.slices < limit {
                        deferred += 1;
                        continue;
                    }
                    1
                }
            };
            suspect.next_report = Some((pass + gap, gap.saturating_mul(2)));
            report(&suspect.change);
        }
        deferred
    }
}
