//! Which file system a disk has, and how it is mounted.

use super::ext4;
use super::failure::{explain, warn};
use super::kernel::Kernel;
use anyhow::{anyhow, bail, ensure, Result};
use liblinux::calls::Calls;
use liblinux::Errno;
use std::path::Path;

/// How images are mounted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The only kind of file system that is tried.
    pub kind: Option<&'a str>,
    /// User and group of all files, if the file system has no owners.
    pub owner: Option<(u32, u32)>,
    /// The rights that the file system gives hold for `owner`, too.
    pub enforced: bool,
}

impl Options<'_> {
    /// Options of mount(2).
    fn data(&self, kind: &str) -> String {
        let mut all = Vec::new();
        if kind == "vfat" {
            // Names are UTF-8. Names that differ in the case of ASCII's letters are one name: the character set says
            // which letters that holds for. The table of utf8 has none, and that of iso8859-1 changes the first bytes
            // of two-byte sequences to those of three-byte sequences, which are no others' names.
            all.push("utf8,iocharset=iso8859-1".to_owned());
        }
        if let ("vfat" | "exfat", Some((user, group))) = (kind, self.owner) {
            all.push(format!("uid={user},gid={group}"));
        }
        // The owners of an ISO image are users of the machine that made it, and nobody can change its rights. root
        // needs neither.
        if let ("iso9660", Some((user @ 1.., group))) = (kind, self.owner) {
            all.push(format!("uid={user},gid={group}"));
            if self.enforced {
                all.push("overriderockperm,mode=0555,dmode=0555".to_owned());
            }
        }
        all.join(",")
    }
}

/// File systems that can be on a disk, in the order in which their drivers know them for certain.
fn kinds(calls: &dyn Calls) -> Result<Vec<String>> {
    let read = || {
        let file = calls.open(Path::new("/proc/filesystems"), libc::O_RDONLY, 0)?;
        let mut buffer = vec![0; 4096];
        let bytes = calls.read(file, &mut buffer)?;
        buffer.truncate(bytes);
        calls.close(file)?;
        Ok::<_, Errno>(buffer)
    };
    let text = read().map_err(|errno| anyhow!("the kernel's file systems: {}", explain(errno)))?;
    let text = String::from_utf8_lossy(&text);
    // Lines with "nodev" are of file systems without a disk. ext4 serves ext2 and ext3, and vfat shows msdos.
    let kinds = text.lines().filter_map(|line| line.strip_prefix('\t'));
    Ok(kinds
        .filter(|kind| !matches!(*kind, "ext2" | "ext3" | "msdos" | "fuseblk"))
        .map(str::to_owned)
        .collect())
}

/// The option that reads a file system without replaying its journal.
fn without_journal(kind: &str) -> Option<&'static str> {
    match kind {
        "ext4" => Some("noload"),
        "xfs" => Some("norecovery"),
        "btrfs" => Some("rescue=nologreplay"),
        _ => None,
    }
}

/// What begins the lines that a driver logs.
fn prefix(kind: &str) -> &'static str {
    match kind {
        "ext4" => "EXT4-fs",
        "xfs" => "XFS",
        "btrfs" => "BTRFS",
        "vfat" => "FAT-fs",
        "exfat" => "exFAT-fs",
        "squashfs" => "SQUASHFS",
        "erofs" => "erofs",
        "iso9660" => "ISOFS",
        _ => "\0",
    }
}

/// Whether a line of a driver only repeats that it failed.
fn says_nothing(line: &str) -> bool {
    ["open_ctree failed", "SB validate failed", "corruption detected", "Unmount and run"]
        .iter()
        .any(|words| line.contains(words))
}

/// The first line by which a driver explains itself since the log was `before`.
fn reason(kind: &str, before: &str, log: &str) -> Option<String> {
    let new = log.strip_prefix(before).unwrap_or(log);
    let own = new.lines().map(str::trim).filter(|line| line.starts_with(prefix(kind)));
    let mut best = None;
    for line in own {
        if !says_nothing(line) {
            return Some(line.to_owned());
        }
        best = best.or(Some(line));
    }
    best.map(str::to_owned)
}

/// Whether a driver's line shows that the disk has its file system, although the error is that for any other disk.
fn recognized(kind: &str, line: &str) -> bool {
    let other = ["Can't find ext4 filesystem", "Invalid superblock magic"];
    // The others also complain about disks that are not theirs.
    matches!(kind, "ext4" | "xfs" | "btrfs")
        && !line.is_empty()
        && !other.iter().any(|words| line.contains(words))
}

/// Whether the disk ends before the place where a driver looks for its superblock.
fn too_short(line: &str) -> bool {
    let words = [
        "unable to read superblock",
        "unable to read boot sector",
        "cannot read erofs superblock",
        "SQUASHFS error: Failed to read block 0x0",
        "SB read failed",
    ];
    words.iter().any(|words| line.contains(words))
}

