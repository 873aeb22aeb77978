//! What makes a fresh copy of code right: it may show a probe, or a site that Linux was changing.

use super::baseline::Baseline;
use super::code::{INT3, JMP};
use super::compare::{compare_page, forbidden_sites};
use super::layout::TextLayout;
use super::probes;
use super::site_rules::SiteRules;
use super::sites::Sites;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// Replaces breakpoints and jumps of probes in the copy by the original bytes, of part `part` of all probes. Returns
/// whether there are more parts.
pub(super) fn correct_probes<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    baseline: &mut Baseline,
    part: u64,
) -> bool {
    let Some(known) = layout.probes.as_ref().filter(|_| part < probes::PARTS) else { return false };
    probes::originals(kernel, known, part, baseline);
    true
}

/// Corrects the copy of `page`: sites get the bytes that Linux's records require. Any other change since the copy was
/// made stays a difference, except for the removal of a probe, whose breakpoint or jump was copied.
///
/// One call is for one part of the sites; returns whether there are more.
pub(super) fn verify<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    baseline: &mut Baseline,
    sites: &mut Sites,
    page: usize,
    part: usize,
) -> bool {
    if part == 0 {
        sites.sort_page(page);
    }
    let (these, more) = sites.part(page, part);
    for (address, code) in forbidden_sites(rules, baseline, these) {
        baseline.correct(address, code.bytes());
    }
    if more {
        return true;
    }
    if baseline.is_unchanged(rules.kernel, page) != Some(false) {
        return false;
    }
    let changes = compare_page(rules, baseline, sites, page).unwrap_or_default();
    for change in changes.iter().filter(|change| !change.touches_site) {
        if matches!(change.expected.first(), Some(&(INT3 | JMP))) {
            baseline.correct(change.address, &change.found);
        }
    }
    false
}
