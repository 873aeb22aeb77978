//! The task interface: the microkernel and its user tasks.
//!
//! **Sides.** The microkernel, and the user tasks that it loads: system calls, the address space of a task, and what a
//! task knows at its start.
//!
//! **Version.** [`TASK_VERSION`], in [`StartInfo`]; a task checks it before it reads anything else.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value, or the meaning of a call or a field changes.
//! New wording or a renamed item does not change the version.
//!
//! A system call is `int 0x80` with its number in `rax` and its arguments in `rdi`, `rsi`, `rdx`. The result is in
//! `rax`: 0 or more, or one of the errors `E_*`. A call that carries no message changes no other register, unless its
//! description says so.
//!
//! The calls [`CALL`], [`RECEIVE`], [`REPLY_RECEIVE`] and [`REPLY`] carry a message in registers, in the same way in
//! and out:
//!
//! | register | in | out |
//! |---|---|---|
//! | `rax` | number of the call | 0, or an error |
//! | `rdi` | handle of the endpoint | badge of the sender; 0 for a reply |
//! | `rcx` | transfer to make with the message (`TRANSFER_*`), or 0 | transfer that was received, or 0 |
//! | `rsi`, `rdx`, `r8`, `r9`, `r10`, `r11` | words 0 to 5 | words 0 to 5 |
//!
//! All other registers keep their values. If the result is an error, the words are undefined.
//!
//! The first task has the x87 unit and the vector registers of SSE, which its threads share: at most one of them may
//! use them. At a start they hold what was left there. In other tasks, and for what names more than 128 bits of a
//! vector register, an instruction faults.
//!
//! A handle is a small number, private to its task, that names an endpoint or a notification with the rights
//! `HANDLE_*`.

use crate::assert_size;

/// Version of this interface.
pub const TASK_VERSION: u32 = 5;

/// Interrupt vector of system calls.
pub const SYSTEM_CALL_VECTOR: u64 = 0x80;

/// [`StartInfo::parameter`] of the monitor: it reports findings and repairs nothing. Bits without a name have no
/// meaning.
pub const MONITOR_REPORT_ONLY: u64 = 1;
/// [`StartInfo::parameter`]: the first task is the monitor. The microkernel publishes a
/// [`MonitorStatus`](crate::events::MonitorStatus) before the task runs, and when it cannot be made.
pub const MONITOR_EXPECTED: u64 = 2;
/// [`StartInfo::parameter`] of the monitor, for tests: it panics at its first finding, unless it was started again.
pub const MONITOR_TEST_PANIC: u64 = 1 << 8;
/// [`StartInfo::parameter`] of the monitor, for tests: it loops for ever at its first finding, unless it was started
/// again.
pub const MONITOR_TEST_LOOP: u64 = 1 << 9;
/// [`StartInfo::parameter`] of the monitor, for tests: it panics at every start.
pub const MONITOR_TEST_BROKEN: u64 = 1 << 10;

// ---------------------------------------------------------------------------------------------------------------------
// The address space of a task. Everything except the window lies under one entry of the level-4 table.

