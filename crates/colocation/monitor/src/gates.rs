//! The check `gates`: the interrupt descriptor table that CPUs use.
//!
//! Linux has one table for all CPUs, `idt_table`. It maps the table read-only, and does not write it once the machine
//! is up. The check reports another table, a gate that differs from the first look, and a gate of the first look that
//! does not lead into Linux's entry code. Gates of reserved vectors keep the handlers of early boot.

use crate::check::{About, Budget, Check, Coverage, Make, Repairs, Step, Watched};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{differences, KernelMemory, PAGE_BYTES};
use crate::owner::{self, OwnerIndex, Owners};
use crate::profile::{Profile, ProfileError};
use crate::registers::{CR4_FRED, LOOKS_PER_PASS};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::{
    LinuxRegisters, Write, TABLE_INTERRUPTS, WRITE_MEMORY, WRITE_TABLE, WRITE_WORDS,
};

/// Gates of the table, 16 bytes each. Intel SDM volume 3A, 6.14.1.
const GATES: usize = 256;

/// Vectors of exceptions, and the largest size of an early handler (`EARLY_IDT_HANDLER_SIZE` in Linux's `segment.h`).
const EXCEPTIONS: usize = 32;
const EARLY_BYTES: u64 = 13;

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// The location of the table of a CPU.
    Table(u64),
    /// The gate of a vector.
    Gate(usize),
}

/// The check `gates`.
#[derive(Debug)]
pub struct GateCheck {
    table: Option<u64>,
    /// Linux's entry code.
    entries: Range<u64>,
    /// The handlers of exceptions during early boot.
    early: Range<u64>,
    /// The words of the first look, and whether one of its gates leads elsewhere than into that code.
    first: Vec<u64>,
    foreign: bool,
    confirm: Confirm<Key>,
    owners: Option<OwnerIndex>,
    looks: u64,
    coverage: Coverage,
}

/// The address that a gate leads to; `None` if it is not present.
pub(crate) fn handler([low, high]: [u64; 2]) -> Option<u64> {
    (low >> 47 & 1 != 0).then_some(low & 0xffff | low >> 32 & 0xffff_0000 | high << 32)
}

impl GateCheck {
    /// The words of a gate in `words`.
    fn gate(words: &[u64], vector: usize) -> [u64; 2] {
        words
            .get(2 * vector..2 * vector + 2)
            .and_then(|gate| gate.try_into().ok())
            .unwrap_or([0; 2])
    }

    /// Whether the first look's gate leads elsewhere than into Linux's entry code.
    fn is_foreign(&self, vector: usize) -> bool {
        let is_own =
            |to: u64| self.entries.contains(&to) || vector < EXCEPTIONS && self.early.contains(&to);
        handler(Self::gate(&self.first, vector)).is_some_and(|to| !is_own(to))
    }

    /// Whether a CPU that uses the table at `base` with `limit` uses Linux's table. An exit of an Intel virtual machine
    /// sets the limit to 0xffff (Intel SDM volume 3C, "Loading Host Segment and Descriptor-Table Registers"), and KVM
    /// leaves it: no vector is beyond the table.
    fn is_linuxs<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        table: u64,
        base: u64,
        limit: u64,
    ) -> bool {
        kernel.physical(base) == Some(table) && limit >= 16 * GATES as u64 - 1
    }

    /// Looks whether the CPU with the registers `r` uses Linux's table. Returns false if that cannot be judged.
    fn look_at_cpu<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, r: &LinuxRegisters) -> bool {
        let expected = self.table.and_then(|table| kernel.physical(table));
        let Some(expected) = expected.filter(|_| r.cr4 & CR4_FRED == 0) else { return false };
        if !Self::is_linuxs(kernel, expected, r.idt_base, r.idt_limit) {
            self.confirm.see(Key::Table(r.cpu), r.idt_base);
        }
        self.confirm.end_look_at(|key| key == Key::Table(r.cpu));
        true
    }

    /// Looks at Linux's table. Returns false if it cannot be judged.
    fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> bool {
        let Some(expected) = self.table.and_then(|table| kernel.physical(table)) else {
            return false;
        };
        let Some(page) =
            kernel.memory.page(expected).filter(|_| expected.is_multiple_of(PAGE_BYTES))
        else {
            return false;
        };
        if self.first.is_empty() {
            self.first = page.iter().map(|word| word.load(Relaxed)).collect();
            self.foreign = (0..GATES).any(|vector| self.is_foreign(vector));
        }
        let first = self.first.first_chunk();
        if !self.foreign && first.is_some_and(|first| differences(page, first) == 0) {
            return true;
        }
        let differs = |vector: usize| {
            let live = |at: usize| page.get(at).map(|word| word.load(Relaxed));
            let first = Self::gate(&self.first, vector);
            [live(2 * vector), live(2 * vector + 1)] != first.map(Some)
        };
        for vector in 0..GATES {
            if differs(vector) || self.is_foreign(vector) {
                let live = [2 * vector, 2 * vector + 1]
                    .map(|at| page.get(at).map_or(0, |word| word.load(Relaxed)));
                // The other bits of a gate tell two suspects with the same handler apart.
                let value = handler(live).unwrap_or(0);
                self.confirm.see(Key::Gate(vector), value);
            }
        }
        true
    }

    /// The words for a changed table or gate.
    fn finding<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, key: Key, value: u64) -> Finding {
        let leads = || owner::describe(kernel, self.owners.as_ref(), value);
        match key {
            Key::Table(cpu) => Finding {
                what: "interrupt table moved".into(),
                symbol: format!("CPU {cpu}"),
                owner: leads(),
                expected: "idt_table".into(),
                found: format!("{value:#x}"),
                ..Finding::new(Class::InterruptTableModified)
            },
            Key::Gate(vector) => {
                let first = handler(Self::gate(&self.first, vector));
                let is_good = !self.is_foreign(vector);
                Finding {
                    what: "interrupt gate changed".into(),
                    address: self.table.unwrap_or(0) + 16 * vector as u64,
                    symbol: format!("vector {vector}"),
                    owner: if value == 0 { "nobody".into() } else { leads() },
                    expected: match first {
                        Some(first) if is_good => owner::symbol(kernel, first),
                        Some(_) => "entry code".into(),
                        None => "no handler".into(),
                    },
                    found: format!("{value:#x}"),
                    ..Finding::new(Class::InterruptTableModified)
                }
            }
        }
    }
}

