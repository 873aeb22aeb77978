//! The hypervisor interface of mode *vmm*.
//!
//! **Sides.** The hypervisor; and its two callers: the kernel module in Linux's guest, and the layer in the cokernel's.
//!
//! **Version.** [`VMM_VERSION`]. The hypervisor refuses a [`HostEntry`] with another version. [`HostStatus`] starts
//! with it, too.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field or call changes. New
//! wording or a renamed item does not change the version.
//!
//! The module builds the hypervisor's world and enters it once on every CPU with [`HOST_LAUNCH`]. From then on Linux is
//! a guest. Both guests call the hypervisor by `vmmcall` from kernel mode, with `CALL_*` in RAX; RAX holds the result.

use crate::assert_size;
use crate::events::STATUS_WORDS;
use crate::layer::{Fault, LinuxRegisters, Range, Writes, MAX_RANGES};

/// Version of this interface.
pub const VMM_VERSION: u32 = 10;

/// In [`HostEntry::off_types`]: no type switches the machine off.
pub const SLEEP_UNKNOWN: u32 = 8;

/// Virtual address at which the hypervisor is linked. Nothing in the cokernel's world uses it.
pub const HYPERVISOR_BASE: u64 = 0x0800_0000;
/// In the hypervisor's world, physical address `p` is mapped at `HOST_WINDOW_BASE + p`, readable and writable, if it
/// belongs to System RAM, to the reserve, or to a device page that [`HostEntry`] names.
pub const HOST_WINDOW_BASE: u64 = 0x4000_0000_0000;
/// The stack of CPU `n` ends at `HOST_STACKS + (n + 1) * HOST_STACK_STRIDE`, exclusive.
pub const HOST_STACKS: u64 = 0x0a00_0000;
/// Bytes between the ends of neighbouring stacks. The memory between two stacks is not mapped.
pub const HOST_STACK_STRIDE: u64 = 0x1_0000;
/// Bytes of one CPU's stack.
pub const HOST_STACK_BYTES: u64 = 0x4000;
/// Maximum number of CPUs.
pub const HOST_MAX_CPUS: usize = 64;

/// [`HostEntry::operation`]: turns this CPU's present state into a guest. It returns to its caller as that guest.
pub const HOST_LAUNCH: u32 = 1;
/// [`HostEntry::operation`]: ends the guest and gives this CPU back to Linux. Allowed after [`CALL_OPEN`] on this CPU.
pub const HOST_LEAVE: u32 = 2;

/// From Linux: hides the reserve on this CPU from now on.
pub const CALL_SEAL: u64 = 0x4b59_0001;
/// From Linux, with the key of [`HostEntry::key`] in RDI and RSI: makes all memory visible on this CPU again.
pub const CALL_OPEN: u64 = 0x4b59_0002;
/// From Linux, on the cokernel's CPU, with the key: starts the ticks, unless they run.
pub const CALL_START: u64 = 0x4b59_0003;
/// From Linux, with the key: stops the ticks. If another CPU calls it, a trip may still be in progress.
pub const CALL_STOP: u64 = 0x4b59_0004;
/// From the hypervisor's own code only, in Linux's guest but in the hypervisor's world: gives this CPU back.
pub const CALL_LEAVE: u64 = 0x4b59_0005;
/// From Linux, which suspects that ticks are missing: checks whether the next tick is overdue, and reports it.
pub const CALL_CHECK_TICK: u64 = 0x4b59_0006;
/// From the cokernel: writes the word RSI to physical address RDI in Linux's System RAM. The result is 0, or -1 if the
/// address is not allowed.
pub const CALL_WRITE: u64 = 0x4b59_0010;
/// From the cokernel: writes the line in the [`Mailbox`] to the event ring and the serial line.
pub const CALL_REPORT: u64 = 0x4b59_0011;
/// From the cokernel: publishes the status in the [`Mailbox`] as the one with index RDI.
pub const CALL_PUBLISH: u64 = 0x4b59_0012;
/// From the cokernel: writes Linux's registers on this CPU to the [`Mailbox`].
pub const CALL_REGISTERS: u64 = 0x4b59_0013;
/// From the cokernel: sends what is left for the serial line, and asks Linux to start its crash kernel. A call two
/// seconds later resets the machine; before that, the result is [`RESET_WAITS`]. If RDI is
/// [`RESET_ONLY`](crate::task::RESET_ONLY), the first call resets it.
pub const CALL_RESET: u64 = 0x4b59_0014;
/// The result of [`CALL_RESET`] while Linux may still start its crash kernel.
pub const RESET_WAITS: u64 = 1;
/// From the cokernel: watches Linux's writes to the RSI bytes at physical address RDI, which it patches in the address
/// space RDX. The result is 0, or -1 if they are no whole pages of System RAM, or there is no room.
pub const CALL_WATCH: u64 = 0x4b59_0015;
/// From the cokernel: moves watched writes to the [`Mailbox`].
pub const CALL_WRITES: u64 = 0x4b59_0016;

