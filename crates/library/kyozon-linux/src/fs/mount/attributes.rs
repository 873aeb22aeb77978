//! What the host learns about an inode. The values come from the image: any is possible.

use fuser::{FileAttr, FileType, INodeNo};
use liblinux::calls::Result;
use liblinux::Errno;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The type in a mode.
pub fn kind(mode: u32) -> Option<FileType> {
    Some(match mode & libc::S_IFMT {
        libc::S_IFREG => FileType::RegularFile,
        libc::S_IFDIR => FileType::Directory,
        libc::S_IFLNK => FileType::Symlink,
        libc::S_IFIFO => FileType::NamedPipe,
        libc::S_IFSOCK => FileType::Socket,
        libc::S_IFCHR => FileType::CharDevice,
        libc::S_IFBLK => FileType::BlockDevice,
        _ => return None,
    })
}

/// A time from seconds, which may be negative, and nanoseconds after them. The epoch if the host has no such time.
fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let part = Duration::from_nanos(nanoseconds.clamp(0, 999_999_999) as u64);
    let whole =
        if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    whole.and_then(|time| time.checked_add(part)).unwrap_or(UNIX_EPOCH)
}

/// Seconds and nanoseconds of a time that the host sets.
///
/// For a time before the epoch, the crate subtracts the nanoseconds from the seconds instead of adding them; this takes
/// that back.
pub fn timespec(time: SystemTime) -> libc::timespec {
    let (sign, length) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (1, after),
        Err(before) => (-1, before.duration()),
    };
    let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    libc::timespec { tv_sec: sign * seconds, tv_nsec: i64::from(length.subsec_nanos()) }
}

/// The attributes of node `id`. EIO if the inode has no valid type.
pub fn attributes(id: u64, status: &libc::stat) -> Result<FileAttr> {
    Ok(FileAttr {
        ino: INodeNo(id),
        size: status.st_size as u64,
        blocks: status.st_blocks as u64,
        atime: time(status.st_atime, status.st_atime_nsec),
        mtime: time(status.st_mtime, status.st_mtime_nsec),
        ctime: time(status.st_ctime, status.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(status.st_mode).ok_or(Errno(libc::EIO))?,
        perm: (status.st_mode & 0o7777) as u16,
        nlink: u32::try_from(status.st_nlink).unwrap_or(u32::MAX),
        uid: status.st_uid,
        gid: status.st_gid,
        // The host's encoding is the low half of the library's.
        rdev: status.st_rdev as u32,
        blksize: u32::try_from(status.st_blksize).unwrap_or(4096),
        flags: 0,
    })
}

/// The attributes of a name whose inode cannot be read.
pub fn unknown(id: u64, kind: FileType) -> FileAttr {
    FileAttr {
        ino: INodeNo(id),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_of_an_image_is_a_time_of_the_host() {
        for seconds in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
            for nanoseconds in [i64::MIN, -1, 0, 999_999_999, 1_000_000_000, i64::MAX] {
                time(seconds, nanoseconds);
            }
        }
        assert_eq!(time(-2, 500_000_000), UNIX_EPOCH - Duration::from_millis(1500));
        assert_eq!(time(3, 1), UNIX_EPOCH + Duration::new(3, 1));
    }

    #[test]
    fn a_time_before_the_epoch_is_set_as_the_host_means_it() {
        // What the crate makes of -2 seconds and 500 milliseconds.
        let crates = UNIX_EPOCH - Duration::new(2, 500_000_000);
        let ours = timespec(crates);
        assert_eq!((ours.tv_sec, ours.tv_nsec), (-2, 500_000_000));
        let after = timespec(UNIX_EPOCH + Duration::new(7, 8));
        assert_eq!((after.tv_sec, after.tv_nsec), (7, 8));
    }

    #[test]
    fn an_inode_without_a_type_is_an_error() {
        // SAFETY: a structure of integers; all zeros are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        assert_eq!(attributes(5, &status), Err(Errno(libc::EIO)));
        status.st_mode = libc::S_IFREG | 0o4755;
        status.st_nlink = u64::MAX;
        let found = attributes(5, &status).expect("a file");
        assert_eq!((found.perm, found.nlink), (0o4755, u32::MAX));
    }
}
