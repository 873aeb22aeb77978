//! The microkernel on one side, its user tasks on the other: system calls, where things lie, what a task is told.
//!
//! A system call is `int 0x80` with its number in `rax` and arguments in `rdi`, `rsi`, `rdx`. The answer is in `rax`: 0
//! or more, or one of the errors `E_*`. A call that is not about messages changes no other register.
//!
//! The calls about messages ([`CALL`], [`RECEIVE`], [`REPLY_RECEIVE`], [`REPLY`]) carry a message in registers, the same
//! on the way in and out:
//!
//! | register | in | out |
//! |---|---|---|
//! | `rax` | number of the call | 0, or an error |
//! | `rdi` | handle of the endpoint | badge of the sender; 0 where a reply came |
//! | `rcx` | what goes with the message, [`TRANSFER_PAGE`] and so on, or 0 | what came with it, or 0 |
//! | `rsi`, `rdx`, `r8`, `r9`, `r10`, `r11` | words 0 to 5 | words 0 to 5 |
//!
//! All other registers keep their values; where the answer is an error, the words are undefined.
//!
//! Handles are small numbers of the task's own. They name endpoints and notifications, with the rights `HANDLE_*`.

use crate::assert_size;

/// Version of everything in this module.
pub const TASK_VERSION: u32 = 1;

/// The interrupt vector of system calls.
pub const SYSTEM_CALL_VECTOR: u64 = 0x80;

/// [`StartInfo::parameter`] of the monitor: it tells what it finds and repairs nothing. Other bits mean nothing.
pub const MONITOR_REPORT_ONLY: u64 = 1;

// ---------------------------------------------------------------------------------------------------------------------
// Where things lie in a task's address space: all of it in one entry of the level-4 table, but the window.

/// Tasks are linked at this virtual address, static, without relocations.
pub const TASK_BASE: u64 = 0x80_0000_0000;
/// An image ends below.
pub const TASK_IMAGE_END: u64 = TASK_BASE + (256 << 20);
/// [`StartInfo`], read-only. Its address is also the first argument of the task's entry.
pub const TASK_INFO: u64 = 0x81_0000_0000;
/// Top of the stack of the first thread. Stack `n` ends [`TASK_STACK_STRIDE`] bytes lower; below each is nothing.
pub const TASK_STACK_TOP: u64 = 0x82_0000_0000;
/// Bytes from one stack's top to the next one's.
pub const TASK_STACK_STRIDE: u64 = 1 << 20;
/// Bytes of the first thread's stack.
pub const TASK_STACK_BYTES: u64 = 128 << 10;
/// Bytes of every other stack.
pub const THREAD_STACK_BYTES: u64 = 32 << 10;
/// Pages that come with messages are mapped in these [`TASK_SHARE_BYTES`], where the receiver says.
pub const TASK_SHARE_BASE: u64 = 0x83_0000_0000;
/// See [`TASK_SHARE_BASE`].
pub const TASK_SHARE_BYTES: u64 = 2 << 20;
/// The loader's data, read-only.
pub const TASK_DATA_BASE: u64 = 0x84_0000_0000;
/// The heap.
pub const TASK_HEAP_BASE: u64 = 0x88_0000_0000;
/// Linux's physical address `p` is readable at `TASK_WINDOW_BASE + p`, where `p` is in the [`crate::layer::Window`].
pub const TASK_WINDOW_BASE: u64 = 0x6000_0000_0000;
/// Physical addresses from here on are not in a task's window.
pub const TASK_WINDOW_BYTES: u64 = 0x2000_0000_0000;

/// Threads of a task, at most.
pub const TASK_THREADS: u64 = 4;
/// Handles of a task are 0 to this, exclusive.
pub const TASK_HANDLES: u64 = 32;
/// Endpoints and notifications, each, that a task may create.
pub const TASK_OBJECTS: u64 = 8;

/// Handle at the start, of every task: an endpoint of its own, to receive, send and mint.
pub const HANDLE_OWN: u64 = 0;
/// Handle `HANDLE_TASKS + n` at the start. Task 0: to send to [`HANDLE_OWN`] of task `n`. Other tasks: only for `n` = 0,
/// with the badge `n` of the sender.
pub const HANDLE_TASKS: u64 = 1;

/// May send to an endpoint, signal a notification.
pub const HANDLE_SEND: u64 = 1;
/// May receive from an endpoint, wait for a notification.
pub const HANDLE_RECEIVE: u64 = 2;
/// May make more handles of an endpoint, with badges of the caller's choice.
pub const HANDLE_MINT: u64 = 4;

