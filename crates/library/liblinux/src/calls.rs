//! System calls with checked arguments: strings and buffers instead of addresses.

use crate::{Errno, Thread};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file descriptor of a kernel. It is a number; nothing closes it by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fd(pub i32);

/// Relative paths start at the working directory.
pub const CWD: Fd = Fd(libc::AT_FDCWD);

/// A result of a kernel.
pub type Result<T> = std::result::Result<T, Errno>;

/// An argument: an address of the string's bytes, which must live through the call.
pub(crate) fn text(path: impl AsRef<Path>) -> Result<CString> {
    CString::new(path.as_ref().as_os_str().as_bytes()).map_err(|_| Errno(libc::EINVAL))
}

fn address<T: ?Sized>(value: &T) -> u64 {
    std::ptr::from_ref(value).cast::<()>() as u64
}

fn address_mut<T: ?Sized>(value: &mut T) -> u64 {
    std::ptr::from_mut(value).cast::<()>() as u64
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

impl Thread {
    /// A call whose arguments name live memory of the right size, or none.
    fn call(&self, number: i64, arguments: &[u64]) -> Result<u64> {
        let mut six = [0; 6];
        six[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: only the functions below call this, with addresses of what they borrow and its size.
        let result = unsafe { self.syscall(number, six) };
        if result < 0 {
            Err(Errno(-result as i32))
        } else {
            Ok(result as u64)
        }
    }

    /// open(2). `flags` get `O_CLOEXEC`.
    pub fn open(&self, path: impl AsRef<Path>, flags: i32, mode: u32) -> Result<Fd> {
        self.open_at(CWD, &text(path)?, flags, mode)
    }

    /// openat(2). `flags` get `O_CLOEXEC`.
    pub fn open_at(&self, folder: Fd, path: &CStr, flags: i32, mode: u32) -> Result<Fd> {
        let flags = (flags | libc::O_CLOEXEC) as u64;
        let arguments = [folder.0 as u64, path.as_ptr() as u64, flags, u64::from(mode)];
        self.call(libc::SYS_openat, &arguments).map(|fd| Fd(fd as i32))
    }

    /// close(2).
    pub fn close(&self, fd: Fd) -> Result<()> {
        self.call(libc::SYS_close, &[fd.0 as u64]).map(drop)
    }

    /// read(2).
    pub fn read(&self, fd: Fd, buffer: &mut [u8]) -> Result<usize> {
        let arguments = [fd.0 as u64, address_mut(buffer), buffer.len() as u64];
        self.call(libc::SYS_read, &arguments).map(|bytes| bytes as usize)
    }

    /// write(2).
    pub fn write(&self, fd: Fd, buffer: &[u8]) -> Result<usize> {
        let arguments = [fd.0 as u64, address(buffer), buffer.len() as u64];
        self.call(libc::SYS_write, &arguments).map(|bytes| bytes as usize)
    }

    /// write(2) until all is written.
    pub fn write_all(&self, fd: Fd, mut buffer: &[u8]) -> Result<()> {
        while !buffer.is_empty() {
            buffer = &buffer[self.write(fd, buffer)?..];
        }
        Ok(())
    }

    /// pread(2).
    pub fn pread(&self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let arguments = [fd.0 as u64, address_mut(buffer), buffer.len() as u64, offset];
        self.call(libc::SYS_pread64, &arguments).map(|bytes| bytes as usize)
    }

    /// pwrite(2).
    pub fn pwrite(&self, fd: Fd, buffer: &[u8], offset: u64) -> Result<usize> {
        let arguments = [fd.0 as u64, address(buffer), buffer.len() as u64, offset];
        self.call(libc::SYS_pwrite64, &arguments).map(|bytes| bytes as usize)
    }

    /// lseek(2).
    pub fn seek(&self, fd: Fd, offset: i64, whence: i32) -> Result<u64> {
        self.call(libc::SYS_lseek, &[fd.0 as u64, offset as u64, whence as u64])
    }

    /// ftruncate(2).
    pub fn truncate(&self, fd: Fd, bytes: u64) -> Result<()> {
        self.call(libc::SYS_ftruncate, &[fd.0 as u64, bytes]).map(drop)
    }

    /// fsync(2).
    pub fn sync(&self, fd: Fd) -> Result<()> {
        self.call(libc::SYS_fsync, &[fd.0 as u64]).map(drop)
    }

    /// syncfs(2): also reports an earlier failure to write.
    pub fn sync_all(&self, fd: Fd) -> Result<()> {
        self.call(libc::SYS_syncfs, &[fd.0 as u64]).map(drop)
    }

    /// mkdir(2).
    pub fn mkdir(&self, path: impl AsRef<Path>, mode: u32) -> Result<()> {
        self.mkdir_at(CWD, &text(path)?, mode)
    }

    /// mkdirat(2).
    pub fn mkdir_at(&self, folder: Fd, path: &CStr, mode: u32) -> Result<()> {
        self.call(libc::SYS_mkdirat, &[folder.0 as u64, path.as_ptr() as u64, u64::from(mode)])
            .map(drop)
    }

    /// mknodat(2).
    pub fn mknod_at(&self, folder: Fd, path: &CStr, mode: u32, device: u64) -> Result<()> {
        self.call(
            libc::SYS_mknodat,
            &[folder.0 as u64, path.as_ptr() as u64, u64::from(mode), device],
        )
        .map(drop)
    }

    /// unlinkat(2), with `AT_REMOVEDIR` or 0.
    pub fn unlink_at(&self, folder: Fd, path: &CStr, flags: i32) -> Result<()> {
        self.call(libc::SYS_unlinkat, &[folder.0 as u64, path.as_ptr() as u64, flags as u64])
            .map(drop)
    }

    /// symlinkat(2).
    pub fn symlink_at(&self, target: &CStr, folder: Fd, path: &CStr) -> Result<()> {
        self.call(
            libc::SYS_symlinkat,
            &[target.as_ptr() as u64, folder.0 as u64, path.as_ptr() as u64],
        )
        .map(drop)
    }

    /// linkat(2) without flags.
    pub fn link_at(&self, from: Fd, old: &CStr, to: Fd, new: &CStr) -> Result<()> {
        let arguments = [from.0 as u64, old.as_ptr() as u64, to.0 as u64, new.as_ptr() as u64, 0];
        self.call(libc::SYS_linkat, &arguments).map(drop)
    }

    /// readlinkat(2).
    pub fn read_link_at(&self, folder: Fd, path: &CStr) -> Result<Vec<u8>> {
        let mut buffer = vec![0; libc::PATH_MAX as usize];
        let arguments = [
            folder.0 as u64,
            path.as_ptr() as u64,
            address_mut(buffer.as_mut_slice()),
            buffer.len() as u64,
        ];
        let bytes = self.call(libc::SYS_readlinkat, &arguments)?;
        buffer.truncate(bytes as usize);
        Ok(buffer)
    }

    /// newfstatat(2).
    pub fn stat_at(&self, folder: Fd, path: &CStr, flags: i32) -> Result<libc::stat> {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        let arguments =
            [folder.0 as u64, path.as_ptr() as u64, stat.as_mut_ptr() as u64, flags as u64];
        self.call(libc::SYS_newfstatat, &arguments)?;
        // SAFETY: the call succeeded, so the kernel wrote the structure, which is the host's.
        Ok(unsafe { stat.assume_init() })
    }

    /// stat(2).
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<libc::stat> {
        self.stat_at(CWD, &text(path)?, 0)
    }

    /// fstatfs(2).
    pub fn stat_fs(&self, fd: Fd) -> Result<libc::statfs> {
        let mut stat = MaybeUninit::<libc::statfs>::uninit();
        self.call(libc::SYS_fstatfs, &[fd.0 as u64, stat.as_mut_ptr() as u64])?;
        // SAFETY: the call succeeded, so the kernel wrote the structure, which is the host's.
        Ok(unsafe { stat.assume_init() })
    }

    /// fchownat(2), without following a symbolic link.
    pub fn chown_at(&self, folder: Fd, path: &CStr, user: u32, group: u32) -> Result<()> {
        let flags = libc::AT_SYMLINK_NOFOLLOW as u64;
        let arguments =
            [folder.0 as u64, path.as_ptr() as u64, u64::from(user), u64::from(group), flags];
        self.call(libc::SYS_fchownat, &arguments).map(drop)
    }

    /// fchmodat(2).
    pub fn chmod_at(&self, folder: Fd, path: &CStr, mode: u32) -> Result<()> {
        self.call(libc::SYS_fchmodat, &[folder.0 as u64, path.as_ptr() as u64, u64::from(mode)])
            .map(drop)
    }

    /// utimensat(2): access and modification time, without following a symbolic link.
    pub fn set_times_at(&self, folder: Fd, path: &CStr, times: &[libc::timespec; 2]) -> Result<()> {
        let flags = libc::AT_SYMLINK_NOFOLLOW as u64;
        self.call(
            libc::SYS_utimensat,
            &[folder.0 as u64, path.as_ptr() as u64, address(times), flags],
        )
        .map(drop)
    }

    /// The entries of a directory that is open for reading.
    pub fn entries(&self, folder: Fd) -> Result<Vec<Entry>> {
        /// Where the name starts in a struct linux_dirent64.
        const NAME: usize = 19;
        let mut entries = Vec::new();
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            let arguments =
                [folder.0 as u64, address_mut(buffer.as_mut_slice()), buffer.len() as u64];
            let bytes = self.call(libc::SYS_getdents64, &arguments)? as usize;
            if bytes == 0 {
                return Ok(entries);
            }
            let mut rest = &buffer[..bytes];
            while rest.len() > NAME {
                let length = usize::from(u16::from_le_bytes([rest[16], rest[17]]))
                    .clamp(NAME + 1, rest.len());
                let (entry, after) = rest.split_at(length);
                rest = after;
                let name =
                    CStr::from_bytes_until_nul(&entry[NAME..]).map_err(|_| Errno(libc::EIO))?;
                if name != c"." && name != c".." {
                    let inode = u64::from_le_bytes(entry[..8].try_into().expect("8 bytes"));
                    entries.push(Entry { name: name.into(), inode, kind: entry[18] });
                }
            }
        }
    }

    /// mount(2).
    pub fn mount(
        &self,
        source: &str,
        target: impl AsRef<Path>,
        kind: &str,
        flags: u64,
        data: &str,
    ) -> Result<()> {
        let (source, target, kind, data) = (text(source)?, text(target)?, text(kind)?, text(data)?);
        let pointer = |s: &CString| s.as_ptr() as u64;
        let arguments = [pointer(&source), pointer(&target), pointer(&kind), flags, pointer(&data)];
        self.call(libc::SYS_mount, &arguments).map(drop)
    }

    /// umount2(2).
    pub fn unmount(&self, target: impl AsRef<Path>) -> Result<()> {
        let target = text(target)?;
        self.call(libc::SYS_umount2, &[target.as_ptr() as u64, 0]).map(drop)
    }
}
