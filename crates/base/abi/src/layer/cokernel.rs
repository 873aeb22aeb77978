//! The boot block, which the layer passes to the cokernel, and the cokernel's entry points.

use super::Range;
use crate::assert_size;

/// The structure that the layer passes to the cokernel's `start`, by address in the first argument register.
///
/// Functions use the System V calling convention. Those that return `i64` return 0 on success, else `REPAIR_*` or
/// `SERVICE_*`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BootBlock {
    /// [`LAYER_VERSION`](super::LAYER_VERSION).
    pub version: u32,
    /// `MODE_*`.
    pub mode: u32,
    /// Time-stamp counter ticks per millisecond.
    pub tsc_khz: u64,
    /// Ticks per second.
    pub tick_hz: u32,
    /// Microseconds that one trip may take before the layer cuts the cokernel off.
    pub budget_us: u32,
    /// Virtual address of the memory that the cokernel may use freely.
    pub memory: u64,
    /// Bytes of `memory`.
    pub memory_bytes: u64,
    /// `extern "C" fn()`: gives the CPU back; returns at a later tick. See [`TickEvent`].
    pub idle: u64,
    /// `extern "C" fn(*mut Window) -> i64`: reports which ranges of Linux's memory can be read.
    pub linux_window: u64,
    /// `extern "C" fn(*const RepairRequest) -> i64`: runs a repair transaction; returns `REPAIR_*`.
    pub linux_repair: u64,
    /// `extern "C" fn(*const Report) -> i64`: writes a line to the event ring and to the serial line.
    pub report: u64,
    /// `extern "C" fn(u64, *const StatusWords) -> i64`: sets what `kyozon status` shows of the check with this index,
    /// or of the monitor if the index is [`MONITOR_INDEX`](crate::events::MONITOR_INDEX).
    pub publish: u64,
    /// `extern "C" fn(*const Handlers) -> i64`: sets the cokernel's entry points.
    pub handlers: u64,
    /// `extern "C" fn(*mut Frame) -> i64`: enters user mode; returns only if it refuses. The layer forces the frame's
    /// selectors and flags to values that user mode may have.
    pub enter_user: u64,
    /// CR3 when `start` is called.
    pub page_table: u64,
    /// Virtual address of a read-only view of the tables, from the one at `page_table` down to level 3, a page each.
    /// Each is the one that entry 0 of the table before it names.
    ///
    /// An address space that the cokernel makes starts as a copy of these tables. The cokernel uses level-4 entries
    /// that are zero here, and in the level-3 table those from [`FREE_BASE`](super::FREE_BASE) to
    /// [`MEMORY_BASE`](super::MEMORY_BASE). It never sets the global bit.
    pub tables: u64,
    /// Levels of the page tables: 4 or 5.
    pub paging_levels: u32,
    /// Number of entries in `pieces`.
    pub piece_count: u32,
    /// Virtual address of an array of [`Range`]: the physical pieces of `memory`, in the order of their virtual
    /// addresses.
    pub pieces: u64,
    /// Virtual address of an array of [`Range`]: virtual address and bytes of each task image.
    pub tasks: u64,
    /// Number of entries in `tasks`.
    pub task_count: u64,
    /// The operator's parameter.
    pub parameter: u64,
    /// The operator's data, read-only: virtual address and bytes. The layer does not check its contents.
    pub data: Range,
    /// Virtual address of a word that has [`WORK_TICK`] set while a tick waits for the cokernel.
    pub work: u64,
    /// `extern "C" fn(*mut LinuxRegisters) -> i64`: reports the system registers of this CPU as Linux left them.
    pub linux_registers: u64,
    /// `extern "C" fn(u64) -> i64`: sends what is left for the serial line, has Linux start its crash kernel if it has
    /// one, unless the argument is [`RESET_ONLY`](crate::task::RESET_ONLY), and resets the machine. Returns only if
    /// there is no Linux.
    pub reset: u64,
    /// `extern "C" fn(u64, u64, u64) -> i64`: Linux's writes to this physical address and that many bytes behind it are
    /// watched from now on: whole pages of System RAM. The third number is the physical address of the top page table
    /// of the address space in which Linux patches this memory, or 0: breakpoints that are set there, and what changes
    /// behind them while they stand, are left out. Only with the hypervisor. Watched ranges stay watched.
    pub watch: u64,
    /// `extern "C" fn(*mut Writes) -> i64`: fetches watched writes.
    pub writes: u64,
    /// `extern "C" fn(*mut LinuxRegisters) -> i64`: reports the system registers of another CPU, if one has shown them
    /// since the last call, and asks the next one. Each CPU is asked once a second, or one CPU per tick. Otherwise
    /// [`SERVICE_UNAVAILABLE`](super::SERVICE_UNAVAILABLE). Only in mode none.
    pub other_registers: u64,
    /// `extern "C" fn(u64) -> i64`: with 1, user mode has the x87 unit and the lower halves of the vector registers
    /// until the end of this trip; with 0, their use traps again (vector 7), as at the beginning of each trip. What
    /// user mode left there, it finds. For it, instructions that name an upper half are invalid. Kernel mode must use
    /// none of them.
    pub vectors: u64,
}
assert_size!(BootBlock, 224);

