//! System calls on inodes that descriptors name (`O_PATH`), and by which a server of files serves its clients.

use super::{fd, flags, mode, string, Arg, Calls, Entry, Fd, Result};
use crate::Errno;
use std::ffi::CStr;
use std::slice;
use Arg::{In, InOut, Number, Out};

/// Bytes of a handle's header: its length and its type.
const HANDLE_HEADER: usize = 8;
/// Maximum length of what follows (`MAX_HANDLE_SZ`).
const HANDLE_BYTES: usize = 128;

/// A name of an inode that outlives descriptors (`struct file_handle`). Equal ones name the same inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle(Vec<u8>);

/// An entry of a directory, and where the next one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positioned {
    /// The entry.
    pub entry: Entry,
    /// The offset of the entry behind it, for lseek(2).
    pub next: u64,
}

/// The entries in a buffer of getdents64(2). Their lengths may be wrong.
pub(super) fn parse(mut rest: &[u8]) -> Result<Vec<Positioned>> {
    /// Where the name starts in a struct linux_dirent64.
    const NAME: usize = 19;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut entries = Vec::new();
    while rest.len() > NAME {
        let length =
            usize::from(u16::from_le_bytes([rest[16], rest[17]])).clamp(NAME + 1, rest.len());
        let (entry, after) = rest.split_at(length);
        rest = after;
        let name = CStr::from_bytes_until_nul(&entry[NAME..]).map_err(|_| Errno(libc::EIO))?;
        entries.push(Positioned {
            entry: Entry { name: name.into(), inode: word(&entry[..8]), kind: entry[18] },
            next: word(&entry[8..16]),
        });
    }
    Ok(entries)
}

/// System calls on inodes.
///
/// Methods are named after what they do to the inode; errors are those of the call.
pub trait Inodes: Calls {
    /// newfstatat(2).
    fn status(&self, inode: Fd) -> Result<libc::stat> {
        self.stat_at(inode, c"", libc::AT_EMPTY_PATH)
    }

    /// fchownat(2): a new owner and a new group, if any.
    fn set_owner(&self, inode: Fd, user: Option<u32>, group: Option<u32>) -> Result<()> {
        let (user, group) = (mode(user.unwrap_or(u32::MAX)), mode(group.unwrap_or(u32::MAX)));
        let arguments = &mut [fd(inode), string(c""), user, group, flags(libc::AT_EMPTY_PATH)];
        self.call(libc::SYS_fchownat, arguments).map(drop)
    }

    /// utimensat(2): access and modification time, which may be `UTIME_NOW` or `UTIME_OMIT`.
    fn set_times(&self, inode: Fd, times: &[libc::timespec; 2]) -> Result<()> {
        // SAFETY: integers without padding between them.
        let times =
            unsafe { slice::from_raw_parts(times.as_ptr().cast::<u8>(), size_of_val(times)) };
        let arguments = &mut [fd(inode), string(c""), In(times), flags(libc::AT_EMPTY_PATH)];
        self.call(libc::SYS_utimensat, arguments).map(drop)
    }

    /// linkat(2): one more name for an inode.
    fn link(&self, inode: Fd, folder: Fd, name: &CStr) -> Result<()> {
        let how = flags(libc::AT_EMPTY_PATH);
        self.call(libc::SYS_linkat, &mut [fd(inode), string(c""), fd(folder), string(name), how])
            .map(drop)
    }

    /// renameat2(2).
    fn rename_at(&self, from: Fd, old: &CStr, to: Fd, new: &CStr, how: u32) -> Result<()> {
        let arguments = &mut [fd(from), string(old), fd(to), string(new), mode(how)];
        self.call(libc::SYS_renameat2, arguments).map(drop)
    }

    /// dup(2).
    fn duplicate(&self, file: Fd) -> Result<Fd> {
        self.call(libc::SYS_dup, &mut [fd(file)]).map(|fd| Fd(fd as i32))
    }

    /// fdatasync(2).
    fn sync_data(&self, file: Fd) -> Result<()> {
        self.call(libc::SYS_fdatasync, &mut [fd(file)]).map(drop)
    }

    /// fallocate(2).
    fn allocate(&self, file: Fd, how: i32, offset: u64, bytes: u64) -> Result<()> {
        let arguments = &mut [fd(file), flags(how), Number(offset), Number(bytes)];
        self.call(libc::SYS_fallocate, arguments).map(drop)
    }

    /// copy_file_range(2). Returns how many bytes were copied.
    fn copy_range(&self, from: Fd, at: u64, to: Fd, target: u64, bytes: u64) -> Result<u64> {
        let (mut at, mut target) = (at.to_ne_bytes(), target.to_ne_bytes());
        let arguments =
            &mut [fd(from), InOut(&mut at), fd(to), InOut(&mut target), Number(bytes), flags(0)];
        let copied = self.call(libc::SYS_copy_file_range, arguments)?;
        if copied > bytes {
            return Err(Errno(libc::EIO));
        }
        Ok(copied)
    }

