//! Kernel module on one side, the hypervisor of the mode *vmm* on the other; and the layer in the cokernel's guest.
//!
//! The module builds the hypervisor's world, enters it once on every CPU with [`HOST_LAUNCH`], and from then on Linux is
//! a guest. What follows are calls by `vmmcall` from kernel mode, [`CALL_SEAL`] and so on, with the number in RAX; the
//! result comes back in RAX.

use crate::assert_size;
use crate::layer::{Fault, Range, MAX_RANGES};

/// Version of everything in this module.
pub const VMM_VERSION: u32 = 1;

/// The hypervisor is linked at this virtual address, which nothing of the cokernel's world uses.
pub const HYPERVISOR_BASE: u64 = 0x0800_0000;
/// In the hypervisor's world physical address `p` is at `HOST_WINDOW_BASE + p`, readable and writable: System RAM, the
/// reserve, and the pages of devices that [`HostEntry`] names.
pub const HOST_WINDOW_BASE: u64 = 0x4000_0000_0000;
/// CPU number `n` has its stack of [`HOST_STACK_BYTES`] below `HOST_STACKS + (n + 1) * HOST_STACK_STRIDE`.
pub const HOST_STACKS: u64 = 0x0a00_0000;
/// From stack to stack; what lies in between is not mapped.
pub const HOST_STACK_STRIDE: u64 = 0x1_0000;
/// Bytes of a CPU's stack.
pub const HOST_STACK_BYTES: u64 = 0x4000;
/// Most CPUs.
pub const HOST_MAX_CPUS: usize = 64;

/// [`HostEntry::operation`]: make this CPU's present state a guest. Returns to the caller as one.
pub const HOST_LAUNCH: u32 = 1;
/// [`HostEntry::operation`]: give this CPU back. Only after [`CALL_OPEN`] on it.
pub const HOST_LEAVE: u32 = 2;

/// Linux: hide what is hidden, on this CPU, from here on.
pub const CALL_SEAL: u64 = 0x4b59_0001;
/// Linux: on this CPU everything is visible again.
pub const CALL_OPEN: u64 = 0x4b59_0002;
/// Linux, on the cokernel's CPU: ticks from here on.
pub const CALL_START: u64 = 0x4b59_0003;
/// Linux: no tick from here on. On another CPU a trip may still be on its way.
pub const CALL_STOP: u64 = 0x4b59_0004;
/// Linux, in the hypervisor's world: give this CPU back. Not called from outside of the hypervisor's own code.
pub const CALL_LEAVE: u64 = 0x4b59_0005;
/// Linux: no tick seems to come; look whether that is so.
pub const CALL_CHECK_TICK: u64 = 0x4b59_0006;
/// Cokernel: write the word RSI at physical address RDI of Linux's System RAM. 0, or -1 where that is not allowed.
pub const CALL_WRITE: u64 = 0x4b59_0010;
/// Cokernel: a line from the [`Mailbox`] for the event ring and the serial line.
pub const CALL_REPORT: u64 = 0x4b59_0011;
/// Cokernel: what the [`Mailbox`] says of check number RDI.
pub const CALL_PUBLISH: u64 = 0x4b59_0012;

/// [`HostEntry::result`]: done.
pub const HOST_DONE: u32 = 0;
/// [`HostEntry::result`]: the entry is of another version, or memory ran out.
pub const HOST_REFUSED: u32 = 1;

/// Number of counters in [`HostStatus::exits`].
pub const EXIT_REASONS: usize = 16;
/// Non-maskable interrupts of the tick and its guard.
pub const EXIT_TICK: usize = 0;
/// Non-maskable interrupts that are Linux's own, handed on.
pub const EXIT_NMI: usize = 1;
/// IRETs and single steps that end Linux's own handler of a non-maskable interrupt.
pub const EXIT_NMI_END: usize = 2;
/// Accesses to hidden memory.
pub const EXIT_HIDDEN: usize = 3;
/// Writes to the tick's devices, or to memory that Linux may only read.
pub const EXIT_WRITE: usize = 4;
/// Steps over such an access.
pub const EXIT_STEP: usize = 5;
/// Addresses that were mapped on their first use.
pub const EXIT_MAP: usize = 6;
/// Writes of registers that could undo the isolation.
pub const EXIT_MSR: usize = 7;
/// Calls of the module.
pub const EXIT_CALL: usize = 8;
/// SVM instructions, which this machine does not offer Linux.
pub const EXIT_SVM: usize = 9;
/// INIT signals.
pub const EXIT_INIT: usize = 10;
/// Non-maskable interrupts by which the cokernel's CPU made the others stand still.
pub const EXIT_PARK: usize = 11;
/// Anything else.
pub const EXIT_OTHER: usize = 12;

