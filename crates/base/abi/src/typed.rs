//! The interfaces of the kernel module that hosts typed code.
//!
//! **Sides.** [`TypedCheck`], [`TypedLoad`] and [`TypedRun`]: the module (`/dev/kyozon-typed`), and the command.
//! [`TypedChecker`] and [`TypedBuild`]: the module's C code, and the crate that is linked with it; both are built
//! together.
//!
//! **Version.** [`TYPED_VERSION`]. The module refuses a request with another version.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field of a request
//! changes. New wording or a renamed item does not change the version.

use crate::assert_size;
use crate::device::Image;
use core::mem::size_of;

/// Version of the requests.
pub const TYPED_VERSION: u32 = 2;

/// Start of the region that programs for the kernel are made for.
pub const TYPED_REGION: u64 = 0x1000_0000;
/// Bytes that are reserved for the region: each 32-bit index, scaled by up to 8, plus each 32-bit offset.
pub const TYPED_RESERVED: u64 = 0xa_0000_0000;
/// Most bytes of a program's file.
pub const TYPED_MAX_FILE: u64 = 16 << 20;
/// Bytes of the line that explains why a request failed, including the closing zero.
pub const TYPED_MESSAGE_BYTES: usize = 256;

/// Handles that a program can have.
pub const TYPED_HANDLES: usize = 16;

/// `ioctl` request: [`TypedCheck`], `_IOWR('K', 16, struct kyozon_typed_check)`.
pub const IOCTL_TYPED_CHECK: u32 = 0xc128_4b10;
/// `ioctl` request: [`TypedLoad`], `_IOWR('K', 17, struct kyozon_typed_load)`.
pub const IOCTL_TYPED_LOAD: u32 = 0xc138_4b11;
/// `ioctl` request: [`TypedRun`], `_IOWR('K', 18, struct kyozon_typed_run)`.
pub const IOCTL_TYPED_RUN: u32 = 0xc1d8_4b12;

/// `ioctl` request: [`TypedFilter`], `_IOWR('K', 19, struct kyozon_typed_filter)`.
pub const IOCTL_TYPED_FILTER: u32 = 0xc110_4b13;

/// Number of the import that ends the program: Linux's number of the system call, as for each of these.
pub const TYPED_EXIT: u32 = 60;
/// Number of the import that returns the process's id.
pub const TYPED_GETPID: u32 = 39;
/// Number of the import that reads from the file of a handle: handle, address, bytes.
pub const TYPED_READ: u32 = 0;
/// Number of the import that writes to the file of a handle: handle, address, bytes.
pub const TYPED_WRITE: u32 = 1;
/// Number of the import that writes a `struct stat` about the file of a handle: handle, address.
pub const TYPED_FSTAT: u32 = 5;
/// Number of the import that moves the position of the file of a handle: handle, offset, and from where.
pub const TYPED_LSEEK: u32 = 8;
/// Number of the import that reads at a position: handle, address, bytes, position.
pub const TYPED_PREAD: u32 = 17;
/// Number of the import that writes at a position: handle, address, bytes, position.
pub const TYPED_PWRITE: u32 = 18;
/// Number of the import that gives a view of the file of a handle, from an offset on: handle, offset. It is memory of
/// the page cache, up to the end of the page or file, and stays until the program ends. It is empty at the end, and
/// if the file or the limit of locked memory (RLIMIT_MEMLOCK, in steps of some 2 MiB) does not allow it.
pub const TYPED_FILE_VIEW: u32 = 0x8009;
/// Number of the import that receives a packet by the packet socket of a handle, and gives a view of what of it lies in
/// one piece: its headers at least. The packet stays until the program ends, and so long counts towards the socket's
/// memory (SO_RCVBUF). The view is empty if there is no packet.
pub const TYPED_PACKET_VIEW: u32 = 0x800a;
/// Number of the import that gives a view of the next packet of the device's filter: bytes. As many bytes from its
/// start lie in one piece, or all of a packet that is shorter; of a packet that was merged from several, its headers.
/// The packet stays until the program ends, and then takes the way that the program said. The view is empty if there
/// is no packet, or the program has as many as it can have at once.
pub const TYPED_FILTER_VIEW: u32 = 0x800b;
/// Number of the import that says what becomes of the packet that the filter gave last: `TYPED_DROP` or `TYPED_PASS`,
/// which is also what becomes of a packet without a verdict. The result is 0, or an error: there is no such packet, or
/// no such verdict.
pub const TYPED_VERDICT: u32 = 0x1000;
/// A verdict: Linux's stack never gets the packet.
pub const TYPED_DROP: u32 = 0;
/// A verdict: Linux's stack gets the packet.
pub const TYPED_PASS: u32 = 1;

