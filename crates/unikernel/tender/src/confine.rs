//! What the tender gives up before the first instruction of a guest: new privileges, files, programs, the network.
//!
//! A system call that the tender has no use for fails with `EPERM`. The list is of what the standard library, KVM and
//! ptrace need while guests run. Landlock is a second wall, where the kernel has it.

use crate::bpf::{self, fails, Filter, When, ALLOW};
use crate::error::{Context, Result};
use crate::process::{CLONE, DOOR_NUMBER};
use landlock::{
    Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, ABI,
};
use libc::sock_filter;
use std::path::Path;

/// Calls that take no other condition.
pub(crate) const ALWAYS: [i64; 37] = [
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
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_wait4,
    libc::SYS_ptrace,
    libc::SYS_membarrier,
];

/// `KVM_RUN`, `KVM_GET_REGS`, `KVM_GET_SREGS`, `KVM_SET_USER_MEMORY_REGION`, `KVM_IOEVENTFD` (linux/kvm.h), and what
/// `isatty` asks.
const IOCTLS: [u32; 6] =
    [0xae80, 0x8090_ae81, 0x8138_ae83, 0x4020_ae46, 0x4040_ae79, libc::TCGETS as u32];

/// `KVM_CREATE_VM`, `KVM_GET_VCPU_MMAP_SIZE`, `KVM_ENABLE_CAP`, `KVM_CREATE_VCPU`, `KVM_SET_CPUID2`, `KVM_SET_XCRS`,
/// `KVM_SET_DEVICE_ATTR` and `KVM_SET_MSRS`: what makes one more virtual machine. Which capability lies in memory,
/// where a filter cannot look: of its own machines a tender may enable any.
const MACHINE_IOCTLS: [u32; 8] =
    [0xae01, 0xae04, 0x4068_aea3, 0xae41, 0x4008_ae90, 0x4188_aea7, 0x4018_aee1, 0x4008_ae89];

/// What makes a process, and what that does until it is the guest's: it executes a loader, whose steps pass this filter
/// before they pass that of the guest.
const PROCESS_CALLS: [i64; 10] = [
    DOOR_NUMBER as i64,
    libc::SYS_execveat,
    libc::SYS_prctl,
    libc::SYS_setpgid,
    libc::SYS_prlimit64,
    libc::SYS_dup3,
    libc::SYS_close_range,
    libc::SYS_pipe2,
    libc::SYS_arch_prctl,
    libc::SYS_seccomp,
];

/// What the tender will make after it gave up calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// Nothing.
    Nothing,
    /// Virtual machines, of `/dev/kvm` that is open.
    Machines,
    /// Processes, which are confined as it is, and then more.
    Processes,
}

/// What the tender does after it gave up calls.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// It has guests' processes, which it signals.
    pub processes: bool,
    /// It opens a file.
    pub core: bool,
    /// It writes what disks have to where that lasts.
    pub disks: bool,
    /// It says where its threads and processes run.
    pub pin: bool,
    /// It sends and receives messages by this one.
    pub socket: Option<i32>,
    /// What it makes.
    pub later: Later,
}

/// Signals to threads of the calling process, and to no others.
pub(crate) fn own_threads(filter: &mut Filter) {
    filter.label("signal");
    filter.low(0);
    filter.jump(When::Equal(std::process::id()), Some("yes"), Some("no"));
}

/// The filter, of the calling process.
fn filter(needs: &Needs) -> Result<Vec<sock_filter>> {
    let Needs { processes, core, disks, pin, socket, later } = *needs;
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
    match later {
        Later::Nothing => {}
        Later::Machines => allow(&[libc::SYS_eventfd2]),
        Later::Processes => allow(&PROCESS_CALLS),
    }
    if core {
        allow(&[libc::SYS_openat]);
    }
    if processes {
        // By descriptors of processes: without files, only the process that makes another has its descriptor.
        allow(&[libc::SYS_pidfd_send_signal]);
    }
    if disks {
        allow(&[libc::SYS_fdatasync]);
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
    filter.low(1);
    for request in IOCTLS {
        filter.jump(When::Equal(request), yes, None);
    }
    if later == Later::Machines {
        for request in MACHINE_IOCTLS {
            filter.jump(When::Equal(request), yes, None);
        }
    }
    filter.end(fails(libc::EPERM));
    // Memory, but none that is executed; a guest's process has code, which cannot be written.
    filter.label("map");
    if later == Later::Processes {
        filter.low(2);
        filter.jump(When::AnyOf(libc::PROT_WRITE as u32), Some("memory"), yes);
    }
    filter.label("memory");
    filter.low(2);
    filter.jump(When::AnyOf(libc::PROT_EXEC as u32), no, yes);
    // Threads, but no processes.
    filter.label("thread");
    filter.low(0);
    filter.jump(When::AnyOf(libc::CLONE_THREAD as u32), yes, None);
    if later == Later::Processes {
        filter.jump(When::Equal(CLONE as u32), yes, None);
    }
    filter.end(fails(libc::EPERM));
    own_threads(&mut filter);
    filter.label("socket");
    filter.low(0);
    filter.jump(When::Equal(socket.unwrap_or(-1) as u32), yes, None);
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
    rustix::thread::set_no_new_privs(true).context("prctl")?;
    without_files(core)
}

/// Gives up all calls but those that it needs, for the calling thread and those that it will make.
pub fn give_up_calls(needs: &Needs) -> Result<()> {
    bpf::install(&filter(needs)?)
}

#[cfg(test)]
mod tests;