/// The tick's timer, as the module claimed it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HostTimer {
    /// Physical address of the HPET's registers.
    pub registers: u64,
    /// Configuration of both timers, interrupts off.
    pub config: u32,
    /// Number of the timer that guards the budget; 2, the tick's, where there is no other.
    pub guard: u32,
    /// Where a message goes: data and address.
    pub message: [u32; 2],
    /// Physical address of the IO-APIC that delivers the tick, 0 where messages do.
    pub ioapic: u64,
    /// Its pin.
    pub pin: u32,
    /// Femtoseconds of one count.
    pub period_fs: u32,
}
assert_size!(HostTimer, 40);

/// Where Linux keeps the name of the task that runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HostNames {
    /// Offset of the pointer to it from Linux's GS base.
    pub current_task: u64,
    /// Offset of its number in it.
    pub pid: u64,
    /// Offset of its name in it, 16 bytes.
    pub comm: u64,
}
assert_size!(HostNames, 24);

/// How many IOMMUs are driven at most.
pub const HOST_MAX_IOMMUS: usize = 8;
/// Bytes of an IOMMU's registers that are used.
pub const HOST_IOMMU_BYTES: u64 = 0x4000;

/// IOMMUs that Linux does not use: the hypervisor does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HostIommu {
    /// Physical addresses of their registers, page-aligned; 0 behind the last.
    pub registers: [u64; HOST_MAX_IOMMUS],
    /// Physical address of the device table, for all of them: zeroed pages in a row.
    pub devices: u64,
    /// Bytes of it.
    pub devices_bytes: u64,
    /// Physical address of zeroed pages in a row, two for each: commands and events.
    pub buffers: u64,
    /// Physical address of an empty table of the same size, which stays Linux's and is never freed: QEMU's IOMMU reads its
    /// table even when it is off.
    pub idle: u64,
}
assert_size!(HostIommu, 8 * HOST_MAX_IOMMUS + 32);