/// Virtual address at which tasks are linked, statically and without relocations.
pub const TASK_BASE: u64 = 0x80_0000_0000;
/// End of the address range for images, exclusive.
pub const TASK_IMAGE_END: u64 = TASK_BASE + (256 << 20);
/// Address of the [`StartInfo`], read-only. It is also the first argument of the task's entry.
pub const TASK_INFO: u64 = 0x81_0000_0000;
/// Top of the first thread's stack. Stack `n` ends `n` times [`TASK_STACK_STRIDE`] bytes lower. The memory between a
/// stack and the next is not mapped.
pub const TASK_STACK_TOP: u64 = 0x82_0000_0000;
/// Bytes between the tops of neighbouring stacks.
pub const TASK_STACK_STRIDE: u64 = 1 << 20;
/// Bytes of the first thread's stack.
pub const TASK_STACK_BYTES: u64 = 128 << 10;
/// Bytes of every other stack.
pub const THREAD_STACK_BYTES: u64 = 32 << 10;
/// Start of the share window, where received pages are mapped at addresses that the receiver chooses.
pub const TASK_SHARE_BASE: u64 = 0x83_0000_0000;
/// Bytes of the share window.
pub const TASK_SHARE_BYTES: u64 = 2 << 20;
/// Memory of the first task that a restart does not change.
pub const TASK_KEPT: u64 = 0x83_8000_0000;
/// Bytes of that memory.
pub const TASK_KEPT_BYTES: u64 = 32 << 10;
/// The operator's data, read-only.
pub const TASK_DATA_BASE: u64 = 0x84_0000_0000;
/// The heap.
pub const TASK_HEAP_BASE: u64 = 0x88_0000_0000;
/// Linux's physical address `p` can be read at `TASK_WINDOW_BASE + p` if `p` is in the [`crate::layer::Window`].
pub const TASK_WINDOW_BASE: u64 = 0x6000_0000_0000;
/// Bytes of a task's window. It does not show higher physical addresses.
pub const TASK_WINDOW_BYTES: u64 = 0x2000_0000_0000;

/// Maximum number of threads of a task.
pub const TASK_THREADS: u64 = 4;
/// Maximum number of handles of a task. Handles are numbers below it.
pub const TASK_HANDLES: u64 = 32;
/// Maximum number of endpoints, and of notifications, that a task may create.
pub const TASK_OBJECTS: u64 = 8;

/// Handle that every task has at its start: an endpoint of its own, to receive, send and mint.
pub const HANDLE_OWN: u64 = 0;
/// Handle `HANDLE_TASKS + n` at the start. In task 0: may send to the [`HANDLE_OWN`] of task `n`. In task `m`: exists
/// only for `n` = 0, and may send to the [`HANDLE_OWN`] of task 0 with the badge `m`.
pub const HANDLE_TASKS: u64 = 1;

/// The holder may send to the endpoint, or signal the notification.
pub const HANDLE_SEND: u64 = 1;
/// The holder may receive from the endpoint, or wait for the notification.
pub const HANDLE_RECEIVE: u64 = 2;
/// The holder may make more handles of the endpoint, with badges of its choice.
pub const HANDLE_MINT: u64 = 4;

/// [`StartInfo::rights`]: the calls that reach Linux or the operator: [`REPORT`], [`PUBLISH`], [`REPAIR`], [`WINDOW`],
/// [`REGISTERS`].
pub const RIGHT_LINUX: u64 = 1;
/// [`StartInfo::rights`]: [`WAIT_TICK`].
pub const RIGHT_TICK: u64 = 2;
/// [`StartInfo::rights`]: [`FAULT_HANDLER`] and [`STOP`] for other tasks; [`GIVE_RIGHTS`].
pub const RIGHT_MANAGE: u64 = 4;
/// [`StartInfo::rights`]: [`RESET`].
pub const RIGHT_RESET: u64 = 8;

/// The information that a task gets at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartInfo {
    /// [`TASK_VERSION`].
    pub version: u32,
    /// `MODE_*` of [`crate::layer`].
    pub mode: u32,
    /// Number of this task, from 0.
    pub task: u32,
    /// Number of tasks.
    pub tasks: u32,
    /// `RIGHT_*` at the start.
    pub rights: u64,
    /// Time-stamp counter ticks per millisecond.
    pub tsc_khz: u64,
    /// Ticks per second.
    pub tick_hz: u32,
    /// Microseconds that one trip may take.
    pub budget_us: u32,
    /// The operator's parameter.
    pub parameter: u64,
    /// Address of the operator's data, which was not checked. Only the first task has it.
    pub data: u64,
    /// Bytes of `data`, 0 for none.
    pub data_bytes: u64,
    /// Address of the heap.
    pub heap: u64,
    /// Bytes of the heap.
    pub heap_bytes: u64,
    /// Maximum priority of a thread of this task.
    pub max_priority: u64,
    /// Number of times that the kernel has started the task again.
    pub restarts: u64,
    /// Address of the kept memory: zeros at the first start; a restart does not change it.
    pub kept: u64,
    /// Bytes of the kept memory. Only the first task has some.
    pub kept_bytes: u64,
}
assert_size!(StartInfo, 112);