    /// getxattr(2): the length of a value, which `buffer` takes unless it is empty.
    fn extended(&self, path: &CStr, name: &CStr, buffer: &mut [u8]) -> Result<usize> {
        let size = Number(buffer.len() as u64);
        self.call(libc::SYS_getxattr, &mut [string(path), string(name), Out(buffer), size])
            .map(|bytes| bytes as usize)
    }

    /// listxattr(2): the length of all names, which `buffer` takes unless it is empty.
    fn extended_names(&self, path: &CStr, buffer: &mut [u8]) -> Result<usize> {
        let size = Number(buffer.len() as u64);
        self.call(libc::SYS_listxattr, &mut [string(path), Out(buffer), size])
            .map(|bytes| bytes as usize)
    }

    /// setxattr(2).
    fn set_extended(&self, path: &CStr, name: &CStr, value: &[u8], how: i32) -> Result<()> {
        let size = Number(value.len() as u64);
        let arguments = &mut [string(path), string(name), In(value), size, flags(how)];
        self.call(libc::SYS_setxattr, arguments).map(drop)
    }

    /// removexattr(2).
    fn remove_extended(&self, path: &CStr, name: &CStr) -> Result<()> {
        self.call(libc::SYS_removexattr, &mut [string(path), string(name)]).map(drop)
    }

    /// getdents64(2) once: some entries from the descriptor's position on, `.` and `..` included. None at the end.
    fn some_entries(&self, folder: Fd, buffer: &mut [u8]) -> Result<Vec<Positioned>> {
        let size = Number(buffer.len() as u64);
        let bytes = self.call(libc::SYS_getdents64, &mut [fd(folder), Out(buffer), size])?;
        parse(buffer.get(..bytes as usize).ok_or(Errno(libc::EIO))?)
    }

    /// name_to_handle_at(2).
    fn handle(&self, inode: Fd) -> Result<Handle> {
        let mut handle = vec![0; HANDLE_HEADER + HANDLE_BYTES];
        handle[..4].copy_from_slice(&(HANDLE_BYTES as u32).to_ne_bytes());
        let mut mount = [0; 4];
        let how = flags(libc::AT_EMPTY_PATH);
        let arguments = &mut [fd(inode), string(c""), InOut(&mut handle), Out(&mut mount), how];
        self.call(libc::SYS_name_to_handle_at, arguments)?;
        let bytes = u32::from_ne_bytes(handle[..4].try_into().expect("4 bytes")) as usize;
        if bytes > HANDLE_BYTES {
            return Err(Errno(libc::EIO));
        }
        handle.truncate(HANDLE_HEADER + bytes);
        Ok(Handle(handle))
    }

    /// open_by_handle_at(2), in the file system that `anything` is in.
    fn open_handle(&self, anything: Fd, handle: &Handle, how: i32) -> Result<Fd> {
        let arguments = &mut [fd(anything), In(&handle.0), flags(how | libc::O_CLOEXEC)];
        self.call(libc::SYS_open_by_handle_at, arguments).map(|fd| Fd(fd as i32))
    }
}

impl<C: Calls + ?Sized> Inodes for C {}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(inode: u64, next: u64, length: u16, kind: u8, name: &[u8]) -> Vec<u8> {
        let mut bytes = inode.to_le_bytes().to_vec();
        bytes.extend(next.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.push(kind);
        bytes.extend(name);
        bytes
    }

    #[test]
    fn entries_are_parsed_with_their_positions() {
        let mut bytes = record(5, 7, 24, libc::DT_DIR, b".\0\0\0\0");
        bytes.extend(record(6, 9, 24, libc::DT_REG, b"name\0"));
        let entries = parse(&bytes).expect("valid");
        let names: Vec<_> = entries.iter().map(|e| (e.entry.name.as_c_str(), e.next)).collect();
        assert_eq!(names, [(c".", 7), (c"name", 9)]);
        assert_eq!(entries[1].entry.inode, 6);
    }

    #[test]
    fn wrong_lengths_end_in_the_buffer() {
        assert_eq!(parse(&record(1, 1, 9000, 0, b"long\0")).expect("one").len(), 1);
        assert_eq!(parse(&record(1, 1, 0, 0, b"\0")).expect("one").len(), 1);
        assert_eq!(parse(&record(1, 1, 23, 0, b"open")), Err(Errno(libc::EIO)));
        assert_eq!(parse(&[0; 10]), Ok(Vec::new()));
    }
}