/// [`HostEntry::result`]: success.
pub const HOST_DONE: u32 = 0;
/// [`HostEntry::result`]: the version differs, or memory ran out.
pub const HOST_REFUSED: u32 = 1;

/// Number of counters in [`HostStatus::exits`]; `EXIT_*` are indices into it.
pub const EXIT_REASONS: usize = 16;
/// Non-maskable interrupts of the tick and of its guard.
pub const EXIT_TICK: usize = 0;
/// Non-maskable interrupts that belong to Linux; the hypervisor passes them on.
pub const EXIT_NMI: usize = 1;
/// IRETs and single steps that end Linux's own handler of a non-maskable interrupt.
pub const EXIT_NMI_END: usize = 2;
/// Accesses to hidden memory.
pub const EXIT_HIDDEN: usize = 3;
/// Writes to the tick's devices, or to memory that Linux may only read.
pub const EXIT_WRITE: usize = 4;
/// Single steps over an access of these two kinds, or over a write to watched memory.
pub const EXIT_STEP: usize = 5;
/// First accesses to addresses that are mapped on demand.
pub const EXIT_MAP: usize = 6;
/// Writes to registers that could undo the isolation.
pub const EXIT_MSR: usize = 7;
/// Calls from the module.
pub const EXIT_CALL: usize = 8;
/// SVM instructions. The hypervisor does not offer SVM to Linux.
pub const EXIT_SVM: usize = 9;
/// INIT signals.
pub const EXIT_INIT: usize = 10;
/// Non-maskable interrupts by which the cokernel's CPU parked the other CPUs.
pub const EXIT_PARK: usize = 11;
/// Anything else.
pub const EXIT_OTHER: usize = 12;
/// Writes to watched memory.
pub const EXIT_WATCH: usize = 13;

/// The tick's HPET timer, as the module claimed it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HostTimer {
    /// Physical address of the HPET's registers.
    pub registers: u64,
    /// Configuration register of both timers, with interrupts disabled.
    pub config: u32,
    /// Number of the timer that guards the budget. It is 2, the tick's own timer, if there is no other.
    pub guard: u32,
    /// The interrupt message (MSI): data and address.
    pub message: [u32; 2],
    /// Physical address of the IO-APIC that delivers the tick, 0 if messages deliver it.
    pub ioapic: u64,
    /// Pin of the IO-APIC.
    pub pin: u32,
    /// Femtoseconds per tick of the main counter.
    pub period_fs: u32,
}
assert_size!(HostTimer, 40);

/// Where Linux keeps the name of the running task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HostNames {
    /// Offset from Linux's GS base of the pointer to the running task's `task_struct`.
    pub current_task: u64,
    /// Offset of the pid in `task_struct`.
    pub pid: u64,
    /// Offset of the name, 16 bytes, in `task_struct`.
    pub comm: u64,
}
assert_size!(HostNames, 24);

/// Maximum number of IOMMUs that the hypervisor drives.
pub const HOST_MAX_IOMMUS: usize = 8;
/// Bytes of an IOMMU's registers that the hypervisor uses.
pub const HOST_IOMMU_BYTES: u64 = 0x4000;