// ---------------------------------------------------------------------------------------------------------------------
// Messages

/// Sends a message and waits for the reply. Needs [`HANDLE_SEND`].
pub const CALL: u64 = 1;
/// Waits for a message. A caller that still waits for this thread's reply gets [`E_GONE`]. Needs [`HANDLE_RECEIVE`].
pub const RECEIVE: u64 = 2;
/// Replies to the sender of the last message, if it still waits, and waits for the next. Needs [`HANDLE_RECEIVE`].
pub const REPLY_RECEIVE: u64 = 3;
/// Replies to the sender of the last message. The kernel ignores the handle.
pub const REPLY: u64 = 4;
/// `rdi`: what the thread accepts with its next message: the address of a page in the share window to accept a page
/// there, plus [`ACCEPT_HANDLE`] to accept a handle; 0 for nothing, as at the start. It is valid for one transfer.
pub const ACCEPT: u64 = 5;
/// `rdi`: address of a page in the share window, which is unmapped.
pub const UNMAP: u64 = 6;

/// [`ACCEPT`]: accepts a handle.
pub const ACCEPT_HANDLE: u64 = 1;

/// In the low bits of `rcx`: share a page. The other bits hold its address, and [`TRANSFER_WRITE`].
pub const TRANSFER_PAGE: u64 = 1;
/// In the low bits of `rcx`: move a page from the sender to the receiver.
pub const TRANSFER_GRANT: u64 = 2;
/// In the low bits of `rcx`: copy the handle in bits 12 to 31, with the rights in the mask at [`TRANSFER_RIGHTS`].
pub const TRANSFER_HANDLE: u64 = 3;
/// Mask of the bits of `rcx` that hold the kind of transfer.
pub const TRANSFER_KIND: u64 = 3;
/// The receiver may write to the page. The sender must be able to write to it, too.
pub const TRANSFER_WRITE: u64 = 4;
/// Shift of the mask of rights, `HANDLE_*`, that a transferred handle keeps.
pub const TRANSFER_RIGHTS: u64 = 4;

/// Set in the badge of a message that the kernel sends for a thread that faulted. Bits 0 to 15 are the task. The words
/// are vector, error code, rip, cr2, rsp, and the number of the thread in its task.
pub const BADGE_FAULT: u64 = 1 << 63;
/// First word of the reply to a fault: stop the thread.
pub const FAULT_STOP: u64 = 0;
/// First word of the reply to a fault: resume the thread where it was or, if word 1 is not 0, at that address. A typed
/// task's thread is stopped instead of resumed at another address.
pub const FAULT_RESUME: u64 = 1;

// ---------------------------------------------------------------------------------------------------------------------
// Notifications: 64 bits that one side sets and the other takes.

/// `rdi`: handle, `rsi`: bits to set. Never waits. Needs [`HANDLE_SEND`].
pub const SIGNAL: u64 = 8;
/// `rdi`: handle. Waits until a bit is set, and takes all bits to `rsi`. Needs [`HANDLE_RECEIVE`].
pub const WAIT: u64 = 9;
/// `rdi`: handle. Takes all bits to `rsi`, even if none is set. Needs [`HANDLE_RECEIVE`].
pub const POLL: u64 = 10;

// ---------------------------------------------------------------------------------------------------------------------
// Objects, threads, tasks

