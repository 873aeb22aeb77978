//! Single writes to text and read-only data, as the hypervisor has watched them.
//!
//! A pass sees what stands. A change that is undone before the next pass is seen here only: each write that leaves
//! bytes which nothing explains is a *passing change* until it is clear whether it stands. If it does, it is a suspect
//! like any other; if not, it is reported as one that is over.
//!
//! Linux writes its text in an address space of its own. By the time a write is judged, up to a tick later, the records
//! that explain it may have changed again. So code that was written in that address space is also accepted if it is of
//! the kind that Linux writes at the site, and leads to listed code.

use super::baseline::Baseline;
use super::code::{target, Code, CALL, INT3, JMP, NEAR_BYTES};
use super::compare::{compare_with, Change};
use super::layout::{Probes, TextLayout};
use super::probes::{self, RecentSlots};
use super::site_rules::{SiteRules, Verdict};
use super::sites::{Site, SiteKind, Sites, SITE_BYTES};
use super::suspects::SuspectChanges;
use crate::kernel::{Kernel, FRAME};
use crate::memory::KernelMemory;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::{Write, WRITE_MEMORY, WRITE_WORDS};

/// Bytes of a write, and of the margin on either side in which an instruction may begin or end.
const BYTES: usize = 8 * WRITE_WORDS;
const MARGIN: usize = 8;
const ALL: usize = BYTES + 2 * MARGIN;
/// Maximum number of passing changes.
const MAX_PASSING: usize = 64;

/// A change that a write has made.
#[derive(Clone, Debug)]
pub(super) struct PassingChange {
    pub change: Change,
    /// The instruction that wrote it.
    pub rip: u64,
    page: usize,
    /// The last slice in which it was looked for.
    last_slice: u64,
}

/// Changes of which it is not clear yet whether they stand.
#[derive(Debug, Default)]
pub(super) struct PassingChanges {
    all: Vec<PassingChange>,
    /// Number of changes that were dropped for want of room.
    pub dropped: u64,
}

impl PassingChanges {
    /// Adds the changes of `page` by an instruction at `rip`. Of changes that overlap, the largest counts.
    pub fn add(&mut self, page: usize, changes: Vec<Change>, rip: u64) {
        for change in changes {
            let new = PassingChange { change, rip, page, last_slice: 0 };
            let has_room = !self.is_full();
            match self.all.iter_mut().find(|known| known.change.overlaps(&new.change)) {
                Some(known) if known.change.found.len() < new.change.found.len() => *known = new,
                Some(_) => {}
                None if has_room => self.all.push(new),
                None => self.dropped += 1,
            }
        }
    }

    /// Whether there is no room for another one.
    pub fn is_full(&self) -> bool {
        self.all.len() >= MAX_PASSING
    }

    /// A page with changes that were not looked for in `slice`.
    pub fn next_page(&self, slice: u64) -> Option<usize> {
        self.all.iter().find(|passing| passing.last_slice != slice).map(|passing| passing.page)
    }

    /// Looks for the changes of `page` among the `suspects`, which were brought up to date in `slice`. Returns those
    /// that are over.
    pub fn take_over<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        page: usize,
        suspects: &SuspectChanges,
        slice: u64,
    ) -> Vec<PassingChange> {
        let mut over = Vec::new();
        self.all.retain_mut(|passing| {
            if passing.page != page {
                return true;
            }
            passing.last_slice = slice;
            if let Some(is_reported) = suspects.stands(page, &passing.change) {
                return !is_reported;
            }
            let mut live = passing.change.found.clone();
            let is_live = kernel.bytes(passing.change.address, &mut live).is_some()
                && live == passing.change.found;
            // What stands and is no suspect is explained by now.
            if !is_live {
                over.push(passing.clone());
            }
            false
        });
        over
    }
}

/// The physical address of the top table of the address space in which Linux writes text.
pub(super) fn linux_space<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
) -> Option<u64> {
    let (space, table) = layout.poke.space?;
    kernel.physical(kernel.u64(kernel.u64(space)?.wrapping_add(table))?)
}

