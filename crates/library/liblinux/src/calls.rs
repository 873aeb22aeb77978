//! System calls with checked arguments: strings and buffers instead of addresses.
//!
//! | module | contents |
//! |---|---|
//! | [`inodes`] | more of them, on inodes that descriptors name |

pub mod inodes;

use crate::{Errno, Thread};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;

/// A file descriptor of a kernel. It is a number; nothing closes it by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fd(pub i32);

/// Relative paths start at the working directory.
pub const CWD: Fd = Fd(libc::AT_FDCWD);

/// A result of a kernel.
pub type Result<T> = std::result::Result<T, Errno>;

/// Bytes of a directory's entries beyond which it is damaged: no file system has one as large, and a cycle has no end.
pub const MAX_ENTRIES_BYTES: usize = 1 << 30;

/// An argument of a system call.
pub enum Arg<'a> {
    /// A number.
    Number(u64),
    /// The address of bytes that the kernel reads.
    In(&'a [u8]),
    /// The address of bytes that the kernel writes. It may leave the end as it was.
    Out(&'a mut [u8]),
    /// The address of bytes that the kernel reads and writes.
    InOut(&'a mut [u8]),
}

use Arg::{In, InOut, Number, Out};

/// The arguments' words for a kernel that shares this process's memory.
pub(crate) fn words(arguments: &mut [Arg<'_>]) -> [u64; 6] {
    let mut six = [0; 6];
    for (value, argument) in six.iter_mut().zip(arguments) {
        *value = match argument {
            Number(number) => *number,
            In(bytes) => bytes.as_ptr() as u64,
            Out(bytes) | InOut(bytes) => bytes.as_mut_ptr() as u64,
        };
    }
    six
}

fn fd<'a>(fd: Fd) -> Arg<'a> {
    Number(fd.0 as u64)
}

fn flags<'a>(flags: i32) -> Arg<'a> {
    Number(flags as u64)
}

fn mode<'a>(mode: u32) -> Arg<'a> {
    Number(u64::from(mode))
}

fn string(text: &CStr) -> Arg<'_> {
    In(text.to_bytes_with_nul())
}

fn text(path: impl AsRef<Path>) -> Result<CString> {
    CString::new(path.as_ref().as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))
}

/// The names of a list of extended attributes.
fn names(list: &[u8]) -> Vec<CString> {
    let names = list.split_inclusive(|&byte| byte == 0);
    names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()).map(CString::from).collect()
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without `.` and `..`.
    pub name: CString,
    /// Its inode number.
    pub inode: u64,
    /// Its type, a `DT_` constant.
    pub kind: u8,
}

