//! A kernel boots, answers system calls, halts, and boots again. The names follow the boot tests of the Linux Kernel
//! Library.

use liblinux::calls::{Calls, Fd};
use liblinux::{Errno, Halted, Instance, Thread};
use std::path::Path;
use std::time::{Duration, Instant};

mod common;

fn boot() -> (Instance, Thread) {
    common::boot(common::config())
}

/// Runs a test in a kernel of its own, and halts it.
fn with_kernel(test: impl FnOnce(&Instance, &Thread)) {
    let (instance, thread) = boot();
    test(&instance, &thread);
    instance.halt(thread).expect("halt");
}

/// A call without addresses.
fn call(thread: &Thread, number: i64, arguments: [u64; 6]) -> i64 {
    // SAFETY: callers pass numbers only, or addresses of live memory.
    unsafe { thread.syscall(number, arguments) }
}

#[test]
fn start_kernel() {
    with_kernel(|instance, _| assert_eq!(instance.halted(), Halted::Running));
}

#[test]
fn getpid_and_gettid() {
    with_kernel(|_, thread| {
        assert_eq!(call(thread, libc::SYS_getpid, [0; 6]), 1);
        assert!(call(thread, libc::SYS_gettid, [0; 6]) > 1);
    });
}

/// The flags of the largest mapping of this process, as /proc/self/smaps shows them.
fn flags_of_largest_mapping() -> String {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let figures = text.lines().filter_map(|line| line.strip_prefix("Size:"));
    let sizes = figures.map(|text| text.trim().trim_end_matches(" kB").parse::<u64>());
    let flags = text.lines().filter_map(|line| line.strip_prefix("VmFlags:"));
    let largest = sizes.zip(flags).max_by_key(|(size, _)| size.clone().expect("a number"));
    largest.expect("a mapping").1.into()
}

#[test]
fn memory_is_of_huge_pages() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return;
    }
    let (instance, thread) = common::boot(common::config().memory(1 << 30));
    let flags = flags_of_largest_mapping();
    assert!(flags.split(' ').any(|flag| flag == "hg"), "{flags}");
    instance.halt(thread).expect("halt");
}

#[test]
fn umask() {
    with_kernel(|_, thread| {
        call(thread, libc::SYS_umask, [0o777, 0, 0, 0, 0, 0]);
        assert_eq!(call(thread, libc::SYS_umask, [0o022, 0, 0, 0, 0, 0]), 0o777);
    });
}

#[test]
fn create_write_seek_read_stat() {
    with_kernel(|_, thread| {
        let fd =
            thread.open(Path::new("/file"), libc::O_CREAT | libc::O_RDWR, 0o644).expect("create");
        assert_eq!(thread.write(fd, b"test"), Ok(4));
        assert_eq!(thread.seek(fd, 0, libc::SEEK_CUR), Ok(4));
        assert_eq!(thread.seek(fd, -2, libc::SEEK_END), Ok(2));
        assert_eq!(thread.seek(fd, 0, libc::SEEK_SET), Ok(0));
        let mut buffer = [0; 8];
        assert_eq!(thread.read(fd, &mut buffer), Ok(4));
        assert_eq!(&buffer, b"test\0\0\0\0");
        let stat = thread.stat(Path::new("/file")).expect("stat");
        assert_eq!((stat.st_size, stat.st_mode), (4, libc::S_IFREG | 0o644));
        assert_eq!(thread.close(fd), Ok(()));
        assert_eq!(thread.close(fd), Err(Errno(libc::EBADF)));
    });
}

#[test]
fn fail_open() {
    with_kernel(|_, thread| {
        assert_eq!(thread.open(Path::new("/none"), libc::O_RDONLY, 0), Err(Errno(libc::ENOENT)));
    });
}

#[test]
fn mkdir_and_entries() {
    with_kernel(|_, thread| {
        thread.mkdir(Path::new("/folder"), 0o700).expect("mkdir");
        for i in 0..1000 {
            let fd = thread
                .open(Path::new(&format!("/folder/{i}")), libc::O_CREAT | libc::O_WRONLY, 0o600)
                .expect("create");
            thread.close(fd).expect("close");
        }
        let fd =
            thread.open(Path::new("/folder"), libc::O_RDONLY | libc::O_DIRECTORY, 0).expect("open");
        let mut names: Vec<u32> = thread
            .entries(fd)
            .expect("entries")
            .iter()
            .map(|entry| entry.name.to_str().expect("text").parse().expect("a number"))
            .collect();
        names.sort_unstable();
        assert!(names.into_iter().eq(0..1000));
    });
}

#[test]
fn nanosleep() {
    with_kernel(|_, thread| {
        for ms in [1, 30] {
            let time = libc::timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
            let before = Instant::now();
            assert_eq!(
                call(thread, libc::SYS_nanosleep, [&raw const time as u64, 0, 0, 0, 0, 0]),
                0
            );
            let slept = before.elapsed();
            let wanted = Duration::from_millis(ms as u64);
            assert!(
                slept >= wanted && slept < wanted + Duration::from_millis(500),
                "{slept:?} instead of {wanted:?}"
            );
        }
    });
}

