//! Unexplained changes, until they are confirmed or gone.

use super::compare::Change;
use super::layout::TextLayout;
use super::probes;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Slices in which a change must stand unchanged to be confirmed: Linux's own updates take less.
const CONFIRM_SLICES: u32 = 3;
/// Slices after which a change is confirmed even if it varies, or Linux says that it is patching.
const DEFER_SLICES: u32 = 50;
/// The same while Linux changes static calls: a thousand sites, one by one, each with three interrupts to all CPUs.
const CALL_DEFER_SLICES: u32 = 500;
/// The same while sites of static calls are still becoming right. The limit exists because an attacker can also put
/// sites right.
const MAX_DEFER_SLICES: u32 = 30_000;
/// Maximum number of unreported suspects at sites of static calls only, which may be postponed for long, and maximum
/// number of all others; further changes wait for the next pass.
const MAX_SUSPECTS: usize = 64;
/// Maximum number of suspects, reported ones included.
const MAX_TRACKED: usize = 1024;

/// The patching that Linux may be doing at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patching {
    None,
    /// One site, or one batch of sites.
    Site,
    /// All sites of a static call.
    StaticCall,
}

/// What Linux's records said that it was doing before a look at code. The monitor can be cut off between the look and
/// its questions about it, for longer than Linux takes for the rest of its patching.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    changes_calls: bool,
    patches: bool,
}

impl Before {
    pub fn read<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &TextLayout) -> Self {
        Self {
            changes_calls: probes::is_changing_calls(kernel, &layout.poke),
            patches: probes::is_locked(kernel, &layout.poke),
        }
    }
}

/// What Linux's records say that it may be doing at `change`, which is of code that was looked at after `before`.
pub(super) fn patching<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    before: Before,
    change: &Change,
) -> Patching {
    let TextLayout { stext, poke, .. } = layout;
    let is_patched = || before.patches || probes::is_patching(kernel, poke, *stext, change.address);
    let changes_calls = || before.changes_calls || probes::is_changing_calls(kernel, poke);
    if change.only_static_calls && changes_calls() {
        Patching::StaticCall
    } else if change.touches_site && change.starts_with_breakpoint || is_patched() {
        Patching::Site
    } else {
        Patching::None
    }
}

#[derive(Clone, Debug)]
struct SuspectChange {
    change: Change,
    page: usize,
    /// Consecutive slices in which the change was the same, and slices in which there was a change at all.
    unchanged: u32,
    slices: u32,
    /// The last slice in which the change was seen.
    last_slice: u64,
    /// Once reported: the pass of the next report, and the passes between that one and the following.
    next_report: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct SuspectChanges {
    all: Vec<SuspectChange>,
    /// The number of changes at sites of static calls, by page.
    call_changes: BTreeMap<usize, usize>,
    /// The last slice in which that number fell in a page.
    last_progress: u64,
}

impl SuspectChanges {
    /// Records the unexplained changes of `page` in `slice`; once per slice and page. Other suspects there are dropped.
    /// Returns whether there was room for all.
    pub fn record(&mut self, page: usize, changes: Vec<Change>, slice: u64) -> bool {
        self.count_call_changes(
            page,
            changes.iter().filter(|change| change.only_static_calls).count(),
            slice,
        );
        let mut old: Vec<SuspectChange> = Vec::new();
        self.all.retain(|suspect| {
            if suspect.page == page {
                old.push(suspect.clone());
            }
            suspect.page != page
        });
        let waiting_now = |calls: bool| {
            let is_waiting = |suspect: &&SuspectChange| {
                suspect.next_report.is_none() && suspect.change.only_static_calls == calls
            };
            self.all.iter().filter(is_waiting).count()
        };
        let mut waiting = [false, true].map(waiting_now);
        let mut has_room = true;
        for change in changes {
            let known = old.iter().find(|suspect| suspect.change == change).or_else(|| {
                old.iter().find(|suspect| {
                    suspect.next_report.is_none() && suspect.change.overlaps(&change)
                })
            });
            let calls = usize::from(change.only_static_calls);
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
                None if waiting[calls] < MAX_SUSPECTS && self.all.len() < MAX_TRACKED => {
                    waiting[calls] += 1;
                    self.all.push(new);
                }
                None => has_room = false,
            }
        }
        has_room
    }