/// Creates an endpoint. The result is its handle, with all rights and the badge 0.
pub const ENDPOINT: u64 = 12;
/// Creates a notification. The result is its handle, with [`HANDLE_SEND`] and [`HANDLE_RECEIVE`].
pub const NOTIFICATION: u64 = 13;
/// `rdi`: handle, `rsi`: badge, `rdx`: rights. The result is another handle of the same endpoint. Needs
/// [`HANDLE_MINT`].
pub const MINT: u64 = 14;
/// `rdi`: handle to free.
pub const CLOSE: u64 = 15;
/// `rdi`: address of the first instruction, `rsi`: its first argument, `rdx`: priority. The result is the number of the
/// thread in its task. The thread gets a stack of its own.
pub const THREAD: u64 = 16;
/// Ends the thread. The task ends with its last thread.
pub const EXIT_THREAD: u64 = 17;
/// `rdi`: code. Ends the task.
pub const EXIT: u64 = 18;
/// Lets other threads of the same priority run.
pub const YIELD: u64 = 19;
/// `rdi`: new priority of the calling thread.
pub const PRIORITY: u64 = 20;
/// `rdi`: number of a task, `rsi`: handle of the endpoint that receives the faults of its threads, or [`NO_HANDLE`]. A
/// task may set its own; another task's needs [`RIGHT_MANAGE`]. Needs [`HANDLE_SEND`].
pub const FAULT_HANDLER: u64 = 21;
/// `rdi`: number of the task to end. Needs [`RIGHT_MANAGE`].
pub const STOP: u64 = 22;
/// `rdi`: number of a task, `rsi`: `RIGHT_*` that it has from now on, of those that the caller has. Needs
/// [`RIGHT_MANAGE`]. [`StartInfo::rights`] keeps its value.
pub const GIVE_RIGHTS: u64 = 23;
/// Does nothing: for measuring a system call.
pub const NO_OPERATION: u64 = 24;

/// No handle.
pub const NO_HANDLE: u64 = u64::MAX;

// ---------------------------------------------------------------------------------------------------------------------
// Ticks, Linux, the operator

/// Waits for the next tick. Sets `rsi`, `rdx`, `r8` and `r9` to the fields of its [`crate::layer::TickEvent`], where
/// `missed` counts all ticks since this thread's last one. Needs [`RIGHT_TICK`].
pub const WAIT_TICK: u64 = 26;
/// `rdi`: address of a [`crate::layer::Report`], a line of at most [`crate::layer::REPORT_BYTES`]. Of a typed task:
/// address and bytes of a note's text. Needs [`RIGHT_LINUX`].
pub const REPORT: u64 = 27;
/// `rdi`: index of the status, `rsi`: address of its [`crate::events::StatusWords`]: a check's
/// [`crate::events::CheckStatus`], or with [`crate::events::MONITOR_INDEX`] a [`crate::events::MonitorStatus`]. Needs
/// [`RIGHT_LINUX`].
pub const PUBLISH: u64 = 28;
/// `rdi`: address of a [`crate::layer::RepairRequest`]. If the kernel asked the layer, the result is minus the layer's
/// `REPAIR_*`, so 0 or more. Needs [`RIGHT_LINUX`].
pub const REPAIR: u64 = 29;
/// `rdi`: address of a [`crate::layer::Window`] that the kernel fills in. Needs [`RIGHT_LINUX`].
pub const WINDOW: u64 = 30;
/// `rdi`: maximum number of ticks for which no thread of this task waits for a tick, from the first [`WAIT_TICK`] on; 0
/// for no limit. From now on the kernel starts the task again if the task exceeds that limit, faults, or exits with
/// another code than 0: with its data as in its image, an empty heap, and the content of its kept memory
/// ([`StartInfo::kept`]). Needs [`RIGHT_TICK`].
pub const SUPERVISE: u64 = 31;

