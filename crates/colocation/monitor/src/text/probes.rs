//! Breakpoints and jumps of registered kprobes, and patching in progress.

use super::baseline::Baseline;
use super::code::{target, INT3, JMP};
use super::layout::{List, Poke, Probes};
use super::walk;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::walk::chain;
use alloc::vec::Vec;

/// Binary logarithm of the buckets in the probes' hash table (`kprobes.c`).
const BUCKETS_BITS: u32 = 6;
/// Parts of [`originals`]: the buckets, and the probes being removed.
pub(super) const PARTS: u64 = (1 << BUCKETS_BITS) + 1;
/// Maximum number of probes in a bucket, and in the lists of those being removed.
const MAX_PROBES: usize = 1024;
/// Flags of a probe (`kprobes.h`): its memory is going away; it is optimized into a jump; it is a user of ftrace.
const GONE: u32 = 1;
const OPTIMIZED: u32 = 4;
const FTRACE: u32 = 8;
/// Maximum number of pages with slots that are remembered, and for how many slices.
const MAX_RECENT: usize = 64;
const RECENT_SLICES: u64 = 200;
/// Maximum number of entries patched at once: a page of them.
const MAX_POKES: u32 = (PAGE_BYTES / 16) as u32;

fn being_removed<'k, M: KernelMemory>(
    kernel: &'k Kernel<'_, M>,
    probes: &'k Probes,
) -> impl Iterator<Item = u64> + 'k {
    let heads = probes.leaving.iter().flatten();
    heads
        .flat_map(|&head| walk::list(kernel, List { head, link: probes.leaving_link }))
        .take(MAX_PROBES)
}

/// Replaces the breakpoints and jumps of the probes of part `part` in a copy by the original bytes.
pub(super) fn originals<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    probes: &Probes,
    part: u64,
    baseline: &mut Baseline,
) {
    let mut correct = |probe: u64| -> Option<()> {
        let at = kernel.u64(probe.wrapping_add(probes.addr))?;
        let flags = kernel.u32(probe.wrapping_add(probes.flags))?;
        let mut copied = [0];
        baseline.bytes(at, &mut copied).filter(|()| flags & (GONE | FTRACE) == 0)?;
        let mut bytes = [kernel.u8(probe.wrapping_add(probes.opcode))?, 0, 0, 0, 0];
        match copied[0] {
            // Of an optimized probe, also if it is a breakpoint again by now. None is on a jump.
            JMP if probes.slot_pages.head != 0 && bytes[0] != JMP => {
                kernel.bytes(probe.wrapping_add(probes.copied), &mut bytes[1..])?;
                baseline.correct(at, &bytes);
            }
            INT3 | JMP => baseline.correct(at, &bytes[..1]),
            _ => {}
        }
        Some(())
    };
    if part >= 1 << BUCKETS_BITS {
        for probe in being_removed(kernel, probes) {
            correct(probe);
        }
        return;
    }
    for link in chain(kernel, probes.table + part * 8, 0).take(MAX_PROBES) {
        correct(link.wrapping_sub(probes.link));
    }
}

/// Number of bytes at `at` that belong to a probe, given the live bytes from `at` on: 1 for a breakpoint, 5 for a jump
/// or for a breakpoint that is becoming a jump.
pub(super) fn probe_bytes<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    probes: &Probes,
    at: u64,
    live: &[u8],
) -> usize {
    let first = live.first().copied().unwrap_or(0);
    if first != INT3 && first != JMP {
        return 0;
    }
    let jumps_to = |probe: u64| {
        let [_, a, b, c, d, ..] = *live else { return false };
        let slot = kernel.u64(probe.wrapping_add(probes.slot));
        probes.slot_pages.head != 0
            && target(at, &[JMP, a, b, c, d]) == slot
            && slot.is_some_and(|slot| is_slot(kernel, probes, slot))
    };
    let by_jump = |probe: u64, flags: u32| match first {
        _ if flags & OPTIMIZED != 0 && jumps_to(probe) => 5,
        INT3 => 1,
        _ => 0,
    };
    if let Some((probe, flags)) = registered(kernel, probes, at) {
        return by_jump(probe, flags);
    }
    being_removed(kernel, probes)
        .find(|probe| kernel.u64(probe.wrapping_add(probes.addr)) == Some(at))
        .map_or(0, |probe| by_jump(probe, OPTIMIZED))
}