/// The IOMMUs that Linux does not use, so that the hypervisor can.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HostIommu {
    /// Physical addresses of their registers, page-aligned. 0 follows the last.
    pub registers: [u64; HOST_MAX_IOMMUS],
    /// Physical address of the device table that all of them share: contiguous zeroed pages.
    pub devices: u64,
    /// Bytes of the device table.
    pub devices_bytes: u64,
    /// Physical address of contiguous zeroed pages, two for each IOMMU: its commands and its events.
    pub buffers: u64,
    /// Physical address of an empty device table of the same size. Linux keeps its memory and never frees it, because
    /// QEMU's IOMMU reads its table even when it is off.
    pub idle: u64,
}
assert_size!(HostIommu, 8 * HOST_MAX_IOMMUS + 32);

/// The module's description of the machine for the hypervisor. It lies in the hypervisor's own memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostEntry {
    /// [`VMM_VERSION`].
    pub version: u32,
    /// From the module, on each entry: `HOST_LAUNCH` or `HOST_LEAVE`.
    pub operation: u32,
    /// From the module, on each entry: index of this CPU in `apic_ids`.
    pub cpu: u32,
    /// From the hypervisor: `HOST_DONE` or `HOST_REFUSED`.
    pub result: u32,
    /// Number of CPUs.
    pub cpu_count: u32,
    /// Index of the cokernel's CPU.
    pub cokernel_cpu: u32,
    /// Levels of the page tables of the hypervisor's world: 4 or 5.
    pub paging_levels: u32,
    /// Highest level at which a page-table entry can map a page: 3 if the CPU has pages of 1 GiB, else 2.
    pub largest_leaf: u32,
    /// Number of bits of a physical address.
    pub physical_bits: u32,
    /// Ticks per second.
    pub tick_hz: u32,
    /// Microseconds that one trip may take.
    pub budget_us: u32,
    /// I/O port of the serial line for events and reports, 0 for none.
    pub serial_port: u32,
    /// Time-stamp counter ticks per millisecond.
    pub tsc_khz: u64,
    /// CR3 of the cokernel's guest.
    pub guest_page_table: u64,
    /// Virtual address of the cokernel guest's first instruction in each trip.
    pub guest_entry: u64,
    /// RDI at `guest_entry`.
    pub guest_argument: u64,
    /// RSI at `guest_entry`.
    pub guest_trip: u64,
    /// RSP at `guest_entry`. The word there is `guest_exit`, the return address.
    pub guest_stack: u64,
    /// Virtual address of the code by which the cokernel's guest calls the hypervisor to end a trip.
    pub guest_exit: u64,
    /// Virtual address of the guest's global descriptor table.
    pub guest_gdt: u64,
    /// Virtual address of the guest's interrupt descriptor table.
    pub guest_idt: u64,
    /// Virtual address of the guest's task state segment.
    pub guest_tss: u64,
    /// Physical address of the page that starts with the [`Trip`](crate::layer::Trip).
    pub trip: u64,
    /// Physical address of the [`Mailbox`].
    pub mailbox: u64,
    /// Physical address of the [`HostStatus`], which Linux may read.
    pub status: u64,
    /// Virtual address of the event ring.
    pub events: u64,
    /// Bytes of the event ring.
    pub events_bytes: u64,
    /// Physical address of ten contiguous pages: the cokernel's I/O permission map, the two MSR permission maps, and
    /// Linux's I/O permission map.
    pub permissions: u64,
    /// Physical address of the local APIC's registers. The window maps them.
    pub local_apic: u64,
    /// From the module: 128 random bits, without which nobody can open the wall, start or stop the ticks.
    pub key: [u64; 2],
    /// The tick's timer.
    pub timer: HostTimer,
    /// Where Linux keeps the names of its tasks.
    pub names: HostNames,
    /// The IOMMUs.
    pub iommu: HostIommu,
    /// Number of valid entries in `ram`.
    pub ram_count: u32,
    /// Number of valid entries in `guest`.
    pub guest_count: u32,
    /// Number of valid entries in `host`.
    pub host_count: u32,
    /// Number of valid entries in `read_only`.
    pub read_only_count: u32,
    /// Number of valid entries in `pool`.
    pub pool_count: u32,
    /// 1 to compare Linux's state before and after every trip, for tests.
    pub check: u32,
    /// The I/O ports of ACPI's control registers PM1a and PM1b, 0 for none. A bit in them puts the machine to sleep.
    pub sleep_ports: [u32; 2],
    /// The sleep type that switches the machine off, for each of them; [`SLEEP_UNKNOWN`] if there is none.
    pub off_types: [u32; 2],
    /// System RAM of the machine without the reserve, and what Linux may add to it, in ascending order.
    pub ram: [Range; MAX_RANGES],
    /// The part of the reserve that belongs to the cokernel.
    pub guest: [Range; MAX_RANGES],
    /// The part of the reserve that belongs to the hypervisor.
    pub host: [Range; MAX_RANGES],
    /// The part of Linux's memory that Linux may only read: the event ring and the status.
    pub read_only: [Range; MAX_RANGES],
    /// The free pages in `host`.
    pub pool: [Range; MAX_RANGES],
    /// Local APIC IDs of the CPUs.
    pub apic_ids: [u32; HOST_MAX_CPUS],
}
assert_size!(HostEntry, 304 + 8 * HOST_MAX_IOMMUS + 32 + 5 * 16 * MAX_RANGES + 4 * HOST_MAX_CPUS);

