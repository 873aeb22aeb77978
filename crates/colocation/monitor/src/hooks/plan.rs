//! The hooks of one owner, as a pass comes across them, and what takes them out.
//!
//! The owner is a listed module, or nobody: then it is the code around an address, as far as it is mapped. Between two
//! modules, there is a page without memory.

use super::first::FirstLooks;
use super::stubs::Stubs;
use super::{AnySource, Hook, Target};
use crate::disarm::{Culprit, Left, Plan, Removal, MAX_HOOKS};
use crate::finding::Repair;
use crate::kernel::Kernel;
use crate::memory::{mixed, KernelMemory, PAGE_BYTES};
use crate::owner::{self, Kind, OwnerIndex};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// Maximum number of pages of code of nobody, before an address and behind it.
const MAX_PAGES: u64 = 512;
/// Bytes of a module's name that tell it from others.
const NAME_BYTES: u64 = 56;
/// Pointers at the beginning of a table that are looked at to learn whose it is.
const TABLE_POINTERS: u64 = 64;

/// Whose hooks are taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// The listed module with this object.
    Module(u64),
    /// Code of nobody.
    Unlisted(Range<u64>),
}

/// A hook of the owner.
#[derive(Clone, Copy, Debug)]
struct Found {
    source: usize,
    hook: Hook,
    /// What is hooked tells user space what exists.
    is_sensitive: bool,
    /// What the pointer led to before.
    before: Option<u64>,
    /// Some step takes it out.
    has_step: bool,
}

impl Found {
    /// Of more hooks than a plan has room for, those with the lowest rank are left out.
    fn rank(&self) -> (bool, bool) {
        (self.has_step, self.is_sensitive)
    }
}

/// Collects the hooks of one owner.
#[derive(Debug)]
pub(super) struct Collector {
    culprit: Culprit,
    /// The owner, once the owners are read, and an address in its code.
    owner: Option<Owner>,
    address: u64,
    found: Vec<Found>,
    omitted: u64,
}

/// The owner of `address`, and the beginning of its code, by the last reading of `index`.
fn owner<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: &OwnerIndex,
    address: u64,
) -> Option<(Owner, u64)> {
    if kernel.in_image(address) {
        return None;
    }
    match index.find(address) {
        Some(code) if matches!(code.kind, Kind::Module | Kind::Data) => {
            let (base, _) = index.owners().module_code?;
            let start = kernel.u64(code.object.wrapping_add(base))?;
            Some((Owner::Module(code.object), start))
        }
        Some(code) if code.kind == Kind::Pack => {
            // Beside programs: what they have of the page is theirs.
            kernel.physical(address)?;
            let start = address & !(PAGE_BYTES - 1);
            Some((Owner::Unlisted(start..start + PAGE_BYTES), start))
        }
        Some(_) => None,
        None => {
            let range = unlisted(kernel, index, address)?;
            Some((Owner::Unlisted(range.clone()), range.start))
        }
    }
}

/// The memory of nobody around `address`.
fn unlisted<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: &OwnerIndex,
    address: u64,
) -> Option<Range<u64>> {
    let is_nobodys = |page: &u64| {
        owner::is_module_space(kernel, *page)
            && !index.touches(*page, page.wrapping_add(PAGE_BYTES))
            && kernel.physical(*page).is_some()
    };
    let page = address & !(PAGE_BYTES - 1);
    kernel.physical(page)?;
    let step = |number: u64| number * PAGE_BYTES;
    let before = (1..MAX_PAGES).map(|number| page.wrapping_sub(step(number)));
    let behind = (1..MAX_PAGES).map(|number| page.wrapping_add(step(number)));
    // Elsewhere, what is mapped beside a page says nothing about it.
    let is_module = owner::is_module_space(kernel, page);
    let pages = |count: usize| if is_module { step(count as u64) } else { 0 };
    let start = page - pages(before.take_while(is_nobodys).count());
    Some(start..page + PAGE_BYTES + pages(behind.take_while(is_nobodys).count()))
}

/// The owner of the code that has `address`, as it is now.
pub(super) fn culprit<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: &OwnerIndex,
    address: u64,
) -> Option<Culprit> {
    let (owner, start) = owner(kernel, index, address)?;
    Some(seen(kernel, index, &owner, start, address))
}

/// `owner` as it is now, whose code begins at `start`.
fn seen<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: &OwnerIndex,
    owner: &Owner,
    start: u64,
    address: u64,
) -> Culprit {
    let name = match owner {
        Owner::Module(object) => {
            let at = object.wrapping_add(index.owners().module_name);
            let words =
                (0..NAME_BYTES / 8).filter_map(|word| kernel.u64(at.wrapping_add(8 * word)));
            // No listed module's is 0, which stands for code of nobody.
            words.fold(0, mixed).max(1)
        }
        Owner::Unlisted(_) => 0,
    };
    let page = address & !(PAGE_BYTES - 1);
    let words = (0..PAGE_BYTES / 8).map_while(|word| kernel.u64(page + 8 * word));
    Culprit { start, address, name, code: words.fold(0, mixed) }
}

