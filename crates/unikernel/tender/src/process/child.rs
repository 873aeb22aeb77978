//! Turns a child of the tender into a guest's process.

use super::cpu::ProcessCpu;
use super::descriptors::{DOORBELLS, LIFELINE};
use super::filter;
use super::loader::{self, Start, Step};
use crate::error::{Context, Result};
use crate::layout::system;
use crate::memory::{memory_file, system_address, Memory};
use kyozon_abi::unikernel::{GUEST_SYSTEM_BASE, MAX_PEERS, MAX_QUEUES, QUEUE_DOORBELL};
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs::File;
use std::io::{Error, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use vmm_sys_util::eventfd::EventFd;

/// End of the user address space with 4 levels of page tables.
const USER_END: u64 = 0x7fff_ffff_f000;
/// First descriptor of the child's mapped files; the start pipe and the loader follow. All are below the doorbells.
const FIRST_FILE: RawFd = 3;
/// First descriptor of the queues' doorbells.
const FIRST_QUEUE: RawFd = DOORBELLS + QUEUE_DOORBELL as RawFd;

/// A part of a file that the loader maps at a guest address.
pub struct Piece<'a> {
    /// First guest address.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// `PROT_*` bits.
    pub prot: i32,
    /// The file.
    pub file: BorrowedFd<'a>,
}

/// The loader's steps. `descriptors` holds the child's descriptor of each piece's file.
fn steps(
    memory: &Memory,
    pieces: &[Piece<'_>],
    descriptors: &[RawFd],
    (peers, queues): (usize, usize),
    lifeline: bool,
) -> Vec<Step> {
    let step = |number, purpose, arguments: &[u64]| {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Step { number, arguments: all, optional: false, purpose }
    };
    let start = GUEST_SYSTEM_BASE + system::DOOR;
    let end = start + loader::SEGMENT_BYTES;
    let mut steps = vec![
        step(libc::SYS_munmap, "unmap the addresses below the loader", &[0, start]),
        // A kernel may keep its own pages of code and clocks there, and refuse.
        Step {
            optional: true,
            ..step(libc::SYS_munmap, "unmap the addresses above the loader", &[end, USER_END - end])
        },
    ];
    for (piece, fd) in pieces.iter().zip(descriptors) {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let Piece { base, bytes, offset, prot, .. } = *piece;
        let arguments = [base, bytes, prot as u64, flags as u64, *fd as u64, offset];
        steps.push(step(libc::SYS_mmap, "map memory", &arguments));
    }
    // ARCH_SET_FS
    steps.push(step(
        libc::SYS_arch_prctl,
        "set the thread pointer",
        &[0x1002, memory.layout.thread],
    ));
    let close = libc::SYS_close_range;
    let mut from = 0;
    let mut keep = |first: RawFd, count: usize| {
        if from < first as u64 {
            steps.push(step(close, "close files", &[from, first as u64 - 1]));
        }
        from = first as u64 + count as u64;
    };
    keep(DOORBELLS, peers);
    keep(FIRST_QUEUE, queues);
    keep(LIFELINE, lifeline.into());
    steps.push(step(close, "close files", &[from, u64::from(u32::MAX)]));
    let no_new_privileges = libc::PR_SET_NO_NEW_PRIVS as u64;
    steps.push(step(libc::SYS_prctl, "give up new privileges", &[no_new_privileges, 1]));
    let program = loader::filter_address(steps.len() + 1);
    let filter = libc::SECCOMP_SET_MODE_FILTER.into();
    steps.push(step(libc::SYS_seccomp, "install a filter", &[filter, 0, program]));
    steps
}

/// `struct sock_fprog` followed by its program, to lie at the guest address `address`.
fn filter_data(address: u64) -> Result<Vec<u8>> {
    let program = filter::program()?;
    let mut data = (program.len() as u64).to_le_bytes().to_vec();
    data.extend((address + 16).to_le_bytes());
    for i in program {
        data.extend(i.code.to_le_bytes());
        data.extend([i.jt, i.jf]);
        data.extend(i.k.to_le_bytes());
    }
    Ok(data)
}

/// An executable file in memory. If `vm.memfd_noexec` is set, the file must be marked as executable.
fn executable(bytes: &[u8]) -> Result<File> {
    let name = c"kyozon-loader";
    let mut file = match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::EXEC) {
        Ok(fd) => File::from(fd),
        // Before Linux 6.3 the flag does not exist, and every such file is executable.
        Err(_) => memory_file(name, bytes.len() as u64)?,
    };
    file.write_all(bytes).context("cannot write the loader")?;
    Ok(file)
}

/// Flags of clone(2): the child's end sends SIGCHLD, and the parent gets a descriptor of the child.
pub const CLONE: libc::c_int = libc::CLONE_PIDFD | libc::SIGCHLD;

