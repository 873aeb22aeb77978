//! The layer's services for the cokernel: report a line, read Linux's memory, repair it.

use super::{Range, MAX_RANGES};
use crate::assert_size;

/// Maximum bytes of text in a [`Report`].
pub const REPORT_BYTES: u64 = 256;
/// Maximum number of words in one repair transaction.
pub const MAX_REPAIR_WORDS: usize = 16;

/// One line for the operator.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// `EVENT_*` of the event ring.
    pub kind: u32,
    /// A number whose meaning depends on `kind`.
    pub code: u32,
    /// Virtual address of the text, in the cokernel's memory.
    pub text: u64,
    /// Bytes of text, at most [`REPORT_BYTES`].
    pub bytes: u64,
}
assert_size!(Report, 24);

/// Linux's readable memory. Each range can be read at [`WINDOW_BASE`](super::WINDOW_BASE) plus its physical address.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Number of valid entries in `ram`.
    pub count: u64,
    /// System RAM, and what Linux may add to it, in ascending order.
    pub ram: [Range; MAX_RANGES],
}
assert_size!(Window, 8 + 16 * MAX_RANGES);

/// System registers of a CPU, as Linux left them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxRegisters {
    /// Linux's logical number of the CPU.
    pub cpu: u64,
    /// Control register 0.
    pub cr0: u64,
    /// Control register 4.
    pub cr4: u64,
    /// Virtual address of the interrupt descriptor table.
    pub idt_base: u64,
    /// Bytes of the interrupt descriptor table, less one.
    pub idt_limit: u64,
    /// Virtual address of the global descriptor table.
    pub gdt_base: u64,
    /// Bytes of the global descriptor table, less one.
    pub gdt_limit: u64,
    /// EFER (MSR 0xc0000080).
    pub efer: u64,
    /// STAR (MSR 0xc0000081).
    pub star: u64,
    /// LSTAR (MSR 0xc0000082): the entry of 64-bit system calls.
    pub lstar: u64,
    /// CSTAR (MSR 0xc0000083): the entry of 32-bit system calls.
    pub cstar: u64,
    /// SFMASK (MSR 0xc0000084).
    pub sfmask: u64,
    /// SYSENTER_CS (MSR 0x174).
    pub sysenter_cs: u64,
    /// SYSENTER_ESP (MSR 0x175).
    pub sysenter_esp: u64,
    /// SYSENTER_EIP (MSR 0x176).
    pub sysenter_eip: u64,
    /// Debug registers 0 to 3: addresses of breakpoints.
    pub breakpoints: [u64; 4],
    /// Debug register 7. In mode none, Linux's handler of non-maskable interrupts has cleared its enable bits.
    pub dr7: u64,
}
assert_size!(LinuxRegisters, 160);

/// Words around a change that a [`Write`] has.
pub const WRITE_WORDS: usize = 4;
/// Maximum number of writes that one call fetches.
pub const MAX_WRITES: usize = 16;
/// [`Write::kind`]: memory in a watched range.
pub const WRITE_MEMORY: u32 = 0;
/// [`Write::kind`]: EFER, or a register of system calls: STAR, LSTAR, CSTAR, SFMASK, or one of SYSENTER's.
pub const WRITE_REGISTER: u32 = 1;
/// [`Write::kind`]: CR0 or CR4.
pub const WRITE_CONTROL: u32 = 2;
/// [`Write::kind`]: IDTR, GDTR or TR. The words are the base and limit.
pub const WRITE_TABLE: u32 = 3;
/// [`Write::address`] of a table register: IDTR.
pub const TABLE_INTERRUPTS: u64 = 0;
/// The same: GDTR.
pub const TABLE_DESCRIPTORS: u64 = 1;
/// The same: TR.
pub const TABLE_TASK: u64 = 2;

/// A write of Linux's that the hypervisor has watched. It has taken effect.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// `WRITE_*`.
    pub kind: u32,
    /// Linux's logical number of the CPU.
    pub cpu: u32,
    /// Physical address of the words, a multiple of 8; or the number of the register, `TABLE_*` for tables.
    pub address: u64,
    /// The words before the write. A change of more than these words has further entries. For a register, the first
    /// word counts.
    pub before: [u64; WRITE_WORDS],
    /// The words after the write.
    pub after: [u64; WRITE_WORDS],
    /// The instruction that wrote.
    pub rip: u64,
    /// CR3 of the CPU.
    pub cr3: u64,
}
assert_size!(Write, 32 + 16 * WRITE_WORDS);

/// Watched writes, the oldest first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Writes {
    /// Number of valid entries in `writes`. If it is [`MAX_WRITES`], there may be more.
    pub count: u64,
    /// Number of writes since the start that nobody fetched in time.
    pub lost: u64,
    /// The writes.
    pub writes: [Write; MAX_WRITES],
}
assert_size!(Writes, 16 + (32 + 16 * WRITE_WORDS) * MAX_WRITES);

impl Writes {
    /// No writes.
    pub const NONE: Self = Self {
        count: 0,
        lost: 0,
        writes: [Write {
            kind: WRITE_MEMORY,
            cpu: 0,
            address: 0,
            before: [0; WRITE_WORDS],
            after: [0; WRITE_WORDS],
            rip: 0,
            cr3: 0,
        }; MAX_WRITES],
    };

    /// The valid entries.
    pub fn list(&self) -> &[Write] {
        &self.writes[..(self.count as usize).min(MAX_WRITES)]
    }
}

/// One word of a repair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairWord {
    /// Physical address in Linux's System RAM, a multiple of 8.
    pub address: u64,
    /// The value that memory must hold; if any word differs, the layer writes none.
    pub expected: u64,
    /// The value to write.
    pub value: u64,
}
assert_size!(RepairWord, 24);

/// A repair transaction: the layer writes all words or none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RepairRequest {
    /// Number of valid entries in `words`, 1..=16.
    pub count: u64,
    /// The words, each with another address.
    pub words: [RepairWord; MAX_REPAIR_WORDS],
}
assert_size!(RepairRequest, 8 + 24 * MAX_REPAIR_WORDS);

/// All words were written.
pub const REPAIR_DONE: i64 = 0;
/// A word did not hold its expected value. Nothing was written.
pub const REPAIR_CHANGED: i64 = -1;
/// The request is malformed: its count, an alignment, a repeated address or one outside System RAM. Nothing was
/// written.
pub const REPAIR_INVALID: i64 = -2;
/// The other CPUs could not be parked in time. Nothing was written.
pub const REPAIR_BUSY: i64 = -3;
/// An argument of a service is an address outside the cokernel's memory, or a number out of range.
pub const SERVICE_BAD_ADDRESS: i64 = -4;
/// The service does not exist in this mode: no Linux runs beside a cokernel that runs alone. Or no other CPU has shown
/// its registers yet.
pub const SERVICE_UNAVAILABLE: i64 = -5;