    /// Drops the suspects of `page`: in `slice`, everything there is explained.
    pub fn clear(&mut self, page: usize, slice: u64) {
        if !self.call_changes.is_empty() {
            self.count_call_changes(page, 0, slice);
        }
        if !self.all.is_empty() {
            self.all.retain(|suspect| suspect.page != page);
        }
    }

    /// Drops the change at `address`.
    pub fn forget(&mut self, address: u64) {
        self.all.retain(|suspect| suspect.change.address != address);
    }

    /// Records the number of `changes` at sites of static calls in `page`.
    fn count_call_changes(&mut self, page: usize, changes: usize, slice: u64) {
        let before = match changes {
            0 => self.call_changes.remove(&page),
            _ => self.call_changes.insert(page, changes),
        };
        if before.is_some_and(|before| changes < before) {
            self.last_progress = slice;
        }
    }

    /// Whether a suspect in `page` that overlaps `change` was reported; `None` if there is none.
    pub fn stands(&self, page: usize, change: &Change) -> Option<bool> {
        let mut here = self
            .all
            .iter()
            .filter(|suspect| suspect.page == page && suspect.change.overlaps(change))
            .peekable();
        here.peek()?;
        Some(here.any(|suspect| suspect.next_report.is_some()))
    }

    /// Whether a suspect in `page` was seen in `slice`.
    pub fn was_seen(&self, page: usize, slice: u64) -> bool {
        self.all.iter().any(|suspect| suspect.page == page && suspect.last_slice == slice)
    }

    /// Whether a change at `address` was reported and still stands.
    pub fn is_reported(&self, address: u64) -> bool {
        let at = |suspect: &&SuspectChange| suspect.change.address == address;
        self.all.iter().find(at).is_some_and(|suspect| suspect.next_report.is_some())
    }

    /// The page with the suspect whose last look is longest ago, if it had none in `slice`.
    pub fn next_to_recheck(&self, slice: u64) -> Option<usize> {
        let waiting = self
            .all
            .iter()
            .filter(|suspect| suspect.next_report.is_none() && suspect.last_slice != slice);
        waiting.min_by_key(|suspect| suspect.last_slice).map(|suspect| suspect.page)
    }

    /// Calls `report` for the suspects of `page` that are confirmed in `pass`. `patching` says what Linux may be doing
    /// at a change. Returns the number of reports deferred for that.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn change(address: u64, only_static_calls: bool) -> Change {
        Change {
            address,
            found: alloc::vec![1],
            expected: alloc::vec![0],
            words: Vec::new(),
            touches_site: only_static_calls,
            starts_with_breakpoint: false,
            only_static_calls,
            by_record: false,
            code: Vec::new(),
            expected_code: Vec::new(),
            code_address: address,
        }
    }

    #[test]
    fn postponed_static_calls_do_not_block_other_suspects() {
        let mut suspects = SuspectChanges::default();
        let mut reported = Vec::new();
        for slice in 1..=5 {
            // Page 0 is full of static calls in flux; a function of page 1 is changed.
            suspects.record(0, (0..100).map(|n| change(16 * n, true)).collect(), slice);
            suspects.record(1, alloc::vec![change(5000, false)], slice);
            for page in [0, 1] {
                let patching = |change: &Change| match change.only_static_calls {
                    true => Patching::StaticCall,
                    false => Patching::None,
                };
                suspects
                    .report_confirmed(page, 1, patching, |change| reported.push(change.address));
            }
        }
        assert_eq!(reported, [5000]);
    }
}
