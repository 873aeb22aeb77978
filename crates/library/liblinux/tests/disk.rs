//! Disks with file systems. The names follow the disk tests of the Linux Kernel Library; the host's own tools make and
//! check the file systems.

mod common;

use common::{disk, tool, Kind, KINDS};
use liblinux::calls::{Calls, CWD};
use liblinux::{Config, Thread};
use std::path::Path;

const MOUNT: &str = "/mnt";

/// A pattern that differs from block to block.
fn content(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i.wrapping_mul(31) + i / 4096 + seed) as u8).collect()
}

fn round_trip(kind: &Kind, threaded: bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = kind.make_image(folder.path());
    let boot = || {
        let (instance, thread) = common::boot(common::config().device(disk(&path, threaded)));
        thread.mkdir(Path::new(MOUNT), 0o755).expect("mkdir");
        thread.mount("/dev/vda", Path::new(MOUNT), kind.name, 0, "").expect("mount_dev");
        (instance, thread)
    };
    let (instance, thread) = boot();
    for i in 0..50usize {
        let folder = format!("{MOUNT}/folder{}", i % 7);
        if i < 7 {
            thread.mkdir(Path::new(&folder), 0o755).expect("mkdir");
        }
        let path = format!("{folder}/file{i}");
        let fd =
            thread.open(Path::new(&path), libc::O_CREAT | libc::O_WRONLY, 0o644).expect("create");
        thread.write_all(fd, &content(i * 7919, i)).expect("write");
        if i % 10 == 0 {
            thread.fsync(fd).expect("fsync");
        }
        thread.close(fd).expect("close");
    }
    thread.unmount(Path::new(MOUNT)).expect("umount_dev");
    instance.halt(thread).expect("halt");
    tool(kind.check.0, kind.check.1, &path);

    let (instance, thread) = boot();
    for i in 0..50usize {
        let path = format!("{MOUNT}/folder{}/file{i}", i % 7);
        let fd = thread.open(Path::new(&path), libc::O_RDONLY, 0).expect("open");
        let mut buffer = vec![0; i * 7919 + 1];
        let mut have = 0;
        loop {
            match thread.read(fd, &mut buffer[have..]).expect("read") {
                0 => break,
                bytes => have += bytes,
            }
        }
        assert!(buffer[..have] == content(i * 7919, i), "{path}");
        thread.close(fd).expect("close");
    }
    let folder =
        thread.open_at(CWD, c"/mnt", libc::O_RDONLY | libc::O_DIRECTORY, 0).expect("opendir");
    let entries = thread.entries(folder).expect("readdir");
    assert_eq!(entries.iter().filter(|e| e.name.to_bytes().starts_with(b"folder")).count(), 7);
    thread.close(folder).expect("closedir");
    thread.unmount(Path::new(MOUNT)).expect("umount_dev");
    instance.halt(thread).expect("halt");
}

#[test]
fn ext4() {
    round_trip(&KINDS[0], false);
}

#[test]
fn ext4_served_by_a_thread() {
    round_trip(&KINDS[0], true);
}

#[test]
fn xfs() {
    round_trip(&KINDS[1], false);
}

#[test]
fn btrfs() {
    round_trip(&KINDS[2], false);
}

#[test]
fn btrfs_served_by_a_thread() {
    round_trip(&KINDS[2], true);
}

#[test]
fn vfat() {
    round_trip(&KINDS[3], false);
}

#[test]
fn exfat() {
    round_trip(&KINDS[4], false);
}

/// A figure of /proc/meminfo or /proc/vmstat.
fn figure(thread: &Thread, file: &str, name: &str) -> usize {
    let fd = thread.open(Path::new(file), libc::O_RDONLY, 0).expect("open");
    let mut buffer = vec![0; 1 << 16];
    let bytes = thread.read(fd, &mut buffer).expect("read");
    thread.close(fd).expect("close");
    let text = String::from_utf8_lossy(&buffer[..bytes]);
    let line = text.lines().find(|line| line.split([' ', ':']).next() == Some(name));
    let mut words = line.expect(name).split_whitespace();
    words.nth(1).and_then(|word| word.parse().ok()).expect(name)
}

/// Writes a file of 32 MiB, a quarter of the memory, to an ext4. Returns how many pages the kernel wrote back by then.
fn written_back(config: Config) -> usize {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = Kind { megabytes: 128, ..KINDS[0] }.make_image(folder.path());
    let (instance, thread) = common::boot(config.device(disk(&path, true)));
    thread.mkdir(Path::new(MOUNT), 0o755).expect("mkdir");
    thread.mount("/dev/vda", Path::new(MOUNT), "ext4", 0, "").expect("mount_dev");
    let how = libc::O_CREAT | libc::O_WRONLY;
    let fd = thread.open(Path::new("/mnt/file"), how, 0o644).expect("create");
    for part in 0..32 {
        thread.write_all(fd, &content(1 << 20, part)).expect("write");
    }
    let written = figure(&thread, "/proc/vmstat", "nr_written");
    thread.fsync(fd).expect("fsync");
    let all = figure(&thread, "/proc/vmstat", "nr_written");
    assert!(all >= 8192, "fsync wrote {all} pages");
    thread.close(fd).expect("close");
    thread.unmount(Path::new(MOUNT)).expect("umount_dev");
    instance.halt(thread).expect("halt");
    written
}

#[test]
fn a_quarter_of_the_memory_is_written_without_waiting_for_the_disk() {
    let written = written_back(common::config());
    assert!(written < 256, "{written} pages were written back");
}

#[test]
fn a_caller_can_set_when_writing_back_begins() {
    let option = "sysctl.vm.dirty_background_ratio=1 sysctl.vm.dirty_ratio=2";
    let written = written_back(common::config().option(option));
    assert!(written > 4096, "{written} pages were written back");
}
