//! Calls on a descriptor: the library's if the descriptor is.

use super::Outcome::{Done, Native};
use super::{error, inner, Call, Outcome};
use crate::state::State;
use crate::{descriptors, host, library, reserve};

/// linux/fcntl.h.
const F_DUPFD_CLOEXEC: u64 = libc::F_DUPFD_CLOEXEC as u64;

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_read, first),
    (libc::SYS_write, first),
    (libc::SYS_readv, first),
    (libc::SYS_writev, first),
    (libc::SYS_pread64, first),
    (libc::SYS_pwrite64, first),
    (libc::SYS_preadv, first),
    (libc::SYS_pwritev, first),
    (libc::SYS_preadv2, first),
    (libc::SYS_pwritev2, first),
    (libc::SYS_lseek, first),
    (libc::SYS_fstat, first),
    (libc::SYS_fstatfs, first),
    (libc::SYS_fsync, first),
    (libc::SYS_fdatasync, first),
    (libc::SYS_syncfs, first),
    (libc::SYS_sync_file_range, first),
    (libc::SYS_ftruncate, first),
    (libc::SYS_fallocate, first),
    (libc::SYS_fadvise64, first),
    (libc::SYS_readahead, first),
    (libc::SYS_flock, first),
    (libc::SYS_getdents, first),
    (libc::SYS_getdents64, first),
    (libc::SYS_fchmod, first),
    (libc::SYS_fchown, first),
    (libc::SYS_fgetxattr, first),
    (libc::SYS_fsetxattr, first),
    (libc::SYS_flistxattr, first),
    (libc::SYS_fremovexattr, first),
    (libc::SYS_ioctl, ioctl),
    (libc::SYS_fcntl, fcntl),
    (libc::SYS_dup, dup),
    (libc::SYS_dup2, dup2),
    (libc::SYS_dup3, dup3),
    (libc::SYS_close, close),
    (libc::SYS_close_range, close_range),
    (libc::SYS_mmap, mmap),
];

/// Calls whose first argument is a descriptor, and that name no other.
pub(super) fn first(state: &State, mut a: [u64; 6]) -> Outcome {
    let Some(fd) = descriptors::get(a[0]) else { return Native };
    a[0] = fd;
    Done(inner(state, a))
}

fn ioctl(state: &State, a: [u64; 6]) -> Outcome {
    // FIOCLEX, FIONCLEX: the flag is the placeholder's.
    if [0x5450, 0x5451].contains(&a[1]) {
        descriptors::flags_change(a[0], a[0]);
        return Native;
    }
    first(state, a)
}

fn fcntl(state: &State, mut a: [u64; 6]) -> Outcome {
    let Some(fd) = descriptors::get(a[0]) else {
        let owner = super::owned::process_id(a[2]);
        if a[1] as i32 == libc::F_SETOWN && owner != a[2] {
            a[2] = owner;
            return Done(host::call(libc::SYS_fcntl, &a));
        }
        return Native;
    };
    match a[1] as i32 {
        libc::F_GETFD => Native,
        libc::F_SETFD => {
            descriptors::flags_change(a[0], a[0]);
            Native
        }
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            let inner = library::own_call(state, libc::SYS_dup, &[fd]);
            installed(state, inner, descriptors::install(inner, a[1] == F_DUPFD_CLOEXEC, a[2]))
        }
        libc::F_SETFL => first(state, [a[0], a[1], a[2] & !super::files::DIRECT, 0, 0, 0]),
        _ => first(state, a),
    }
}

/// The result of an installation. If it failed, the library's descriptor is closed.
pub(super) fn installed(state: &State, inner: i64, result: i64) -> Outcome {
    if inner >= 0 && result < 0 {
        library::own_call(state, libc::SYS_close, &[inner as u64]);
    }
    Done(result)
}

fn dup(state: &State, a: [u64; 6]) -> Outcome {
    let Some(fd) = descriptors::get(a[0]) else { return Native };
    let inner = library::own_call(state, libc::SYS_dup, &[fd]);
    installed(state, inner, descriptors::install(inner, false, 0))
}

fn dup2(state: &State, a: [u64; 6]) -> Outcome {
    if a[0] as u32 == a[1] as u32 {
        return Native;
    }
    dup3(state, [a[0], a[1], 0, 0, 0, 0])
}