// ---------------------------------------------------------------------------------------------------------------------
// Typed tasks: the microkernel checks a program of typed code, and runs it in its own address space, in kernel mode.
//
// A call is an import of the program, by its number, or of a compiled program by its name in module `task`. Arguments
// are those above, in the registers of the System V ABI; the result is in `rax`. An address of the program's is an
// offset in its first memory; a program without manifest has 64 KiB from the region's start on. There are
// [`NO_OPERATION`] (`nothing`), [`WAIT_TICK`] (`wait_tick`, which gives no event), [`EXIT`] (`exit`), [`REPORT`]
// (`report`, with other arguments), and these.

/// Start of the region of a typed task.
pub const TASK_REGION: u64 = 0x4000_0000;
/// Bytes that are reserved for it.
pub const TASK_REGION_RESERVED: u64 = 0xa_0000_0000;
/// As `read`: `rdi`: physical address in Linux's memory, `rsi`: address, `rdx`: bytes to copy there, at most 4096; all
/// three are multiples of 8. Needs [`RIGHT_LINUX`].
pub const READ_LINUX: u64 = 32;
/// As `clock`: the time-stamp counter.
pub const CLOCK: u64 = 33;
/// As `parameter`: the operator's parameter.
pub const PARAMETER: u64 = 34;

/// `rdi`: address of a [`crate::layer::LinuxRegisters`] that the kernel fills in. `rsi`: [`REGISTERS_OF_ANOTHER`], or
/// any other number for those of this CPU. Needs [`RIGHT_LINUX`].
pub const REGISTERS: u64 = 35;
/// Argument of [`REGISTERS`]: those of another CPU, if one has shown them since the last call.
pub const REGISTERS_OF_ANOTHER: u64 = 1;
/// Sends what is left for the serial line, has Linux start its crash kernel if it has one, and resets the machine if
/// not: Linux starts again from its firmware. `rdi`: [`RESET_ONLY`], or any other number. Needs [`RIGHT_RESET`].
pub const RESET: u64 = 36;
/// Argument of [`RESET`]: resets the machine, whether there is a crash kernel or not.
pub const RESET_ONLY: u64 = 1;
/// `rdi`: physical address, `rsi`: bytes of whole pages of Linux's memory, `rdx`: the address space in which Linux
/// patches them, see [`BootBlock::watch`](crate::layer::BootBlock::watch). From now on Linux's writes there are
/// watched. Needs [`RIGHT_LINUX`]; [`E_UNAVAILABLE`] without the hypervisor, and if it has no room.
pub const WATCH: u64 = 37;
/// `rdi`: address of a [`crate::layer::Writes`] that the kernel fills with watched writes. Needs [`RIGHT_LINUX`].
pub const WRITES: u64 = 38;

/// Code of [`EXIT`]: the task panicked.
pub const EXIT_PANICKED: u64 = 1;
/// Code of [`EXIT`]: the task was built for another version of this interface.
pub const EXIT_VERSION: u64 = 2;
/// Code of [`EXIT`]: the task cannot do its work.
pub const EXIT_FAILED: u64 = 3;

// ---------------------------------------------------------------------------------------------------------------------
// Errors

/// The call does not exist.
pub const E_CALL: i64 = -1;
/// The handle does not exist, or is of another kind.
pub const E_HANDLE: i64 = -2;
/// The handle or the task lacks the right.
pub const E_RIGHT: i64 = -3;
/// An address is not the task's, is not aligned, or must not be written.
pub const E_ADDRESS: i64 = -4;
/// A number is out of range.
pub const E_ARGUMENT: i64 = -5;
/// No room is left: handles, objects, threads.
pub const E_FULL: i64 = -6;
/// The other side is gone: its task ended, or it waits for the next message without having replied.
pub const E_GONE: i64 = -7;
/// The other side does not accept the transfer.
pub const E_REFUSED: i64 = -8;
/// The call does not exist in this mode: no Linux runs beside a cokernel that runs alone.
pub const E_UNAVAILABLE: i64 = -9;
/// No caller waits for a reply.
pub const E_NO_CALLER: i64 = -10;
