//! Executable memory outside the kernel's image, and modules' data, sorted, with its owners.
//!
//! The index is read from Linux's lists in batches, and is as old as its last complete reading. Its generation changes
//! when a reading finds other code than the one before.

use super::{symbol, Owners};
use crate::check::{until_done, Budget};
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::walk::List;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Entries of a list per batch.
const BATCH: usize = 16;
/// Maximum number of ranges, more than any intact kernel has; further ones are ignored.
const MAX_RANGES: usize = 1 << 14;
/// Maximum size of a range, in bytes.
const LARGEST: u64 = 1 << 30;
/// Number of lists.
const LISTS: usize = 6;
/// Bytes of a part of the memory that BPF programs share (`BPF_PROG_PACK_SIZE` in Linux's `core.c`), and maximum number
/// of parts.
const PACK_BYTES: u64 = 2 << 20;
const MAX_NODES: u64 = 1024;

/// What owns a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The code of a listed module.
    Module,
    /// Other parts of a listed module.
    Data,
    /// A BPF program, or one of BPF's trampolines.
    Program,
    /// A trampoline of one user of ftrace.
    Trampoline,
    /// A page with copies of probed instructions.
    ProbeSlots,
    /// Memory that BPF programs share, with free parts.
    Pack,
}

/// A range of executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Code {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
    /// The object in Linux's list.
    pub object: u64,
}

/// The index.
#[derive(Debug, Default)]
pub(crate) struct OwnerIndex {
    owners: Owners,
    ranges: Vec<Code>,
    /// The ranges of the reading in progress; the list that it is in, the next link there, and the entries so far.
    next: Vec<Code>,
    list: usize,
    link: Option<u64>,
    count: usize,
    generation: u64,
}

impl OwnerIndex {
    /// An index without ranges, of the code that `owners` lists.
    pub fn new(owners: Owners) -> Self {
        Self { owners, ..Self::default() }
    }

