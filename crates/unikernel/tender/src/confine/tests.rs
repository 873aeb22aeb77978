//! Tests of the tender's filter, some of them in a confined child.

use super::*;

const NOTHING: Needs = Needs {
    processes: false,
    core_file: false,
    disks: false,
    pin: false,
    socket: None,
    spawns: Spawns::Nothing,
};

/// Calls `test` in a confined child and returns its result, or 99 if the confinement failed.
fn confined(core: Option<&Path>, test: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child makes system calls and allocates. Other test threads may hold locks of the allocator; glibc's
    // fork resets them in the child.
    match unsafe { libc::fork() } {
        0 => {
            let needs = Needs { core_file: core.is_some(), ..NOTHING };
            let done = give_up_files(core).and_then(|()| give_up_calls(&needs));
            let code = if done.is_ok() { test() } else { 99 };
            // SAFETY: the call ends the child.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the call waits for this function's child.
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
#[allow(clippy::undocumented_unsafe_blocks)] // One comment covers all of them.
fn files_programs_and_the_network_are_denied() {
    // SAFETY of all calls: they fail or change nothing.
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
fn calls_for_disks_are_allowed_only_with_disks() {
    for disks in [false, true] {
        let filter = filter(&Needs { disks, ..NOTHING }).unwrap();
        for call in [libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_fdatasync] {
            let found = kyozon_bpf::evaluate(&filter, 0xc000_003e, call as u32, &[9]);
            assert_eq!(found == ALLOW, disks, "{call}");
        }
        let found = kyozon_bpf::evaluate(&filter, 0xc000_003e, libc::SYS_fallocate as u32, &[9]);
        assert_ne!(found, ALLOW);
    }
}

#[test]
fn a_machine_needs_no_calls_of_processes() {
    let allowed = |processes, spawns, call: i64| {
        let filter = filter(&Needs { processes, spawns, ..NOTHING }).unwrap();
        kyozon_bpf::evaluate(&filter, 0xc000_003e, call as u32, &[0; 6]) == ALLOW
    };
    for (call, traced, spawned) in [
        (libc::SYS_ptrace, true, true),
        (libc::SYS_wait4, true, true),
        (libc::SYS_memfd_create, false, true),
        (libc::SYS_ftruncate, false, true),
    ] {
        assert!(!allowed(false, Spawns::Nothing, call), "{call}");
        assert!(!allowed(false, Spawns::Machines, call), "{call}");
        assert_eq!(allowed(true, Spawns::Nothing, call), traced, "{call}");
        assert_eq!(allowed(true, Spawns::Processes, call), spawned, "{call}");
    }
}

#[test]
fn messages_use_one_socket_only() {
    const ARCH: u32 = 0xc000_003e;
    let action = |socket, call: i64, fd: u64| {
        let filter = filter(&Needs { socket, ..NOTHING }).unwrap();
        kyozon_bpf::evaluate(&filter, ARCH, call as u32, &[fd])
    };
    for call in [libc::SYS_sendmsg, libc::SYS_recvmsg] {
        assert_eq!(action(Some(9), call, 9), ALLOW);
        assert_eq!(action(Some(9), call, 8), fail_with(libc::EPERM));
        assert_eq!(action(None, call, 9), fail_with(libc::EPERM));
    }
    assert_eq!(action(Some(9), libc::SYS_connect, 9), fail_with(libc::EPERM));
}

#[test]
fn creating_guests_is_allowed_only_for_spawning() {
    const ARCH: u32 = 0xc000_003e;
    let of = |spawns| filter(&Needs { spawns, ..NOTHING }).unwrap();
    let (none, machines, processes) =
        (of(Spawns::Nothing), of(Spawns::Machines), of(Spawns::Processes));
    let action = |program: &[sock_filter], number: i64, arguments: &[u64]| {
        kyozon_bpf::evaluate(program, ARCH, number as u32, arguments) == ALLOW
    };
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
    for program in [&none, &machines, &processes] {
        assert!(action(program, libc::SYS_clone, &[thread]));
        assert!(action(program, libc::SYS_ioctl, &[5, 0xae80]));
        assert!(!action(program, libc::SYS_kill, &[77, 9]));
        assert!(!action(program, libc::SYS_clone, &[libc::SIGCHLD as u64]));
        assert!(!action(program, libc::SYS_mmap, &[0, 4096, 7]), "writable and executable");
        assert!(!action(program, libc::SYS_mprotect, &[0, 4096, 5]));
        for call in [libc::SYS_openat, libc::SYS_socket, libc::SYS_execve, libc::SYS_fork] {
            assert!(!action(program, call, &[]), "{call}");
        }
    }
    for (call, arguments, machine, process) in [
        (libc::SYS_ioctl, [5, 0xae01, 0], true, false),
        (libc::SYS_ioctl, [5, 0xae41, 0], true, false),
        (libc::SYS_ioctl, [5, 0x4068_aea3, 0], true, false),
        // Setting registers, and requests that are made only before the calls are given up.
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
        let found = [&none, &machines, &processes].map(|p| action(p, call, &arguments));
        assert_eq!(found, [false, machine, process], "{call} {arguments:x?}");
    }
}

#[test]
fn only_own_threads_can_be_signalled() {
    let filter = filter(&NOTHING).unwrap();
    let own = u64::from(std::process::id());
    let action = |pid: u64| {
        kyozon_bpf::evaluate(&filter, 0xc000_003e, libc::SYS_tgkill as u32, &[pid, pid, 9])
    };
    assert_eq!(action(own), ALLOW);
    for other in [0, 1, own - 1, own + 1, u64::MAX] {
        assert_eq!(action(other), fail_with(libc::EPERM), "{other}");
    }
    // Guests' processes are signalled by descriptor; descriptors of other processes cannot be opened.
    let of = |processes, call: i64| {
        let filter = super::filter(&Needs { processes, spawns: Spawns::Processes, ..NOTHING });
        kyozon_bpf::evaluate(&filter.unwrap(), 0xc000_003e, call as u32, &[9]) == ALLOW
    };
    assert!(of(true, libc::SYS_pidfd_send_signal) && !of(false, libc::SYS_pidfd_send_signal));
    assert!(!of(true, libc::SYS_pidfd_open) && !of(true, libc::SYS_kill));
    // SAFETY: signal 0 only checks the permission.
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
fn only_the_core_files_folder_is_writable() {
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
    // If the kernel lacks Landlock, the second barrier is missing.
    let landlock = std::fs::read_to_string("/sys/kernel/security/lsm");
    let has_landlock = landlock.map_or(true, |list| list.contains("landlock"));
    assert!(outcome == 3 || !has_landlock && outcome == 1, "{outcome}");
}
