//! What Linux's records say at the moment about code outside its image: listed modules and BPF programs, ftrace's
//! users, probes of tracepoints.
//!
//! They are read anew at the beginning of each pass, in steps, into sorted tables: a traced kernel has tens of
//! thousands of sites to look up. A table may be as old as the pass, so an address that is not in it is looked up in
//! Linux's lists.
//!
//! A record that leads to code of no listed owner is reported: only code that hides leads there. It is not removed,
//! because Linux's own accounts of the user would then be wrong.

use super::layout::{Ftrace, List, TextLayout, Tracepoints};
use crate::class::Class;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::walk::chain;
use alloc::format;
use alloc::vec::Vec;

/// Entries per step.
const BATCH: usize = 16;
/// Maximum number of entries of a list, and of ranges of listed code.
const MAX_ENTRIES: usize = 4096;
/// Maximum number of ftrace's users, and of probes of one tracepoint.
const MAX_USERS: usize = 1024;
const MAX_PROBES: u64 = 64;
/// Maximum number of tracepoints; more than any kernel has.
const MAX_TRACEPOINTS: u64 = 1 << 16;
/// Maximum number of hidden handlers and probes.
const MAX_FOREIGN: usize = 64;
/// Passes in a row in which a record must be the same: Linux registers and unlists a module's code in many steps.
const CONFIRM_PASSES: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Function,
    Trampoline,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Begin,
    /// The next link of the list, and the number of entries so far.
    Modules(u64, usize),
    Programs(u64, usize),
    /// The next `ftrace_ops`.
    Users(u64, usize),
    Leaving(u64, usize),
    /// The next entry in the table of tracepoints.
    Tracepoints(u64),
}

/// A record that leads to code of no listed owner.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    /// The `ftrace_ops` or the tracepoint.
    object: u64,
    function: u64,
    is_probe: bool,
    /// The pass in which it was seen last, and the number of passes in a row.
    pass: u64,
    passes: u32,
    /// The pass of the next report.
    next_report: u64,
    gap: u64,
}

#[derive(Debug, Default)]
pub(super) struct Records {
    stage: Stage,
    pass: u64,
    /// Start and end of listed code, sorted; the tables being built have the prefix `next`.
    code: Vec<(u64, u64)>,
    next_code: Vec<(u64, u64)>,
    /// Functions and trampolines of ftrace's users, sorted.
    handlers: Vec<(u64, Role)>,
    next_handlers: Vec<(u64, Role)>,
    foreign: Vec<Foreign>,
    /// The last slice in which Linux's list of users was read because an address was not in the table.
    searched: u64,
}

