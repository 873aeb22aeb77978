//! A confined kernel does what a kernel does, and its process can do nothing else.

mod common;

use common::{children, eventually, finish, fs, image, linux, program, runs, tool};
use kyozon_devices::disk::FileDisk;
use liblinux::calls::{Arg, Calls, Fd};
use liblinux::confined::{Client, Config, COMMAND};
use liblinux::{Confined, Errno, Error, Instance};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn config() -> Config {
    Config::new(linux()).program([program().into_os_string(), COMMAND.into()])
}

fn boot(config: Config) -> (Confined, Client) {
    Instance::confined(config).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn boots_works_and_halts() {
    let (kernel, client) = boot(config());
    let pid = kernel.pid() as u32;
    client.mkdir(Path::new("/folder"), 0o755).expect("mkdir");
    let file = client
        .open(Path::new("/folder/file"), libc::O_CREAT | libc::O_RDWR, 0o644)
        .expect("create");
    let content: Vec<u8> = (0..5_000_000u32).map(|i| (i % 251) as u8).collect();
    client.write_all(file, &content).expect("write");
    let mut back = vec![0; content.len()];
    let mut have = 0;
    while have < back.len() {
        have += client.pread(file, &mut back[have..], have as u64).expect("read");
    }
    assert!(back == content);
    assert_eq!(client.stat(Path::new("/folder/file")).expect("stat").st_size, 5_000_000);
    assert_eq!(client.stat(Path::new("/none")).err(), Some(Errno(libc::ENOENT)));
    kernel.halt(client).expect("halt");
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the child was not reaped");
}

#[test]
fn threads_have_root_directories_of_their_own() {
    let (kernel, client) = boot(config().threads(9));
    std::thread::scope(|scope| {
        for i in 0..8 {
            let kernel = &kernel;
            let path = format!("/root{i}");
            client.mkdir(Path::new(&path), 0o755).expect("mkdir");
            scope.spawn(move || {
                let inside = kernel.attach().expect("attach");
                inside.enter_root(Path::new(&path)).expect("chroot");
                for j in 0..200 {
                    let name = format!("/file{j}");
                    let how = libc::O_CREAT | libc::O_WRONLY;
                    let file = inside.open(Path::new(&name), how, 0o644).expect("create");
                    inside.write_all(file, name.as_bytes()).expect("write");
                    inside.close(file).expect("close");
                }
            });
        }
    });
    for i in 0..8 {
        let stat = client.stat(Path::new(&format!("/root{i}/file199"))).expect("stat");
        assert_eq!(stat.st_size, 8);
    }
    // Slots of threads that ended are free again; there are no others.
    let clients: Vec<_> = (0..8).map(|_| kernel.attach().expect("attach")).collect();
    assert!(matches!(kernel.attach(), Err(Error::Config(_))));
    drop(clients);
    kernel.halt(client).expect("halt");
}

/// What a hostile kernel would try. The filter looks at numbers only, so addresses are null: without the filter, the
/// calls would fail and the kernel would boot.
#[test]
fn a_forbidden_call_ends_the_child() {
    let exec = libc::PROT_READ as u64 | libc::PROT_EXEC as u64;
    let none = u64::MAX;
    let parent = u64::from(std::process::id());
    for (what, call) in [
        ("open", [libc::SYS_open as u64, 0, 0, 0, 0, 0, 0]),
        ("openat", [libc::SYS_openat as u64, 0, 0, 0, 0, 0, 0]),
        ("socket", [libc::SYS_socket as u64, 1, 1, 0, 0, 0, 0]),
        ("execve", [libc::SYS_execve as u64, 0, 0, 0, 0, 0, 0]),
        ("fork", [libc::SYS_clone as u64, libc::SIGCHLD as u64, 0, 0, 0, 0, 0]),
        ("clone3", [libc::SYS_clone3 as u64, 0, 0, 0, 0, 0, 0]),
        ("mmap of code", [libc::SYS_mmap as u64, 0, 4096, exec, 0x22, none, 0]),
        ("mprotect to code", [libc::SYS_mprotect as u64, 0, 0, exec, 0, 0, 0]),
        ("mmap of a file", [libc::SYS_mmap as u64, 0, 4096, 1, 2, 3, 0]),
        ("kill of the parent", [libc::SYS_kill as u64, parent, 0, 0, 0, 0, 0]),
        ("tgkill", [libc::SYS_tgkill as u64, parent, parent, 0, 0, 0, 0]),
        ("ptrace of the parent", [libc::SYS_ptrace as u64, 16, parent, 0, 0, 0, 0]),
        ("process_vm_writev", [libc::SYS_process_vm_writev as u64, parent, 0, 0, 0, 0, 0]),
        ("read", [libc::SYS_read as u64, 3, 0, 0, 0, 0, 0]),
        ("write", [libc::SYS_write as u64, 2, 0, 0, 0, 0, 0]),
        ("preadv of no disk", [libc::SYS_preadv as u64, 3, 0, 0, 0, 0, 0]),
        ("ftruncate", [libc::SYS_ftruncate as u64, 3, 0, 0, 0, 0, 0]),
        ("ioctl", [libc::SYS_ioctl as u64, 3, 0, 0, 0, 0, 0]),
        ("fcntl", [libc::SYS_fcntl as u64, 3, 0, 0, 0, 0, 0]),
        ("io_uring_setup", [libc::SYS_io_uring_setup as u64, 1, 0, 0, 0, 0, 0]),
        ("bpf", [libc::SYS_bpf as u64, 0, 0, 0, 0, 0, 0]),
        ("unshare", [libc::SYS_unshare as u64, 0, 0, 0, 0, 0, 0]),
        ("prctl", [libc::SYS_prctl as u64, 0, 0, 0, 0, 0, 0]),
        ("mount", [libc::SYS_mount as u64, 0, 0, 0, 0, 0, 0]),
        ("x32 futex", [0x4000_0000 | libc::SYS_futex as u64, 0, 0, 0, 0, 0, 0]),
    ] {
        match Instance::confined(config().probe(call)) {
            Err(Error::Ended(why)) => assert!(why.contains("SIGSYS"), "{what}: {why}"),
            Err(error) => panic!("{what}: {error}"),
            Ok(_) => panic!("{what} is allowed"),
        }
    }
    // The probe itself ends nothing.
    let (kernel, client) = boot(config().probe([libc::SYS_sched_yield as u64, 0, 0, 0, 0, 0, 0]));
    kernel.halt(client).expect("halt");
}

#[test]
fn the_child_has_no_privileges_and_no_other_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk");
    image(&path, 8, ("mkfs.ext4", &["-q"]));
    // A file that this process has open, and that a program which it executes would inherit.
    let leak = std::fs::File::open("/etc/passwd").expect("a file");
    // SAFETY: changes only a flag of the descriptor.
    unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&leak), libc::F_SETFD, 0) };
    let disk = FileDisk::open(&path, false).expect("the image");
    let (kernel, client) = boot(config().disk(disk, false));
    let pid = kernel.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).expect("a field").to_owned()
    };
    assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), ("1".into(), "2".into()));
    for set in ["CapEff:", "CapPrm:", "CapInh:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    // Only root can look at the files of a process that is not dumpable.
    if let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) {
        let mut targets: Vec<_> = files
            .flatten()
            .map(|file| std::fs::read_link(file.path()).expect("a link"))
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        targets.sort();
        assert_eq!(targets, [path.to_string_lossy()]);
        let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("its environment");
        assert!(environment.is_empty(), "{}", String::from_utf8_lossy(&environment));
    }
    kernel.halt(client).expect("halt");
}

