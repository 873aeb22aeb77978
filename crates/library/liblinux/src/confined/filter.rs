//! The child's system-call filter (seccomp(2)). Any other call ends the process: a kernel that makes one has been
//! taken over, or this list lacks a call of the C library.
//!
//! The program is a list of rules. A rule compares the number of a call, then the low 32 bits of arguments, which are
//! descriptors, rights and modes of type int. The calls that a busy kernel makes come first.

use super::spec::Disk;
use libc::sock_filter;
use std::io;

const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// AUDIT_ARCH_X86_64.
const ARCHITECTURE: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// BPF: load a word of the data, jump if equal, jump if any bit is set, return.
const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const ANY_OF: u16 = 0x45;
const RETURN: u16 = 0x06;

/// What an argument must be.
#[derive(Clone, Copy)]
enum Test {
    /// The low 32 bits are this value.
    Is(u32, i32),
    /// None of these bits is set.
    Without(u32, i32),
}

use Test::{Is, Without};

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

fn row(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Adds a rule. Each failed test skips to the rule's last instruction, which loads the number again.
fn rule(program: &mut Vec<sock_filter>, call: i64, tests: &[Test]) {
    let inside = 2 * tests.len() as u8;
    // Over the tests and the two instructions behind them.
    program.push(row(EQUAL, call as u32, 0, if tests.is_empty() { 1 } else { inside + 2 }));
    for (index, test) in tests.iter().enumerate() {
        let left = inside - 2 * (index as u8 + 1) + 1;
        match *test {
            Is(argument, value) => {
                program.push(row(LOAD, ARGUMENTS_AT + 8 * argument, 0, 0));
                program.push(row(EQUAL, value as u32, 0, left));
            }
            Without(argument, bits) => {
                program.push(row(LOAD, ARGUMENTS_AT + 8 * argument, 0, 0));
                program.push(row(ANY_OF, bits as u32, left, 0));
            }
        }
    }
    program.push(row(RETURN, ALLOW, 0, 0));
    if !tests.is_empty() {
        program.push(row(LOAD, NUMBER_AT, 0, 0));
    }
}

/// The filter of a kernel with these disks.
pub fn program(disks: &[Disk]) -> Vec<sock_filter> {
    let mut program = vec![
        row(LOAD, ARCHITECTURE_AT, 0, 0),
        row(EQUAL, ARCHITECTURE, 1, 0),
        row(RETURN, KILL, 0, 0),
        row(LOAD, NUMBER_AT, 0, 0),
    ];
    rule(&mut program, ALWAYS[0], &[]);
    for disk in disks {
        for call in [libc::SYS_preadv, libc::SYS_fdatasync] {
            rule(&mut program, call, &[Is(0, disk.fd)]);
        }
        if !disk.write {
            continue;
        }
        for call in [libc::SYS_pwritev, libc::SYS_pwrite64] {
            rule(&mut program, call, &[Is(0, disk.fd)]);
        }
        for mode in [libc::FALLOC_FL_PUNCH_HOLE, libc::FALLOC_FL_ZERO_RANGE] {
            let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
            rule(&mut program, libc::SYS_fallocate, &[Is(0, disk.fd), Is(1, mode)]);
        }
    }
    for call in &ALWAYS[1..] {
        rule(&mut program, *call, &[]);
    }
    // Memory of the C library: not executable, and of no file.
    let not_executable = Without(2, libc::PROT_EXEC);
    rule(&mut program, libc::SYS_mmap, &[not_executable, Is(4, -1)]);
    rule(&mut program, libc::SYS_mprotect, &[not_executable]);
    program.push(row(RETURN, KILL, 0, 0));
    program
}

/// Installs a filter for all threads of the process, for ever.
pub fn install(program: &mut [sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    let (mode, how) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the kernel copies the program.
    match unsafe { libc::syscall(libc::SYS_seccomp, mode, how, &raw const program) } {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        thread => Err(io::Error::other(format!("thread {thread} cannot take the filter"))),
    }
}

#[cfg(test)]
mod tests;