/// [`StartInfo::rights`]: the calls that reach Linux or the operator: [`REPORT`], [`PUBLISH`], [`REPAIR`], [`WINDOW`].
pub const RIGHT_LINUX: u64 = 1;
/// [`StartInfo::rights`]: [`WAIT_TICK`].
pub const RIGHT_TICK: u64 = 2;
/// [`StartInfo::rights`]: [`FAULT_HANDLER`] and [`STOP`] for other tasks; [`GIVE_RIGHTS`].
pub const RIGHT_MANAGE: u64 = 4;

/// What a task is told at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartInfo {
    /// [`TASK_VERSION`].
    pub version: u32,
    /// `MODE_*` of [`crate::layer`].
    pub mode: u32,
    /// Number of this task, from 0.
    pub task: u32,
    /// How many tasks there are.
    pub tasks: u32,
    /// `RIGHT_*`.
    pub rights: u64,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// Ticks a second.
    pub tick_hz: u32,
    /// Microseconds that one stop of Linux may last.
    pub budget_us: u32,
    /// The loader's number.
    pub parameter: u64,
    /// The loader's data, unchecked: address and bytes; 0 bytes for none, and for every task but the first.
    pub data: u64,
    /// See `data`.
    pub data_bytes: u64,
    /// The heap: address and bytes.
    pub heap: u64,
    /// See `heap`.
    pub heap_bytes: u64,
    /// Highest priority that a thread of this task may have.
    pub max_priority: u64,
    /// Must be zero.
    pub reserved: u64,
}
assert_size!(StartInfo, 96);

// ---------------------------------------------------------------------------------------------------------------------
// Messages

/// Sends a message and waits for the reply. Needs [`HANDLE_SEND`].
pub const CALL: u64 = 1;
/// Waits for a message. Whoever still waits for a reply gets [`E_GONE`]. Needs [`HANDLE_RECEIVE`].
pub const RECEIVE: u64 = 2;
/// Replies to the sender of the last message, if it still waits, and waits for the next. Needs [`HANDLE_RECEIVE`].
pub const REPLY_RECEIVE: u64 = 3;
/// Replies to the sender of the last message. No handle is looked at.
pub const REPLY: u64 = 4;
/// `rdi`: what the thread takes with its next message: a page of the share window where it wants a page, plus
/// [`ACCEPT_HANDLE`] where it takes a handle. 0: nothing, as at the start. It holds for one transfer.
pub const ACCEPT: u64 = 5;
/// `rdi`: a page of the share window whose mapping goes.
pub const UNMAP: u64 = 6;

/// [`ACCEPT`]: a handle may come.
pub const ACCEPT_HANDLE: u64 = 1;

/// In `rcx`, low bits: a page is shared. The other bits: its address, and [`TRANSFER_WRITE`].
pub const TRANSFER_PAGE: u64 = 1;
/// In `rcx`, low bits: a page goes from the sender to the receiver.
pub const TRANSFER_GRANT: u64 = 2;
/// In `rcx`, low bits: a copy of a handle, which is in bits 12 to 31; [`TRANSFER_RIGHTS`] says what stays of its rights.
pub const TRANSFER_HANDLE: u64 = 3;
/// Which bits of `rcx` say what is transferred.
pub const TRANSFER_KIND: u64 = 3;
/// The receiver may write to the page. The sender must be able to.
pub const TRANSFER_WRITE: u64 = 4;
/// Shift of the mask of rights, `HANDLE_*`, of a transferred handle.
pub const TRANSFER_RIGHTS: u64 = 4;

/// Set in the badge of a message that the kernel sent for a thread that faulted; bits 0 to 15 are the task.
pub const BADGE_FAULT: u64 = 1 << 63;
/// First word of the reply to a fault: the thread is stopped.
pub const FAULT_STOP: u64 = 0;
/// First word of the reply to a fault: the thread goes on where it was; where word 1 is not zero, at that address.
pub const FAULT_RESUME: u64 = 1;
// Words of a fault's message: vector, error code, rip, cr2, rsp, and the number of the thread in its task.

// ---------------------------------------------------------------------------------------------------------------------
// Notifications: 64 bits that are set by one side and taken by the other.

/// `rdi`: handle, `rsi`: bits to set. Never waits. Needs [`HANDLE_SEND`].
pub const SIGNAL: u64 = 8;
/// `rdi`: handle. Waits until a bit is set, takes all; `rsi` is set to them. Needs [`HANDLE_RECEIVE`].
pub const WAIT: u64 = 9;
/// `rdi`: handle. Takes all bits, also none; `rsi` is set to them. Needs [`HANDLE_RECEIVE`].
pub const POLL: u64 = 10;