impl Records {
    /// Reads some records; returns true when this pass has read all.
    pub fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        found: &mut dyn FnMut(Finding),
    ) -> bool {
        self.stage = match self.stage {
            Stage::Begin => {
                self.pass += 1;
                self.next_code.clear();
                self.next_handlers.clear();
                Stage::Modules(first(kernel, Some(layout.owners.modules)), 0)
            }
            Stage::Modules(link, count) => {
                let list = layout.owners.modules;
                let each = |module| {
                    let ranges = owner::code_of_module(kernel, &layout.owners, module);
                    add_ranges(&mut self.next_code, ranges);
                };
                match batch(kernel, list, link, count, each) {
                    Some((link, count)) => Stage::Modules(link, count),
                    None => Stage::Programs(first(kernel, layout.owners.bpf), 0),
                }
            }
            Stage::Programs(link, count) => {
                let each = |ksym| {
                    let range = owner::code_of_program(kernel, &layout.owners, ksym);
                    add_ranges(&mut self.next_code, range);
                };
                let next =
                    layout.owners.bpf.and_then(|list| batch(kernel, list, link, count, each));
                match next {
                    Some((link, count)) => Stage::Programs(link, count),
                    None => {
                        self.next_code.sort_unstable();
                        core::mem::swap(&mut self.code, &mut self.next_code);
                        let users = layout.ftrace.as_ref().and_then(|f| kernel.u64(f.ops));
                        Stage::Users(users.unwrap_or(0), 0)
                    }
                }
            }
            Stage::Users(ops, count) => self.users(kernel, layout, ops, count),
            Stage::Leaving(link, count) => {
                let ftrace = layout.ftrace.as_ref();
                let next =
                    ftrace.zip(ftrace.and_then(|f| f.trampolines)).and_then(|(ftrace, list)| {
                        batch(kernel, list, link, count, |ops| {
                            add_handlers(kernel, ftrace, ops, &mut self.next_handlers);
                        })
                    });
                match next {
                    Some((link, count)) if count < MAX_USERS => Stage::Leaving(link, count),
                    _ => {
                        self.next_handlers.sort_unstable();
                        self.next_handlers.dedup();
                        core::mem::swap(&mut self.handlers, &mut self.next_handlers);
                        Stage::Tracepoints(0)
                    }
                }
            }
            Stage::Tracepoints(number) => match self.tracepoints(kernel, layout, number) {
                Some(next) => Stage::Tracepoints(next),
                None => {
                    self.report(kernel, layout, found);
                    self.stage = Stage::Begin;
                    return true;
                }
            },
        };
        false
    }

    /// Reads some records of listed code alone, and forgets the others; returns true when all are read.
    pub fn advance_code<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
    ) -> bool {
        self.advance(kernel, layout, &mut |_| {});
        let is_read = !matches!(self.stage, Stage::Modules(..) | Stage::Programs(..));
        if is_read {
            self.stage = Stage::Begin;
            self.handlers.clear();
        }
        is_read
    }

    /// Reads some of ftrace's users from `ops` on.
    fn users<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        mut ops: u64,
        count: usize,
    ) -> Stage {
        let Some(ftrace) = &layout.ftrace else { return Stage::Tracepoints(0) };
        for number in count..count + BATCH {
            if ops == 0 || number >= MAX_USERS {
                return Stage::Leaving(first(kernel, ftrace.trampolines), 0);
            }
            add_handlers(kernel, ftrace, ops, &mut self.next_handlers);
            let direct = ftrace.ops_direct.and_then(|offset| kernel.u64(ops.wrapping_add(offset)));
            for function in [kernel.u64(ops.wrapping_add(ftrace.ops_func)), direct] {
                self.judge(kernel, layout, ops, function.unwrap_or(0), false);
            }
            ops = kernel.u64(ops.wrapping_add(ftrace.ops_next)).unwrap_or(0);
        }
        Stage::Users(ops, count + BATCH)
    }

    /// Reads some tracepoints from entry `number` of their table on; returns the next entry.
    fn tracepoints<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        number: u64,
    ) -> Option<u64> {
        let tracepoints = layout.tracepoints.as_ref()?;
        for number in number..number + BATCH as u64 {
            let entry = tracepoints.table.start + 4 * number;
            if entry >= tracepoints.table.end || number >= MAX_TRACEPOINTS {
                return None;
            }
            // Each entry is the distance from itself (`PREL32`).
            let Some(distance) = kernel.u32(entry) else { continue };
            let tracepoint = entry.wrapping_add(i64::from(distance as i32) as u64);
            for probe in probes(kernel, tracepoints, tracepoint) {
                self.judge(kernel, layout, tracepoint, probe, true);
            }
        }
        Some(number + BATCH as u64)
    }

    /// Remembers `function` of `object` if it is in no listed owner's code.
    fn judge<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        object: u64,
        function: u64,
        is_probe: bool,
    ) {
        if function == 0 || self.is_listed(layout, function) {
            return;
        }
        let pass = self.pass;
        if let Some(known) = self
            .foreign
            .iter_mut()
            .find(|foreign| (foreign.object, foreign.function) == (object, function))
        {
            if known.pass != pass {
                known.passes = if known.pass + 1 == pass { known.passes + 1 } else { 1 };
                known.pass = pass;
            }
        } else if owner::outside(kernel, &layout.owners, function).is_none()
            && self.foreign.len() < MAX_FOREIGN
        {
            let new =
                Foreign { object, function, is_probe, pass, passes: 1, next_report: 0, gap: 1 };
            self.foreign.push(new);
        }
    }

    /// Reports the hidden handlers and probes that are confirmed, and forgets those that are gone.
    fn report<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        found: &mut dyn FnMut(Finding),
    ) {
        let pass = self.pass;
        self.foreign.retain(|foreign| foreign.pass == pass);
        for foreign in &mut self.foreign {
            if foreign.passes < CONFIRM_PASSES || pass < foreign.next_report {
                continue;
            }
            foreign.next_report = pass + foreign.gap;
            foreign.gap = foreign.gap.saturating_mul(2);
            if owner::outside(kernel, &layout.owners, foreign.function).is_some() {
                continue;
            }
            let what =
                if foreign.is_probe { "hidden tracepoint probe" } else { "hidden ftrace handler" };
            found(Finding {
                what: what.into(),
                address: foreign.object,
                symbol: owner::symbol(kernel, foreign.object),
                owner: owner::unlisted(foreign.function),
                found: format!("registered function {:#x}", foreign.function),
                culprit: foreign.function,
                held: "the monitor unregisters nothing: find the code that hides",
                ..Finding::new(Class::HookHidden)
            });
        }
    }

    /// Whether a hidden handler or probe of `object` was confirmed and still stands.
    pub fn is_hidden(&self, object: u64) -> bool {
        let mut confirmed = self.foreign.iter().filter(|foreign| foreign.passes >= CONFIRM_PASSES);
        confirmed.any(|foreign| foreign.object == object)
    }

    /// Whether `address` is in the kernel's text, or was listed when this pass began.
    pub fn is_listed(&self, layout: &TextLayout, address: u64) -> bool {
        let behind = self.code.partition_point(|&(start, _)| start <= address);
        let range = behind.checked_sub(1).and_then(|at| self.code.get(at));
        (layout.stext..layout.etext).contains(&address)
            || range.is_some_and(|&(_, end)| address < end)
    }

    /// Whether `address` has `role` with a user of ftrace. Linux's list of users is read for an unknown one, once per
    /// `slice`.
    pub fn is_handler<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        role: Role,
        address: u64,
        slice: u64,
    ) -> bool {
        if self.handlers.binary_search(&(address, role)).is_ok() {
            return true;
        }
        let Some(ftrace) = layout.ftrace.as_ref().filter(|_| self.searched != slice) else {
            return false;
        };
        self.searched = slice;
        self.handlers.clear();
        let leaving =
            ftrace.trampolines.into_iter().flat_map(|list| super::walk::list(kernel, list));
        for ops in chain(kernel, ftrace.ops, ftrace.ops_next)
            .take(MAX_USERS)
            .chain(leaving.take(MAX_USERS))
        {
            add_handlers(kernel, ftrace, ops, &mut self.handlers);
        }
        self.handlers.sort_unstable();
        self.handlers.dedup();
        self.handlers.binary_search(&(address, role)).is_ok()
    }
}