/// The probe at `at` and its flags; users of ftrace do not count.
fn registered<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    probes: &Probes,
    at: u64,
) -> Option<(u64, u32)> {
    let bucket = walk::hash(at, BUCKETS_BITS);
    let links = chain(kernel, probes.table + bucket * 8, 0).take(MAX_PROBES);
    let mut here = links.map(|link| link.wrapping_sub(probes.link)).filter_map(|probe| {
        let is_here = kernel.u64(probe.wrapping_add(probes.addr)) == Some(at);
        let flags = kernel.u32(probe.wrapping_add(probes.flags)).filter(|_| is_here)?;
        (flags & (GONE | FTRACE) == 0).then_some((probe, flags))
    });
    here.next()
}

pub(super) fn is_slot<M: KernelMemory>(kernel: &Kernel<'_, M>, probes: &Probes, slot: u64) -> bool {
    walk::list(kernel, probes.slot_pages).any(|page| {
        let start = kernel.u64(page.wrapping_add(probes.slot_page)).unwrap_or(u64::MAX);
        slot.checked_sub(start).is_some_and(|offset| offset < PAGE_BYTES)
    })
}

/// The pages with slots of optimized probes that Linux had of late: it frees one that is empty, perhaps before a jump
/// into it is judged.
#[derive(Debug, Default)]
pub(super) struct RecentSlots(Vec<(u64, u64)>);

impl RecentSlots {
    /// Notes the pages that Linux has in `slice`.
    pub fn note<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, probes: &Probes, slice: u64) {
        self.0.retain(|(_, last)| slice.wrapping_sub(*last) < RECENT_SLICES);
        for page in walk::list(kernel, probes.slot_pages).take(MAX_RECENT) {
            let Some(start) = kernel.u64(page.wrapping_add(probes.slot_page)) else { continue };
            let has_room = self.0.len() < MAX_RECENT;
            match self.0.iter_mut().find(|(known, _)| *known == start) {
                Some((_, last)) => *last = slice,
                None if has_room => self.0.push((start, slice)),
                None => {}
            }
        }
    }

    pub fn has(&self, slot: u64) -> bool {
        let is_in = |start: u64| slot.checked_sub(start).is_some_and(|offset| offset < PAGE_BYTES);
        self.0.iter().any(|(start, _)| is_in(*start))
    }

    /// Whether a jump that ends at `next` may come to lead there, of whose distance Linux has written no more than the
    /// bytes `begun` yet, up to three.
    pub fn may_have(&self, next: u64, begun: &[u8]) -> bool {
        let mut distance = [0; 4];
        distance.iter_mut().zip(begun).for_each(|(to, byte)| *to = *byte);
        let ends =
            |start: u64| u32::from_le_bytes(distance).wrapping_sub(start.wrapping_sub(next) as u32);
        let written = (1 << (8 * begun.len().min(3))) - 1;
        self.0.iter().any(|(start, _)| u64::from(ends(*start) & written) < PAGE_BYTES)
    }
}

/// Whether Linux's records say that it is changing static calls.
pub(super) fn is_changing_calls<M: KernelMemory>(kernel: &Kernel<'_, M>, poke: &Poke) -> bool {
    poke.calls_owner.and_then(|owner| kernel.u64(owner)).is_some_and(|owner| owner != 0)
}

/// Whether Linux holds its lock for patching.
pub(super) fn is_locked<M: KernelMemory>(kernel: &Kernel<'_, M>, poke: &Poke) -> bool {
    poke.owner.and_then(|owner| kernel.u64(owner)).is_some_and(|owner| owner != 0)
}

/// Whether Linux's records say that it is patching: anything, or `at`.
pub(super) fn is_patching<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    poke: &Poke,
    stext: u64,
    at: u64,
) -> bool {
    is_locked(kernel, poke) || is_poked(kernel, poke, stext, at).unwrap_or(false)
}

fn is_poked<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    poke: &Poke,
    stext: u64,
    at: u64,
) -> Option<bool> {
    let desc = poke.desc?;
    if kernel.u32(desc + poke.refs)? == 0 {
        return Some(false);
    }
    let vec = kernel.u64(desc + poke.vec)?;
    let count = kernel.u32(desc + poke.count)?.min(MAX_POKES);
    Some((0..u64::from(count)).map(|i| vec.wrapping_add(i * poke.size)).any(|entry| {
        let offset = kernel.u32(entry.wrapping_add(poke.addr)).unwrap_or(0);
        let length = kernel.u8(entry.wrapping_add(poke.len)).unwrap_or(0);
        at.wrapping_sub(stext.wrapping_add(u64::from(offset))) < u64::from(length)
    }))
}