/// Bytes of a structure that the kernel writes.
///
/// # Safety
///
/// Every pattern of bits is a value of `T`.
unsafe fn structure<T>(fill: impl FnOnce(Arg<'_>) -> Result<u64>) -> Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the bytes are initialized, and the slice is the only reference to them.
    let bytes =
        unsafe { slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
    fill(Out(bytes))?;
    // SAFETY: the caller's promise.
    Ok(unsafe { value.assume_init() })
}

/// A kernel's system calls, wherever the kernel is. Descriptors are the kernel's.
///
/// Methods are named after the calls that they make; errors are those of the call.
pub trait Calls {
    /// Makes a system call. Addresses are those of the caller's memory; structures that contain addresses cannot be
    /// passed.
    fn call(&self, number: i64, arguments: &mut [Arg<'_>]) -> Result<u64>;

    /// open(2). `flags` get `O_CLOEXEC`.
    fn open(&self, path: &Path, how: i32, rights: u32) -> Result<Fd> {
        self.open_at(CWD, &text(path)?, how, rights)
    }

    /// openat(2). `flags` get `O_CLOEXEC`.
    fn open_at(&self, folder: Fd, path: &CStr, how: i32, rights: u32) -> Result<Fd> {
        let arguments = &mut [fd(folder), string(path), flags(how | libc::O_CLOEXEC), mode(rights)];
        self.call(libc::SYS_openat, arguments).map(|fd| Fd(fd as i32))
    }

    /// close(2).
    fn close(&self, file: Fd) -> Result<()> {
        self.call(libc::SYS_close, &mut [fd(file)]).map(drop)
    }

    /// read(2).
    fn read(&self, file: Fd, buffer: &mut [u8]) -> Result<usize> {
        let bytes = Number(buffer.len() as u64);
        self.call(libc::SYS_read, &mut [fd(file), Out(buffer), bytes]).map(|bytes| bytes as usize)
    }

    /// write(2).
    fn write(&self, file: Fd, buffer: &[u8]) -> Result<usize> {
        let bytes = Number(buffer.len() as u64);
        self.call(libc::SYS_write, &mut [fd(file), In(buffer), bytes]).map(|bytes| bytes as usize)
    }

    /// write(2) until all is written.
    fn write_all(&self, file: Fd, mut buffer: &[u8]) -> Result<()> {
        while !buffer.is_empty() {
            match self.write(file, buffer)? {
                0 => return Err(Errno(libc::EIO)),
                bytes => buffer = &buffer[bytes..],
            }
        }
        Ok(())
    }

    /// pread64(2).
    fn pread(&self, file: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = Number(buffer.len() as u64);
        let arguments = &mut [fd(file), Out(buffer), bytes, Number(offset)];
        self.call(libc::SYS_pread64, arguments).map(|bytes| bytes as usize)
    }

    /// pwrite64(2).
    fn pwrite(&self, file: Fd, buffer: &[u8], offset: u64) -> Result<usize> {
        let bytes = Number(buffer.len() as u64);
        let arguments = &mut [fd(file), In(buffer), bytes, Number(offset)];
        self.call(libc::SYS_pwrite64, arguments).map(|bytes| bytes as usize)
    }

    /// lseek(2).
    fn seek(&self, file: Fd, offset: i64, whence: i32) -> Result<u64> {
        self.call(libc::SYS_lseek, &mut [fd(file), Number(offset as u64), flags(whence)])
    }

    /// ftruncate(2).
    fn truncate(&self, file: Fd, bytes: u64) -> Result<()> {
        self.call(libc::SYS_ftruncate, &mut [fd(file), Number(bytes)]).map(drop)
    }

    /// fsync(2).
    fn fsync(&self, file: Fd) -> Result<()> {
        self.call(libc::SYS_fsync, &mut [fd(file)]).map(drop)
    }

    /// syncfs(2): also reports an earlier failure to write.
    fn sync_fs(&self, file: Fd) -> Result<()> {
        self.call(libc::SYS_syncfs, &mut [fd(file)]).map(drop)
    }

    /// mkdir(2).
    fn mkdir(&self, path: &Path, rights: u32) -> Result<()> {
        self.mkdir_at(CWD, &text(path)?, rights)
    }

    /// mkdirat(2).
    fn mkdir_at(&self, folder: Fd, path: &CStr, rights: u32) -> Result<()> {
        self.call(libc::SYS_mkdirat, &mut [fd(folder), string(path), mode(rights)]).map(drop)
    }

    /// mknodat(2).
    fn mknod_at(&self, folder: Fd, path: &CStr, kind: u32, device: u64) -> Result<()> {
        self.call(libc::SYS_mknodat, &mut [fd(folder), string(path), mode(kind), Number(device)])
            .map(drop)
    }

    /// unlinkat(2), with `AT_REMOVEDIR` or 0.
    fn unlink_at(&self, folder: Fd, path: &CStr, how: i32) -> Result<()> {
        self.call(libc::SYS_unlinkat, &mut [fd(folder), string(path), flags(how)]).map(drop)
    }

    /// symlinkat(2).
    fn symlink_at(&self, target: &CStr, folder: Fd, path: &CStr) -> Result<()> {
        self.call(libc::SYS_symlinkat, &mut [string(target), fd(folder), string(path)]).map(drop)
    }

    /// linkat(2) without flags.
    fn link_at(&self, from: Fd, old: &CStr, to: Fd, new: &CStr) -> Result<()> {
        self.call(libc::SYS_linkat, &mut [fd(from), string(old), fd(to), string(new), flags(0)])
            .map(drop)
    }

    /// readlinkat(2).
    fn read_link_at(&self, folder: Fd, path: &CStr) -> Result<Vec<u8>> {
        let mut buffer = vec![0; libc::PATH_MAX as usize];
        let size = Number(buffer.len() as u64);
        let arguments = &mut [fd(folder), string(path), Out(&mut buffer), size];
        let bytes = self.call(libc::SYS_readlinkat, arguments)?;
        buffer.truncate(bytes as usize);
        Ok(buffer)
    }

    /// newfstatat(2).
    fn stat_at(&self, folder: Fd, path: &CStr, how: i32) -> Result<libc::stat> {
        // SAFETY: the structure consists of integers.
        unsafe {
            structure(|stat| {
                self.call(libc::SYS_newfstatat, &mut [fd(folder), string(path), stat, flags(how)])
            })
        }
    }

    /// statx(2) with what newfstatat(2) lacks: the time of birth, if the file system has it.
    fn stat_birth_at(&self, folder: Fd, path: &CStr, how: i32) -> Result<Option<libc::timespec>> {
        let mask = mode(libc::STATX_BTIME);
        // SAFETY: the structure consists of integers.
        let status: libc::statx = unsafe {
            structure(|status| {
                let arguments = &mut [fd(folder), string(path), flags(how), mask, status];
                self.call(libc::SYS_statx, arguments)
            })?
        };
        let libc::statx_timestamp { tv_sec, tv_nsec, .. } = status.stx_btime;
        let known = status.stx_mask & libc::STATX_BTIME != 0;
        Ok(known.then_some(libc::timespec { tv_sec, tv_nsec: tv_nsec.into() }))
    }

    /// stat(2).
    fn stat(&self, path: &Path) -> Result<libc::stat> {
        self.stat_at(CWD, &text(path)?, 0)
    }

    /// fstatfs(2).
    fn stat_fs(&self, file: Fd) -> Result<libc::statfs> {
        // SAFETY: the structure consists of integers.
        unsafe { structure(|stat| self.call(libc::SYS_fstatfs, &mut [fd(file), stat])) }
    }

    /// fchownat(2), without following a symbolic link.
    fn chown_at(&self, folder: Fd, path: &CStr, user: u32, group: u32) -> Result<()> {
        let how = flags(libc::AT_SYMLINK_NOFOLLOW);
        self.call(libc::SYS_fchownat, &mut [fd(folder), string(path), mode(user), mode(group), how])
            .map(drop)
    }

    /// fchmodat(2).
    fn chmod_at(&self, folder: Fd, path: &CStr, rights: u32) -> Result<()> {
        self.call(libc::SYS_fchmodat, &mut [fd(folder), string(path), mode(rights)]).map(drop)
    }

    /// utimensat(2): access and modification time, without following a symbolic link.
    fn set_times_at(&self, folder: Fd, path: &CStr, times: &[libc::timespec; 2]) -> Result<()> {
        // SAFETY: integers without padding between them.
        let times =
            unsafe { slice::from_raw_parts(times.as_ptr().cast::<u8>(), size_of_val(times)) };
        let arguments =
            &mut [fd(folder), string(path), In(times), flags(libc::AT_SYMLINK_NOFOLLOW)];
        self.call(libc::SYS_utimensat, arguments).map(drop)
    }

    /// flistxattr(2): the names of extended attributes.
    fn attributes(&self, file: Fd) -> Result<Vec<CString>> {
        let mut buffer = vec![0; 1 << 16];
        let size = Number(buffer.len() as u64);
        let bytes = self.call(libc::SYS_flistxattr, &mut [fd(file), Out(&mut buffer), size])?;
        Ok(names(&buffer[..bytes as usize]))
    }

    /// fgetxattr(2).
    fn attribute(&self, file: Fd, name: &CStr) -> Result<Vec<u8>> {
        let mut buffer = vec![0; 1 << 16];
        let size = Number(buffer.len() as u64);
        let bytes =
            self.call(libc::SYS_fgetxattr, &mut [fd(file), string(name), Out(&mut buffer), size])?;
        buffer.truncate(bytes as usize);
        Ok(buffer)
    }

    /// fsetxattr(2) without flags.
    fn set_attribute(&self, file: Fd, name: &CStr, value: &[u8]) -> Result<()> {
        let bytes = Number(value.len() as u64);
        self.call(libc::SYS_fsetxattr, &mut [fd(file), string(name), In(value), bytes, flags(0)])
            .map(drop)
    }

    /// A path to an entry of a folder, for calls that take no folder. By default it makes the folder the thread's
    /// working directory.
    fn entry(&self, folder: Fd, name: &CStr) -> Result<CString> {
        self.call(libc::SYS_fchdir, &mut [fd(folder)])?;
        Ok(name.into())
    }

    /// llistxattr(2): the names of extended attributes of an entry; of a link, not of its target.
    fn attributes_at(&self, folder: Fd, name: &CStr) -> Result<Vec<CString>> {
        let name = &self.entry(folder, name)?;
        let mut buffer = vec![0; 1 << 16];
        let size = Number(buffer.len() as u64);
        let bytes = self.call(libc::SYS_llistxattr, &mut [string(name), Out(&mut buffer), size])?;
        Ok(names(&buffer[..bytes as usize]))
    }

    /// lgetxattr(2) of an entry.
    fn attribute_at(&self, folder: Fd, name: &CStr, attribute: &CStr) -> Result<Vec<u8>> {
        let name = &self.entry(folder, name)?;
        let mut buffer = vec![0; 1 << 16];
        let size = Number(buffer.len() as u64);
        let arguments = &mut [string(name), string(attribute), Out(&mut buffer), size];
        let bytes = self.call(libc::SYS_lgetxattr, arguments)?;
        buffer.truncate(bytes as usize);
        Ok(buffer)
    }

    /// lsetxattr(2) of an entry, without flags.
    fn set_attribute_at(
        &self,
        folder: Fd,
        name: &CStr,
        attribute: &CStr,
        value: &[u8],
    ) -> Result<()> {
        let name = &self.entry(folder, name)?;
        let bytes = Number(value.len() as u64);
        let arguments = &mut [string(name), string(attribute), In(value), bytes, flags(0)];
        self.call(libc::SYS_lsetxattr, arguments).map(drop)
    }

    /// Makes a folder this thread's root directory: no path leads out of it. Other threads keep theirs.
    fn enter_root(&self, folder: &Path) -> Result<()> {
        let folder = text(folder)?;
        self.call(libc::SYS_unshare, &mut [flags(libc::CLONE_FS)])?;
        self.call(libc::SYS_chroot, &mut [string(&folder)])?;
        self.call(libc::SYS_chdir, &mut [string(c"/")]).map(drop)
    }

    /// getdents64(2) to the end: the entries of a directory that is open for reading.
    fn entries(&self, folder: Fd) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut buffer = vec![0u8; 1 << 16];
        let mut total = 0;
        loop {
            let size = Number(buffer.len() as u64);
            let bytes = self
                .call(libc::SYS_getdents64, &mut [fd(folder), Out(&mut buffer), size])?
                as usize;
            if bytes == 0 {
                return Ok(entries);
            }
            total += bytes;
            if total > MAX_ENTRIES_BYTES {
                return Err(Errno(libc::EFBIG));
            }
            let some = inodes::parse(&buffer[..bytes])?.into_iter().map(|some| some.entry);
            entries.extend(some.filter(|entry| !matches!(entry.name.to_bytes(), b"." | b"..")));
        }
    }

    /// mount(2).
    fn mount(&self, source: &str, target: &Path, kind: &str, how: u64, data: &str) -> Result<()> {
        let (source, target, kind, data) = (text(source)?, text(target)?, text(kind)?, text(data)?);
        let arguments =
            &mut [string(&source), string(&target), string(&kind), Number(how), string(&data)];
        self.call(libc::SYS_mount, arguments).map(drop)
    }

    /// umount2(2) without flags.
    fn unmount(&self, target: &Path) -> Result<()> {
        self.call(libc::SYS_umount2, &mut [string(&text(target)?), flags(0)]).map(drop)
    }
}

impl Calls for Thread {
    fn call(&self, number: i64, arguments: &mut [Arg<'_>]) -> Result<u64> {
        // SAFETY: the methods above pass sizes that belong to the addresses; so must other callers.
        let result = unsafe { self.syscall(number, words(arguments)) };
        if result < 0 {
            Err(Errno(-result as i32))
        } else {
            Ok(result as u64)
        }
    }
}
