//! Kernels and disks for tests. Each test program uses a part of this.
#![allow(dead_code)]

use kyozon_devices::block::{Block, BlockDevice};
use kyozon_devices::disk::FileDisk;
use liblinux::{Config, Instance, Thread};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// The kernel image.
pub fn config() -> Config {
    Config::new(std::env::var("KYOZON_LINUX").expect("KYOZON_LINUX names a kernel image"))
}

/// Boots a kernel. If it does not boot, the panic has its log.
pub fn boot(config: Config) -> (Instance, Thread) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = log.clone();
    let config = config.log(move |text| sink.lock().expect("no panic").extend_from_slice(text));
    Instance::in_process(config).unwrap_or_else(|e| {
        panic!("{e}\n{}", String::from_utf8_lossy(&log.lock().expect("no panic")))
    })
}

/// A disk for writing on an image, served inline or by a thread.
pub fn disk(path: &Path, threaded: bool) -> BlockDevice {
    let disk = FileDisk::open(path, true).expect("open the image");
    let block = Block::new(Box::new(disk), false, "test").extended();
    if threaded {
        BlockDevice::threaded(block).expect("a thread")
    } else {
        BlockDevice::inline(block)
    }
}

/// Runs a tool of the host. It must succeed.
pub fn tool(name: &str, arguments: &[&str], path: &Path) {
    let mut command = Command::new(name);
    let out =
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").args(arguments).arg(path).output();
    let out = out.unwrap_or_else(|e| panic!("{name}: {e}"));
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name} {arguments:?}: {text}");
}

/// A file system, and the host's tools for it.
pub struct Kind {
    /// Its name for mount(2).
    pub name: &'static str,
    /// The program that makes one, and its options.
    pub make: (&'static str, &'static [&'static str]),
    /// The program that checks one.
    pub check: (&'static str, &'static [&'static str]),
    /// Size of an image.
    pub megabytes: u64,
}

/// The file systems of the tests.
pub const KINDS: [Kind; 5] = [
    Kind { name: "ext4", make: ("mkfs.ext4", &["-q"]), check: ("e2fsck", &["-fn"]), megabytes: 64 },
    Kind {
        name: "xfs",
        make: ("mkfs.xfs", &["-q"]),
        check: ("xfs_repair", &["-n"]),
        megabytes: 512,
    },
    Kind {
        name: "btrfs",
        make: ("mkfs.btrfs", &["-q"]),
        check: ("btrfs", &["check", "-q"]),
        megabytes: 256,
    },
    Kind {
        name: "vfat",
        make: ("mkfs.vfat", &["-F", "32"]),
        check: ("fsck.vfat", &["-n"]),
        megabytes: 64,
    },
    Kind {
        name: "exfat",
        make: ("mkfs.exfat", &[]),
        check: ("fsck.exfat", &["-n"]),
        megabytes: 64,
    },
];

impl Kind {
    /// Makes an image in a folder.
    pub fn make_image(&self, folder: &Path) -> PathBuf {
        let path = folder.join("disk");
        let file = std::fs::File::create(&path).expect("an image");
        file.set_len(self.megabytes << 20).expect("its size");
        tool(self.make.0, self.make.1, &path);
        path
    }
}