/// Starts a process that waits until a thread traces it. The doorbells are those of peers and those of queues. The
/// process holds `lifeline` until it ends.
///
/// # Errors
///
/// Linux refuses a file, a pipe or the process.
pub fn start(
    memory: &Memory,
    pieces: &[Piece<'_>],
    (doorbells, queues): (&[&EventFd], &[&EventFd]),
    lifeline: Option<BorrowedFd<'_>>,
) -> Result<ProcessCpu> {
    let mut sources: Vec<RawFd> = Vec::new();
    let mut descriptors = Vec::new();
    for piece in pieces {
        let fd = piece.file.as_raw_fd();
        let at = sources.iter().position(|source| *source == fd).unwrap_or_else(|| {
            sources.push(fd);
            sources.len() - 1
        });
        descriptors.push(FIRST_FILE + at as RawFd);
    }
    let counts = (doorbells.len().min(MAX_PEERS), queues.len().min(MAX_QUEUES));
    let (peers, count) = counts;
    let steps = steps(memory, pieces, &descriptors, counts, lifeline.is_some());
    let data = filter_data(loader::filter_address(steps.len()))?;
    let boot = system_address(system::BOOT);
    let layout = &memory.layout;
    let start = Start {
        entry: layout.entry,
        stack: layout.stack_top() - 8,
        arguments: [boot, layout.argument],
    };
    let file = loader::file(&steps, start, &data)?;
    let loader = executable(&file)?;
    let (wait, go) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe")?;
    let wait_at = FIRST_FILE + sources.len() as RawFd;
    let loader_at = wait_at + 1;
    // Source, target, and whether the target stays open after execveat.
    let mut moves: Vec<(RawFd, RawFd, bool)> =
        sources.iter().enumerate().map(|(i, fd)| (*fd, FIRST_FILE + i as RawFd, true)).collect();
    moves.push((wait.as_raw_fd(), wait_at, false));
    moves.push((loader.as_raw_fd(), loader_at, false));
    let doorbells = doorbells.iter().take(peers).enumerate();
    moves.extend(doorbells.map(|(i, d)| (d.as_raw_fd(), DOORBELLS + i as RawFd, true)));
    moves.extend(lifeline.map(|fd| (fd.as_raw_fd(), LIFELINE, true)));
    let queues = queues.iter().take(count).enumerate();
    moves.extend(queues.map(|(i, q)| (q.as_raw_fd(), FIRST_QUEUE + i as RawFd, true)));

    let mut handle: RawFd = -1;
    let tender = std::process::id();
    // SAFETY: this is a fork that the C library does not know of. Until the child executes the loader, it only makes
    // system calls on memory that was prepared before.
    match unsafe { libc::syscall(libc::SYS_clone, CLONE, 0, &raw mut handle, 0, 0) } {
        -1 => Err(Error::last_os_error()).context("cannot make a process"),
        0 => {
            // SAFETY: this is the child, which has one thread.
            unsafe { become_loader(tender, &mut moves, wait_at, loader_at) }
        }
        pid => {
            // SAFETY: the descriptor is new and has no other owner.
            let handle = unsafe { OwnedFd::from_raw_fd(handle) };
            Ok(ProcessCpu::new(pid as i32, handle, go, steps))
        }
    }
}

/// Moves descriptors, waits for a byte from the pipe `wait` and executes `loader`. It uses no allocation and no lock.
/// Nothing is left of it if the process `tender`, its parent, ends at any moment.
///
/// # Safety
///
/// The caller is a child of fork in which no other code relies on descriptors.
unsafe fn become_loader(
    tender: u32,
    moves: &mut [(RawFd, RawFd, bool)],
    wait: RawFd,
    loader: RawFd,
) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // Above every target, so that no move overwrites a source.
    let high = 200;
    // SAFETY: these system calls use this function's data and descriptors that no other code relies on, as the caller
    // promises. A failure makes execveat or one of the loader's first steps fail.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // There is no signal for a death before.
        if libc::getppid() as u32 != tender {
            libc::_exit(127);
        }
        // A terminal's signals are for the tender only.
        libc::setpgid(0, 0);
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigprocmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut());
        for (from, ..) in moves.iter_mut() {
            *from = libc::fcntl(*from, libc::F_DUPFD_CLOEXEC, high);
        }
        // Also the end of the pipe that the tender writes to: while it is open here, a read never sees the pipe's end.
        libc::close_range(FIRST_FILE as u32, high as u32 - 1, 0);
        for (from, to, keep) in moves.iter() {
            libc::dup3(*from, *to, if *keep { 0 } else { libc::O_CLOEXEC });
        }
        libc::close_range(high as u32, u32::MAX, 0);
        let mut byte = 0_u8;
        if libc::read(wait, (&raw mut byte).cast(), 1) == 1 {
            let empty = [std::ptr::null::<libc::c_char>()];
            let path = c"".as_ptr();
            libc::syscall(
                libc::SYS_execveat,
                loader,
                path,
                empty.as_ptr(),
                empty.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        }
        libc::_exit(127)
    }
}
