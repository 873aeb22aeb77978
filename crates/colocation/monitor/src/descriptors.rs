//! The check `descriptors`: the segments and the task state segment of each CPU.
//!
//! Linux gives every CPU the same descriptors of code and data, and never a call gate, which would let user mode call
//! the kernel at an address of an intruder's choice. It sets the stacks of a task state segment when it brings the CPU
//! up: each lies in the CPU's entry area. A step reads the tables of one CPU in memory, and the registers that lead to
//! tables of the CPUs that show theirs, as for the check `registers`.

use crate::check::{About, Budget, Check, Coverage, Make, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::gates::handler;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::{self, OwnerIndex, Owners};
use crate::profile::{Profile, ProfileError};
use crate::registers::is_truncated;
use crate::walk::Areas;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::{
    LinuxRegisters, Write, TABLE_DESCRIPTORS, TABLE_TASK, WRITE_REGISTER, WRITE_TABLE, WRITE_WORDS,
};

/// Descriptors of a CPU, 8 bytes each (`GDT_ENTRIES` in Linux's `segment.h`).
const DESCRIPTORS: u64 = 16;
/// The limit of a table, and what an exit of an Intel virtual machine makes of it until a program of user mode runs
/// (Intel SDM volume 3C, "Loading Host Segment and Descriptor-Table Registers").
const LIMIT: u64 = 8 * DESCRIPTORS - 1;
const LIMIT_AFTER_GUEST: u64 = 0xffff;
/// Those that are the same on every CPU: null, kernel code for 32 and 64 bits, kernel data, user code for 32 bits, user
/// data, user code for 64 bits, null. Linux sets the accessed bit, so that no processor writes it.
const FIXED: [u64; 8] = [
    0,
    0x00cf_9b00_0000_ffff,
    0x00af_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0x00cf_fb00_0000_ffff,
    0x00cf_f300_0000_ffff,
    0x00af_fb00_0000_ffff,
    0,
];
/// The task state segment and the local descriptor table take two each; then user mode's own, and the CPU's number.
const TASK_STATE: u64 = 8;
const LOCAL_TABLE: u64 = 10;
const USERS: Range<u64> = 12..16;

/// The access byte of a descriptor. Intel SDM volume 3A, 3.4.5 and 3.5.
const ACCESS: u32 = 40;
/// Type, with the bits for code or data, and for presence; privilege level.
const TYPE: u64 = 0x9f;
const LEVEL: u64 = 0x60;
/// Present: a local descriptor table, a task state segment, and the bit that the processor sets in its type.
const IS_LOCAL_TABLE: u64 = 0x82;
const IS_TASK_STATE: u64 = 0x89;
const BUSY: u64 = 2;
/// Present: gates for calls, interrupts and traps.
const GATES: [u64; 3] = [0x8c, 0x8e, 0x8f];
/// Code or data, as opposed to a gate or a system segment.
const IS_SEGMENT: u64 = 0x10;

/// Offsets in a task state segment: the stack of an interrupt from user mode, and the stacks that a gate can choose
/// (IST). Intel SDM volume 3A, 8.7.
const ENTRY_STACK: u64 = 4;
const STACKS: u64 = 36;
/// Bytes up to the end of the stacks.
const TASK_STATE_BYTES: usize = 92;
/// Stacks that are judged: that of interrupts, and the seven.
const STACK_COUNT: usize = 8;
/// What Linux writes there before a CPU is up: no address.
const NO_STACK: u64 = (1 << 63) + 1;

/// The memory of all CPUs' entry areas (`CPU_ENTRY_AREA_PGD`). Linux, Documentation/arch/x86/x86_64/mm.rst.
const ENTRY_AREAS: Range<u64> = 0xffff_fe00_0000_0000..0xffff_fe80_0000_0000;

/// The number of the register of SYSENTER's stack.
const SYSENTER_ESP: u64 = 0x175;

/// What is judged of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// Where its table is.
    Table,
    /// The table's limit: virtual machines may have left it.
    Limit,
    /// Descriptor of this number.
    Descriptor(u16),
    /// Stack of interrupts, 0, or of this number.
    Stack(u8),
    /// Stack of a system call by SYSENTER.
    CallStack,
    /// The task state segment that it uses.
    TaskState,
}

