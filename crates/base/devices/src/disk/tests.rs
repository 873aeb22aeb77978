use super::*;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A path in the directory for temporary files, removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: u64) -> Self {
        let path = std::env::temp_dir().join(format!("kyozon-disk-{}-{name}", std::process::id()));
        File::create_new(&path).unwrap().set_len(bytes).unwrap();
        Self(path)
    }

    fn storage(&self) -> u64 {
        std::fs::metadata(&self.0).unwrap().blocks() * 512
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn pattern(disk: &mut dyn Disk, at: u64, byte: u8, bytes: usize) {
    let mut content = vec![byte; bytes];
    disk.write(at, &[VolatileSlice::from(&mut content[..])]).unwrap();
}

fn content(disk: &mut dyn Disk, at: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![99; bytes];
    disk.read(at, &[VolatileSlice::from(&mut content[..])]).unwrap();
    content
}

#[test]
fn a_sparse_file_of_100_gib_takes_and_frees_storage() {
    let path = Temporary::new("sparse", 100 << 30);
    let mut disk = FileDisk::open(&path.0, true).unwrap();
    assert!(disk.limits().holes, "the directory for temporary files has no holes");
    let end = (100 << 30) - (1 << 20);
    pattern(&mut disk, end, 7, 1 << 20);
    assert_eq!(content(&mut disk, end, 1 << 20), vec![7; 1 << 20]);
    let before = path.storage();
    assert!(before >= 1 << 20);
    disk.discard(end, 1 << 19).unwrap();
    assert!(path.storage() <= before - (1 << 19));
    assert_eq!(content(&mut disk, end + (1 << 19) - 1, 2), [0, 7]);
    disk.write_zeros(end, 1 << 20, false).unwrap();
    assert_eq!(content(&mut disk, end, 1 << 20), vec![0; 1 << 20]);
    pattern(&mut disk, end, 7, 1 << 20);
    disk.write_zeros(end + 512, (1 << 20) - 512, true).unwrap();
    assert_eq!(content(&mut disk, end + 511, 2), [7, 0]);
    assert_eq!(std::fs::metadata(&path.0).unwrap().len(), 100 << 30);
}

#[test]
fn zeros_are_written_if_the_file_system_cannot_make_them() {
    let fd = rustix::fs::memfd_create(c"disk", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(fd);
    file.set_len(1 << 20).unwrap();
    // tmpfs has no FALLOC_FL_ZERO_RANGE.
    let mut disk = FileDisk::new(file).unwrap();
    pattern(&mut disk, 0, 5, 1 << 20);
    disk.write_zeros(512, 200_000, false).unwrap();
    assert_eq!(content(&mut disk, 511, 2), [5, 0]);
    assert_eq!(content(&mut disk, 512 + 199_999, 2), [0, 5]);
}

#[test]
fn a_file_for_reading_takes_no_discards() {
    // A file that is open for reading only.
    let mut disk = FileDisk::new(File::open("/proc/self/exe").unwrap()).unwrap();
    let error = disk.discard(0, 512).unwrap_err();
    assert!(error.raw_os_error().is_some() || error.kind() == ErrorKind::Unsupported);
    assert!(disk.write_zeros(0, 512, true).is_err());
}

#[test]
fn writers_exclude_other_users_of_a_file() {
    let path = Temporary::new("lock", 8192);
    let (a, b) = (FileDisk::open(&path.0, false).unwrap(), FileDisk::open(&path.0, false).unwrap());
    let refused = FileDisk::open(&path.0, true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    drop((a, b));
    let writer = FileDisk::open(&path.0, true).unwrap();
    assert_eq!(FileDisk::open(&path.0, false).unwrap_err().kind(), ErrorKind::ResourceBusy);
    drop(writer);
    let mut reader = FileDisk::open(&path.0, false).unwrap();
    assert!(!reader.limits().holes);
    assert!(reader.write(0, &[VolatileSlice::from(&mut [1; 512][..])]).is_err());
    for no_file in ["/dev/null", "/", "/nonexistent"] {
        assert!(FileDisk::open(no_file.as_ref(), false).is_err(), "{no_file}");
    }
}

/// As where another thread starts a program: between fork and exec, its process has all that is open here.
#[test]
fn a_lock_that_a_new_process_still_shares_is_waited_for() {
    let path = Temporary::new("shared-lock", 8192);
    let disk = FileDisk::open(&path.0, true).unwrap();
    let shared = disk.as_fd().try_clone_to_owned().unwrap();
    drop(disk);
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(shared);
    });
    FileDisk::open(&path.0, true).unwrap();
    other.join().unwrap();
}

/// Linux lists loop devices by the name that their file had; the same file may have others.
#[test]
fn a_file_of_a_loop_device_is_found_under_any_name() {
    let file = Temporary::new("loop", 8192);
    let other = Temporary::new("other", 8192);
    let link = file.0.with_extension("link");
    std::fs::hard_link(&file.0, &link).unwrap();
    let devices = file.0.with_extension("sys");
    std::fs::create_dir_all(devices.join("loop7/loop")).unwrap();
    std::fs::create_dir_all(devices.join("sda")).unwrap();
    std::fs::write(devices.join("loop7/loop/backing_file"), format!("{}\n", file.0.display()))
        .unwrap();
    let device = |path: &PathBuf| busy::loop_device(&devices, &std::fs::metadata(path).unwrap());
    let found = (device(&file.0), device(&link), device(&other.0));
    std::fs::remove_dir_all(&devices).unwrap();
    std::fs::remove_file(&link).unwrap();
    assert_eq!(found, (Some("/dev/loop7".into()), Some("/dev/loop7".into()), None));
}