/// [`TypedLoad::imports`]: the process answers calls of this import.
pub const TYPED_OUTSIDE: u32 = 0xffff_ffff;
/// Imports that a process can answer: the first ones of a program's file.
pub const TYPED_OUTSIDE_GATES: usize = 64;
/// WASI preview 1 of a compiled program's first memory: a function's number is this plus its place in WASI's
/// definition, in alphabetical order. The kernel makes the calls of those that follow, if `TypedRun::handles` and
/// `operations` allow it; the process answers all other calls, and those that failed.
pub const TYPED_WASI: u32 = 0x100;
/// Number of `clock_time_get`.
pub const TYPED_WASI_CLOCK_TIME_GET: u32 = TYPED_WASI + 5;
/// Number of `fd_filestat_get`.
pub const TYPED_WASI_FD_FILESTAT_GET: u32 = TYPED_WASI + 13;
/// Number of `fd_pread`.
pub const TYPED_WASI_FD_PREAD: u32 = TYPED_WASI + 16;
/// Number of `fd_pwrite`.
pub const TYPED_WASI_FD_PWRITE: u32 = TYPED_WASI + 19;
/// Number of `fd_read`.
pub const TYPED_WASI_FD_READ: u32 = TYPED_WASI + 20;
/// Number of `fd_seek`.
pub const TYPED_WASI_FD_SEEK: u32 = TYPED_WASI + 23;
/// Number of `fd_tell`.
pub const TYPED_WASI_FD_TELL: u32 = TYPED_WASI + 25;
/// Number of `fd_write`.
pub const TYPED_WASI_FD_WRITE: u32 = TYPED_WASI + 26;

/// [`TypedRun::operations`]: `fd_read`.
pub const TYPED_MAY_READ: u32 = 1;
/// [`TypedRun::operations`]: `fd_write`.
pub const TYPED_MAY_WRITE: u32 = 2;
/// [`TypedRun::operations`]: `fd_pread`.
pub const TYPED_MAY_PREAD: u32 = 4;
/// [`TypedRun::operations`]: `fd_pwrite`.
pub const TYPED_MAY_PWRITE: u32 = 8;
/// [`TypedRun::operations`]: `fd_seek`.
pub const TYPED_MAY_SEEK: u32 = 16;
/// [`TypedRun::operations`]: `fd_tell`.
pub const TYPED_MAY_TELL: u32 = 32;
/// [`TypedRun::operations`]: `fd_filestat_get`.
pub const TYPED_MAY_STATUS: u32 = 64;

/// A program to check. If it is refused, the error is `ENOEXEC` and `message` has the broken rule; after another error
/// `message` says what was wrong with the request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypedCheck {
    /// [`TYPED_VERSION`].
    pub version: u32,
    /// Zero.
    pub flags: u32,
    /// The program's file.
    pub file: Image,
    /// What an accepted program has.
    pub contents: TypedContents,
    /// A C string.
    pub message: [u8; TYPED_MESSAGE_BYTES],
}
assert_size!(TypedCheck, 296);

/// A program to check, as by [`TypedCheck`], and to load: it then belongs to this open device, in place of an earlier
/// one, and can be run. The error is `ENOSPC` while other programs need the module's room for code.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypedLoad {
    /// The program.
    pub check: TypedCheck,
    /// For each number that an import has in the file, from 0 on, the number of the function that answers it; an array
    /// of u32. If the kernel has no such function, the process answers. Null: an import has the function's own
    /// number, and the kernel has it.
    pub imports: u64,
    /// How many: at most `TYPED_OUTSIDE_GATES`.
    pub import_count: u64,
}
assert_size!(TypedLoad, 312);

/// [`TypedFilter::flags`]: packets that come while the queue is full pass, before those that are queued. Without it,
/// they are dropped.
pub const TYPED_FULL_PASSES: u32 = 1;