#[test]
fn pipe2() {
    with_kernel(|_, thread| {
        let mut ends = [0i32; 2];
        assert_eq!(call(thread, libc::SYS_pipe2, [&raw mut ends as u64, 0, 0, 0, 0, 0]), 0);
        let [read, write] = ends.map(Fd);
        assert_eq!(thread.write(write, b"through"), Ok(7));
        let mut buffer = [0; 7];
        assert_eq!(thread.read(read, &mut buffer), Ok(7));
        assert_eq!(&buffer, b"through");
        thread.close(read).expect("close");
        // SIGPIPE stays in the kernel; the call says why.
        assert_eq!(thread.write(write, b"x"), Err(Errno(libc::EPIPE)));
    });
}

#[test]
fn epoll() {
    with_kernel(|_, thread| {
        let event = Fd(call(thread, libc::SYS_eventfd2, [0; 6]) as i32);
        let epoll = call(thread, libc::SYS_epoll_create1, [0; 6]) as u64;
        let mut interest = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 77 };
        let add =
            [epoll, libc::EPOLL_CTL_ADD as u64, event.0 as u64, &raw mut interest as u64, 0, 0];
        assert_eq!(call(thread, libc::SYS_epoll_ctl, add), 0);
        let mut seen = libc::epoll_event { events: 0, u64: 0 };
        let wait = |seen: &mut libc::epoll_event, ms: u64| {
            call(
                thread,
                libc::SYS_epoll_wait,
                [epoll, std::ptr::from_mut(seen) as u64, 1, ms, 0, 0],
            )
        };
        assert_eq!(wait(&mut seen, 5), 0);
        thread.write(event, &1u64.to_le_bytes()).expect("signal");
        assert_eq!(wait(&mut seen, 0), 1);
        assert_eq!({ seen.u64 }, 77);
    });
}

