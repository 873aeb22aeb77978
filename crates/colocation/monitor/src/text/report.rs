//! The findings of this check, with their transactions.

use super::code;
use super::compare::Change;
use super::layout::TextLayout;
use super::package::{symbols_in, Evidence};
use super::records::{self, Role};
use super::site_rules::SiteRules;
use super::writes::PassingChange;
use crate::class::Class;
use crate::finding::{hex, Finding, Repair};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// The kind of finding about a module's code.
pub(super) const MODULE_CHANGED: &str = "module text changed";
/// Maximum number of trampolines in a row.
const MAX_HOPS: usize = 4;

/// The finding for `change`. `evidence` says what the kernel package's image tells about the copy there.
pub(super) fn finding<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    change: &Change,
    evidence: Evidence,
) -> Finding {
    let (kernel, layout) = (rules.kernel, rules.layout);
    let is_text = layout.text.contains(&change.address);
    let words = change.words.iter().map(|&(address, expected, value)| {
        Some(RepairWord { address: kernel.physical(address)?, expected, value })
    });
    let words: Option<Vec<RepairWord>> = words.collect();
    let first = change.words.first().copied().unwrap_or_default();
    let (found, expected, leads) = if is_text {
        let mut leads = leads_to(kernel, layout, change);
        let record = change.by_record.then(|| targets(&change.expected_code, change).next());
        if let (Some(leads), Some((_, to))) = (&mut leads, record.flatten()) {
            *leads += &format!(", by its record to {}", owner_of_code(kernel, layout, to));
        }
        (hex(&change.found), hex(&change.expected), leads)
    } else {
        let to = first.1;
        let inside = || kernel.in_image(to).then(|| owner::symbol(kernel, to));
        let owner = inside().or_else(|| outside(kernel, layout, to));
        (pointer(kernel, layout, first.1, change), pointer(kernel, layout, first.2, change), owner)
    };
    let held = reason_to_hold(rules, change, evidence, is_text).unwrap_or_default();
    let repairs =
        words.filter(|_| held.is_empty()).map(|words| vec![Repair { words, links: None }]);
    let (class, what) = match is_text {
        true => (Class::TextModified, "kernel text changed"),
        false => (Class::RodataModified, "read-only data changed"),
    };
    Finding {
        what: what.into(),
        address: change.address,
        symbol: owner::symbol(kernel, change.address),
        owner: leads.unwrap_or_else(|| "nobody".into()),
        expected,
        found,
        repairs: repairs.unwrap_or_default(),
        held,
        ..Finding::new(class)
    }
}

/// Why writing the expected bytes of `change` would do harm, or would not undo it.
fn reason_to_hold<M: KernelMemory>(
    rules: &mut SiteRules<'_, '_, M>,
    change: &Change,
    evidence: Evidence,
    is_text: bool,
) -> Option<&'static str> {
    if evidence == Evidence::Refuted {
        return Some("the copy was taken after an earlier change");
    }
    let proven = evidence == Evidence::Proven && !change.touches_site;
    if !is_text {
        let wild = |&(_, _, to): &(u64, u64, u64)| {
            owner::is_module_space(rules.kernel, to) && !stays(rules, to)
        };
        return (!proven && change.words.iter().any(wild))
            .then_some("the copy leads to code of no listed owner");
    }
    let (kernel, owners) = (rules.kernel, &rules.layout.owners);
    if targets(&change.code, change).any(|(_, to)| owner::is_live_patch(kernel, owners, to)) {
        return Some("it leads to a live patch");
    }
    // Who can change it would have the repair write calls into the text.
    if change.by_record {
        return Some(
            "the record of the static call differs from the copy, and may be what was changed",
        );
    }
    for (at, to) in targets(&change.expected_code, change) {
        if !proven && is_outside(rules.kernel, to) && !may_lead_to(rules, to) {
            return Some("the copy leads to code of no listed owner");
        }
        // The instruction that is restored, not what its bytes happen to contain.
        if at == change.address && ends_in_hidden_probe(rules, to) {
            return Some("the probe is still registered");
        }
    }
    None
}

/// Whether `to` belongs to a listed module that stays, or to a listed BPF program.
fn stays<M: KernelMemory>(rules: &SiteRules<'_, '_, M>, to: u64) -> bool {
    owner::stays(rules.kernel, &rules.layout.owners, to)
}

/// Whether a repair may lead to `to`, outside the kernel's image.
fn may_lead_to<M: KernelMemory>(rules: &mut SiteRules<'_, '_, M>, to: u64) -> bool {
    stays(rules, to) || rules.is_handler(Role::Trampoline, to)
}

/// Whether `to` may be code outside the kernel's image. The bytes of other instructions can look like a call to
/// anywhere.
fn is_outside<M: KernelMemory>(kernel: &Kernel<'_, M>, to: u64) -> bool {
    let is_mapped = || kernel.physical(to).is_some();
    !kernel.in_image(to) && (owner::is_module_space(kernel, to) || is_mapped())
}

