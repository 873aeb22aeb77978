//! What the tender gives up before the first instruction of a guest: new privileges, files, programs, the network.
//!
//! A system call that the tender has no use for fails with `EPERM`. The list is of what the standard library, KVM and
//! ptrace need while guests run. Landlock is a second wall, where the kernel has it.

use crate::bpf::{self, fails, Filter, When, ALLOW};
use crate::process::{CLONE, DOOR_NUMBER};
use anyhow::{Context, Result};
use landlock::{
    Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, ABI,
};
use libc::sock_filter;
use std::path::Path;

/// Calls that take no other condition.
const ALWAYS: [i64; 37] = [
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
/// `KVM_SET_DEVICE_ATTR` and `KVM_SET_MSRS`: what makes one more virtual machine. Which capability lies in memory, where a
/// filter cannot look: of its own machines a tender may enable any.
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
fn own_threads(filter: &mut Filter) {
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
        // By descriptors of processes, which only who makes one has, where files are out of reach.
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
    // SAFETY: sets a flag of this thread.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    without_files(core)
}

/// Gives up all calls but those that it needs, for the calling thread and those that it will make.
pub fn give_up_calls(needs: &Needs) -> Result<()> {
    bpf::install(&filter(needs)?)
}

/// Calls that the keeper of a group needs beside [`ALWAYS`].
const KEEPERS: [i64; 20] = [
    libc::SYS_accept4,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_getsockopt,
    libc::SYS_geteuid,
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_lstat,
    libc::SYS_statx,
    libc::SYS_flock,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_dup,
    libc::SYS_mmap,
    libc::SYS_mprotect,
];

/// Gives up, for the keeper of groups below this folder, all calls but those that it needs, and all files but the
/// folders that it takes away. Regions are opened once more, to read, by `/proc/self/fd`: what lies in memory only is
/// no file to landlock.
pub fn keeper(base: &Path) -> Result<()> {
    // SAFETY: sets a flag of this thread.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let (all, remove) = (AccessFs::from_all(ABI::V5), AccessFs::RemoveFile | AccessFs::RemoveDir);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(base)?, remove | AccessFs::ReadDir))?;
    if let Some(above) = base.parent() {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(above)?, AccessFs::RemoveDir))?;
    }
    rules.restrict_self().context("landlock")?;
    let calls = ALWAYS.into_iter().chain(KEEPERS).filter(|call| *call != libc::SYS_ptrace);
    let mut calls: Vec<_> = calls.map(|call| (call as u32, "yes")).collect();
    calls.push((libc::SYS_tgkill as u32, "signal"));
    let mut filter = Filter::new("no");
    filter.dispatch(calls, "no")?;
    own_threads(&mut filter);
    filter.label("no");
    filter.end(fails(libc::EPERM));
    filter.label("yes");
    filter.end(ALLOW);
    bpf::install(&filter.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Needs = Needs {
        processes: false,
        core: false,
        disks: false,
        pin: false,
        socket: None,
        later: Later::Nothing,
    };

    /// What `with` returns, in a child that was confined.
    fn confined(core: Option<&Path>, with: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child makes system calls and allocates; other threads of the tests may hold locks of the
        // allocator, which glibc's fork takes care of.
        match unsafe { libc::fork() } {
            0 => {
                let needs = Needs { core: core.is_some(), ..NOTHING };
                let done = give_up_files(core).and_then(|()| give_up_calls(&needs));
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
        let calls: [fn() -> bool; 7] = [
            || unsafe { libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY) < 0 },
            || unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) < 0 },
            || unsafe { libc::execv(c"/bin/true".as_ptr(), [std::ptr::null()].as_ptr()) < 0 },
            || unsafe { libc::kill(libc::getppid(), 0) < 0 },
            || unsafe { libc::fork() < 0 },
            || unsafe {
                let parent = libc::getppid();
                libc::syscall(libc::SYS_tgkill, parent, parent, 0) < 0
            },
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
    fn what_disks_need_is_allowed_where_there_are_disks() {
        for disks in [false, true] {
            let filter = filter(&Needs { disks, ..NOTHING }).unwrap();
            let found = bpf::judge(&filter, 0xc000_003e, libc::SYS_fdatasync as u32, &[9]);
            assert_eq!(found == ALLOW, disks);
        }
    }

    #[test]
    fn messages_go_by_one_socket_only() {
        const ARCH: u32 = 0xc000_003e;
        let judge = |socket, call: i64, fd: u64| {
            let filter = filter(&Needs { socket, ..NOTHING }).unwrap();
            bpf::judge(&filter, ARCH, call as u32, &[fd])
        };
        for call in [libc::SYS_sendmsg, libc::SYS_recvmsg] {
            assert_eq!(judge(Some(9), call, 9), ALLOW);
            assert_eq!(judge(Some(9), call, 8), fails(libc::EPERM));
            assert_eq!(judge(None, call, 9), fails(libc::EPERM));
        }
        assert_eq!(judge(Some(9), libc::SYS_connect, 9), fails(libc::EPERM));
    }

    #[test]
    fn what_makes_peers_is_allowed_where_peers_can_come() {
        const ARCH: u32 = 0xc000_003e;
        let of = |later| filter(&Needs { later, ..NOTHING }).unwrap();
        let (none, machines, processes) =
            (of(Later::Nothing), of(Later::Machines), of(Later::Processes));
        let judge = |program: &[sock_filter], number: i64, arguments: &[u64]| {
            bpf::judge(program, ARCH, number as u32, arguments) == ALLOW
        };
        let thread = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
        for program in [&none, &machines, &processes] {
            assert!(judge(program, libc::SYS_clone, &[thread]));
            assert!(judge(program, libc::SYS_ioctl, &[5, 0xae80]));
            assert!(!judge(program, libc::SYS_kill, &[77, 9]));
            assert!(!judge(program, libc::SYS_clone, &[libc::SIGCHLD as u64]));
            assert!(!judge(program, libc::SYS_mmap, &[0, 4096, 7]), "writable and executable");
            assert!(!judge(program, libc::SYS_mprotect, &[0, 4096, 5]));
            for call in [libc::SYS_openat, libc::SYS_socket, libc::SYS_execve, libc::SYS_fork] {
                assert!(!judge(program, call, &[]), "{call}");
            }
        }
        for (call, arguments, machine, process) in [
            (libc::SYS_ioctl, [5, 0xae01, 0], true, false),
            (libc::SYS_ioctl, [5, 0xae41, 0], true, false),
            (libc::SYS_ioctl, [5, 0x4068_aea3, 0], true, false),
            // Registers, and what was asked before the calls were given up.
            (libc::SYS_ioctl, [5, 0x4138_ae84, 0], false, false),
            (libc::SYS_ioctl, [5, 0x4090_ae82, 0], false, false),
            (libc::SYS_ioctl, [5, 0xae03, 0], false, false),
            (libc::SYS_ioctl, [5, 0xaea3, 0], false, false),
            (libc::SYS_eventfd2, [0, 0, 0], true, false),
            (libc::SYS_clone, [CLONE as u64, 0, 0], false, true),
            (libc::SYS_execveat, [5, 0, 0], false, true),
            (libc::SYS_mmap, [0, 4096, 5], false, true),
            (DOOR_NUMBER.into(), [0, 0, 0], false, true),
        ] {
            let found = [&none, &machines, &processes].map(|p| judge(p, call, &arguments));
            assert_eq!(found, [false, machine, process], "{call} {arguments:x?}");
        }
    }

    #[test]
    fn signals_are_for_own_threads() {
        let filter = filter(&NOTHING).unwrap();
        let own = u64::from(std::process::id());
        let judge =
            |pid: u64| bpf::judge(&filter, 0xc000_003e, libc::SYS_tgkill as u32, &[pid, pid, 9]);
        assert_eq!(judge(own), ALLOW);
        for other in [0, 1, own - 1, own + 1, u64::MAX] {
            assert_eq!(judge(other), fails(libc::EPERM), "{other}");
        }
        // Guests' processes are signalled by their descriptors, which nobody else's can be had for.
        let of = |processes, call: i64| {
            let filter = super::filter(&Needs { processes, later: Later::Processes, ..NOTHING });
            bpf::judge(&filter.unwrap(), 0xc000_003e, call as u32, &[9]) == ALLOW
        };
        assert!(of(true, libc::SYS_pidfd_send_signal) && !of(false, libc::SYS_pidfd_send_signal));
        assert!(!of(true, libc::SYS_pidfd_open) && !of(true, libc::SYS_kill));
        // SAFETY: no signal, to this thread.
        assert_eq!(confined(None, || i32::from(unsafe { libc::raise(0) } == 0)), 1);
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