#[test]
fn mount_proc_and_chdir() {
    with_kernel(|_, thread| {
        thread.mkdir(Path::new("/other"), 0o555).expect("mkdir");
        thread.mount("none", Path::new("/other"), "proc", 0, "").expect("mount");
        let path = c"/other";
        assert_eq!(call(thread, libc::SYS_chdir, [path.as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
        let fd = thread.open(Path::new("version"), libc::O_RDONLY, 0).expect("open");
        let mut buffer = [0; 200];
        let bytes = thread.read(fd, &mut buffer).expect("read");
        assert!(
            buffer[..bytes].starts_with(b"Linux version 6.12."),
            "{}",
            String::from_utf8_lossy(&buffer)
        );
        thread.close(fd).expect("close");
        assert_eq!(call(thread, libc::SYS_chdir, [c"/".as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
        thread.unmount(Path::new("/other")).expect("unmount");
    });
}

#[test]
fn bad_addresses_give_efault() {
    with_kernel(|_, thread| {
        let fd =
            thread.open(Path::new("/file"), libc::O_CREAT | libc::O_RDWR, 0o644).expect("create").0
                as u64;
        let efault = -i64::from(libc::EFAULT);
        for address in [
            0,
            8,
            0xdead_0000,
            1 << 46,
            (1 << 47) - 4096,
            1 << 47,
            1 << 60,
            u64::MAX - 4096,
            u64::MAX,
        ] {
            assert_eq!(
                call(thread, libc::SYS_write, [fd, address, 100, 0, 0, 0]),
                efault,
                "write {address:#x}"
            );
            assert_eq!(
                call(thread, libc::SYS_stat, [address, address, 0, 0, 0, 0]),
                efault,
                "stat {address:#x}"
            );
            assert_eq!(
                call(thread, libc::SYS_pipe2, [address, 0, 0, 0, 0, 0]),
                efault,
                "pipe {address:#x}"
            );
        }
        // Half of the buffer is mapped: that half is written.
        // SAFETY: two new pages, of which the second is taken away.
        let page = unsafe {
            let page = libc::mmap(
                std::ptr::null_mut(),
                8192,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            libc::munmap(page.byte_add(4096), 4096);
            page as u64
        };
        for (start, length) in [(4096 - 10, 20), (4096 - 8, 4096), (4096 - 3000, 6000)] {
            let wrote = call(thread, libc::SYS_write, [fd, page + start, length, 0, 0, 0]);
            assert!(
                wrote == 4096 - start as i64 || wrote == efault,
                "{wrote} of {length} from {start}"
            );
        }
    });
}

#[test]
fn many_syscall_threads() {
    with_kernel(|instance, thread| {
        let mut ends = [0i32; 2];
        assert_eq!(call(thread, libc::SYS_pipe2, [&raw mut ends as u64, 0, 0, 0, 0, 0]), 0);
        let [read, write] = ends.map(Fd);
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let instance = instance.clone();
                std::thread::spawn(move || {
                    let thread = instance.attach().expect("attach");
                    for _ in 0..2000 {
                        thread.write(write, b"x").expect("write");
                        assert_eq!(call(&thread, libc::SYS_getpid, [0; 6]), 1);
                    }
                })
            })
            .collect();
        let mut total = 0;
        let mut buffer = [0; 100];
        while total < 16 * 2000 {
            total += thread.read(read, &mut buffer).expect("read");
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(total, 16 * 2000);
    });
}

#[test]
fn stop_kernel_and_start_again() {
    for _ in 0..20 {
        with_kernel(|_, thread| assert_eq!(call(thread, libc::SYS_getpid, [0; 6]), 1));
    }
}

#[test]
fn halt_ends_calls_of_other_threads() {
    let (instance, thread) = boot();
    let other = instance.clone();
    let (ready, wait) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        let thread = other.attach().expect("attach");
        ready.send(()).expect("a receiver");
        let forever = libc::timespec { tv_sec: 1 << 30, tv_nsec: 0 };
        let slept = call(&thread, libc::SYS_nanosleep, [&raw const forever as u64, 0, 0, 0, 0, 0]);
        (slept, call(&thread, libc::SYS_getpid, [0; 6]))
    });
    wait.recv().expect("attached");
    std::thread::sleep(Duration::from_millis(50));
    instance.halt(thread).expect("halt");
    let shutdown = -i64::from(libc::ESHUTDOWN);
    assert_eq!(sleeper.join().expect("no panic"), (shutdown, shutdown));
}

#[test]
fn two_kernels_at_once() {
    let (a, thread_a) = boot();
    let (b, thread_b) = boot();
    thread_a.mkdir(Path::new("/only-in-a"), 0o755).expect("mkdir");
    assert!(thread_b.stat(Path::new("/only-in-a")).is_err());
    a.halt(thread_a).expect("halt");
    thread_b.mkdir(Path::new("/b"), 0o755).expect("mkdir");
    b.halt(thread_b).expect("halt");
}

/// How many ticks came while the CPU was not idle.
fn ticks(thread: &Thread) -> u64 {
    let fd = thread.open(Path::new("/proc/stat"), libc::O_RDONLY, 0).expect("open");
    let mut buffer = [0; 4096];
    let bytes = thread.read(fd, &mut buffer).expect("read");
    thread.close(fd).expect("close");
    let text = String::from_utf8_lossy(&buffer[..bytes]).into_owned();
    // "cpu", user, nice, system, idle ..., in hundredths of a second: each tick counts as one.
    let mut counts = text.split_whitespace().skip(1).map(|word| word.parse().unwrap_or(0));
    counts.by_ref().take(3).sum()
}

/// The CPU time of this host thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is a variable of this function.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A thread that makes many calls keeps the CPU's lock. Time must also go on in a call that takes long.
#[test]
fn the_tick_goes_on_during_a_long_call() {
    let (instance, thread) = common::boot(common::config().memory(1 << 30));
    let how = libc::O_CREAT | libc::O_WRONLY;
    let file = thread.open(Path::new("/large"), how, 0o600).expect("create");
    // Three times the same bytes: fast machines write some 4 GB/s.
    let buffer = vec![1_u8; 256 << 20];
    let part = libc::iovec { iov_base: buffer.as_ptr() as *mut _, iov_len: buffer.len() };
    let parts = [part; 3];
    for _ in 0..1000 {
        call(&thread, libc::SYS_getpid, [0; 6]);
    }
    // Other work on the host takes no time of this clock.
    let (before, start) = (ticks(&thread), cpu_time());
    let written = call(
        &thread,
        libc::SYS_writev,
        [file.0 as u64, parts.as_ptr() as u64, parts.len() as u64, 0, 0, 0],
    );
    assert_eq!(written, (parts.len() * buffer.len()) as i64);
    let (count, took) = (ticks(&thread) - before, cpu_time() - start);
    // The kernel's tick has 10 ms, and may be late.
    assert!(u128::from(count) >= took.as_millis() / 40, "{count} ticks in {took:?}");
    assert!(took > Duration::from_millis(80), "the write took only {took:?}");
    thread.close(file).expect("close");
    instance.halt(thread).expect("halt");
}

/// A timer of the wheel, which the tick runs: receiving has a time limit.
#[test]
fn timers_of_the_tick_expire() {
    with_kernel(|_, thread| {
        let socket = call(
            thread,
            libc::SYS_socket,
            [libc::AF_UNIX as u64, libc::SOCK_DGRAM as u64, 0, 0, 0, 0],
        ) as u64;
        let limit = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
        let option = [
            socket,
            libc::SOL_SOCKET as u64,
            libc::SO_RCVTIMEO as u64,
            &raw const limit as u64,
            size_of_val(&limit) as u64,
            0,
        ];
        assert_eq!(call(thread, libc::SYS_setsockopt, option), 0);
        let mut byte = 0u8;
        let before = Instant::now();
        let received = call(thread, libc::SYS_recvfrom, [socket, &raw mut byte as u64, 1, 0, 0, 0]);
        assert_eq!(received, -i64::from(libc::EAGAIN));
        let waited = before.elapsed().as_millis();
        assert!((90..2000).contains(&waited), "{waited} ms");
    });
}