impl Make for GateCheck {
    const ABOUT: About =
        About { name: "gates", wants: &[], share: 3, pass_ms: 0, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        let range = |start, end| Some(profile.symbol(start)?..profile.symbol(end)?);
        let entries = range("__entry_text_start", "__entry_text_end")
            .or_else(|| range("_stext", "_etext"))
            .unwrap_or(0..0);
        Ok(Self {
            table: profile.symbol("idt_table"),
            early: profile
                .symbol("early_idt_handler_array")
                .map_or(0..0, |start| start..start.saturating_add(EXCEPTIONS as u64 * EARLY_BYTES)),
            entries,
            first: Vec::new(),
            foreign: false,
            confirm: Confirm::keeping(1),
            owners: Owners::new(profile).ok().map(OwnerIndex::new),
            looks: 0,
            coverage: Coverage { learning: true, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for GateCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        let gate = |vector: usize| Some(self.table? + 16 * vector as u64);
        self.confirm.stands(|key| match key {
            Key::Table(_) => what == "interrupt table moved",
            Key::Gate(vector) => gate(vector) == Some(address),
        })
    }

    fn watched(&self, kernel: &Kernel<'_, M>) -> Vec<Watched> {
        let table = self.table.and_then(|table| kernel.physical(table));
        let table = table.filter(|table| table.is_multiple_of(PAGE_BYTES));
        let watched = |table| Watched { range: table..table + PAGE_BYTES, space: 0 };
        table.map(watched).into_iter().collect()
    }

    fn judge_writes(
        &mut self,
        kernel: &Kernel<'_, M>,
        writes: &[Write],
        found: &mut dyn FnMut(Finding),
    ) {
        let Some(table) = self.table.and_then(|table| kernel.physical(table)) else { return };
        // A CPU that comes up begins with other tables.
        let is_linuxs =
            |[base, limit, ..]: [u64; WRITE_WORDS]| Self::is_linuxs(kernel, table, base, limit);
        for write in writes {
            if (write.kind, write.address) != (WRITE_TABLE, TABLE_INTERRUPTS) {
                continue;
            }
            if is_linuxs(write.before) && !is_linuxs(write.after) {
                found(self.finding(kernel, Key::Table(write.cpu.into()), write.after[0]));
            }
        }
        for write in writes.iter().filter(|write| write.kind == WRITE_MEMORY) {
            let Some(offset) = write.address.checked_sub(table).filter(|at| *at < PAGE_BYTES)
            else {
                continue;
            };
            let words = write.before.iter().zip(&write.after);
            let changed = words.enumerate().filter(|(_, (before, after))| before != after);
            let mut vectors: Vec<usize> =
                changed.map(|(word, _)| (offset as usize / 8 + word) / 2).collect();
            vectors.dedup();
            for vector in vectors {
                let first = Self::gate(&self.first, vector);
                let mut gate = first;
                for (word, value) in gate.iter_mut().enumerate() {
                    let at = (2 * vector + word).checked_sub(offset as usize / 8);
                    *value = at.and_then(|at| write.after.get(at)).copied().unwrap_or(*value);
                }
                if gate != first {
                    let value = handler(gate).unwrap_or(0);
                    found(self.finding(kernel, Key::Gate(vector), value));
                }
            }
        }
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        self.coverage.learning = false;
        let Some(r) = kernel.memory.registers() else {
            self.coverage.unjudged = GATES as u64;
            return Step::Done(0);
        };
        let judged = self.look_at_cpu(kernel, &r) && self.look(kernel);
        self.coverage.unjudged = if judged { 0 } else { GATES as u64 };
        self.confirm.end_look_at(|key| matches!(key, Key::Gate(_)));
        if let Some(other) = kernel.memory.other_registers() {
            self.look_at_cpu(kernel, &other);
        }
        let due = self.confirm.take_with_owners(&mut self.owners, kernel, budget, retries);
        for (key, value) in due.into_iter().flatten() {
            found(self.finding(kernel, key, value));
        }
        self.looks += 1;
        match self.looks % LOOKS_PER_PASS {
            0 => Step::Done(GATES as u64),
            _ => Step::Rests,
        }
    }
}

#[cfg(test)]
mod tests;
