//! Random operations on files, compared with a model, and many threads at once.
//!
//! `KYOZON_SECONDS` sets how long each test runs, `KYOZON_SEED` repeats one. A test that passes adds a line to its
//! file in the folder `KYOZON_TOTALS`, if that is set: its seconds, and the operations or rounds in them.

mod common;

use common::{disk, tool, Kind, KINDS};
use liblinux::calls::{Calls, Fd, CWD};
use liblinux::{Errno, Thread};
use std::ffi::CString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MOUNT: &str = "/mnt";
/// Maximum size of the file of random operations.
const SIZE: usize = 256 << 10;
const THREADS: usize = 64;

fn duration() -> Duration {
    let seconds = std::env::var("KYOZON_SECONDS").map_or(6, |text| text.parse().expect("a number"));
    Duration::from_secs(seconds)
}

/// Counts what a test did: a short line, so that runs beside each other lose none.
fn add_to_total(test: &str, kind: &Kind, start: Instant, count: usize) {
    let Some(folder) = std::env::var_os("KYOZON_TOTALS") else { return };
    let path = PathBuf::from(folder).join(format!("{}.{test}", kind.name));
    let line = format!("{} {count}\n", start.elapsed().as_secs());
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the totals' folder");
}

/// Xorshift: any seed but 0 has a long period.
struct Random(u64);

impl Random {
    fn new(salt: u64) -> Self {
        let now = || std::time::UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
        let seed = std::env::var("KYOZON_SEED")
            .map_or_else(|_| now(), |text| text.parse().expect("a number"));
        eprintln!("KYOZON_SEED={seed}");
        Self((seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A file, and what must be in it.
struct Checked<'a> {
    thread: &'a Thread,
    fd: Fd,
    model: Vec<u8>,
    random: Random,
    operations: usize,
}

impl Checked<'_> {
    fn read_all(&self) -> Vec<u8> {
        let mut buffer = vec![0; SIZE + 1];
        let mut have = 0;
        loop {
            match self.thread.pread(self.fd, &mut buffer[have..], have as u64).expect("read") {
                0 => break,
                bytes => have += bytes,
            }
        }
        buffer.truncate(have);
        buffer
    }

    fn step(&mut self) {
        let at = self.random.below(SIZE);
        let bytes = self.random.below(16 << 10).min(SIZE - at);
        self.operations += 1;
        match self.random.below(10) {
            0..=3 => {
                let fill = self.random.next() as u8;
                let data: Vec<u8> = (0..bytes).map(|i| fill.wrapping_add(i as u8)).collect();
                let mut done = 0;
                while done < bytes {
                    done += self
                        .thread
                        .pwrite(self.fd, &data[done..], (at + done) as u64)
                        .expect("write");
                }
                if bytes > 0 {
                    self.model.resize(self.model.len().max(at + bytes), 0);
                    self.model[at..at + bytes].copy_from_slice(&data);
                }
            }
            4..=6 => {
                let mut buffer = vec![0xaa; bytes];
                let have = self.thread.pread(self.fd, &mut buffer, at as u64).expect("read");
                let there = self.model.get(at..).unwrap_or_default();
                assert!(
                    buffer[..have] == there[..have],
                    "operation {}: read {bytes} at {at}",
                    self.operations
                );
                assert!(
                    have == bytes || have == there.len().min(bytes),
                    "operation {}: short",
                    self.operations
                );
            }
            7 => {
                self.thread.truncate(self.fd, at as u64).expect("truncate");
                self.model.resize(at, 0);
            }
            8 => self.thread.fsync(self.fd).expect("fsync"),
            _ => self.punch(at, bytes),
        }
    }

    /// A hole reads as zeros. Not every file system has them.
    fn punch(&mut self, at: usize, bytes: usize) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let arguments = [self.fd.0 as u64, mode as u64, at as u64, bytes as u64, 0, 0];
        // SAFETY: the call takes no address.
        match unsafe { self.thread.syscall(libc::SYS_fallocate, arguments) } {
            0 => {
                let end = self.model.len().min(at + bytes);
                if at < end {
                    self.model[at..end].fill(0);
                }
            }
            error => assert!(bytes == 0 || error == -i64::from(libc::EOPNOTSUPP), "punch: {error}"),
        }
    }
}

/// Random operations; the file system is unmounted and mounted again from time to time, and checked at the end.
fn random_operations(kind: &Kind) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = kind.make_image(folder.path());
    let (instance, thread) = common::boot(common::config().device(disk(&path, false)));
    thread.mkdir(Path::new(MOUNT), 0o755).expect("mkdir");
    let mount = || thread.mount("/dev/vda", Path::new(MOUNT), kind.name, 0, "").expect("mount");
    let open = || {
        let file = Path::new("/mnt/file");
        thread.open(file, libc::O_CREAT | libc::O_RDWR, 0o644).expect("open")
    };
    mount();
    let mut file = Checked {
        thread: &thread,
        fd: open(),
        model: Vec::new(),
        random: Random::new(1),
        operations: 0,
    };
    let start = Instant::now();
    while start.elapsed() < duration() {
        (0..500).for_each(|_| file.step());
        thread.close(file.fd).expect("close");
        thread.unmount(Path::new(MOUNT)).expect("unmount");
        mount();
        file.fd = open();
        assert!(file.read_all() == file.model, "after {} operations and a mount", file.operations);
    }
    let operations = file.operations;
    thread.close(file.fd).expect("close");
    thread.unmount(Path::new(MOUNT)).expect("unmount");
    instance.halt(thread).expect("halt");
    tool(kind.check.0, kind.check.1, &path);
    add_to_total("operations", kind, start, operations);
}