impl Key {
    fn what(self) -> String {
        match self {
            Self::Table => "descriptor table moved".into(),
            Self::Limit => "descriptor table enlarged".into(),
            Self::Descriptor(number) => format!("descriptor {number} changed"),
            Self::Stack(0) => "stack of interrupts changed".into(),
            Self::Stack(number) => format!("interrupt stack {number} changed"),
            Self::CallStack => "SYSENTER_ESP changed".into(),
            Self::TaskState => "task state segment replaced".into(),
        }
    }
}

/// Where the tables of a CPU lie.
#[derive(Debug)]
struct Layout {
    areas: Areas,
    /// Offsets in a CPU's area of its descriptors and of its task state segment.
    table: u64,
    task_state: u64,
}

impl Layout {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        Some(Self {
            areas: Areas::new(profile)?,
            table: profile.symbol("gdt_page")?,
            task_state: profile.symbol("cpu_tss_rw")?,
        })
    }
}

/// What is known of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Addresses of its descriptors and of its task state segment.
    table: u64,
    task_state: u64,
    /// Its stacks, 0 where none was seen.
    stacks: [u64; STACK_COUNT],
    /// It has shown its registers, or a stack: it was brought up.
    is_up: bool,
    /// SYSENTER_ESP when it was first seen, if it was.
    call_stack: Option<u64>,
}

/// The tables of a CPU, as one look sees them.
struct Tables {
    descriptors: [u64; DESCRIPTORS as usize],
    stacks: [u64; STACK_COUNT],
    /// The first descriptor behind those of Linux, with its number.
    other: Option<(u16, u64)>,
    /// Physical address.
    task_state: u64,
}

/// The check `descriptors`.
#[derive(Debug)]
pub struct DescriptorCheck {
    layout: Option<Layout>,
    cpus: Vec<Known>,
    /// What is not as it should be, each with the number of the CPU. Linux writes a descriptor in two steps, and a
    /// register in one.
    tables: Confirm<(u64, Key)>,
    registers: Confirm<(u64, Key)>,
    /// What a write was reported for, until another one puts it right.
    written: Vec<(u64, Key)>,
    owners: Option<OwnerIndex>,
    /// The CPU of the next look.
    next: u64,
    /// CPUs of this pass that could not be read.
    unread: u64,
    coverage: Coverage,
}

/// The access byte of a descriptor.
fn access(descriptor: u64) -> u64 {
    descriptor >> ACCESS & 0xff
}

/// The address in a descriptor of 16 bytes.
fn base(low: u64, high: u64) -> u64 {
    low >> 16 & 0xff_ffff | low >> 32 & 0xff00_0000 | high << 32
}

/// The offset of stack `number` in a task state segment.
fn stack_offset(number: u8) -> u64 {
    number.checked_sub(1).map_or(ENTRY_STACK, |at| STACKS + 8 * u64::from(at))
}

/// Whether base and limit are those of the descriptors at the physical address `table`.
fn is_table<M: KernelMemory>(kernel: &Kernel<'_, M>, table: u64, [base, limit]: [u64; 2]) -> bool {
    kernel.physical(base) == Some(table) && limit == LIMIT
}

/// Whether SYSENTER may begin with this stack; Linux's is `stack`, and the first one that was seen is `first`. Without
/// 32-bit programs there is none.
fn is_call_stack(stack: u64, first: u64, value: u64) -> bool {
    value == 0 || value == stack || value == first && is_truncated(stack, value)
}

impl Known {
    /// The address of descriptor `number`.
    fn descriptor(&self, number: u16) -> u64 {
        self.table.wrapping_add(8 * u64::from(number))
    }

