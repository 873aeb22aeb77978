//! The table of system calls, and those that need no module of their own.

use crate::errno::*;
use crate::files::{AT_FDCWD as HERE, AT_SYMLINK_NOFOLLOW};
use crate::numbers::*;
use crate::signals::Frame;
use crate::{files, futex, memory, signals, threads, time, Answer};
use kyozon_unikernel::{boot, system};

const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const RLIMIT_STACK: u64 = 3;
const RLIMIT_NOFILE: u64 = 7;
const INFINITY: u64 = u64::MAX;
/// The longest transfer of one call.
const MOST: u64 = 1 << 30;

/// Answers a call of the program.
///
/// # Safety
///
/// The call's arguments are valid.
pub unsafe fn call(frame: &Frame) -> Answer {
    let [a, b, c, d, e, f] = frame.arguments;
    // SAFETY: the caller's promise, for each.
    unsafe {
        match frame.number {
            READ => files::read(a as i32, b, c.min(MOST), None),
            WRITE => files::write(a as i32, b, c.min(MOST), None),
            PREAD64 => files::read(a as i32, b, c.min(MOST), Some(d)),
            PWRITE64 => files::write(a as i32, b, c.min(MOST), Some(d)),
            READV => files::each(b, c, |to, bytes| files::read(a as i32, to, bytes, None)),
            WRITEV => files::each(b, c, |from, bytes| files::write(a as i32, from, bytes, None)),
            OPEN => files::open(HERE, string(a), b as u32, c as u32),
            OPENAT => files::open(a as i32, string(b), c as u32, d as u32),
            CLOSE => files::close(a as i32),
            LSEEK => files::seek(a as i32, b as i64, c),
            STAT => files::stat(HERE, string(a), b, 0),
            LSTAT => files::stat(HERE, string(a), b, AT_SYMLINK_NOFOLLOW),
            FSTAT => files::stat_descriptor(a as i32, b),
            NEWFSTATAT => files::stat(a as i32, string(b), c, d),
            ACCESS => files::access(HERE, string(a)),
            FACCESSAT => files::access(a as i32, string(b)),
            MKDIR => files::make_directory(HERE, string(a), b as u32),
            MKDIRAT => files::make_directory(a as i32, string(b), c as u32),
            RMDIR => files::remove_directory(string(a)),
            UNLINK => files::remove(HERE, string(a), 0),
            UNLINKAT => files::remove(a as i32, string(b), c),
            RENAME => files::rename((HERE, string(a)), (HERE, string(b)), 0),
            RENAMEAT => files::rename((a as i32, string(b)), (c as i32, string(d)), 0),
            RENAMEAT2 => files::rename((a as i32, string(b)), (c as i32, string(d)), e),
            LINK => files::link((HERE, string(a)), (HERE, string(b)), 0),
            LINKAT => files::link((a as i32, string(b)), (c as i32, string(d)), e),
            SYMLINK => files::make_link(string(a), HERE, string(b)),
            SYMLINKAT => files::make_link(string(a), b as i32, string(c)),
            READLINK => files::read_link(HERE, string(a), b, c),
            READLINKAT => files::read_link(a as i32, string(b), c, d),
            GETDENTS64 => files::entries(a as i32, b, c),
            GETCWD => files::working_directory(a, b),
            CHDIR => files::change_directory(string(a)),
            TRUNCATE => files::set_size_of(string(a), b),
            FTRUNCATE => files::set_size(a as i32, b),
            CHMOD => files::set_mode(HERE, string(a), b as u32),
            FCHMODAT => files::set_mode(a as i32, string(b), c as u32),
            FCHMOD => files::set_mode(a as i32, b"", b as u32),
            STATFS => match files::access(HERE, string(a)) {
                0 => file_system(b),
                error => error,
            },
            FSTATFS => file_system(b),
            UMASK => files::set_mask(a as u32),
            // Memory is never written back, and times are not kept.
            FSYNC | FDATASYNC | UTIMENSAT => 0,
            FCNTL => files::control(a as i32, b, c),
            DUP => files::control(a as i32, 0, 0),
            DUP2 => files::duplicate(a as i32, b as i32, 0, true),
            DUP3 => files::duplicate(a as i32, b as i32, c, false),
            PIPE => files::pipe(a, 0),
            PIPE2 => files::pipe(a, b),
            SOCKET => EAFNOSUPPORT,
            SOCKETPAIR => files::socket_pair(a, b, d),
            SENDTO | RECVFROM if !files::is_socket(a as i32) => ENOTSOCK,
            SENDTO => files::write(a as i32, b, c.min(MOST), None),
            RECVFROM => files::read(a as i32, b, c.min(MOST), None),
            EVENTFD2 => files::event_counter(a as u32, b),
            IOCTL => files::io_control(a as i32),
            POLL => files::poll(a, b, after_milliseconds(c as i32)),
            PPOLL => match time::after(c) {
                Ok(deadline) => files::poll(a, b, deadline),
                Err(error) => error,
            },
            MMAP => memory::map(a, b, c, d, e as i32, f),
            MUNMAP => memory::unmap(a, b),
            MREMAP => {
                let stack = boot().stack;
                memory::remap(a, b, c, d, (stack.base, stack.bytes))
            }
            MPROTECT => memory::protect(a),
            MADVISE => memory::advise(a, b, c),
            FUTEX => futex::call(a, b as u32, c as u32, d, e, f as u32),
            RT_SIGACTION => signals::set_action(a, b, c, d),
            RT_SIGPROCMASK => signals::change_mask(a, b, c, d),
            RT_SIGPENDING => signals::get_pending(a),
            RT_SIGTIMEDWAIT => signals::wait_for(a, b, c, d),
            RT_SIGSUSPEND => signals::suspend(a, b),
            // The library walks its list of robust mutexes itself when a thread ends.
            SIGALTSTACK | SET_ROBUST_LIST | GET_ROBUST_LIST => 0,
            PAUSE => signals::pause(),
            TKILL => signals::send_to_thread(a as i32, b),
            TGKILL if a as i32 == threads::process_id() => signals::send_to_thread(b as i32, c),
            TGKILL => ESRCH,
            KILL => signals::send(a as i32, b),
            WAIT4 => ECHILD,
            CLOCK_GETTIME => time::get(a, b),
            CLOCK_GETRES => time::resolution(a, b),
            GETTIMEOFDAY => time::get_of_day(a),
            TIME => (time::of_day() / 1_000_000_000) as Answer,
            NANOSLEEP => time::sleep(1, 0, a, b),
            CLOCK_NANOSLEEP => time::sleep(a, b, c, d),
            SCHED_YIELD => {
                kyozon_unikernel::sleep::park(Some(0));
                0
            }
            SCHED_GETAFFINITY => affinity(b, c),
            GETPID => threads::process_id().into(),
            GETTID => threads::own_id().into(),
            GETPPID | GETUID | GETGID | GETEUID | GETEGID => 0,
            SET_TID_ADDRESS => threads::set_clear(a),
            ARCH_PRCTL if a == ARCH_SET_FS => {
                threads::set_fs(b);
                0
            }
            ARCH_PRCTL if a == ARCH_GET_FS => {
                (b as *mut u64).write_unaligned(threads::fs());
                0
            }
            ARCH_PRCTL => EINVAL,
            UNAME => uname(a),
            SYSINFO => sysinfo(a),
            GETRLIMIT => limits(a, b),
            PRLIMIT64 if c == 0 => limits(b, d),
            PRLIMIT64 => EPERM,
            GETRUSAGE => usage(b),
            GETRANDOM => random(a, b),
            EXIT => threads::exit(),
            EXIT_GROUP => kyozon_unikernel::peer::end_with_owner(a as u8),
            _ => ENOSYS,
        }
    }
}