/// Lets the program of this open device filter the packets that an interface receives, until the device is closed, or
/// the interface is gone or in another namespace. The packets are queued until the program takes them; `poll` waits for
/// one (`POLLIN`) or the end of the interface (`POLLHUP`). The numbers of packets are in `/proc/PID/fdinfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypedFilter {
    /// [`TYPED_VERSION`].
    pub version: u32,
    /// `TYPED_FULL_PASSES`, or 0.
    pub flags: u32,
    /// The interface's index, in the network namespace of the caller.
    pub interface: u32,
    /// Zero.
    pub reserved: u32,
    /// A C string.
    pub message: [u8; TYPED_MESSAGE_BYTES],
}
assert_size!(TypedFilter, 272);

/// What the checker says about an accepted program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedContents {
    /// Number of functions.
    pub functions: u32,
    /// Bytes of text.
    pub text_bytes: u32,
    /// Bytes of annotations.
    pub annotation_bytes: u32,
    /// Number of instructions that may fault.
    pub faults: u32,
}
assert_size!(TypedContents, 16);

/// [`TypedRun::outcome`]: the entry returned `result`, or 0 if it has no result.
pub const TYPED_RETURNED: u32 = 0;
/// [`TypedRun::outcome`]: the program ended itself, with `result`.
pub const TYPED_EXITED: u32 = 1;
/// [`TypedRun::outcome`]: the instruction at `offset` accessed an address of the region where there is no memory.
pub const TYPED_FAULTED: u32 = 2;
/// [`TypedRun::outcome`]: the division at `offset` has no result.
pub const TYPED_DIVIDED: u32 = 3;
/// [`TypedRun::outcome`]: the program executed ud2 at `offset`.
pub const TYPED_TRAPPED: u32 = 4;
/// [`TypedRun::outcome`]: a vector operand of the instruction at `offset` is not aligned.
pub const TYPED_MISALIGNED: u32 = 5;
/// [`TypedRun::outcome`]: the program calls the import number `offset`, with `arguments`. If `result` is not 0, the
/// kernel made the call, which ended with this error: Linux's number, negative. The next request answers with `result`,
/// and continues the program.
pub const TYPED_CALLED: u32 = 6;

/// Runs the program of an open device in kernel mode, in the caller's address space: its region is what is mapped from
/// [`TYPED_REGION`] on, for [`TYPED_RESERVED`] bytes.
///
/// `EINTR` says that the caller has a signal to handle, or other work on its way to user mode. The program keeps its
/// state, and the same request continues it. `EBUSY`: another thread runs it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypedRun {
    /// [`TYPED_VERSION`].
    pub version: u32,
    /// Zero.
    pub flags: u32,
    /// Arguments of the entry; of each, the part that its signature names. After `TYPED_CALLED`, those of the import;
    /// 0 where its signature names none.
    pub arguments: [u64; 6],
    /// Descriptors of the files that the program's handles 0, 1 and so on are for; -1 for none.
    pub handles: [i32; TYPED_HANDLES],
    /// For each handle, what functions of WASI may do with it: a sum of `TYPED_MAY_READ` and so on.
    pub operations: [u32; TYPED_HANDLES],
    /// For functions of WASI: where the program's memory begins,
    pub memory: u64,
    /// and its bytes, all of them within the region.
    pub memory_bytes: u64,
    /// What the entry returned; after `TYPED_CALLED`, an error or 0. To go on after it: what the import returns.
    pub result: u64,
    /// `TYPED_RETURNED` and so on.
    pub outcome: u32,
    /// Offset in the text, or the number of an import.
    pub offset: u32,
    /// A C string.
    pub message: [u8; TYPED_MESSAGE_BYTES],
}
assert_size!(TypedRun, 472);

/// [`TypedChecker::host`]: the text may have indirect branches of its own.
pub const TYPED_INDIRECT_BRANCHES: u32 = 1;
/// [`TypedChecker::host`]: indirect branch tracking is on.
pub const TYPED_TRACKING: u32 = 2;
/// [`TypedChecker::host`]: the checker panics, for a test of what follows.
pub const TYPED_PANIC: u32 = 0x8000_0000;

/// [`TypedChecker::properties`]: an instruction uses vector registers.
pub const TYPED_USES_VECTORS: u32 = 1;
/// [`TypedBuild::properties`]: the entry has a result. Without one, rax has what must not be made known.
pub const TYPED_HAS_RESULT: u32 = 1;