    /// Where the owners are listed.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The number of readings that found other code than the one before.
    #[cfg(test)]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn begin(&mut self) {
        (self.list, self.link, self.count) = (0, None, 0);
        self.next.clear();
    }

    /// Reads some entries; returns true when the reading is complete.
    pub fn advance<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> bool {
        let Some((list, kind)) = self.list() else {
            return self.list == LISTS && self.complete();
        };
        let mut at = self.link.or_else(|| kernel.u64(list.head));
        for _ in 0..BATCH {
            let Some(link) = at.filter(|&link| link != list.head && link != 0) else {
                return self.end_list();
            };
            let object = link.wrapping_sub(list.link);
            self.next.extend(self.range(kernel, kind, object));
            if kind == Kind::Module {
                self.add_parts(kernel, object);
                self.add_thunks(kernel, object);
            }
            self.count += 1;
            at = kernel.u64(link);
            if self.count >= MAX_RANGES {
                return self.end_list();
            }
        }
        match at {
            Some(link) => {
                self.link = Some(link);
                false
            }
            None => self.end_list(),
        }
    }

    /// Reads on, until the reading is complete or the slice is over. Returns true when it is complete.
    pub fn refresh<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
    ) -> bool {
        until_done(budget, || self.advance(kernel))
    }

    /// Whether a module with this name was listed at the last reading.
    pub fn has_module<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, name: &str) -> bool {
        let mut modules = self.ranges.iter().filter(|code| code.kind == Kind::Module);
        modules.any(|code| {
            let at = code.object.wrapping_add(self.owners.module_name);
            kernel.c_string(at, 56).is_some_and(|found| found == name)
        })
    }

    /// What the module with this name has, by the last reading.
    pub fn of_module<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        name: &str,
    ) -> Vec<Range<u64>> {
        let is_its = |code: &&Code| {
            let at = code.object.wrapping_add(self.owners.module_name);
            matches!(code.kind, Kind::Module | Kind::Data)
                && kernel.c_string(at, 56).is_some_and(|found| found == name)
        };
        self.ranges.iter().filter(is_its).map(|code| code.start..code.end).collect()
    }

    /// The list that the reading is in; lists that the kernel lacks are skipped.
    fn list(&mut self) -> Option<(List, Kind)> {
        while self.list < LISTS {
            let [copies, optimized] = self.owners.slots.map(|slots| slots.map(|(list, _)| list));
            let found = match self.list {
                0 => Some((self.owners.modules, Kind::Module)),
                1 => self.owners.bpf.map(|list| (list, Kind::Program)),
                2 => self.owners.trampolines.map(|(list, _)| (list, Kind::Trampoline)),
                3 => copies.map(|list| (list, Kind::ProbeSlots)),
                4 => optimized.map(|list| (list, Kind::ProbeSlots)),
                _ => self.owners.packs.map(|(list, _)| (list, Kind::Pack)),
            };
            if found.is_some() {
                return found;
            }
            self.list += 1;
        }
        None
    }

    fn end_list(&mut self) -> bool {
        (self.list, self.link, self.count) = (self.list + 1, None, 0);
        self.list == LISTS && self.complete()
    }

    fn complete(&mut self) -> bool {
        self.next.sort_unstable();
        self.next.dedup();
        if self.next != self.ranges {
            self.generation += 1;
            core::mem::swap(&mut self.ranges, &mut self.next);
        }
        self.begin();
        true
    }

    /// The code of `object`.
    fn range<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        kind: Kind,
        object: u64,
    ) -> Option<Code> {
        let word = |offset: u64| kernel.u64(object.wrapping_add(offset));
        let owners = &self.owners;
        let (start, bytes) = match kind {
            Kind::Module | Kind::Data => {
                let (base, bytes) = owners.module_code?;
                (word(base)?, u64::from(kernel.u32(object.wrapping_add(bytes))?))
            }
            Kind::Program => {
                let start = word(owners.bpf_start)?;
                (start, word(owners.bpf_end)?.wrapping_sub(start))
            }
            Kind::Trampoline => {
                let (_, [start, bytes, _]) = owners.trampolines?;
                (word(start)?, word(bytes)?)
            }
            Kind::ProbeSlots => {
                let (_, start) = owners.slots.iter().flatten().next()?;
                (word(*start)?, PAGE_BYTES)
            }
            Kind::Pack => {
                let (_, start) = owners.packs?;
                let nodes = owners.nodes.and_then(|nodes| kernel.u32(nodes)).map_or(1, u64::from);
                (word(start)?, PACK_BYTES * nodes.clamp(1, MAX_NODES))
            }
        };
        let end = start.checked_add(bytes).filter(|_| (1..=LARGEST).contains(&bytes))?;
        Some(Code { start, end, kind, object })
    }

    /// Adds what `module` has beside its code.
    fn add_parts<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, module: u64) {
        let Self { owners, next, .. } = self;
        let mut add = |start: u64, end: u64, kind| {
            let is_sane = start < end && end - start <= LARGEST;
            next.extend(is_sane.then_some(Code { start, end, kind, object: module }));
        };
        for part in owners.module_ranges.iter().flatten() {
            let (base, bytes) = *part;
            let Some(start) = kernel.u64(module.wrapping_add(base)) else { continue };
            let bytes = kernel.u32(module.wrapping_add(bytes)).map_or(0, u64::from);
            let end = start.saturating_add(bytes);
            let code = owners.module_code.filter(|(code, _)| *code == base);
            if let Some((_, bytes)) = code {
                // In Linux 6.1, the code is the beginning of a larger part.
                let code = kernel.u32(module.wrapping_add(bytes)).map_or(0, u64::from);
                add(start.saturating_add(code), end, Kind::Data);
            } else if owners.module_init == Some(*part) {
                add(start, end, Kind::Module);
            } else {
                add(start, end, Kind::Data);
            }
        }
    }

    /// Adds the pages of thunks of `module`.
    fn add_thunks<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, module: u64) {
        let Self { owners, next, .. } = self;
        next.extend(owners.thunks_of_module(kernel, module).map(|page| Code {
            start: page.start,
            end: page.end,
            kind: Kind::Module,
            object: module,
        }));
    }

    /// The range that holds `address`: of a program rather than of the memory that programs share.
    pub fn find(&self, address: u64) -> Option<&Code> {
        // Other ranges of an intact kernel do not overlap. If an attacker's do, one of them is the answer.
        let below = self.ranges.partition_point(|code| code.start <= address);
        let mut before = self.ranges.get(..below)?.iter().rev();
        let last = before.next()?;
        if address < last.end {
            return Some(last);
        }
        before.find(|code| code.kind == Kind::Pack).filter(|code| address < code.end)
    }

    /// Whether some code overlaps the pages `start..end`.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let behind = self.ranges.partition_point(|code| code.start <= start);
        let mut rest = self.ranges.iter().skip(behind).take_while(|code| code.start < end);
        self.code_or_pack(start).is_some() || rest.any(|code| code.kind != Kind::Data)
    }

    /// The code, or memory that programs share, that holds `address`.
    pub fn code_or_pack(&self, address: u64) -> Option<&Code> {
        self.find(address).filter(|code| code.kind != Kind::Data)
    }

    /// The code that holds `address`, without memory that programs share.
    pub fn code(&self, address: u64) -> Option<&Code> {
        self.code_or_pack(address).filter(|code| code.kind != Kind::Pack)
    }

    /// The owner of `address` outside the kernel's image, in the words of a finding.
    pub fn name<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, address: u64) -> Option<String> {
        let code = self.find(address)?;
        let text = |offset: u64, bytes| kernel.c_string(code.object.wrapping_add(offset), bytes);
        Some(match code.kind {
            Kind::Module | Kind::Data => format!("module {}", text(self.owners.module_name, 56)?),
            Kind::Program => format!("bpf {}", text(self.owners.bpf_name, 64)?),
            Kind::Trampoline => {
                let (_, [_, _, func]) = self.owners.trampolines?;
                let handler = kernel.u64(code.object.wrapping_add(func))?;
                format!("ftrace's trampoline to {}", symbol(kernel, handler))
            }
            Kind::ProbeSlots => "a kprobe's copied instructions".into(),
            Kind::Pack => "free memory of BPF programs".into(),
        })
    }
}

#[cfg(test)]
mod tests;