/// A string of the program.
///
/// # Safety
///
/// The address is that of a string.
unsafe fn string(address: u64) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { core::ffi::CStr::from_ptr(address as *const _) }.to_bytes()
}

/// Writes a structure of the program.
///
/// # Safety
///
/// The structure has this size.
unsafe fn fill<const WORDS: usize>(address: u64, words: [u64; WORDS]) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { (address as *mut [u64; WORDS]).write_unaligned(words) };
    0
}

fn after_milliseconds(ms: i32) -> Option<u64> {
    let ns = u64::try_from(ms).ok()? * 1_000_000;
    Some(kyozon_unikernel::clock::now().saturating_add(ns))
}

/// # Safety
///
/// The memory is writable.
unsafe fn affinity(bytes: u64, to: u64) -> Answer {
    let cpus = boot().cpus.clamp(1, 64);
    if bytes < 8 {
        return EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe { (to as *mut u64).write_unaligned(u64::MAX >> (64 - cpus)) };
    8
}

/// # Safety
///
/// The address is that of a `struct utsname`.
unsafe fn uname(to: u64) -> Answer {
    const FIELD: usize = 65;
    let fields: [&[u8]; 6] =
        [b"Kyozon", b"localhost", b"5.0.0", b"unikernel", b"x86_64", b"(none)"];
    for (n, field) in fields.into_iter().enumerate() {
        let mut bytes = [0; FIELD];
        bytes[..field.len()].copy_from_slice(field);
        // SAFETY: the caller's promise.
        unsafe { (to as *mut [u8; FIELD]).add(n).write(bytes) };
    }
    0
}

/// # Safety
///
/// The address is that of a `struct statfs`.
unsafe fn file_system(to: u64) -> Answer {
    const TMPFS: u64 = 0x0102_1994;
    const PAGE: u64 = 4096;
    let mut words = [0; 15];
    words[0] = TMPFS;
    words[1] = PAGE;
    let pages = boot().heap.bytes / PAGE;
    // All memory, free memory, and that for users; then as many files.
    words[2..7].fill(pages);
    words[8] = 255;
    words[9] = PAGE;
    // SAFETY: the caller's promise.
    unsafe { fill(to, words) }
}

/// # Safety
///
/// The address is that of a `struct sysinfo`.
unsafe fn sysinfo(to: u64) -> Answer {
    let mut words = [0; 14];
    words[0] = kyozon_unikernel::clock::now() / 1_000_000_000;
    words[4] = boot().heap.bytes;
    words[5] = words[4];
    words[10] = 1;
    // The unit is 1 byte.
    words[13] = 1;
    // SAFETY: the caller's promise.
    unsafe { fill(to, words) }
}

/// # Safety
///
/// The address is 0, or that of a `struct rlimit`.
unsafe fn limits(which: u64, to: u64) -> Answer {
    let limit = match which {
        RLIMIT_STACK => boot().stack.bytes,
        RLIMIT_NOFILE => files::MAX_DESCRIPTORS as u64,
        0..16 => INFINITY,
        _ => return EINVAL,
    };
    if to != 0 {
        // SAFETY: the caller's promise.
        unsafe { fill(to, [limit, limit]) };
    }
    0
}

/// # Safety
///
/// The address is that of a `struct rusage`.
unsafe fn usage(to: u64) -> Answer {
    let now = kyozon_unikernel::clock::now();
    let mut words = [0; 18];
    words[0] = now / 1_000_000_000;
    words[1] = now % 1_000_000_000 / 1000;
    // SAFETY: the caller's promise.
    unsafe { fill(to, words) }
}

/// # Safety
///
/// The memory is writable.
unsafe fn random(to: u64, bytes: u64) -> Answer {
    let bytes = bytes.min(MOST);
    // SAFETY: the caller's promise.
    let memory = unsafe { core::slice::from_raw_parts_mut(to as *mut u8, bytes as usize) };
    system::random(memory).map_or(EAGAIN, |()| bytes as Answer)
}