/// Whether `write` was made in `space`, see [`linux_space`], or may have been.
pub(super) fn is_linuxs(write: &Write, space: Option<u64>) -> bool {
    // Bits of CR3 that are no address. Intel SDM volume 3A, 4.5.
    space.is_none_or(|table| table == write.cr3 & FRAME)
}

/// The page that `write` has changed, and what it has left there that nothing explains. `space`: see [`linux_space`];
/// `recent`: the pages of slots until now.
pub(super) fn unexplained<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    write: &Write,
    space: Option<u64>,
    recent: &RecentSlots,
) -> Option<(usize, Vec<Change>)> {
    let start = virtual_address(rules.kernel, write.address)?;
    let (before, after) = (bytes(&write.before), bytes(&write.after));
    let first = before.iter().zip(&after).position(|(before, after)| before != after)?;
    let last = before.iter().zip(&after).rposition(|(before, after)| before != after)?;
    let written = start + first as u64..start + last as u64 + 1;
    let page = baseline.page_number(written.start).filter(|_| write.kind == WRITE_MEMORY)?;
    if is_linuxs(write, space)
        && baseline.is_text(written.start)
        && is_explained(rules, baseline, sites, recent, start, &after, &written) == Some(true)
    {
        return None;
    }
    // A change that begins at the end of the page before belongs to that page.
    for page in [Some(page), page.checked_sub(1)].into_iter().flatten() {
        let mut changes =
            compare_with(rules, baseline, sites, page, start, &after).unwrap_or_default();
        changes.retain(|change| change.address < written.end && written.start < change.end());
        if !changes.is_empty() {
            return Some((page, changes));
        }
    }
    None
}

fn bytes(words: &[u64; WRITE_WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (to, from) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    bytes
}

/// The address in the kernel's image of physical address `at`.
pub(super) fn virtual_address<M: KernelMemory>(kernel: &Kernel<'_, M>, at: u64) -> Option<u64> {
    let offset = at.checked_sub(kernel.profile.text_physical())?;
    let address = kernel.profile.text_base().checked_add(offset)?;
    kernel.in_image(address).then_some(address)
}

/// The bytes around a write, as it left them and in the copy.
struct Around {
    /// Virtual address of the first byte.
    start: u64,
    live: [u8; ALL],
    copy: [u8; ALL],
}

impl Around {
    fn offset(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.start)?).ok().filter(|offset| *offset < ALL)
    }

    /// Makes the `length` bytes at `offset` those of the copy.
    fn accept(&mut self, offset: usize, length: usize) {
        for (live, copy) in self.live.iter_mut().zip(&self.copy).skip(offset).take(length) {
            *live = *copy;
        }
    }

    /// Whether behind the breakpoint at `offset`, a part of a probe's jump has been written, which ends at `end`. Linux
    /// writes it by one instruction, which a tick can interrupt after each byte.
    fn has_begun_jump(&self, offset: usize, end: usize, recent: &RecentSlots) -> bool {
        let next = offset + NEAR_BYTES;
        let begun = self.live.get(offset + 1..end).unwrap_or_default();
        (1..NEAR_BYTES - 1).contains(&begun.len())
            && self.live.get(end..next) == self.copy.get(end..next)
            && recent.may_have(self.start + next as u64, begun)
    }

    fn site(&self, offset: usize) -> Option<[[u8; SITE_BYTES]; 2]> {
        let part = |all: &[u8; ALL]| all.get(offset..)?.first_chunk().copied();
        Some([part(&self.live)?, part(&self.copy)?])
    }
}