#[test]
fn random_operations_on_ext4() {
    random_operations(&KINDS[0]);
}

#[test]
fn random_operations_on_xfs() {
    random_operations(&KINDS[1]);
}

#[test]
fn random_operations_on_btrfs() {
    random_operations(&KINDS[2]);
}

#[test]
fn random_operations_on_vfat() {
    random_operations(&KINDS[3]);
}

#[test]
fn random_operations_on_exfat() {
    random_operations(&KINDS[4]);
}

/// One thread's files: made, filled, renamed, read back, removed, beside the files of all others.
fn work(thread: &Thread, number: usize, end: Instant) -> usize {
    let mut random = Random(number as u64 * 2 + 1);
    let name = |text: String| CString::new(text).expect("no zero");
    let folder = format!("{MOUNT}/{number}");
    thread.mkdir(Path::new(&folder), 0o755).expect("mkdir");
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < end {
        let (old, new) = (name(format!("{folder}/a{rounds}")), name(format!("{folder}/b{rounds}")));
        let data: Vec<u8> =
            (0..random.below(40_000)).map(|i| (i ^ number ^ rounds) as u8).collect();
        let fd = thread
            .open_at(CWD, &old, libc::O_CREAT | libc::O_EXCL | libc::O_RDWR, 0o600)
            .expect("create");
        thread.write_all(fd, &data).expect("write");
        let rename = [old.as_ptr() as u64, new.as_ptr() as u64, 0, 0, 0, 0];
        // SAFETY: both names live through the call.
        assert_eq!(unsafe { thread.syscall(libc::SYS_rename, rename) }, 0);
        assert_eq!(thread.open_at(CWD, &old, libc::O_RDONLY, 0), Err(Errno(libc::ENOENT)));
        let mut back = vec![0; data.len() + 1];
        let mut have = 0;
        loop {
            match thread.pread(fd, &mut back[have..], have as u64).expect("read") {
                0 => break,
                bytes => have += bytes,
            }
        }
        assert!(back[..have] == data, "thread {number}, round {rounds}");
        thread.close(fd).expect("close");
        thread.unlink_at(CWD, &new, 0).expect("unlink");
        rounds += 1;
    }
    rounds
}

/// Works in many threads; the file system is checked at the end.
fn many_threads(kind: &Kind) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = kind.make_image(folder.path());
    let (instance, thread) = common::boot(common::config().device(disk(&path, true)));
    thread.mkdir(Path::new(MOUNT), 0o755).expect("mkdir");
    thread.mount("/dev/vda", Path::new(MOUNT), kind.name, 0, "").expect("mount");
    let start = Instant::now();
    let rounds = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|number| {
                let instance = &instance;
                let end = start + duration();
                scope.spawn(move || work(&instance.attach().expect("attach"), number, end))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    thread.unmount(Path::new(MOUNT)).expect("unmount");
    instance.halt(thread).expect("halt");
    tool(kind.check.0, kind.check.1, &path);
    add_to_total("threads", kind, start, rounds);
}

#[test]
fn many_threads_on_ext4() {
    many_threads(&KINDS[0]);
}

#[test]
fn many_threads_on_xfs() {
    many_threads(&KINDS[1]);
}

#[test]
fn many_threads_on_btrfs() {
    many_threads(&KINDS[2]);
}

#[test]
fn many_threads_on_vfat() {
    many_threads(&KINDS[3]);
}

#[test]
fn many_threads_on_exfat() {
    many_threads(&KINDS[4]);
}