    /// The address of what leads to stack `number`.
    fn stack(&self, number: u8) -> u64 {
        self.task_state.wrapping_add(stack_offset(number))
    }

    /// The address of what is judged as `key`; 0 for a register.
    fn address(&self, key: Key) -> u64 {
        match key {
            Key::Descriptor(number) => self.descriptor(number),
            Key::Stack(number) => self.stack(number),
            Key::Table | Key::Limit | Key::CallStack | Key::TaskState => 0,
        }
    }
}

impl Tables {
    fn read<M: KernelMemory>(kernel: &Kernel<'_, M>, known: &Known) -> Option<Self> {
        // Linux keeps the descriptors at the beginning of a page of their own.
        let page = kernel.memory.page(kernel.physical(known.table)?)?;
        let (descriptors, rest) = page.split_at(DESCRIPTORS as usize);
        let is_empty =
            |words: &[AtomicU64]| words.iter().fold(0, |all, word| all | word.load(Relaxed)) == 0;
        let other = match rest.chunks(16).all(is_empty) {
            true => None,
            false => {
                let mut words =
                    (DESCRIPTORS as u16..).zip(rest.iter().map(|word| word.load(Relaxed)));
                words.find(|(_, word)| *word != 0)
            }
        };
        let mut segment = [0; TASK_STATE_BYTES];
        kernel.bytes(known.task_state, &mut segment)?;
        let stack = |number: usize| {
            let bytes = segment.get(stack_offset(number as u8) as usize..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        Some(Self {
            descriptors: core::array::from_fn(|at| {
                descriptors.get(at).map_or(0, |word| word.load(Relaxed))
            }),
            other,
            stacks: core::array::from_fn(|number| stack(number).unwrap_or(0)),
            task_state: kernel.physical(known.task_state)?,
        })
    }

    /// The CPU was never brought up: it has no task state segment yet.
    fn is_unused(&self) -> bool {
        self.descriptors[TASK_STATE as usize] == 0 && self.descriptors[TASK_STATE as usize + 1] == 0
    }

    /// Whether descriptor `number` is as Linux sets it.
    fn is_good<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, number: u64) -> bool {
        let descriptor = self.descriptors[number as usize];
        if let Some(fixed) = FIXED.get(number as usize) {
            return descriptor == *fixed;
        }
        let access = access(descriptor);
        match number {
            TASK_STATE => {
                let base = base(descriptor, self.descriptors[number as usize + 1]);
                access & !BUSY == IS_TASK_STATE && kernel.physical(base) == Some(self.task_state)
            }
            LOCAL_TABLE => access & (TYPE | LEVEL) == IS_LOCAL_TABLE || descriptor == 0,
            // The upper half of an address.
            _ if !USERS.contains(&number) => descriptor >> 32 == 0,
            _ => access & IS_SEGMENT != 0 && access & LEVEL == LEVEL || descriptor == 0,
        }
    }

    fn judge<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        first: &mut [u64; STACK_COUNT],
        mut see: impl FnMut(Key, u64),
    ) {
        for (number, descriptor) in (0..).zip(self.descriptors) {
            if !self.is_good(kernel, number) {
                see(Key::Descriptor(number as u16), descriptor);
            }
        }
        if let Some((number, descriptor)) = self.other {
            see(Key::Descriptor(number), descriptor);
        }
        for ((number, stack), first) in (0..).zip(self.stacks).zip(first) {
            if *first == 0 && ENTRY_AREAS.contains(&stack) {
                *first = stack;
            }
            let is_good = match *first {
                0 => stack == 0 || number == 0 && stack == NO_STACK,
                first => stack == first,
            };
            if !is_good {
                see(Key::Stack(number), stack);
            }
        }
    }
}

