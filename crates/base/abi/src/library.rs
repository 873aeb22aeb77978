//! Library Linux: a kernel image in the address space of its host.
//!
//! **Sides.** The kernel image (`linux/library`), and the loader that maps it into a process or a unikernel.
//!
//! **Version.** [`LIBRARY_VERSION`]. The image's entry refuses another version.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field changes.
//!
//! The image is a position-independent ELF file without imports. The loader maps it at the start of the kernel's
//! memory, applies its relative relocations, and calls its entry once, `i64 entry(const LibraryHost *, LibraryKernel
//! *)`. All functions follow the System V calling convention; errors are negative errno values. Functions of the host
//! must not call the kernel, except `interrupt`.

use crate::assert_size;

/// Version of this interface.
pub const LIBRARY_VERSION: u32 = 3;

/// Alignment of the kernel's memory in bytes: the largest block of Linux's page allocator.
pub const LIBRARY_MEMORY_ALIGN: u64 = 4 << 20;
/// Minimum bytes of the kernel's memory, including its image.
pub const LIBRARY_MEMORY_MIN: u64 = 32 << 20;
/// Maximum bytes of the command line, including the closing zero.
pub const LIBRARY_COMMAND_LINE_BYTES: usize = 2048;
/// Number of interrupt lines. Line 0 belongs to the timer.
pub const LIBRARY_INTERRUPTS: u32 = 64;
/// A deadline that never comes.
pub const LIBRARY_NEVER: u64 = 0xffff_ffff_ffff_ffff;

/// [`LibraryThread::kind`]: a system call.
pub const LIBRARY_SYSCALL: u32 = 0;
/// [`LibraryThread::kind`]: make a task for this host thread. The result is its thread id.
pub const LIBRARY_ATTACH: u32 = 1;
/// [`LibraryThread::kind`]: end this host thread's task.
pub const LIBRARY_DETACH: u32 = 2;

/// [`LibraryThread::done`]: the request is not complete.
pub const LIBRARY_PENDING: u32 = 0;
/// [`LibraryThread::done`]: the request is complete.
pub const LIBRARY_DONE: u32 = 1;
/// [`LibraryThread::done`]: the request is not complete, and the host thread waits.
pub const LIBRARY_PARKED: u32 = 2;

/// What the host offers. Function members are addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LibraryHost {
    /// [`LIBRARY_VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// The kernel's memory, aligned to [`LIBRARY_MEMORY_ALIGN`]. It begins with the image; the rest is zero.
    pub memory: u64,
    /// Bytes of the kernel's memory, a multiple of [`LIBRARY_MEMORY_ALIGN`].
    pub memory_bytes: u64,
    /// Linux's command line, a string that ends with a zero.
    pub command_line: u64,
    /// The first argument of each function below.
    pub context: u64,
    /// `u64 now(context)`: nanoseconds that never go back.
    pub now: u64,
    /// `u64 realtime(context)`: nanoseconds since 1970.
    pub realtime: u64,
    /// `void print(context, const char *text, u64 bytes)`: text of the kernel's log.
    pub print: u64,
    /// `void park(context, u32 *word, u32 value, u64 deadline)`: waits while `*word` is `value`, until `unpark` or the
    /// deadline, on the clock of `now`. It may return early.
    pub park: u64,
    /// `void unpark(context, u32 *word, u32 count)`: wakes up to `count` threads that wait on `word`.
    pub unpark: u64,
    /// `void wait(context, u32 *word, u32 value, u64 deadline)`: as `park`, for a thread that waits for the end of its
    /// request. It may call `interrupt` meanwhile, and so complete the request itself.
    pub wait: u64,
    /// `u64 mmio_read(context, u64 address, u32 bytes)`: reads a device register.
    pub mmio_read: u64,
    /// `void mmio_write(context, u64 address, u32 bytes, u64 value)`: writes a device register.
    pub mmio_write: u64,
    /// `i64 barrier(context)`: a full memory barrier on every running thread that calls the kernel; 0, or an error if
    /// the host has none.
    pub barrier: u64,
    /// Random bytes.
    pub seed: [u8; 32],
}
assert_size!(LibraryHost, 144);

/// What the kernel offers. Function members are addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LibraryKernel {
    /// [`LIBRARY_VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// `i64 start(LibraryThread *)`: boots. The thread is not attached by this.
    pub start: u64,
    /// `i64 call(LibraryThread *)`: performs the thread's request and waits until it is complete. `-ESHUTDOWN` after
    /// the kernel halted; `-EDEADLK` from a signal handler that interrupted a call of the same thread.
    pub call: u64,
    /// `void service(LibraryThread *)`: keeps time while no other thread does, until the kernel halts. One host thread
    /// of its own runs it.
    pub service: u64,
    /// `void interrupt(u32 line)`: raises an interrupt, from any host thread.
    pub interrupt: u64,
    /// `u64 fixup(u64 ip)`: where to continue after a fault at `ip` on an address that a program passed, or 0 if the
    /// fault is the kernel's own.
    pub fixup: u64,
    /// Address of a `u32`: 0 while the kernel runs, 1 after a power-off, 2 after a panic.
    pub halted: u64,
}
assert_size!(LibraryKernel, 56);

/// A host thread, as the kernel knows it. The memory belongs to the host; it must not move while the thread is attached
/// or in a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LibraryThread {
    /// The kernel's: the host thread's stack pointer while it is in the kernel.
    pub host_stack: u64,
    /// The kernel's: the thread's task, 0 if it has none.
    pub task: u64,
    /// The kernel's: where the task's stack begins.
    pub stack_top: u64,
    /// The kernel's: the word that the host thread waits on.
    pub done: u32,
    /// The kernel's: 1 between submission and start of a request.
    pub submitted: u32,
    /// The request: one of the kinds above.
    pub kind: u32,
    /// The kernel's: 1 while the thread is inside `call`.
    pub inside: u32,
    /// The number of the system call.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// The result.
    pub result: i64,
    /// The kernel's: until when this thread waits on behalf of the timer.
    pub until: u64,
    /// The kernel's: list of attached threads, and of those to attach.
    pub next: u64,
    /// The kernel's: the same.
    pub previous: u64,
    /// The kernel's: 1 while the thread is inside under the biased lock.
    pub busy: u32,
    /// Zero.
    pub reserved: u32,
}
assert_size!(LibraryThread, 136);