fn dup3(state: &State, a: [u64; 6]) -> Outcome {
    if descriptors::private(a[1]) {
        return error(libc::EBADF);
    }
    if a[0] as u32 == a[1] as u32 {
        return error(libc::EINVAL);
    }
    let from = descriptors::get(a[0]);
    let inner = match from {
        Some(fd) => library::own_call(state, libc::SYS_dup, &[fd]),
        None => 0,
    };
    if inner < 0 {
        return Done(inner);
    }
    super::epoll::forget_epolls(state, a[1], a[1]);
    if let Some(old) = descriptors::forget(a[1]) {
        library::own_call(state, libc::SYS_close, &[old]);
    }
    match from {
        None => {
            let result = host::call(libc::SYS_dup3, &[a[0], a[1], a[2]]);
            if result == -i64::from(libc::EBADF) && descriptors::left(a[0]) {
                // The program may report the error to a pipe that it does not have either.
                crate::process::refuse("dup: a forked process has no descriptors of the library");
            }
            Done(result)
        }
        Some(_) => {
            let close_on_exec = a[2] & libc::O_CLOEXEC as u64 != 0;
            installed(state, inner, descriptors::install_at(inner, a[1], close_on_exec))
        }
    }
}

pub(super) fn close(state: &State, a: [u64; 6]) -> Outcome {
    if descriptors::private(a[0]) {
        return error(libc::EBADF);
    }
    super::epoll::forget_epolls(state, a[0], a[0]);
    let left = descriptors::left(a[0]);
    let inner = descriptors::forget(a[0]);
    reserve::closing(a[0]);
    if left {
        // The number may be another file's by now. The program closes what its parent had, in any case.
        host::call(libc::SYS_close, &[a[0]]);
        return Done(0);
    }
    let Some(inner) = inner else { return Native };
    let result = library::own_call(state, libc::SYS_close, &[inner]);
    let keep = |close_on_exec| reserve::keep(a[0] & 0xffff_ffff, close_on_exec);
    if !descriptors::close_on_exec(a[0]).is_some_and(keep) {
        host::call(libc::SYS_close, &[a[0]]);
    }
    Done(result)
}

fn close_range(state: &State, a: [u64; 6]) -> Outcome {
    if a[2] & u64::from(libc::CLOSE_RANGE_CLOEXEC) != 0 {
        descriptors::flags_change(a[0], a[1]);
    } else {
        super::epoll::forget_epolls(state, a[0], a[1]);
        reserve::closing(a[0]);
        for fd in descriptors::within(a[0], a[1]) {
            if let Some(inner) = descriptors::forget(fd) {
                library::own_call(state, libc::SYS_close, &[inner]);
            }
        }
    }
    Done(descriptors::host_close_range(a[0], a[1], a[2]))
}

/// Whether the library's file is open for writing: a shared mapping would have to show what is written.
fn writable(state: &State, fd: u64) -> bool {
    let flags = library::own_call(state, libc::SYS_fcntl, &[fd, libc::F_GETFL as u64]);
    flags as i32 & libc::O_ACCMODE != libc::O_RDONLY
}

/// Files of the library: a private copy. The host's pages and the library's cannot be the same. Shared objects of the
/// host go into our [area](crate::area).
fn mmap(state: &State, a: [u64; 6]) -> Outcome {
    let flags = a[3] as i32;
    if flags & libc::MAP_ANONYMOUS != 0 {
        return Native;
    }
    let Some(fd) = descriptors::get(a[4]) else {
        // The flag has no meaning; dynamic linkers set it.
        if a[0] != 0 || flags & libc::MAP_DENYWRITE == 0 {
            return Native;
        }
        let hint = crate::area::hint(a[1]);
        return Done(host::call(libc::SYS_mmap, &[hint, a[1], a[2], a[3], a[4], a[5]]));
    };
    let kind = flags & libc::MAP_TYPE;
    let write = a[2] & libc::PROT_WRITE as u64 != 0;
    if kind != libc::MAP_PRIVATE && (write || writable(state, fd)) {
        return error(libc::ENODEV);
    }
    let flags = (flags & !libc::MAP_TYPE) | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let at = host::call(libc::SYS_mmap, &[a[0], a[1], both, flags as u64, u64::MAX, 0]);
    if at < 0 {
        return Done(at);
    }
    let at = at as u64;
    let mut have = 0;
    while have < a[1] {
        let arguments = [fd, at + have, a[1] - have, a[5] + have];
        match library::own_call(state, libc::SYS_pread64, &arguments) {
            0 => break,
            bytes if bytes > 0 => have += bytes as u64,
            error => {
                host::call(libc::SYS_munmap, &[at, a[1]]);
                return Done(error);
            }
        }
    }
    host::call(libc::SYS_mprotect, &[at, a[1], a[2]]);
    Done(at as i64)
}