impl DescriptorCheck {
    /// Looks at the tables of `cpu`. `None` behind the last CPU.
    fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, cpu: u64) -> Option<()> {
        let layout = self.layout.as_ref()?;
        let area = layout.areas.of(kernel, cpu)?;
        if self.cpus.len() as u64 <= cpu {
            self.cpus.resize(cpu as usize + 1, Known::default());
        }
        let known = &mut self.cpus[cpu as usize];
        known.table = area.wrapping_add(layout.table);
        known.task_state = area.wrapping_add(layout.task_state);
        let Some(tables) = Tables::read(kernel, known) else {
            self.unread += 1;
            return Some(());
        };
        if known.is_up || !tables.is_unused() {
            let confirm = &mut self.tables;
            tables.judge(kernel, &mut known.stacks, |key, value| confirm.see((cpu, key), value));
            known.is_up |= known.stacks.iter().any(|stack| *stack != 0);
            confirm.end_look_at(|(at, _)| at == cpu);
        }
        Some(())
    }

    /// Judges what leads to the tables: the registers of a CPU. Those of one that has not been looked at are not.
    fn judge_registers<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, r: &LinuxRegisters) {
        if let Some(known) = self.cpus.get_mut(r.cpu as usize) {
            known.is_up = true;
            known.call_stack.get_or_insert(r.sysenter_esp);
        }
        let known = self.known(r.cpu);
        let Some(table) = kernel.physical(known.table) else { return };
        if !is_table(kernel, table, [r.gdt_base, r.gdt_limit]) {
            let is_enlarged =
                r.gdt_limit == LIMIT_AFTER_GUEST && is_table(kernel, table, [r.gdt_base, LIMIT]);
            match is_enlarged {
                true => self.registers.see((r.cpu, Key::Limit), r.gdt_limit),
                false => self.registers.see((r.cpu, Key::Table), r.gdt_base),
            }
        }
        let (stack, first) = (known.stacks[0], known.call_stack.unwrap_or(0));
        if stack != 0 && !is_call_stack(stack, first, r.sysenter_esp) {
            self.registers.see((r.cpu, Key::CallStack), r.sysenter_esp);
        }
        self.registers.end_look_at(|(cpu, _)| cpu == r.cpu);
    }

    /// What is known of `cpu`.
    fn known(&self, cpu: u64) -> Known {
        self.cpus.get(cpu as usize).copied().unwrap_or_default()
    }

    fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        cpu: u64,
        key: Key,
        value: u64,
    ) -> Finding {
        let known = self.known(cpu);
        let first = |number: u8| match known.stacks[number as usize] {
            0 => "the CPU's entry area".to_string(),
            stack => format!("{stack:#x}"),
        };
        let expected = match key {
            Key::Table => "gdt_page".into(),
            Key::Limit => format!("{LIMIT:#x}"),
            Key::Descriptor(number) => match FIXED.get(number as usize) {
                Some(fixed) => format!("{fixed:#x}"),
                None if u64::from(number) == TASK_STATE => "cpu_tss_rw".into(),
                None if u64::from(number) >= DESCRIPTORS => "none".into(),
                None if USERS.contains(&u64::from(number)) => "a segment of user mode".into(),
                None => "no gate".into(),
            },
            Key::Stack(number) => first(number),
            Key::CallStack => first(0),
            Key::TaskState => "cpu_tss_rw".into(),
        };
        let class = match key {
            Key::CallStack => Class::RegisterModified,
            _ => Class::DescriptorModified,
        };
        let leads_to = match key {
            Key::Table | Key::TaskState => Some(value),
            Key::Descriptor(number) if GATES.contains(&(access(value) & TYPE)) => {
                kernel.u64(known.descriptor(number + 1)).and_then(|high| handler([value, high]))
            }
            _ => None,
        };
        let owner = leads_to.map_or_else(
            || "nobody".into(),
            |address| owner::describe(kernel, self.owners.as_ref(), address),
        );
        Finding {
            what: key.what(),
            address: known.address(key),
            symbol: format!("CPU {cpu}"),
            owner,
            expected,
            found: format!("{value:#x}"),
            ..Finding::new(class)
        }
    }
}

