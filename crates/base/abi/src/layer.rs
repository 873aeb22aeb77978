//! Kernel module and colocation layer on one side, cokernel and task images on the other.
//!
//! The module loads flat images that begin with an [`ImageHeader`], enters the layer with a [`LayerEntry`] and a
//! [`Trip`], and the layer starts the cokernel with a [`BootBlock`]. The same structures serve *alone* (booted by
//! PVH), *none* (beside Linux without isolation) and *vmm* (behind nested paging).

use crate::assert_size;

/// Version of everything in this module.
pub const LAYER_VERSION: u32 = 1;

/// First eight bytes of every image: "KYOZON" and two bytes that no text file has.
pub const IMAGE_MAGIC: u64 = 0x1a00_4e4f_5a4f_594b;
/// [`ImageHeader::kind`]: the colocation layer.
pub const IMAGE_LAYER: u32 = 1;
/// [`ImageHeader::kind`]: a cokernel.
pub const IMAGE_COKERNEL: u32 = 2;
/// [`ImageHeader::kind`]: a user task of the cokernel, an ELF file of `data_bytes` behind the header's page.
pub const IMAGE_TASK: u32 = 3;
/// [`ImageHeader::kind`]: the hypervisor of mode vmm.
pub const IMAGE_HYPERVISOR: u32 = 4;

/// The layer is linked at this virtual address: below 2 GiB, where Linux keeps no global translation.
pub const LAYER_BASE: u64 = 0x1000_0000;
/// The cokernel is linked at this virtual address.
pub const COKERNEL_BASE: u64 = 0x2000_0000;
/// Task images are mapped here, one behind the other, read-only, each from a page on.
pub const TASKS_BASE: u64 = 0x3000_0000;
/// The cokernel's own memory is mapped here, contiguous whatever the pieces of the reserve are.
pub const MEMORY_BASE: u64 = 0x4000_0000;
/// Linux's physical address `p` is readable at `WINDOW_BASE + p` where `p` is System RAM. The tables below the level-4
/// entries of the window allow user mode, the entries themselves do not: a cokernel that wants a task to read Linux's
/// memory copies them to entries of its own with the user bit.
pub const WINDOW_BASE: u64 = 0x4000_0000_0000;

/// [`BootBlock::mode`]: no Linux on this machine.
pub const MODE_ALONE: u32 = 0;
/// [`BootBlock::mode`]: beside Linux, nothing in between.
pub const MODE_NONE: u32 = 1;
/// [`BootBlock::mode`]: beside Linux, nested paging in between.
pub const MODE_VMM: u32 = 2;

/// Most pieces that a reserve, or a list of RAM ranges, may have.
pub const MAX_RANGES: usize = 64;
/// Most tasks of a cokernel.
pub const MAX_TASKS: usize = 6;
/// Most words of one repair transaction.
pub const MAX_REPAIR_WORDS: usize = 16;

/// The first bytes of an image. The rest is laid out in file order: text, read-only data, data; each starts on a page.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    /// [`IMAGE_MAGIC`].
    pub magic: u64,
    /// [`LAYER_VERSION`].
    pub version: u32,
    /// `IMAGE_*`.
    pub kind: u32,
    /// Virtual address of this header.
    pub base: u64,
    /// Bytes of text from `base` on, a multiple of 4096: read, execute.
    pub text_bytes: u64,
    /// Bytes of read-only data after the text, a multiple of 4096.
    pub rodata_bytes: u64,
    /// Bytes of initialised data in the file after the read-only data: read, write.
    pub data_bytes: u64,
    /// Bytes of memory from the start of data to the end of bss, a multiple of 4096, at least `data_bytes`.
    pub memory_bytes: u64,
    /// Virtual address of the first instruction: the layer's tick entry
    /// (`extern "C" fn(*const LayerEntry, *mut Trip)`), the cokernel's `start` (`extern "C" fn(*const BootBlock)`).
    pub entry: u64,
}
assert_size!(ImageHeader, 64);