#[test]
fn a_call_that_takes_too_long_ends_the_kernel() {
    let (kernel, client) = boot(config().limit(Duration::from_secs(1)));
    let forever = [0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let start = Instant::now();
    let slept = client.call(libc::SYS_nanosleep, &mut [Arg::In(&forever), Arg::Number(0)]);
    assert_eq!(slept, Err(Errno(libc::EIO)));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(client.close(Fd(0)), Err(Errno(libc::EIO)));
    eventually("an end", || kernel.failure().is_some());
    let why = kernel.failure().expect("an end");
    assert!(why.starts_with("Linux did not answer for 1 s and was stopped"), "{why}");
    assert!(matches!(kernel.halt(client), Err(Error::Ended(_))));
}

#[test]
fn a_child_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().join("linux.elf");
    std::fs::write(&none, "no kernel").expect("a file");
    let config =
        |path: &Path| Config::new(path).program([program().into_os_string(), COMMAND.into()]);
    let why = |config| Instance::confined(config).err().expect("an error").to_string();
    let text = why(config(&none));
    assert!(text.contains("does not start") && text.contains("not a kernel image"), "{text}");
    let text = why(config(&linux()).memory(1 << 20));
    assert!(text.contains("needs at least"), "{text}");
    assert!(why(Config::new(linux()).program(["/nowhere"])).contains("/nowhere"));
    assert!(why(config(Path::new("/nowhere/linux.elf"))).contains("No such file"));
    // A program that is no child of liblinux.
    let text = why(Config::new(linux()).program(["/bin/true"]));
    assert!(!text.is_empty());
}

