use super::super::tests::{image, qemu_img};
use super::*;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

/// Small numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Writes, frees and writes back, until something fails. Returns whether nothing did.
fn work(opened: &mut Opened, header: Header) -> bool {
    let bytes = header.bytes();
    let mut numbers = Numbers(7);
    (0..120).all(|round| {
        let at = numbers.next(bytes / 512) * 512;
        let count = ((1 + numbers.next(256)) * 512).min(bytes - at);
        let job = match numbers.next(6) {
            0 | 1 if !header.has_zeros() => Job::Flush,
            0 => Job::Zeros { at, bytes: count, unmap: true },
            1 => Job::Zeros { at, bytes: count, unmap: false },
            2 => Job::Flush,
            _ => Job::Write(at, vec![round as u8; count as usize]),
        };
        opened.run(job).is_ok()
    }) && opened.run(Job::Flush).is_ok()
}

/// Works on a copy of an image, and is killed after some writes. Returns whether it was not.
fn crash(
    original: &Path,
    path: &Path,
    writes: u64,
    work: impl FnOnce(&mut Opened, Header) -> bool,
) -> bool {
    fs::copy(original, path).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    let end = file.metadata().unwrap().len();
    let header = Header::read(file.as_fd(), end, true).unwrap().unwrap();
    let storage = Descriptor::new(file, end, header.l1());
    let mut opened = Opened::new(storage.clone(), header, true).unwrap();
    storage.fail_after(writes);
    work(&mut opened, header)
}

#[test]
fn a_crash_after_any_write_leaks_at_most() {
    for (options, megabytes, step) in [
        ("compat=1.1,cluster_size=512", 12, 307),
        ("compat=1.1,cluster_size=512,refcount_bits=64", 12, 311),
        ("compat=1.1,cluster_size=4096", 64, 29),
        ("compat=1.1,cluster_size=65536", 1024, 3),
        ("compat=0.10,cluster_size=512", 12, 313),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let original = image(folder.path(), options, megabytes);
        let path = folder.path().join("copy");
        let mut writes = 0;
        while !crash(&original, &path, writes, work) {
            let (code, text) = qemu_img(&["check", "-f", "qcow2"], &path);
            assert!(code == 0 || code == 3, "{options}: after {writes} writes: {code}: {text}");
            writes += step;
            assert!(writes < 100_000, "{options}: it never ends");
        }
        let (code, text) = qemu_img(&["check", "-f", "qcow2"], &path);
        assert_eq!(code, 0, "{options}: {text}");
    }
}

/// An image whose first cluster of data is free again, and whose clusters of data behind it fill a whole number of
/// blocks of reference counts. Returns how many clusters of the disk it has.
fn full_blocks(path: &Path, blocks: u64) -> u64 {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let end = file.metadata().unwrap().len();
    let header = Header::read(file.as_fd(), end, true).unwrap().unwrap();
    let storage = Descriptor::new(file, end, header.l1());
    let mut opened = Opened::new(storage, header, true).unwrap();
    let mut write = |cluster| {
        opened.run(Job::Write(cluster * 512, vec![7; 512])).unwrap();
        opened.run(Job::Flush).unwrap();
        fs::metadata(path).unwrap().len() == blocks * 64 * 512
    };
    let last = (0..).find(|cluster| write(*cluster)).unwrap();
    opened.run(Job::Zeros { at: 0, bytes: 512, unmap: true }).unwrap();
    opened.run(Job::Flush).unwrap();
    last + 1
}

/// A write of two clusters: the first is in the image, and the library wants the second one behind it in the file. That
/// needs a new block of reference counts, which goes into the free cluster. The file does not count that cluster yet.
#[test]
fn a_crash_while_reference_counts_grow_leaks_at_most() {
    for blocks in 2..5 {
        let folder = tempfile::tempdir().unwrap();
        let options = "compat=1.1,cluster_size=512,refcount_bits=64";
        let original = image(folder.path(), options, 1);
        let clusters = full_blocks(&original, blocks);
        let path = folder.path().join("copy");
        let mut writes = 0;
        while !crash(&original, &path, writes, |opened, _| {
            let write = Job::Write((clusters - 1) * 512, vec![8; 1024]);
            opened.run(write).and_then(|_| opened.run(Job::Flush)).is_ok()
        }) {
            let (code, text) = qemu_img(&["check", "-f", "qcow2"], &path);
            assert!(code == 0 || code == 3, "{blocks}: after {writes} writes: {code}: {text}");
            writes += 1;
            assert!(writes < 1000, "it never ends");
        }
        assert!(writes > 2, "a block, its place and data are three writes");
    }
}

#[test]
fn after_tables_could_not_be_written_nothing_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(folder.path(), "compat=1.1,cluster_size=512", 12);
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let end = file.metadata().unwrap().len();
    let header = Header::read(file.as_fd(), end, true).unwrap().unwrap();
    let storage = Descriptor::new(file, end, header.l1());
    let mut opened = Opened::new(storage.clone(), header, true).unwrap();
    opened.run(Job::Write(0, vec![1; 512])).unwrap();
    opened.run(Job::Write(512, vec![2; 512])).unwrap();
    storage.fail_after(0);
    opened.run(Job::Flush).unwrap_err();
    // There is room again.
    storage.fail_after(u64::MAX);
    let before = fs::read(&path).unwrap();
    opened.run(Job::Write(1024, vec![3; 512])).unwrap_err();
    opened.run(Job::Flush).unwrap_err();
    opened.run(Job::WriteBack).unwrap_err();
    assert_eq!(opened.run(Job::Read(512, 1)).unwrap(), [2]);
    drop(opened);
    assert!(fs::read(&path).unwrap() == before);
}