impl Make for DescriptorCheck {
    const ABOUT: About =
        About { name: "descriptors", wants: &[], share: 2, pass_ms: 0, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            layout: Layout::new(profile),
            cpus: Vec::new(),
            tables: Confirm::new(2),
            registers: Confirm::keeping(1),
            written: Vec::new(),
            owners: Owners::new(profile).ok().map(OwnerIndex::new),
            next: 0,
            unread: 0,
            coverage: Coverage { learning: true, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for DescriptorCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn waiting(&self) -> u64 {
        self.tables.waiting().count() as u64
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        let is =
            |(cpu, key): (u64, Key)| key.what() == what && self.known(cpu).address(key) == address;
        let written = self.written.iter().any(|written| is(*written));
        written || self.tables.stands(is) || self.registers.stands(is)
    }

    fn judge_writes(
        &mut self,
        kernel: &Kernel<'_, M>,
        writes: &[Write],
        found: &mut dyn FnMut(Finding),
    ) {
        for write in writes {
            let cpu = write.cpu.into();
            let known = self.known(cpu);
            let physical = |address| kernel.physical(address);
            let (Some(table), Some(task_state)) =
                (physical(known.table), physical(known.task_state))
            else {
                continue;
            };
            let table =
                |[base, limit, ..]: [u64; WRITE_WORDS]| is_table(kernel, table, [base, limit]);
            let task_state = |[base, ..]: [u64; WRITE_WORDS]| physical(base) == Some(task_state);
            let stack = |[value, ..]: [u64; WRITE_WORDS]| {
                // Behind nested paging, the processor is AMD's: it keeps a half.
                known.stacks[0] == 0 || is_call_stack(known.stacks[0], value, value)
            };
            let (key, before, after) = match (write.kind, write.address) {
                (WRITE_TABLE, TABLE_DESCRIPTORS) => {
                    (Key::Table, table(write.before), table(write.after))
                }
                (WRITE_TABLE, TABLE_TASK) => {
                    (Key::TaskState, task_state(write.before), task_state(write.after))
                }
                (WRITE_REGISTER, SYSENTER_ESP) => {
                    (Key::CallStack, stack(write.before), stack(write.after))
                }
                _ => continue,
            };
            // A CPU that comes up begins with others.
            let is_bad = before && !after;
            if after || is_bad {
                self.written.retain(|written| *written != (cpu, key));
            }
            if is_bad {
                self.written.push((cpu, key));
                found(self.finding(kernel, cpu, key, write.after[0]));
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
        let goes_on = self.look(kernel, self.next);
        let shown = [kernel.memory.registers(), kernel.memory.other_registers()];
        shown.iter().flatten().for_each(|r| self.judge_registers(kernel, r));
        let mut due = Vec::new();
        for confirm in [&mut self.tables, &mut self.registers] {
            let taken = confirm.take_with_owners(&mut self.owners, kernel, budget, retries);
            due.extend(taken.into_iter().flatten());
        }
        // Only KVM for Intel's processors leaves it.
        let has_guests = |check: &Self| {
            check.owners.as_ref().is_some_and(|index| index.has_module(kernel, "kvm_intel"))
        };
        for ((cpu, key), value) in due {
            if key == Key::Limit && has_guests(self) {
                continue;
            }
            found(self.finding(kernel, cpu, key, value));
        }
        if goes_on.is_some() {
            self.next += 1;
            return Step::Rests;
        }
        // What a write was reported as stays open until its report here, which waits for the owners.
        if self.tables.is_due() || self.registers.is_due() {
            return Step::Rests;
        }
        self.coverage.learning = false;
        self.coverage.unjudged = match self.next {
            0 => 1,
            _ => core::mem::take(&mut self.unread),
        };
        Step::Done(core::mem::take(&mut self.next))
    }
}

#[cfg(test)]
mod tests;