/// A piece of memory, physical where nothing else is said.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Address, a multiple of 4096.
    pub base: u64,
    /// Bytes, a multiple of 4096 where it is physical.
    pub bytes: u64,
}
assert_size!(Range, 16);

/// What the module tells the layer before the first entry. It lies in the layer's own memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LayerEntry {
    /// [`LAYER_VERSION`].
    pub version: u32,
    /// `MODE_*`.
    pub mode: u32,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// Ticks a second, 1..=2000.
    pub tick_hz: u32,
    /// Microseconds that one stop of Linux may last before the cokernel is cut off.
    pub budget_us: u32,
    /// Logical number (Linux's) of the CPU the cokernel runs on.
    pub cpu: u32,
    /// 4 or 5: levels of the page tables that are live while the cokernel runs.
    pub paging_levels: u32,
    /// Virtual address of the cokernel's image, [`COKERNEL_BASE`].
    pub cokernel: u64,
    /// Virtual address of the memory that the cokernel may use freely, [`MEMORY_BASE`].
    pub memory: u64,
    /// Bytes of it.
    pub memory_bytes: u64,
    /// CR3 of the cokernel's world.
    pub page_table: u64,
    /// As in [`BootBlock`].
    pub tables: u64,
    /// Virtual address of the trampoline's task state segment: the layer sets its ring-0 stack.
    pub tss: u64,
    /// Virtual address of the trampoline's interrupt descriptor table: the layer fills its gates.
    pub idt: u64,
    /// Virtual address of the event ring, 0 for none.
    pub events: u64,
    /// Bytes of the event ring.
    pub events_bytes: u64,
    /// I/O port of the serial line for events and reports, 0 for none.
    pub serial_port: u32,
    /// How many of `ram` are set.
    pub ram_count: u32,
    /// System RAM of the machine, ascending, the reserve excluded.
    pub ram: [Range; MAX_RANGES],
    /// Virtual address of the [`Trip`] that module and layer share, the same in both worlds.
    pub trip: u64,
    /// Virtual address of the last-level page table entry that maps `poke`: the layer points it at the page it repairs.
    pub poke_entry: u64,
    /// Virtual address of one page without a translation of its own.
    pub poke: u64,
    /// Virtual address of the registers of the timer that guards the budget, 0 where the source has no such timer.
    pub guard: u64,
    /// Byte offset of the guard's comparator in them.
    pub guard_comparator: u32,
    /// Byte offset of the main counter in them.
    pub guard_counter: u32,
    /// Ticks of the main counter in a tick of the time-stamp counter, times 2^32.
    pub guard_per_tsc: u64,
    /// Bytes of the cokernel's image, text only: where a kernel-mode cokernel can be cut off.
    pub cokernel_text_bytes: u64,
    /// Bytes of the cokernel's image, with its data.
    pub cokernel_bytes: u64,
    /// How many of `pieces` are set.
    pub piece_count: u64,
    /// Physical pieces of the cokernel's memory, in the order of their virtual addresses.
    pub pieces: [Range; MAX_RANGES],
    /// How many of `tasks` are set.
    pub task_count: u64,
    /// Task images: virtual address and bytes, not rounded.
    pub tasks: [Range; MAX_TASKS],
    /// A number for the cokernel, from whoever loads it.
    pub parameter: u64,
    /// 1 where the tick comes from the real-time clock, whose interrupt must be acknowledged before it gives another.
    pub acknowledge: u64,
    /// Data for the cokernel from whoever loads it: virtual address and bytes, not rounded.
    pub data: Range,
    /// Virtual address of the `vmm::Mailbox`, 0 where there is no hypervisor.
    pub mailbox: u64,
    /// Must be zero.
    pub reserved: u64,
}
assert_size!(LayerEntry, 240 + 32 * MAX_RANGES + 16 * MAX_TASKS);