/// Whether a call to `to` arrives at a probe in no listed owner's code: by the trampoline of a static call, or by the
/// function that calls all probes of a tracepoint.
fn ends_in_hidden_probe<M: KernelMemory>(rules: &SiteRules<'_, '_, M>, mut to: u64) -> bool {
    let (kernel, layout) = (rules.kernel, rules.layout);
    for _ in 0..MAX_HOPS {
        let mut code = [0; 5];
        if !layout.trampolines.contains(&to) || kernel.bytes(to, &mut code).is_none() {
            break;
        }
        let Some(next) = code::target(to, &code) else { break };
        to = next;
    }
    if is_outside(kernel, to) {
        return owner::name(kernel, &layout.owners, to).is_none();
    }
    let name = kernel.profile.nearest(to).filter(|&(_, offset)| offset == 0);
    let tracepoint = name
        .and_then(|(name, _)| name.strip_prefix("__traceiter_"))
        .and_then(|name| kernel.profile.symbol(&format!("__tracepoint_{name}")));
    tracepoint.is_some_and(|tracepoint| records::has_hidden_probe(kernel, layout, tracepoint))
}

/// Address and target of each call or jump in `code` that the change touches. `code` is the change's, live or expected.
fn targets<'c>(code: &'c [u8], change: &'c Change) -> impl Iterator<Item = (u64, u64)> + 'c {
    (0..code.len()).filter_map(|skip| {
        let bytes = code.get(skip..)?;
        let at = change.code_address + skip as u64;
        // Entirely before or after the change: Linux's own instruction.
        let length = if bytes.first() == Some(&0x48) { 12 } else { 5 };
        let touches = at + length > change.address && at < change.end();
        Some((at, code::target(at, bytes).filter(|_| touches)?))
    })
}

/// The finding for `change` in the code of a module; `symbol` is its place.
pub(super) fn module_finding<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    change: &Change,
    symbol: String,
) -> Finding {
    Finding {
        what: MODULE_CHANGED.into(),
        address: change.address,
        symbol,
        owner: leads_to(kernel, layout, change).unwrap_or_else(|| "nobody".into()),
        expected: hex(&change.expected),
        found: hex(&change.found),
        ..Finding::new(Class::ModuleTextModified)
    }
}

/// The owner of the code that a call or jump in the changed bytes leads to.
fn leads_to<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    change: &Change,
) -> Option<String> {
    let (_, to) = targets(&change.code, change).next()?;
    Some(owner_of_code(kernel, layout, to))
}

/// The finding for a change that was undone before a pass could see it.
pub(super) fn passed<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    passing: &PassingChange,
) -> Finding {
    let (change, rip) = (&passing.change, passing.rip);
    let is_text = layout.text.contains(&change.address);
    let (class, what) = match is_text {
        true => (Class::TextModified, "kernel text changed for a moment"),
        false => (Class::RodataModified, "read-only data changed for a moment"),
    };
    let pointer = || change.words.first().and_then(|&(_, live, _)| outside(kernel, layout, live));
    let leads = if is_text { leads_to(kernel, layout, change) } else { pointer() };
    let writer = || owner::name(kernel, &layout.owners, rip);
    Finding {
        what: what.into(),
        address: change.address,
        symbol: owner::symbol(kernel, change.address),
        owner: leads.or_else(writer).unwrap_or_else(|| "nobody".into()),
        expected: hex(&change.expected),
        found: format!("{}, written by {}", hex(&change.found), owner_of_code(kernel, layout, rip)),
        ..Finding::new(class)
    }
}

/// The owner of `address` outside the kernel's image, or that no listed one has it if it may be code.
fn outside<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    address: u64,
) -> Option<String> {
    owner::outside(kernel, &layout.owners, address)
        .or_else(|| owner::is_module_space(kernel, address).then(|| owner::unlisted(address)))
}

/// The owner of the code at `address`, or that no listed one has it.
fn owner_of_code<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    address: u64,
) -> String {
    owner::name(kernel, &layout.owners, address).unwrap_or_else(|| owner::unlisted(address))
}

/// The note that a range of changed bytes is the kernel package's again.
pub(super) fn restored<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    range: &Range<u64>,
) -> Finding {
    let is_text = layout.text.contains(&range.start);
    let (class, what) = match is_text {
        true => (Class::TextModified, "kernel text restored"),
        false => (Class::RodataModified, "read-only data restored"),
    };
    Finding {
        what: what.into(),
        address: range.start,
        symbol: owner::symbol(kernel, range.start),
        found: format!(
            "{} bytes are the kernel package's again{}",
            range.end - range.start,
            symbols_in(kernel, range)
        ),
        restored: true,
        ..Finding::new(class)
    }
}

/// A word of data, with the symbol it points to.
fn pointer<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    word: u64,
    change: &Change,
) -> String {
    let more = change.words.len().saturating_sub(1);
    let mut text = format!("{word:#018x}");
    if let Some(name) = owner::name(kernel, &layout.owners, word) {
        let _ = write!(text, " ({name})");
    }
    if more > 0 {
        let _ = write!(text, " and {more} more words");
    }
    text
}