/// The first link of a list; 0 without one.
fn first<M: KernelMemory>(kernel: &Kernel<'_, M>, list: Option<List>) -> u64 {
    list.and_then(|list| kernel.u64(list.head)).unwrap_or(0)
}

/// Calls `each` with some entries of `list`, from `link` on; returns the next link and the new count, or `None` at the
/// end.
fn batch<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    list: List,
    mut link: u64,
    count: usize,
    mut each: impl FnMut(u64),
) -> Option<(u64, usize)> {
    for number in count..count + BATCH {
        if link == list.head || link == 0 || number >= MAX_ENTRIES {
            return None;
        }
        each(link.wrapping_sub(list.link));
        link = kernel.u64(link)?;
    }
    Some((link, count + BATCH))
}

fn add_ranges(to: &mut Vec<(u64, u64)>, ranges: impl IntoIterator<Item = (u64, u64)>) {
    let room = MAX_ENTRIES.saturating_sub(to.len());
    to.extend(ranges.into_iter().take(room));
}

fn add_handlers<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    ftrace: &Ftrace,
    ops: u64,
    to: &mut Vec<(u64, Role)>,
) {
    let mut add = |role, offset| {
        let value = kernel.u64(ops.wrapping_add(offset)).filter(|&value| value != 0);
        to.extend(value.map(|value| (value, role)));
    };
    add(Role::Function, ftrace.ops_func);
    add(Role::Trampoline, ftrace.ops_trampoline);
}

/// The functions registered with `tracepoint`.
fn probes<'k, M: KernelMemory>(
    kernel: &'k Kernel<'_, M>,
    tracepoints: &Tracepoints,
    tracepoint: u64,
) -> impl Iterator<Item = u64> + 'k {
    let (size, offset) = (tracepoints.probe, tracepoints.probe_function);
    let list = kernel.u64(tracepoint.wrapping_add(tracepoints.probes)).filter(|&list| list != 0);
    (0..MAX_PROBES).map_while(move |number| {
        let function = list?.wrapping_add(number * size + offset);
        kernel.u64(function).filter(|&function| function != 0)
    })
}

/// Whether a probe of `tracepoint` is in no listed owner's code.
pub(super) fn has_hidden_probe<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    tracepoint: u64,
) -> bool {
    let Some(tracepoints) = &layout.tracepoints else { return false };
    let mut probes = probes(kernel, tracepoints, tracepoint);
    probes.any(|probe| owner::name(kernel, &layout.owners, probe).is_none())
}