/// [`BootBlock::work`]: a tick waits.
pub const WORK_TICK: u32 = 1;

/// Code selector of kernel mode.
pub const KERNEL_CODE_SELECTOR: u64 = 0x10;
/// Code selector of user mode.
pub const USER_CODE_SELECTOR: u64 = 0x33;
/// Stack and data selector of user mode.
pub const USER_DATA_SELECTOR: u64 = 0x2b;

/// Entry points of the cokernel. 0 keeps the layer's default: it stops the cokernel and reports the fault.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Handlers {
    /// `extern "C" fn(*const TickEvent)`: records the tick and returns. It runs on the cokernel's stack, and only while
    /// the cokernel is in `idle` or in user mode; ticks at other times wait for one of the two.
    ///
    /// In mode alone the handler of a tick out of `idle` runs inside the NMI, so the CPU holds back further NMIs: the
    /// guard's interrupt is delivered after the handler has returned.
    pub tick: u64,
    /// `extern "C" fn(*mut Frame)`: handles an exception or a tick (vector 2) that interrupted user mode, or `int
    /// 0x80`. Returning resumes the frame. CR2 still holds the exception's address.
    pub user: u64,
    /// Top of the stack that the CPU switches to when user mode is interrupted.
    pub user_stack: u64,
    /// Virtual address and bytes of code that runs in kernel mode and is interrupted, cut off and resumed as user mode
    /// is; 0 bytes for none. Its frames have [`KERNEL_CODE_SELECTOR`]. It changes no register of the system, no segment
    /// and no vector register, and has 1 KiB of stack below its stack pointer.
    pub typed: Range,
}
assert_size!(Handlers, 40);

/// One tick. Ticks that could not be delivered one by one, because the cokernel or firmware held the CPU, become one
/// event that counts them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickEvent {
    /// Number of this tick since load, including missed ticks.
    pub number: u64,
    /// Ticks missed since the last event.
    pub missed: u64,
    /// Time-stamp counter at which the tick was scheduled.
    pub scheduled_tsc: u64,
    /// Time-stamp counter at Kyozon's first code for this tick. In mode alone: in the gate's stub, as soon as registers
    /// are saved. Beside Linux: in the module's NMI handler, when Linux has called it. For a tick that arrived while
    /// the cokernel ran, in every mode: when the layer read the clock.
    pub entered_tsc: u64,
}
assert_size!(TickEvent, 32);

/// Interrupted state of a user task, as [`Handlers::user`] receives it. The fields are in the order of the pushes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each field is the register of its name
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