/// Why a driver could not use its journal, if that is what a line of it and its error are about.
fn journal(kind: &str, errno: Errno, line: &str) -> Option<&'static str> {
    match errno.0 {
        // The journal has to be replayed, and the image is open for reading only. btrfs says EIO.
        libc::EROFS | libc::EIO => Some("was not unmounted: what its journal has is not shown"),
        _ if kind == "ext4" && line.contains("journal") => {
            Some("is shown without its journal, which is damaged: check it with e2fsck")
        }
        _ => None,
    }
}

/// Mounts a disk or partition. Returns the name of its file system's driver.
pub fn mount(
    kernel: &Kernel,
    calls: &dyn Calls,
    device: &str,
    target: &Path,
    write: bool,
    options: &Options<'_>,
) -> Result<String> {
    let how = if write { 0 } else { libc::MS_RDONLY };
    let mut first = None;
    let mut kinds = kinds(calls)?;
    if let Some(only) = options.kind {
        let all = kinds.join(", ");
        kinds.retain(|kind| kind == only);
        ensure!(!kinds.is_empty(), "the kernel knows no {only}, but {all}");
    }
    for kind in kinds {
        let before = kernel.log();
        let mut data = options.data(&kind);
        let has_error = kind == "ext4" && ext4::has_recorded_error(calls, device);
        if has_error {
            // To replay a journal that ended with an error is for the checker to decide.
            ensure!(!write, "{kind}: it has recorded an error: check it with e2fsck, then write");
            data.push_str("noload");
        }
        let Err(errno) = calls.mount(device, target, &kind, how, &data) else {
            if has_error {
                warn(&format!(
                    "the {kind} has recorded an error: it is shown without its journal; check it with e2fsck"
                ));
            }
            return Ok(kind);
        };
        let line = reason(&kind, &before, &kernel.log());
        let says = line.as_deref().unwrap_or_default();
        let unused = journal(&kind, errno, says);
        if let (Some(option), Some(why), false) = (without_journal(&kind), unused, write) {
            if calls.mount(device, target, &kind, how, option).is_ok() {
                warn(&format!("the {kind} {why}"));
                return Ok(kind);
            }
        }
        ensure!(errno.0 != libc::EACCES || !write, "{kind}: it can only be read");
        if !too_short(says) && (errno.0 != libc::EINVAL || recognized(&kind, says)) {
            let advice = match journal(&kind, errno, says) {
                Some(_) if kind == "ext4" => ": check it with e2fsck",
                _ => "",
            };
            first = first.or(Some((kind, errno, line, advice)));
        }
    }
    match first {
        Some((kind, errno, Some(line), advice)) => {
            bail!("{kind}: {} ({line}){advice}", explain(errno))
        }
        Some((kind, errno, None, advice)) => bail!("{kind}: {}{advice}", explain(errno)),
        None => match options.kind {
            Some(only) => bail!("it contains no {only}"),
            None => bail!("no file system that the kernel knows"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_drivers_own_first_new_line() {
        let before = "XFS (vda): old\n";
        let log = "XFS (vda): old\n00000070: 00 00\nexFAT-fs (vda): no\n XFS (vda): bad\nXFS (vda): more\n";
        assert_eq!(reason("xfs", before, log).as_deref(), Some("XFS (vda): bad"));
        assert_eq!(reason("vfat", before, log), None);
        // A log of which the beginning is gone.
        assert_eq!(reason("xfs", "gone", "XFS (vda): kept\n").as_deref(), Some("XFS (vda): kept"));
        let log = "BTRFS error (device vda state E): open_ctree failed: -2\nBTRFS error: devid 2 is missing\n";
        assert_eq!(reason("btrfs", "", log).as_deref(), Some("BTRFS error: devid 2 is missing"));
    }

    #[test]
    fn complaints_about_other_disks_do_not_count() {
        assert!(!recognized("ext4", "EXT4-fs (vda): VFS: Can't find ext4 filesystem"));
        assert!(!recognized("exfat", "exFAT-fs (vda): failed to recognize exfat type"));
        assert!(!recognized("btrfs", ""));
        assert!(recognized("btrfs", "BTRFS error (device vda): superblock checksum mismatch"));
    }

    #[test]
    fn options_of_a_file_system_without_owners() {
        let mut options = Options { owner: Some((1, 2)), ..Options::default() };
        assert_eq!(options.data("vfat"), "utf8,iocharset=iso8859-1,uid=1,gid=2");
        assert_eq!(options.data("exfat"), "uid=1,gid=2");
        assert_eq!(options.data("ext4"), "");
        assert_eq!(options.data("iso9660"), "uid=1,gid=2");
        options.enforced = true;
        assert_eq!(options.data("iso9660"), "uid=1,gid=2,overriderockperm,mode=0555,dmode=0555");
        options.owner = Some((0, 0));
        assert_eq!(options.data("iso9660"), "");
    }
}
