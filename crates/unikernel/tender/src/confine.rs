//! Confines the tender before the first instruction of a guest: it gives up new privileges, files, programs and the
//! network.
//!
//! A system call that the tender does not need fails with `EPERM`. The allowed calls are those that the standard
//! library and the backend need while guests run. Landlock is a second barrier, if the kernel has it.

use crate::error::{Context, Result};
use crate::process::{CLONE, DOOR_NUMBER};
use kyozon_bpf::{self as bpf, fail_with, Condition, Filter, Threads, ALLOW};
use landlock::{
    Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, ABI,
};
use libc::sock_filter;
use std::path::Path;

/// Calls that are allowed without a condition.
pub(crate) const ALWAYS: [i64; 33] = [
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
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_restart_syscall,
    libc::SYS_fstat,
    libc::SYS_fcntl,
    libc::SYS_membarrier,
];

/// `KVM_RUN`, `KVM_GET_REGS`, `KVM_GET_SREGS`, `KVM_SET_USER_MEMORY_REGION`, `KVM_IOEVENTFD` (linux/kvm.h), and the
/// request of `isatty`.
const IOCTLS: [u32; 6] =
    [0xae80, 0x8090_ae81, 0x8138_ae83, 0x4020_ae46, 0x4040_ae79, libc::TCGETS as u32];

/// `KVM_CREATE_VM`, `KVM_GET_VCPU_MMAP_SIZE`, `KVM_ENABLE_CAP`, `KVM_CREATE_VCPU`, `KVM_SET_CPUID2`, `KVM_SET_XCRS`,
/// `KVM_SET_DEVICE_ATTR` and `KVM_SET_MSRS`: requests that create one more virtual machine. A filter cannot read the
/// capability of `KVM_ENABLE_CAP`, which is in memory, so a tender may enable any capability of its own machines.
const MACHINE_IOCTLS: [u32; 8] =
    [0xae01, 0xae04, 0x4068_aea3, 0xae41, 0x4008_ae90, 0x4188_aea7, 0x4018_aee1, 0x4008_ae89];

/// Calls that run guests' processes, until they end. A process descriptor comes from creating the process, because
/// without files there is no other way to get one.
const TRACE_CALLS: [i64; 3] = [libc::SYS_ptrace, libc::SYS_wait4, libc::SYS_pidfd_send_signal];

/// Calls that create a guest's process. The process executes a loader, whose steps pass this filter until the guest's
/// own filter is installed.
const PROCESS_CALLS: [i64; 13] = [
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    DOOR_NUMBER as i64,
    libc::SYS_execveat,
    libc::SYS_prctl,
    libc::SYS_getppid,
    libc::SYS_setpgid,
    libc::SYS_prlimit64,
    libc::SYS_dup3,
    libc::SYS_close_range,
    libc::SYS_pipe2,
    libc::SYS_arch_prctl,
    libc::SYS_seccomp,
];

/// The guests that the tender spawns after it gave up system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spawns {
    /// None.
    Nothing,
    /// Virtual machines, through the open `/dev/kvm`.
    Machines,
    /// Processes, which inherit the tender's confinement and then install their own filter.
    Processes,
}

/// Operations that the tender still needs after it gave up system calls.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Tracing guests' processes, and sending them signals.
    pub processes: bool,
    /// Opening a core file.
    pub core_file: bool,
    /// Flushing disks to stable storage.
    pub disks: bool,
    /// Pinning threads and processes to CPUs.
    pub pin: bool,
    /// Descriptor of the socket for messages with the keeper.
    pub socket: Option<i32>,
    /// Spawning guests.
    pub spawns: Spawns,
}

/// Adds the part at the label `signal`: it allows signals only to threads of the calling process.
pub(crate) fn check_signal_target(filter: &mut Filter) {
    filter.label("signal");
    filter.load_low(0);
    filter.jump(Condition::Equal(std::process::id()), Some("yes"), Some("no"));
}