/// The words that take `hook` out, whose pointer led to `before`.
fn words<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    source: &AnySource,
    hook: &Hook,
    before: Option<u64>,
    stubs: &Stubs,
) -> Result<Vec<RepairWord>, &'static str> {
    match before {
        Some(before) => source.restoration(kernel, hook, before),
        None => source.removal(kernel, hook, stubs),
    }
}

impl Collector {
    /// Nothing yet, of `culprit`.
    pub fn new(culprit: Culprit) -> Self {
        Self { culprit, owner: None, address: 0, found: Vec::new(), omitted: 0 }
    }

    /// The owners are read. Code of nobody that gave up one of its pages is known by another.
    pub fn begin<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, index: &OwnerIndex) {
        let Culprit { start, address, .. } = self.culprit;
        for at in [start, address] {
            let Some((owner, _)) = owner(kernel, index, at) else { continue };
            let now = seen(kernel, index, &owner, start, address);
            if matches!(owner, Owner::Unlisted(_)) || now.is_same(&self.culprit) {
                (self.owner, self.address) = (Some(owner), at);
            }
        }
    }

    /// Whether the owner has what `hook` leads to.
    fn owns<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        index: &OwnerIndex,
        value: u64,
        target: Target,
    ) -> bool {
        let code = index.find(value);
        match &self.owner {
            None => false,
            Some(Owner::Module(object)) => code.is_some_and(|code| {
                code.object == *object && matches!(code.kind, Kind::Module | Kind::Data)
            }),
            Some(Owner::Unlisted(range)) => {
                if kernel.in_image(value) || code.is_some_and(|code| code.kind != Kind::Pack) {
                    return false;
                }
                let leads_there = || {
                    let places = (0..TABLE_POINTERS).map(|number| value.wrapping_add(8 * number));
                    let mut pointers = places.map_while(|at| kernel.u64(at));
                    pointers.any(|pointer| range.contains(&pointer))
                };
                range.contains(&value) || target == Target::Data && leads_there()
            }
        }
    }

    /// Notes `hook` of `source`, which has this number, if the code that it leads to is the owner's. `first` is what
    /// the pointer was when it was seen first, if it is one that Linux never changes.
    pub fn see<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        index: &OwnerIndex,
        (number, source, stubs): (usize, &AnySource, &Stubs),
        (hook, leads): (Hook, u64),
        is_sensitive: bool,
        first: &FirstLooks,
    ) {
        if !self.owns(kernel, index, leads, hook.target) {
            return;
        }
        // One pointer can be called for many functions.
        if let Some(known) = self.found.iter_mut().find(|known| known.hook.slot == hook.slot) {
            if is_sensitive && !known.is_sensitive {
                (known.hook, known.is_sensitive) = (hook, true);
            }
            return;
        }
        let first = hook.stamp.and_then(|stamp| {
            first.get(hook.slot).filter(|first| first.stamp == stamp).map(|first| first.value)
        });
        let before = first.filter(|&before| {
            let is_listed = || index.find(before).is_some();
            let is_own = self.owns(kernel, index, before, hook.target);
            before != hook.value && !is_own && (kernel.in_image(before) || is_listed())
        });
        let has_step = words(kernel, source, &hook, before, stubs).is_ok();
        let found = Found { source: number, hook, is_sensitive, before, has_step };
        if self.found.len() < MAX_HOOKS {
            self.found.push(found);
            return;
        }
        self.omitted += 1;
        let least = self.found.iter_mut().min_by_key(|found| found.rank());
        if let Some(least) = least.filter(|least| least.rank() < found.rank()) {
            *least = found;
        }
    }

    /// The plan. What decides what user space is told goes first, tables come last.
    pub fn plan<M: KernelMemory>(
        mut self,
        kernel: &Kernel<'_, M>,
        index: &OwnerIndex,
        sources: &[AnySource],
        stubs: &Stubs,
    ) -> Plan {
        let owner = match &self.owner {
            None => String::new(),
            Some(Owner::Module(_)) => owner::describe(kernel, Some(index), self.address),
            Some(Owner::Unlisted(range)) => {
                format!("code at {:#x} to {:#x} in no listed module", range.start, range.end)
            }
        };
        let (culprit, omitted) = (self.culprit, self.omitted);
        let mut plan = Plan { culprit, owner, omitted, ..Plan::default() };
        self.found.sort_by_key(|found| (!found.is_sensitive, found.before.is_some()));
        for Found { source, hook, before, .. } in self.found {
            let Some(source) = sources.get(source) else { continue };
            let words = words(kernel, source, &hook, before, stubs);
            let kind = source.what().trim_start_matches("hidden ");
            let object = match hook.target {
                Target::Hooks(0) => "every function".into(),
                Target::Hooks(function) => owner::symbol(kernel, function),
                _ => source.symbol(kernel, hook.object),
            };
            let hook = format!("{kind} at {:#x}: {object}", hook.slot);
            match words {
                Ok(words) => {
                    let repair = Repair { words, links: None };
                    plan.removals.push(Removal { hook, repair });
                }
                Err(why) => plan.left.push(Left { hook, why }),
            }
        }
        plan
    }
}
