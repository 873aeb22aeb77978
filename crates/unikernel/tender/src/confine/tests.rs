//! The filter of the tender, and a child that is confined by it.

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