/// The filter for the calling process.
fn filter(needs: &Needs) -> Result<Vec<sock_filter>> {
    let Needs { processes, core_file, disks, pin, socket, spawns } = *needs;
    let (yes, no) = (Some("yes"), Some("no"));
    let mut calls = vec![
        (libc::SYS_ioctl, "ioctl"),
        (libc::SYS_mmap, "map"),
        (libc::SYS_mprotect, "memory"),
        (libc::SYS_clone, "thread"),
        (libc::SYS_clone3, "missing"),
        (libc::SYS_tgkill, "signal"),
    ];
    let mut allow = |more: &[i64]| calls.extend(more.iter().map(|call| (*call, "yes")));
    allow(&ALWAYS);
    match spawns {
        Spawns::Nothing => {}
        Spawns::Machines => allow(&[libc::SYS_eventfd2]),
        Spawns::Processes => allow(&PROCESS_CALLS),
    }
    if core_file {
        allow(&[libc::SYS_openat]);
    }
    if processes {
        allow(&TRACE_CALLS);
    }
    if disks {
        allow(&[libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_fdatasync]);
    }
    if pin {
        allow(&[libc::SYS_sched_setaffinity]);
    }
    if socket.is_some() {
        calls.extend([(libc::SYS_sendmsg, "socket"), (libc::SYS_recvmsg, "socket")]);
    }
    let mut filter = Filter::new("no");
    filter.dispatch(calls.iter().map(|(call, to)| (*call as u32, *to)).collect(), "no")?;
    filter.label("ioctl");
    filter.load_low(1);
    for request in IOCTLS {
        filter.jump(Condition::Equal(request), yes, None);
    }
    if spawns == Spawns::Machines {
        for request in MACHINE_IOCTLS {
            filter.jump(Condition::Equal(request), yes, None);
        }
    }
    filter.end(fail_with(libc::EPERM));
    // Memory must not be executable. A guest's process maps code, which must not be writable.
    filter.label("map");
    if spawns == Spawns::Processes {
        filter.load_low(2);
        filter.jump(Condition::AnyOf(libc::PROT_WRITE as u32), Some("memory"), yes);
    }
    filter.label("memory");
    filter.load_low(2);
    filter.jump(Condition::AnyOf(libc::PROT_EXEC as u32), no, yes);
    // Threads are allowed; processes only if they are guests.
    filter.label("thread");
    filter.load_low(0);
    filter.jump(Condition::AnyOf(libc::CLONE_THREAD as u32), yes, None);
    if spawns == Spawns::Processes {
        filter.jump(Condition::Equal(CLONE as u32), yes, None);
    }
    filter.end(fail_with(libc::EPERM));
    check_signal_target(&mut filter);
    filter.label("socket");
    filter.load_low(0);
    filter.jump(Condition::Equal(socket.unwrap_or(-1) as u32), yes, None);
    filter.label("no");
    filter.end(fail_with(libc::EPERM));
    // A filter cannot read the arguments of clone3, which are in memory. The C library then falls back to clone.
    filter.label("missing");
    filter.end(fail_with(libc::ENOSYS));
    filter.label("yes");
    filter.end(ALLOW);
    Ok(filter.finish()?)
}

/// Denies access to the file system by Landlock, except for the core file's folder.
fn restrict_files(core: Option<&Path>) -> Result<()> {
    let abi = ABI::V5;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .create()?;
    if let Some(core) = core {
        let folder = core.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = PathFd::new(folder).with_context(|| {
            format!("cannot open the folder {} for a core file", folder.display())
        })?;
        let write = AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::Truncate;
        rules = rules.add_rule(PathBeneath::new(folder, write))?;
    }
    rules.restrict_self().context("landlock")?;
    Ok(())
}

/// Gives up files and new privileges, for the calling thread and the children that it creates later. Only such children
/// can be traced: a process under Landlock traces only processes with at least the same restrictions.
///
/// # Errors
///
/// The folder of the file `core` does not exist, or the kernel refuses the restriction.
pub fn give_up_files(core: Option<&Path>) -> Result<()> {
    rustix::thread::set_no_new_privs(true).context("prctl")?;
    restrict_files(core)
}

/// Gives up all system calls except those of `needs`, for the calling thread and the threads that it creates later.
///
/// # Errors
///
/// The kernel refuses the filter.
pub fn give_up_calls(needs: &Needs) -> Result<()> {
    bpf::install(&filter(needs)?, Threads::Calling).context("seccomp")
}

#[cfg(test)]
mod tests;
