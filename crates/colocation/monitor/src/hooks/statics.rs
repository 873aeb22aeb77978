//! Pointers in the kernel's own data, whatever has them: those that led to the kernel's code at the first look.
//!
//! Linux leads few of them elsewhere later on, and none of them into a module: what modules may provide is a pointer
//! that leads nowhere before one is loaded.

use super::source::{extent, Hook, Target};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::Profile;
use alloc::vec::Vec;
use core::ops::Range;

/// Variables between which the kernel's data lies that Linux may write.
const DATA: [[&str; 2]; 2] = [["_sdata", "_edata"], ["__bss_start", "__bss_stop"]];
/// The stack of the first task, which is no variable.
const STACKS: [&str; 2] = ["init_stack", "init_thread_union"];
/// How the names of static calls' records begin. They lead to modules: the check `text` judges the calls.
const CALLS: &str = "__SCK__";
/// Bytes that are learned in one part.
const LEARNED_BYTES: u64 = 1 << 14;
/// Maximum number of pointers: Linux 6.12 has sixteen thousand.
const MAX_POINTERS: usize = 1 << 16;
/// Looks that together see all of them.
const PARTS: usize = 8;
/// Maximum number of changed ones in a look, which the next one sees again.
const MAX_CHANGED: usize = 64;

/// The kind of finding if one leads to nobody's code.
pub(super) const WHAT: &str = "pointer in the kernel's data to unlisted code";

/// The pointers.
#[derive(Debug)]
pub(super) struct Statics {
    base: u64,
    text: Range<u64>,
    /// The data that is not learned yet, and the words there that are left out, in order.
    rest: Vec<Range<u64>>,
    left_out: Vec<u64>,
    /// Of each pointer its distance from `base`, in order, and that of what it led to.
    first: Vec<(u32, u32)>,
    /// Whether there was no room for more.
    is_full: bool,
    /// The part that the next look sees.
    part: usize,
    changed: Vec<u64>,
}

impl Statics {
    /// Pointers that lead to `text`. `None` if the profile does not say where the data lies.
    pub fn new(profile: &Profile<'_>, text: &Range<u64>) -> Option<Self> {
        let mut rest = Vec::new();
        for [start, end] in DATA {
            rest.push(profile.symbol(start)?.next_multiple_of(8)..profile.symbol(end)? & !7);
        }
        for stack in STACKS.iter().filter_map(|name| extent(profile, name)) {
            let cut = |range: Range<u64>| {
                let [before, behind] = [
                    range.start..stack.start.clamp(range.start, range.end),
                    stack.end.clamp(range.start, range.end)..range.end,
                ];
                [before, behind]
            };
            rest = rest.into_iter().flat_map(cut).filter(|range| !range.is_empty()).collect();
        }
        let calls = profile.symbols_starting_with(CALLS);
        let mut left_out: Vec<u64> = calls.map(|symbol| symbol.address).collect();
        left_out.sort_unstable();
        rest.sort_unstable_by_key(|range| range.start);
        Some(Self {
            base: profile.text_base(),
            text: text.clone(),
            rest,
            left_out,
            first: Vec::new(),
            is_full: false,
            part: 0,
            changed: Vec::new(),
        })
    }

    /// Learns the next part of the data. Returns whether all of it is learned.
    pub fn learn<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> bool {
        let Self { base, text, rest, left_out, first, is_full, .. } = self;
        let Some(range) = rest.first_mut() else {
            *left_out = Vec::new();
            return true;
        };
        let end = (range.start + LEARNED_BYTES).min(range.end);
        kernel.words(range.start, (end - range.start) / 8, |slot, value| {
            if !text.contains(&value) || left_out.binary_search(&slot).is_ok() {
                return;
            }
            match [slot, value].map(|address| u32::try_from(address - *base)) {
                [Ok(slot), Ok(value)] if first.len() < MAX_POINTERS => first.push((slot, value)),
                _ => *is_full = true,
            }
        });
        range.start = end;
        if range.is_empty() {
            rest.remove(0);
        }
        false
    }

    /// Whether some pointers are not compared.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// What the pointer at `slot` led to first.
    pub fn first(&self, slot: u64) -> Option<u64> {
        let distance = u32::try_from(slot.checked_sub(self.base)?).ok()?;
        let place = self.first.binary_search_by_key(&distance, |(slot, _)| *slot).ok()?;
        self.first.get(place).map(|(_, value)| self.base + u64::from(*value))
    }

    /// Calls `see` with each pointer of the next part, and each that led there before, that leads to where Linux puts
    /// the code of modules.
    pub fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, see: &mut dyn FnMut(Hook)) {
        let Self { base, first, part, changed, .. } = self;
        let before = core::mem::take(changed);
        led_to_modules(kernel, before.iter().copied(), changed, see);
        let (from, to) = (first.len() * *part / PARTS, first.len() * (*part + 1) / PARTS);
        *part = (*part + 1) % PARTS;
        let slots = first.get(from..to).unwrap_or_default().iter();
        let slots = slots.map(|(distance, _)| *base + u64::from(*distance));
        led_to_modules(kernel, slots.filter(|slot| !before.contains(slot)), changed, see);
    }
}

/// Adds those of `slots` that lead to where Linux puts the code of modules to `changed`, and calls `see` with them.
fn led_to_modules<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    slots: impl Iterator<Item = u64>,
    changed: &mut Vec<u64>,
    see: &mut dyn FnMut(Hook),
) {
    kernel.words_at(slots, |slot, value| {
        if owner::is_module_space(kernel, value) && changed.len() < MAX_CHANGED {
            changed.push(slot);
            see(Hook { object: slot, slot, value, target: Target::Code, stamp: None });
        }
    });
}