/// Thunks that an image needs: one for each general register, and one that returns.
pub const TYPED_THUNKS: usize = 17;

/// [`TypedChecker::result`]: the program is safe.
pub const TYPED_ACCEPTED: u32 = 0;
/// [`TypedChecker::result`]: a rule is broken; `message` has it.
pub const TYPED_REFUSED: u32 = 1;
/// [`TypedChecker::result`]: `memory` does not suffice for this program.
pub const TYPED_NO_MEMORY: u32 = 2;
/// [`TypedChecker::result`]: the module ended the check.
pub const TYPED_STOPPED: u32 = 3;
/// [`TypedChecker::result`]: the checker has a bug; `message` has the place.
pub const TYPED_PANICKED: u32 = 4;

/// A call of the checker. Addresses are the kernel's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedChecker {
    /// The file, which nothing else writes to.
    pub file: u64,
    /// Its bytes.
    pub file_bytes: u64,
    /// Memory for the checker, at a multiple of 8.
    pub memory: u64,
    /// Its bytes.
    pub memory_bytes: u64,
    /// Receives the offsets, in the text, of the instructions that may fault: 4 bytes each, sorted.
    pub faults: u64,
    /// How many there is room for.
    pub fault_room: u64,
    /// Receives a line, a C string.
    pub message: u64,
    /// Its room.
    pub message_bytes: u64,
    /// Sum of `TYPED_INDIRECT_BRANCHES`, `TYPED_TRACKING` and `TYPED_PANIC`.
    pub host: u32,
    /// `TYPED_ACCEPTED` and so on.
    pub result: u32,
    /// What an accepted program has.
    pub contents: TypedContents,
    /// Bytes of the image of an accepted program.
    pub image_bytes: u32,
    /// `TYPED_USES_VECTORS`, or 0.
    pub properties: u32,
}
assert_size!(TypedChecker, 96);

/// A function of the kernel that programs can import.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedGate {
    /// Where it begins.
    pub address: u64,
    /// The number of such an import.
    pub number: u32,
    /// Arguments in registers; each is a number, and so is the result.
    pub arguments: u32,
}
assert_size!(TypedGate, 16);

/// Makes the image of a program that the checker accepted. Addresses are the kernel's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypedBuild {
    /// The file, the one that was accepted.
    pub file: u64,
    /// Its bytes.
    pub file_bytes: u64,
    /// Receives the image.
    pub image: u64,
    /// Its room.
    pub image_bytes: u64,
    /// Where the image will lie: a multiple of 64.
    pub address: u64,
    /// An array of [`TypedGate`].
    pub gates: u64,
    /// How many.
    pub gate_count: u64,
    /// An array of the addresses of [`TYPED_THUNKS`] thunks.
    pub thunks: u64,
    /// An array of u32, as [`TypedLoad::imports`]; null for none.
    pub imports: u64,
    /// How many.
    pub import_count: u64,
    /// An array of the addresses of [`TYPED_OUTSIDE_GATES`] gates for imports that the process answers.
    pub outside: u64,
    /// Receives a line, a C string.
    pub message: u64,
    /// Its room.
    pub message_bytes: u64,
    /// As for the checker.
    pub host: u32,
    /// `TYPED_ACCEPTED`, `TYPED_REFUSED` or `TYPED_PANICKED`.
    pub result: u32,
    /// Offset of the entry.
    pub entry: u32,
    /// `TYPED_HAS_RESULT`, or 0.
    pub properties: u32,
    /// What the entry's arguments may be: 0 where nothing is passed.
    pub masks: [u64; 6],
    /// Arguments, in registers, of each import that the process answers.
    pub outside_arguments: [u8; TYPED_OUTSIDE_GATES],
}
assert_size!(TypedBuild, 232);

const fn iowr<T>(number: u32) -> u32 {
    (3 << 30) | ((size_of::<T>() as u32) << 16) | (0x4b << 8) | number
}

const _: () = {
    assert!(IOCTL_TYPED_CHECK == iowr::<TypedCheck>(16));
    assert!(IOCTL_TYPED_LOAD == iowr::<TypedLoad>(17));
    assert!(IOCTL_TYPED_RUN == iowr::<TypedRun>(18));
    assert!(IOCTL_TYPED_FILTER == iowr::<TypedFilter>(19));
};
