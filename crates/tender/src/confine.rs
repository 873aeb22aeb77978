//! What the tender gives up before the first instruction of a guest: new privileges, files, programs, the network.
//!
//! A system call that the tender has no use for fails with `EPERM`. The list is of what the standard library, KVM and
//! ptrace need while guests run. Landlock is a second wall, where the kernel has it.

use crate::bpf::{self, fails, Filter, When, ALLOW};
use anyhow::{Context, Result};
use landlock::{
    Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, ABI,
};
use libc::sock_filter;
use std::path::Path;

/// Calls that take no other condition.
const ALWAYS: [i64; 39] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_restart_syscall,
    libc::SYS_fstat,
    libc::SYS_fcntl,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_wait4,
    libc::SYS_ptrace,
    libc::SYS_membarrier,
    libc::SYS_fdatasync,
];

/// `KVM_RUN`, `KVM_GET_REGS`, `KVM_GET_SREGS`, `KVM_SET_USER_MEMORY_REGION`, `KVM_IOEVENTFD` (linux/kvm.h), and what
/// `isatty` asks.
const IOCTLS: [u32; 6] =
    [0xae80, 0x8090_ae81, 0x8138_ae83, 0x4020_ae46, 0x4040_ae79, libc::TCGETS as u32];

/// The filter. `children` are the processes that may be signalled; with `core`, a file may be opened.
fn filter(children: &[i32], core: bool) -> Result<Vec<sock_filter>> {
    let (yes, no) = (Some("yes"), Some("no"));
    let is = |call: i64| When::Equal(call as u32);
    let mut filter = Filter::new("no");
    for call in ALWAYS {
        filter.jump(is(call), yes, None);
    }
    if core {
        filter.jump(is(libc::SYS_openat), yes, None);
    }
    filter.jump(is(libc::SYS_ioctl), Some("ioctl"), None);
    filter.jump(is(libc::SYS_mmap), Some("memory"), None);
    filter.jump(is(libc::SYS_mprotect), Some("memory"), None);
    filter.jump(is(libc::SYS_clone), Some("thread"), None);
    filter.jump(is(libc::SYS_clone3), Some("missing"), None);
    filter.jump(is(libc::SYS_kill), None, no);
    filter.low(0);
    for child in children {
        filter.jump(When::Equal(*child as u32), yes, None);
    }
    filter.end(fails(libc::EPERM));
    filter.label("ioctl");
    filter.low(1);
    for request in IOCTLS {
        filter.jump(When::Equal(request), yes, None);
    }
    filter.end(fails(libc::EPERM));
    // Memory, but none that is executed.
    filter.label("memory");
    filter.low(2);
    filter.jump(When::AnyOf(libc::PROT_EXEC as u32), no, yes);
    // Threads, but no processes.
    filter.label("thread");
    filter.low(0);
    filter.jump(When::AnyOf(libc::CLONE_THREAD as u32), yes, None);
    filter.label("no");
    filter.end(fails(libc::EPERM));
    // What clone3 wants lies in memory, where a filter cannot look: the library uses clone where it is missing.
    filter.label("missing");
    filter.end(fails(libc::ENOSYS));
    filter.label("yes");
    filter.end(ALLOW);
    filter.finish()
}

/// Keeps the file system away, but for the folder where a core file may be written.
fn without_files(core: Option<&Path>) -> Result<()> {
    let abi = ABI::V5;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .create()?;
    if let Some(core) = core {
        let folder = core.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = PathFd::new(folder)
            .with_context(|| format!("there is no folder {} for a core file", folder.display()))?;
        let write = AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::Truncate;
        rules = rules.add_rule(PathBeneath::new(folder, write))?;
    }
    rules.restrict_self().context("landlock")?;
    Ok(())
}

/// Gives up files, for the calling thread and its children. Children that it is to trace must be made after this: a
/// process traces only what is confined as it is.
pub fn give_up_files(core: Option<&Path>) -> Result<()> {
    // SAFETY: sets a flag of this thread.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    without_files(core)
}

/// Gives up all calls but those that it needs, for the calling thread and those that it will make. `children` are the
/// tender's own.
pub fn give_up_calls(children: &[i32], core: bool) -> Result<()> {
    bpf::install(&filter(children, core)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `with` returns, in a child that was confined.
    fn confined(core: Option<&Path>, with: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child makes system calls and allocates; other threads of the tests may hold locks of the
        // allocator, which glibc's fork takes care of.
        match unsafe { libc::fork() } {
            0 => {
                let done = give_up_files(core).and_then(|()| give_up_calls(&[], core.is_some()));
                let code = if done.is_ok() { with() } else { 99 };
                // SAFETY: ends the child.
                unsafe { libc::_exit(code) }
            }
            child => {
                let mut status = 0;
                // SAFETY: waits for this function's child.
                unsafe { libc::waitpid(child, &mut status, 0) };
                if libc::WIFEXITED(status) {
                    libc::WEXITSTATUS(status)
                } else {
                    -status
                }
            }
        }
    }

    fn errno() -> i32 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
    }

    #[test]
    #[allow(clippy::undocumented_unsafe_blocks)] // One comment for all.
    fn files_programs_and_the_network_are_out_of_reach() {
        // SAFETY, of all: system calls that fail, or change nothing.
        let calls: [fn() -> bool; 6] = [
            || unsafe { libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY) < 0 },
            || unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) < 0 },
            || unsafe { libc::execv(c"/bin/true".as_ptr(), [std::ptr::null()].as_ptr()) < 0 },
            || unsafe { libc::kill(libc::getppid(), 0) < 0 },
            || unsafe { libc::fork() < 0 },
            || unsafe {
                let prot = libc::PROT_EXEC | libc::PROT_READ;
                let flags = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
                libc::mmap(std::ptr::null_mut(), 4096, prot, flags, -1, 0) == libc::MAP_FAILED
            },
        ];
        for (i, call) in calls.into_iter().enumerate() {
            let outcome = confined(None, || i32::from(call() && errno() == libc::EPERM));
            assert_eq!(outcome, 1, "call {i}");
        }
    }

    #[test]
    fn threads_and_memory_still_work() {
        let work = || {
            let thread = std::thread::spawn(|| vec![1_u8; 1 << 20].len());
            i32::from(thread.join().is_ok_and(|bytes| bytes == 1 << 20))
        };
        assert_eq!(confined(None, work), 1);
    }

    #[test]
    fn a_core_file_goes_where_it_was_promised() {
        let folder = std::env::temp_dir().join(format!("kyozon-confine-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let core = folder.join("core");
        let open = || {
            let there = std::fs::write(&core, b"x").is_ok();
            let elsewhere = std::fs::write(folder.join("../kyozon-elsewhere"), b"x");
            i32::from(there) + if elsewhere.is_err() { 2 } else { 0 }
        };
        let outcome = confined(Some(&core), open);
        std::fs::remove_dir_all(&folder).unwrap();
        let _ = std::fs::remove_file(std::env::temp_dir().join("kyozon-elsewhere"));
        // Without landlock in the kernel there is no second wall.
        let landlock = std::fs::read_to_string("/sys/kernel/security/lsm");
        let wall = landlock.map_or(true, |list| list.contains("landlock"));
        assert!(outcome == 3 || !wall && outcome == 1, "{outcome}");
    }
}