/// [`Trip::result`]: the cokernel is idle.
pub const TRIP_IDLE: u32 = 0;
/// [`Trip::result`]: the budget is spent; the cokernel was cut off and goes on at the next tick.
pub const TRIP_CUT_OFF: u32 = 1;
/// [`Trip::result`]: the cokernel is stopped for good, see [`Trip::fault`].
pub const TRIP_STOPPED: u32 = 2;
/// [`Trip::result`]: the layer asks that the other CPUs be parked, and to be entered again at once.
pub const TRIP_PARK: u32 = 3;
/// [`Trip::result`]: a machine check arrived; Linux must see it.
pub const TRIP_MACHINE_CHECK: u32 = 4;

/// [`Trip::parked`]: the other CPUs run, or may go on.
pub const PARKED_FREE: u32 = 0;
/// [`Trip::parked`]: they stand still, until it is free, or until one of them has waited too long and makes it so.
pub const PARKED_STANDING: u32 = 1;
/// [`Trip::parked`]: the layer, which has exchanged it for [`PARKED_STANDING`], is writing: they stand still.
pub const PARKED_WRITING: u32 = 2;
/// [`Trip::parked`]: the bits of the state.
pub const PARKED_STATE: u32 = 3;

/// [`Fault::reason`]: an exception that the cokernel did not handle; `vector` says which.
pub const FAULT_EXCEPTION: u32 = 1;
/// [`Fault::reason`]: the cokernel was cut off too many times without coming to rest.
pub const FAULT_RUNAWAY: u32 = 2;
/// [`Fault::reason`]: the cokernel returned from its `start`.
pub const FAULT_RETURNED: u32 = 3;
/// [`Fault::reason`]: the layer failed itself.
pub const FAULT_LAYER: u32 = 5;
/// [`Fault::reason`]: behind nested paging: the cokernel reached for what is not its own, or its CPU shut down. `vector` is
/// the hypervisor's exit code, `error` and `cr2` are its information.
pub const FAULT_WALL: u32 = 6;
/// [`Fault::reason`]: behind nested paging: an exit has stored the hypervisor's state in place of the cokernel's, which is
/// lost. No processor does that; an emulator may.
pub const FAULT_PROCESSOR: u32 = 7;

/// Why the cokernel was stopped, or where it was last cut off.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// `FAULT_*`, 0 for none.
    pub reason: u32,
    /// Must be zero.
    pub reserved: u32,
    /// CR2 at that time.
    pub cr2: u64,
    /// CR3 at that time.
    pub cr3: u64,
    /// The registers at that time.
    pub frame: Frame,
}
assert_size!(Fault, 200);

/// [`UserState::switched`]: the state is the cokernel's.
pub const USER_SWITCHED: u32 = 1;
/// [`UserState::switched`]: the trip ended in a gate, which may have changed SS.
pub const USER_GATE: u32 = 2;

/// State of Linux that changes only when the cokernel enters user mode. The layer saves it before the first such
/// entry of a trip; it and the trampoline put it back at the trip's end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserState {
    /// FS base.
    pub fs_base: u64,
    /// GS base.
    pub gs_base: u64,
    /// Selectors of DS, ES, FS, GS and of the local descriptor table.
    pub ds: u16,
    #[allow(missing_docs)]
    pub es: u16,
    #[allow(missing_docs)]
    pub fs: u16,
    #[allow(missing_docs)]
    pub gs: u16,
    /// Must be zero.
    pub reserved: u16,
    #[allow(missing_docs)]
    pub ldt: u16,
    /// `USER_*`, for the trampoline: what it puts back.
    pub switched: u32,
}
assert_size!(UserState, 32);

