//! What the host does with a disk's file at the same time.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where Linux lists block devices.
pub const DEVICES: &str = "/sys/block";

/// The loop device that has the file of `metadata`, if there is one in `devices`. Its name there is compared by inode,
/// because it need not be the one that the user gives.
pub fn loop_device(devices: &Path, metadata: &Metadata) -> Option<PathBuf> {
    let same = |name: &str| {
        let other = std::fs::metadata(name.trim_end_matches('\n'));
        other.is_ok_and(|other| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino()))
    };
    let entries = std::fs::read_dir(devices).ok()?.flatten();
    let mut found = entries.filter(|entry| {
        // Only loop devices that have a file have this one.
        let name = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        name.is_ok_and(|name| same(&name))
    });
    found.next().map(|entry| Path::new("/dev").join(entry.file_name()))
}