/// The hypervisor's status. Linux can only read it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostStatus {
    /// [`VMM_VERSION`].
    pub version: u32,
    /// [`STATE_RUNNING`](crate::device::STATE_RUNNING) or [`STATE_STOPPED`](crate::device::STATE_STOPPED).
    pub state: u32,
    /// Ticks delivered.
    pub ticks: u64,
    /// Ticks that were not delivered one by one: a later event counted them.
    pub missed: u64,
    /// Number of times that the cokernel was cut off.
    pub overruns: u64,
    /// Longest trip, in time-stamp counter ticks.
    pub longest_tsc: u64,
    /// Time-stamp counter at which the next tick is due.
    pub due_tsc: u64,
    /// Bytes of nested page tables.
    pub nested_bytes: u64,
    /// Attempts of Linux that nested paging, the wall, stopped and reported.
    pub findings: u64,
    /// Words of Linux's state that trips changed, if [`HostEntry::check`] is set.
    pub differences: u64,
    /// Bit `n`: the NMI that CPU `n` got last may not be Linux's. The hypervisor writes it when it injects the NMI, so
    /// it is exact for as long as the handler runs.
    pub doubtful_nmis: u64,
    /// Not 0 once the cokernel asks Linux to start its crash kernel. The cokernel's CPU gets an NMI for it.
    pub crash: u64,
    /// Exits of Linux on all CPUs, indexed by `EXIT_*`.
    pub exits: [u64; EXIT_REASONS],
    /// Entry `n`: number of trips that took 2^n to 2^(n+1) time-stamp counter ticks.
    pub histogram: [u64; 64],
    /// Why the cokernel was stopped.
    pub fault: Fault,
}
assert_size!(HostStatus, 88 + 8 * EXIT_REASONS + 8 * 64 + 200);

/// Maximum bytes of text in a [`Mailbox`].
pub const MAILBOX_BYTES: usize = 256;

/// A page that the layer in the cokernel's guest shares with the hypervisor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    /// The same as in [`layer::Report`](crate::layer::Report).
    pub kind: u32,
    /// The same as in [`layer::Report`](crate::layer::Report).
    pub code: u32,
    /// Number of valid bytes in `text`.
    pub bytes: u64,
    /// The line.
    pub text: [u8; MAILBOX_BYTES],
    /// The words of a status of the event ring.
    pub status: [u64; STATUS_WORDS],
    /// From the hypervisor: Linux's registers.
    pub registers: LinuxRegisters,
    /// From the hypervisor: watched writes.
    pub writes: Writes,
}
assert_size!(Mailbox, 16 + MAILBOX_BYTES + 8 * STATUS_WORDS + 160 + size_of::<Writes>());