/// One stop of Linux: what module, trampoline and layer tell each other on the way in and out.
///
/// The module's data, mapped at the same address in both worlds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Trip {
    /// Module: the tick that this trip is for; the cokernel's tick handler gets it as it stands.
    pub event: TickEvent,
    /// Module: time-stamp counter when the budget is spent.
    pub deadline_tsc: u64,
    /// Module, then layer: time-stamp counter when the guard interrupts.
    pub guard_tsc: u64,
    /// Module, then layer: time-stamp counter of the next tick.
    pub next_tsc: u64,
    /// Module: time-stamp counter ticks from tick to tick.
    pub period_tsc: u64,
    /// Layer: `TRIP_*`. The module sets [`TRIP_IDLE`] before it enters.
    pub result: u32,
    /// Layer: ticks that were delivered while the cokernel ran.
    pub ticks_inside: u32,
    /// Module: how many interrupts of the guard may come that were on their way before it was armed for this trip.
    pub stale: u32,
    /// Whether the other CPUs stand still: a `PARKED_*` in the low 2 bits, the number of the round in the rest.
    pub parked: u32,
    /// Layer: non-maskable interrupts that came while the cokernel ran and are not ours.
    pub foreign: u32,
    /// Trampoline: non-maskable interrupts that came while the worlds were being switched.
    pub in_transit: u32,
    /// Trampoline: 1 while the cokernel's world is complete, so that the layer's code may run.
    pub inside: u32,
    /// Trampoline: 1 after a machine check.
    pub machine_check: u32,
    /// Layer: address of its code for non-maskable interrupts, entered as from the gate.
    pub nmi_entry: u64,
    /// Layer: address of its code for machine checks, entered as from the gate.
    pub machine_check_entry: u64,
    /// Layer: why it was stopped, or where it was last cut off.
    pub fault: Fault,
    /// Layer: what it has to put back before Linux runs.
    pub user: UserState,
    /// Must be zero.
    pub reserved: u64,
}
assert_size!(Trip, 352);

/// What the layer tells the cokernel's `start`, by address in the first argument register.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BootBlock {
    /// [`LAYER_VERSION`].
    pub version: u32,
    /// `MODE_*`.
    pub mode: u32,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// Ticks a second.
    pub tick_hz: u32,
    /// Microseconds that one stop of Linux may last.
    pub budget_us: u32,
    /// Memory that the cokernel may use freely: virtual address.
    pub memory: u64,
    /// Bytes of it.
    pub memory_bytes: u64,
    /// `extern "C" fn()`: gives the CPU back; returns at a later tick. See [`TickEvent`].
    pub idle: u64,
    /// `extern "C" fn(*mut Window) -> i64`: what of Linux's memory can be read.
    pub linux_window: u64,
    /// `extern "C" fn(*const RepairRequest) -> i64`: `REPAIR_*`.
    pub linux_repair: u64,
    /// `extern "C" fn(*const Report) -> i64`: a line for the event ring and the serial line.
    pub report: u64,
    /// `extern "C" fn(u64, *const CheckStatus) -> i64`: what `kyozon status` says of check number 0..[`MAX_CHECKS`].
    pub publish: u64,
    /// `extern "C" fn(*const Handlers) -> i64`: where the cokernel wants to be entered.
    pub handlers: u64,
    /// `extern "C" fn(*mut Frame) -> i64`: leaves for user mode; returns only to refuse. Selectors and flags of the
    /// frame are set to what user mode may have.
    pub enter_user: u64,
    /// CR3 at `start`.
    pub page_table: u64,
    /// Virtual address, read-only, of the page table at `page_table`; where there are 5 levels, of the level-4 table
    /// of its entry 0 in the next page. An address space of the cokernel's own starts as a copy of these; it uses
    /// level-4 entries that are zero here, and never the global bit.
    pub tables: u64,
    /// 4 or 5: levels of the page tables.
    pub paging_levels: u32,
    /// How many entries `pieces` has.
    pub piece_count: u32,
    /// Virtual address of [`Range`]s: the physical pieces of `memory`, in the order of their virtual addresses.
    pub pieces: u64,
    /// Virtual address of [`Range`]s: the task images, virtual address and bytes each.
    pub tasks: u64,
    /// How many entries `tasks` has.
    pub task_count: u64,
    /// A number from whoever loads the cokernel.
    pub parameter: u64,
    /// Data from whoever loads the cokernel, read-only: virtual address and bytes. Nobody has checked it.
    pub data: Range,
}
assert_size!(BootBlock, 168);

