//! The child's system-call filter (seccomp(2)). Any other call ends the process: a kernel that makes one has been
//! taken over, or this list lacks a call of the C library.
//!
//! The calls that a busy kernel makes come first.

use super::spec::Disk;
use kyozon_bpf::Test::{Is, Without};
use kyozon_bpf::{Filter, Threads, ALLOW, KILL};
use libc::sock_filter;
use std::io;

/// Calls that are allowed with any arguments. None of them opens, starts or reaches anything.
const ALWAYS: [i64; 18] = [
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_membarrier,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_sched_yield,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_set_robust_list,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The filter of a kernel with these disks.
pub fn program(disks: &[Disk]) -> kyozon_bpf::Result<Vec<sock_filter>> {
    let mut filter = Filter::ending(KILL);
    filter.rule(ALWAYS[0], &[], ALLOW);
    for disk in disks {
        for call in [libc::SYS_preadv, libc::SYS_fdatasync] {
            filter.rule(call, &[Is(0, disk.fd)], ALLOW);
        }
        if !disk.write {
            continue;
        }
        for call in [libc::SYS_pwritev, libc::SYS_pwrite64] {
            filter.rule(call, &[Is(0, disk.fd)], ALLOW);
        }
        for mode in [libc::FALLOC_FL_PUNCH_HOLE, libc::FALLOC_FL_ZERO_RANGE] {
            let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
            filter.rule(libc::SYS_fallocate, &[Is(0, disk.fd), Is(1, mode)], ALLOW);
        }
    }
    for call in &ALWAYS[1..] {
        filter.rule(*call, &[], ALLOW);
    }
    // Memory of the C library: not executable, and of no file.
    let not_executable = Without(2, libc::PROT_EXEC);
    filter.rule(libc::SYS_mmap, &[not_executable, Is(4, -1)], ALLOW);
    filter.rule(libc::SYS_mprotect, &[not_executable], ALLOW);
    filter.end(KILL);
    filter.finish()
}

/// Installs the filter of a kernel with these disks, for all threads of the process.
pub fn install(disks: &[Disk]) -> io::Result<()> {
    kyozon_bpf::install(&program(disks).map_err(io::Error::other)?, Threads::All)
}

#[cfg(test)]
mod tests;