// ---------------------------------------------------------------------------------------------------------------------
// Objects, threads, tasks

/// Makes an endpoint. The answer is its handle, with all rights and the badge 0.
pub const ENDPOINT: u64 = 12;
/// Makes a notification. The answer is its handle, with [`HANDLE_SEND`] and [`HANDLE_RECEIVE`].
pub const NOTIFICATION: u64 = 13;
/// `rdi`: handle, `rsi`: badge, `rdx`: rights. The answer is another handle of the same endpoint. Needs [`HANDLE_MINT`].
pub const MINT: u64 = 14;
/// `rdi`: handle, which is free again.
pub const CLOSE: u64 = 15;
/// `rdi`: address of the first instruction, `rsi`: its first argument, `rdx`: priority. The answer is the number of the
/// thread in its task. It gets a stack of its own.
pub const THREAD: u64 = 16;
/// The thread ends. With the last one, so does the task.
pub const EXIT_THREAD: u64 = 17;
/// `rdi`: code. The task ends.
pub const EXIT: u64 = 18;
/// Lets other threads of the same priority run.
pub const YIELD: u64 = 19;
/// `rdi`: priority of the calling thread from now on.
pub const PRIORITY: u64 = 20;
/// `rdi`: number of a task, `rsi`: handle of an endpoint, or [`NO_HANDLE`]: where faults of its threads go. A task may
/// do so for itself, another one's with [`RIGHT_MANAGE`]. Needs [`HANDLE_SEND`].
pub const FAULT_HANDLER: u64 = 21;
/// `rdi`: number of a task, which ends. Needs [`RIGHT_MANAGE`].
pub const STOP: u64 = 22;
/// `rdi`: number of a task, `rsi`: `RIGHT_*` of the caller's that it has from now on. Needs [`RIGHT_MANAGE`].
/// [`StartInfo::rights`] stays what it was.
pub const GIVE_RIGHTS: u64 = 23;
/// Does nothing.
pub const NO_OPERATION: u64 = 24;

/// No handle.
pub const NO_HANDLE: u64 = u64::MAX;

// ---------------------------------------------------------------------------------------------------------------------
// Ticks, Linux, the operator

/// Waits for the next tick. `rsi`, `rdx`, `r8` and `r9` are set to the fields of its [`crate::layer::TickEvent`];
/// `missed` counts every tick since this thread's last. Needs [`RIGHT_TICK`].
pub const WAIT_TICK: u64 = 26;
/// `rdi`: address of a [`crate::layer::Report`], a line of at most [`crate::layer::REPORT_BYTES`]. Needs [`RIGHT_LINUX`].
pub const REPORT: u64 = 27;
/// `rdi`: number of the check, `rsi`: address of a [`crate::events::CheckStatus`]. Needs [`RIGHT_LINUX`].
pub const PUBLISH: u64 = 28;
/// `rdi`: address of a [`crate::layer::RepairRequest`]. The answer is minus `REPAIR_*` of [`crate::layer`], so 0 or
/// more, where the layer was asked. Needs [`RIGHT_LINUX`].
pub const REPAIR: u64 = 29;
/// `rdi`: address of a [`crate::layer::Window`]. Needs [`RIGHT_LINUX`].
pub const WINDOW: u64 = 30;

// ---------------------------------------------------------------------------------------------------------------------
// Errors

/// There is no such call.
pub const E_CALL: i64 = -1;
/// There is no such handle, or it is of another kind.
pub const E_HANDLE: i64 = -2;
/// The handle or the task has not the right.
pub const E_RIGHT: i64 = -3;
/// An address is not the task's, not aligned, or must not be written.
pub const E_ADDRESS: i64 = -4;
/// A number is out of its range.
pub const E_ARGUMENT: i64 = -5;
/// There is no room: handles, objects, threads.
pub const E_FULL: i64 = -6;
/// The other side is gone: its task ended, or it waits for the next message without a reply.
pub const E_GONE: i64 = -7;
/// The other side does not take what should go with the message.
pub const E_REFUSED: i64 = -8;
/// Not in this mode: there is no Linux beside a cokernel that runs alone.
pub const E_UNAVAILABLE: i64 = -9;
/// Nobody waits for a reply.
pub const E_NO_CALLER: i64 = -10;