#[test]
fn a_kernel_dies_with_the_process_that_started_it() {
    let folder = tempfile::tempdir().expect("a folder");
    image(&folder.path().join("disk"), 16, ("mkfs.ext4", &["-q"]));
    std::fs::write(folder.path().join("file"), vec![7; 1 << 20]).expect("a file");
    assert!(fs(folder.path(), &["cp", "file", "disk:/"]).status().expect("cp").success());
    // It waits for its output to be read.
    let mut parent = fs(folder.path(), &["cat", "disk:/file"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    eventually("a child", || children(parent.id()).len() == 1);
    let child = children(parent.id())[0];
    std::thread::sleep(Duration::from_millis(300));
    assert!(runs(child), "the child ended before its parent");
    parent.kill().expect("kill");
    parent.wait().expect("the parent's end");
    eventually("the child's end", || !runs(child));
}

#[test]
fn a_child_that_is_killed_during_a_write_leaves_an_image_that_is_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    // Random, so that nothing is a hole.
    let random = Command::new("head").args(["-c", "150M", "/dev/urandom"]).output().expect("head");
    std::fs::write(folder.path().join("big"), random.stdout).expect("a file");
    for megabytes in [10, 60, 100] {
        image(&disk, 256, ("mkfs.ext4", &["-q"]));
        let command = fs(folder.path(), &["cp", "big", "disk:/"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let pid = command.id();
        let written = || disk.metadata().expect("the image").blocks() >> 11;
        eventually("writes", || written() > megabytes);
        for child in children(pid) {
            // SAFETY: the child of a child of this test.
            unsafe { libc::kill(child as i32, libc::SIGKILL) };
        }
        let out = finish(command, Duration::from_secs(30)).expect("an end in time");
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.starts_with("kyozon: Linux's process was killed by signal 9"), "{error}");
        // Mounting it for writing replays the journal.
        let out = fs(folder.path(), &["mkdir", "-p", "disk:/after"]).output().expect("the program");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        tool("e2fsck", &["-fn"], &disk);
    }
}

#[test]
fn a_panic_is_one_clear_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    image(&disk, 16, ("mkfs.ext4", &["-q"]));
    std::fs::write(folder.path().join("file"), "text").expect("a file");
    assert!(fs(folder.path(), &["cp", "file", "disk:/"]).status().expect("cp").success());
    // A file whose inode is gone is an error of the file system; this one asks for a panic then.
    tool("tune2fs", &["-e", "panic"], &disk);
    tool("debugfs", &["-w", "-R", "clri /file"], &disk);
    let out = fs(folder.path(), &["ls", "-l", "disk:/"]).output().expect("the program");
    let error = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("Linux panicked") && error.contains("EXT4-fs"), "{error}");
}

#[test]
fn a_starter_that_ignores_its_children_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    image(&folder.path().join("disk"), 8, ("mkfs.ext4", &["-q"]));
    let out = Command::new("env")
        .arg("--ignore-signal=CHLD")
        .arg(program())
        .args(["fs", "ls", "disk:/"])
        .current_dir(folder.path())
        .output()
        .expect("the program");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.stdout, b"lost+found\n");
}