/// Code selector of user mode.
pub const USER_CODE_SELECTOR: u64 = 0x33;
/// Stack and data selector of user mode.
pub const USER_DATA_SELECTOR: u64 = 0x2b;

/// Entry points of the cokernel. 0 leaves the layer's default: stop the cokernel and report.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Handlers {
    /// `extern "C" fn(*const TickEvent)`, on the cokernel's stack, only while it is in `idle` or in user mode: it notes
    /// the tick and returns. Ticks that come at other times wait for the next `idle`, or for user mode. Alone, the CPU holds NMIs back
    /// while it runs out of `idle`: the budget's guard follows when it has returned.
    pub tick: u64,
    /// `extern "C" fn(*mut Frame)`: an exception or a tick (vector 2) that interrupted user mode, or `int 0x80`;
    /// returning resumes the frame. CR2 is the exception's.
    pub user: u64,
    /// Top of the stack that the CPU switches to when user mode is interrupted.
    pub user_stack: u64,
}
assert_size!(Handlers, 24);

/// One tick. Ticks that fell together (the cokernel or firmware held the CPU) are one event with their number.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickEvent {
    /// Number of this tick since load, counting the ones that fell together.
    pub number: u64,
    /// How many were missed since the last event.
    pub missed: u64,
    /// Time-stamp counter when the tick was scheduled.
    pub scheduled_tsc: u64,
    /// Time-stamp counter at the first code of ours that the tick's NMI reached. Alone: in the gate's own stub, as
    /// soon as registers are saved. Beside Linux: in the module's NMI handler, when Linux has called it. A tick that
    /// came while the cokernel ran: when the layer looked at the clock, in every mode.
    pub entered_tsc: u64,
}
assert_size!(TickEvent, 32);

/// Interrupted state of a user task, as [`Handlers::user`] gets it. The order is that of the pushes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the registers'
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub vector: u64,
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}
assert_size!(Frame, 176);

/// Longest line of a [`Report`].
pub const REPORT_BYTES: u64 = 256;

/// A line for whoever watches.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// `EVENT_*` of the event ring.
    pub kind: u32,
    /// Kind-specific number.
    pub code: u32,
    /// Virtual address of the text, in the cokernel's memory.
    pub text: u64,
    /// Bytes of it, at most [`REPORT_BYTES`].
    pub bytes: u64,
}
assert_size!(Report, 24);

/// Readable memory of Linux: [`WINDOW_BASE`] plus each range.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// How many of `ram` are set.
    pub count: u64,
    /// System RAM, ascending.
    pub ram: [Range; MAX_RANGES],
}
assert_size!(Window, 8 + 16 * MAX_RANGES);

/// One word of a repair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairWord {
    /// Physical address in Linux's System RAM, a multiple of 8.
    pub address: u64,
    /// What must stand there, or nothing is written.
    pub expected: u64,
    /// What is written.
    pub value: u64,
}
assert_size!(RepairWord, 24);

/// A transaction: all words are written, or none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RepairRequest {
    /// How many of `words` are meant, 1..=16.
    pub count: u64,
    /// The words; addresses differ from each other.
    pub words: [RepairWord; MAX_REPAIR_WORDS],
}
assert_size!(RepairRequest, 8 + 24 * MAX_REPAIR_WORDS);

/// All words were written.
pub const REPAIR_DONE: i64 = 0;
/// A word did not hold what was expected; nothing was written.
pub const REPAIR_CHANGED: i64 = -1;
/// The request is malformed: count, alignment, an address twice or outside System RAM; nothing was written.
pub const REPAIR_INVALID: i64 = -2;
/// The other CPUs could not be parked in time; nothing was written.
pub const REPAIR_BUSY: i64 = -3;
/// A service was called with an address that is not the cokernel's memory, or with a number out of its range.
pub const SERVICE_BAD_ADDRESS: i64 = -4;
/// A service does not exist in this mode: there is no Linux beside a cokernel that runs alone.
pub const SERVICE_UNAVAILABLE: i64 = -5;