/// Whether Linux may have written the bytes in `written`, with the instruction that they begin; `after` are the bytes
/// from `start` on. `None` if the surroundings cannot be read. Most writes of Linux end here.
fn is_explained<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &Baseline,
    sites: &Sites,
    recent: &RecentSlots,
    start: u64,
    after: &[u8; BYTES],
    written: &Range<u64>,
) -> Option<bool> {
    let mut around = Around { start: start - MARGIN as u64, live: [0; ALL], copy: [0; ALL] };
    rules.kernel.bytes(around.start, &mut around.live)?;
    baseline.bytes(around.start, &mut around.copy)?;
    around.live.get_mut(MARGIN..MARGIN + BYTES)?.copy_from_slice(after);
    let end = around.offset(written.end)?.max(around.offset(written.start)? + NEAR_BYTES);
    let judged = around.offset(written.start)?..end.min(ALL);
    let same = |around: &Around| around.live.get(judged.clone()) == around.copy.get(judged.clone());
    if same(&around) {
        return Some(true);
    }
    let page = |address: u64| baseline.page_number(address).filter(|_| baseline.is_text(address));
    let pages = page(start)?..=page(start + BYTES as u64 - 1)?;
    for site in pages.flat_map(|page| sites.page(page)) {
        let Some(offset) = around.offset(site.address).filter(|offset| *offset < judged.end) else {
            continue;
        };
        let Some([live, copy]) = around.site(offset).filter(|[live, copy]| live != copy) else {
            continue;
        };
        let length = match rules.judge(site, &live, &copy) {
            Verdict::Allowed(length) => length,
            // Jumps of two bytes can be neighbours.
            Verdict::Forbidden(code)
                if live[0] == INT3 && matches!(site.kind, SiteKind::Jump { .. }) =>
            {
                code.bytes().len()
            }
            Verdict::Forbidden(_) if live[0] == INT3 || is_linuxs_kind(rules, site, &live) => {
                NEAR_BYTES
            }
            Verdict::Forbidden(_) => continue,
        };
        around.accept(offset, length);
    }
    if same(&around) {
        return Some(true);
    }
    // A probe: its breakpoint or jump is at the first byte, or before it.
    let (first, end) = (judged.start, around.offset(written.end)?);
    for at in (first.saturating_sub(NEAR_BYTES - 1)..=first).rev() {
        let live = around.live.get(at..)?.first_chunk::<NEAR_BYTES>()?;
        let place = around.start + at as u64;
        let length = match (live[0], &rules.layout.probes) {
            (INT3, _) if at == first => 1,
            (INT3, _) if around.has_begun_jump(at, end, recent) => NEAR_BYTES,
            (JMP | INT3, Some(known)) => probe_length(rules.kernel, known, recent, place, live),
            _ => continue,
        };
        around.accept(at, length);
    }
    // Another probe's breakpoint or jump, which this write has not changed, was judged when it was written. It may be
    // gone since, and with it what explained it.
    let behind = end..judged.end;
    let is_patched =
        |at: &usize| matches!(around.live[*at], INT3 | JMP) && around.live[*at] != around.copy[*at];
    if let Some(at) = behind.clone().find(is_patched) {
        around.accept(at, behind.end - at);
    }
    Some(same(&around))
}

/// Number of the bytes `live` at `at` that belong to a probe, or to one that has gone since.
fn probe_length<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    known: &Probes,
    recent: &RecentSlots,
    at: u64,
    live: &[u8; NEAR_BYTES],
) -> usize {
    let [_, a, b, c, d] = *live;
    match target(at, &[JMP, a, b, c, d]) {
        Some(to) if recent.has(to) || probes::is_slot(kernel, known, to) => NEAR_BYTES,
        _ => probes::probe_bytes(kernel, known, at, live),
    }
}

/// Whether `live` is what Linux writes at such a site while other records are in force than now.
fn is_linuxs_kind<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    site: &Site,
    live: &[u8; SITE_BYTES],
) -> bool {
    let to = target(site.address, live);
    match site.kind {
        SiteKind::Jump { .. } => false,
        // A program that was attached there, and is not any more.
        SiteKind::Entry { .. } => {
            live[0] == CALL
                && to.is_some_and(|to| !rules.kernel.in_image(to) && rules.is_program(to))
        }
        SiteKind::Ftrace => matches!(live[0], CALL | JMP) && to.is_some_and(|to| rules.is_code(to)),
        SiteKind::Call { .. } | SiteKind::Trampoline { .. } | SiteKind::ModuleTrampoline => {
            match to {
                Some(to) => rules.is_code(to),
                None => [Code::nop5(), Code::zero(), Code::ret()]
                    .iter()
                    .any(|code| live.starts_with(code.bytes())),
            }
        }
    }
}
