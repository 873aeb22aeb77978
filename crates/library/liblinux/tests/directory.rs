//! A folder of the host as a file system of the kernel: what each side makes, the other one finds.

mod common;

use kyozon_devices::directory::DirectoryDevice;
use liblinux::calls::{Calls, Fd, CWD};
use liblinux::{Errno, Instance, Thread};
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const MOUNT: &str = "/mnt";

fn boot(folder: &Path) -> (Instance, Thread) {
    let device = DirectoryDevice::new(folder, "host").expect("a device");
    let (instance, thread) = common::boot(common::config().device(device));
    thread.mkdir(Path::new(MOUNT), 0o755).expect("mkdir");
    thread.mount("host", Path::new(MOUNT), "virtiofs", 0, "").expect("mount");
    (instance, thread)
}

fn with_folder(test: impl FnOnce(&Thread, &Path)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (instance, thread) = boot(folder.path());
    test(&thread, folder.path());
    thread.unmount(Path::new(MOUNT)).expect("unmount");
    instance.halt(thread).expect("halt");
}

fn inside(name: &str) -> PathBuf {
    Path::new(MOUNT).join(name)
}

fn open(thread: &Thread, name: &str, how: i32) -> Result<Fd, Errno> {
    thread.open(&inside(name), how, 0o640)
}

fn read(thread: &Thread, name: &str) -> Vec<u8> {
    let file = open(thread, name, libc::O_RDONLY).expect("open");
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        match thread.read(file, &mut buffer).expect("read") {
            0 => break,
            bytes => all.extend_from_slice(&buffer[..bytes]),
        }
    }
    thread.close(file).expect("close");
    all
}

fn write(thread: &Thread, name: &str, content: &[u8]) {
    let file = open(thread, name, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC).expect("create");
    thread.write_all(file, content).expect("write");
    thread.close(file).expect("close");
}

/// Differs from page to page.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i / 4096 + i % 251) as u8).collect()
}

fn names(thread: &Thread, name: &str) -> Vec<String> {
    let how = libc::O_RDONLY | libc::O_DIRECTORY;
    let folder = open(thread, name, how).expect("opendir");
    let entries = thread.entries(folder).expect("readdir");
    thread.close(folder).expect("closedir");
    let mut names: Vec<_> =
        entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no zero")
}

#[test]
fn files_of_both_sides() {
    with_folder(|thread, host| {
        let large = content(5_000_001);
        fs::write(host.join("from host"), &large).unwrap();
        assert!(read(thread, "from host") == large);
        write(thread, "from library", &large);
        assert!(fs::read(host.join("from library")).unwrap() == large);
        // What the host changes, the library sees after it has opened the file again.
        fs::write(host.join("from library"), "short").unwrap();
        assert_eq!(read(thread, "from library"), b"short");
        let file = open(thread, "from library", libc::O_WRONLY | libc::O_APPEND).unwrap();
        thread.write_all(file, b" and long").unwrap();
        thread.fsync(file).unwrap();
        assert_eq!(fs::read(host.join("from library")).unwrap(), b"short and long");
        thread.truncate(file, 5).unwrap();
        thread.close(file).unwrap();
        assert_eq!(fs::read(host.join("from library")).unwrap(), b"short");
    });
}

#[test]
fn a_tree_and_its_attributes() {
    with_folder(|thread, host| {
        thread.mkdir(&inside("folder"), 0o751).unwrap();
        for i in 0..300 {
            write(thread, &format!("folder/{i}"), &[]);
        }
        let expected: std::collections::BTreeSet<_> = (0..300).map(|i| i.to_string()).collect();
        assert_eq!(names(thread, "folder"), expected.into_iter().collect::<Vec<_>>());
        assert_eq!(fs::read_dir(host.join("folder")).unwrap().count(), 300);
        let mode = |name: &str| fs::metadata(host.join(name)).unwrap().permissions().mode();
        assert_eq!(mode("folder"), 0o40751);
        assert_eq!(mode("folder/7"), 0o100640);
        thread.chmod_at(CWD, &text(&inside("folder/7")), 0o4711).unwrap();
        assert_eq!(mode("folder/7"), 0o104711);
        let times = [1, 1_000_000_000].map(|tv_sec| libc::timespec { tv_sec, tv_nsec: 5 });
        thread.set_times_at(CWD, &text(&inside("folder/7")), &times).unwrap();
        let host_file = fs::metadata(host.join("folder/7")).unwrap();
        assert_eq!((host_file.mtime(), host_file.mtime_nsec()), (1_000_000_000, 5));
        let stat = thread.stat(&inside("folder/7")).unwrap();
        assert_eq!((stat.st_mtime, stat.st_mtime_nsec), (1_000_000_000, 5));
        thread.link_at(CWD, &text(&inside("folder/7")), CWD, &text(&inside("link"))).unwrap();
        assert_eq!(fs::metadata(host.join("link")).unwrap().nlink(), 2);
        let file = open(thread, "link", libc::O_RDWR).unwrap();
        thread.set_attribute(file, c"user.name", b"value").unwrap();
        assert_eq!(thread.attribute(file, c"user.name").unwrap(), b"value");
        // An open file stays when it has no name any more.
        thread.write_all(file, b"kept").unwrap();
        for name in ["link", "folder/7"] {
            thread.unlink_at(CWD, &text(&inside(name)), 0).unwrap();
        }
        let mut buffer = [0; 4];
        assert_eq!(thread.pread(file, &mut buffer, 0).unwrap(), 4);
        assert_eq!(&buffer, b"kept");
        thread.close(file).unwrap();
        assert!(!host.join("link").exists());
        let root = open(thread, "", libc::O_RDONLY).unwrap();
        assert!(thread.stat_fs(root).unwrap().f_blocks > 0);
        thread.close(root).unwrap();
    });
}

#[test]
fn links_are_the_kernels_and_not_the_hosts() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    with_folder(|thread, host| {
        symlink(outside.path().join("secret"), host.join("absolute")).unwrap();
        symlink("../../../../../../etc/passwd", host.join("relative")).unwrap();
        for name in ["absolute", "relative"] {
            assert_eq!(open(thread, name, libc::O_RDONLY), Err(Errno(libc::ENOENT)), "{name}");
        }
        thread.symlink_at(c"/proc/version", CWD, &text(&inside("version"))).unwrap();
        assert!(read(thread, "version").starts_with(b"Linux version 6.12"));
        assert_eq!(fs::read_link(host.join("version")).unwrap(), Path::new("/proc/version"));
    });
}

#[test]
fn threads_work_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (instance, thread) = boot(folder.path());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let instance = &instance;
            scope.spawn(move || {
                let thread = instance.attach().expect("attach");
                for round in 0..40 {
                    let (old, new) = (format!("{number}-{round}"), format!("{number}+{round}"));
                    let bytes = content(1000 * number + round);
                    write(&thread, &old, &bytes);
                    let how = libc::SYS_renameat;
                    let (from, to) = (text(&inside(&old)), text(&inside(&new)));
                    // SAFETY: both strings live through the call.
                    let result = unsafe {
                        let at = CWD.0 as u64;
                        let (from, to) = (from.as_ptr() as u64, to.as_ptr() as u64);
                        thread.syscall(how, [at, from, at, to, 0, 0])
                    };
                    assert_eq!(result, 0);
                    assert!(read(&thread, &new) == bytes);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 320);
    instance.halt(thread).expect("halt");
}