/// What the module tells the hypervisor. It lies in the hypervisor's own memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostEntry {
    /// [`VMM_VERSION`].
    pub version: u32,
    /// Module, for each entry: `HOST_*`.
    pub operation: u32,
    /// Module, for each entry: which of the CPUs this is, 0.. in the order of `apic_ids`.
    pub cpu: u32,
    /// Hypervisor: `HOST_DONE` or why not.
    pub result: u32,
    /// How many CPUs there are.
    pub cpu_count: u32,
    /// The cokernel's.
    pub cokernel_cpu: u32,
    /// 4 or 5: levels of the page tables of the hypervisor's world.
    pub paging_levels: u32,
    /// 3 where pages of 1 GiB exist, else 2.
    pub largest_leaf: u32,
    /// Bits of a physical address.
    pub physical_bits: u32,
    /// Ticks a second.
    pub tick_hz: u32,
    /// Microseconds that one stop of Linux may last.
    pub budget_us: u32,
    /// I/O port of the serial line for events and reports, 0 for none.
    pub serial_port: u32,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// CR3 of the cokernel's guest.
    pub guest_page_table: u64,
    /// Its first instruction in each trip, and what it finds in RDI, RSI and RSP. The word at RSP is `guest_exit`.
    pub guest_entry: u64,
    #[allow(missing_docs)]
    pub guest_argument: u64,
    #[allow(missing_docs)]
    pub guest_trip: u64,
    #[allow(missing_docs)]
    pub guest_stack: u64,
    /// Where it calls the hypervisor to end a trip.
    pub guest_exit: u64,
    /// Virtual addresses and limits of its descriptor tables and its task state segment.
    pub guest_gdt: u64,
    #[allow(missing_docs)]
    pub guest_idt: u64,
    #[allow(missing_docs)]
    pub guest_tss: u64,
    /// Physical address of the page that begins with the `Trip`.
    pub trip: u64,
    /// Physical address of the [`Mailbox`].
    pub mailbox: u64,
    /// Physical address of the [`HostStatus`], which Linux may read.
    pub status: u64,
    /// Virtual address of the event ring.
    pub events: u64,
    /// Bytes of it.
    pub events_bytes: u64,
    /// Physical address of seven pages in a row: the port map and the two register maps.
    pub permissions: u64,
    /// Physical address of the local APIC's registers, mapped in the window.
    pub local_apic: u64,
    /// The tick's timer.
    pub timer: HostTimer,
    /// Names of Linux's tasks.
    pub names: HostNames,
    /// What devices go through.
    pub iommu: HostIommu,
    /// How many of each list are set.
    pub ram_count: u32,
    #[allow(missing_docs)]
    pub guest_count: u32,
    #[allow(missing_docs)]
    pub host_count: u32,
    #[allow(missing_docs)]
    pub read_only_count: u32,
    #[allow(missing_docs)]
    pub pool_count: u32,
    /// 1: Linux's state is compared around every trip (for tests).
    pub check: u32,
    /// System RAM of the machine, ascending, the reserve excluded.
    pub ram: [Range; MAX_RANGES],
    /// Of the reserve: what is the cokernel's.
    pub guest: [Range; MAX_RANGES],
    /// Of the reserve: what is the hypervisor's.
    pub host: [Range; MAX_RANGES],
    /// Of Linux's memory: what Linux may read only (event ring, status).
    pub read_only: [Range; MAX_RANGES],
    /// Of `host`: free pages.
    pub pool: [Range; MAX_RANGES],
    /// Local APIC numbers.
    pub apic_ids: [u32; HOST_MAX_CPUS],
}
assert_size!(HostEntry, 272 + 8 * HOST_MAX_IOMMUS + 32 + 5 * 16 * MAX_RANGES + 4 * HOST_MAX_CPUS);

/// What the hypervisor tells Linux: read-only for it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostStatus {
    /// [`VMM_VERSION`].
    pub version: u32,
    /// As `device::STATE_*`: running or stopped.
    pub state: u32,
    /// Ticks delivered.
    pub ticks: u64,
    /// Ticks that fell together with another.
    pub missed: u64,
    /// Times that the cokernel was cut off.
    pub overruns: u64,
    /// Longest stop of Linux, time-stamp counter ticks.
    pub longest_tsc: u64,
    /// Time-stamp counter when the next tick is due.
    pub due_tsc: u64,
    /// Bytes of nested page tables.
    pub nested_bytes: u64,
    /// Reports of the wall: attempts of Linux that were stopped.
    pub findings: u64,
    /// Words of Linux's state that a trip has changed, where that is looked at.
    pub differences: u64,
    /// NMIs that the cokernel's CPU was given in case that one of Linux's fell together with one of the tick's.
    pub extra_nmis: u64,
    /// Exits of Linux on all CPUs: `EXIT_*`.
    pub exits: [u64; EXIT_REASONS],
    /// Stops of 2^n to 2^(n+1) time-stamp counter ticks.
    pub histogram: [u64; 64],
    /// Why the cokernel was stopped.
    pub fault: Fault,
}
assert_size!(HostStatus, 80 + 8 * EXIT_REASONS + 8 * 64 + 200);

/// Bytes of text in a [`Mailbox`].
pub const MAILBOX_BYTES: usize = 256;

/// One page that the layer in the cokernel's guest shares with the hypervisor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    /// As in `layer::Report`.
    pub kind: u32,
    /// As in `layer::Report`.
    pub code: u32,
    /// Bytes used of `text`.
    pub bytes: u64,
    /// The line.
    pub text: [u8; MAILBOX_BYTES],
    /// What a check did: an `events::CheckStatus`.
    pub check: [u64; 16],
}
assert_size!(Mailbox, 16 + MAILBOX_BYTES + 128);
