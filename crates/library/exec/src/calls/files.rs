//! Calls that name files: the library's if the path is below a mount point, or relative to a directory of the library.

use super::descriptor::installed;
use super::Outcome::{Done, Native};
use super::{error, inner, Call, Outcome};
use crate::paths::{self, Place};
use crate::state::State;
use crate::{descriptors, host, library};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_open, open),
    (libc::SYS_creat, open),
    (libc::SYS_openat, openat),
    (libc::SYS_openat2, openat2),
    (libc::SYS_stat, path),
    (libc::SYS_lstat, path),
    (libc::SYS_access, path),
    (libc::SYS_mkdir, path),
    (libc::SYS_rmdir, path),
    (libc::SYS_unlink, path),
    (libc::SYS_chmod, path),
    (libc::SYS_chown, path),
    (libc::SYS_lchown, path),
    (libc::SYS_truncate, path),
    (libc::SYS_utime, path),
    (libc::SYS_utimes, path),
    (libc::SYS_statfs, path),
    (libc::SYS_mknod, path),
    (libc::SYS_getxattr, path),
    (libc::SYS_lgetxattr, path),
    (libc::SYS_setxattr, path),
    (libc::SYS_lsetxattr, path),
    (libc::SYS_listxattr, path),
    (libc::SYS_llistxattr, path),
    (libc::SYS_removexattr, path),
    (libc::SYS_lremovexattr, path),
    (libc::SYS_readlink, readlink),
    (libc::SYS_newfstatat, at),
    (libc::SYS_statx, at),
    (libc::SYS_faccessat, at),
    (libc::SYS_faccessat2, at),
    (libc::SYS_mkdirat, at),
    (libc::SYS_mknodat, at),
    (libc::SYS_unlinkat, at),
    (libc::SYS_fchmodat, at),
    (libc::SYS_fchownat, at),
    (libc::SYS_futimesat, at),
    (libc::SYS_utimensat, at),
    (libc::SYS_readlinkat, readlinkat),
    (libc::SYS_rename, two),
    (libc::SYS_link, two),
    (libc::SYS_renameat, two_at),
    (libc::SYS_renameat2, two_at),
    (libc::SYS_linkat, two_at),
    (libc::SYS_symlink, symlink),
    (libc::SYS_symlinkat, symlinkat),
    (libc::SYS_chdir, chdir),
    (libc::SYS_fchdir, fchdir),
    (libc::SYS_getcwd, getcwd),
    (libc::SYS_umask, umask),
    (libc::SYS_chroot, chroot),
    (libc::SYS_inotify_add_watch, inotify_add_watch),
];

pub(super) const CWD: u32 = libc::AT_FDCWD as u32;

/// The library cannot pin pages of the host. Reads and writes of such a file go through its page cache.
pub(super) const DIRECT: u64 = libc::O_DIRECT as u64;

/// Where the path at `address` leads, from the directory `folder`. For a descriptor of the library, the number there
/// takes its place, and the path stays.
enum Target {
    Host(u64),
    Library { folder: u64, address: u64 },
}

/// Calls `then` with the target; strings live meanwhile.
fn resolve(folder: u64, address: u64, then: impl FnOnce(Target) -> Outcome) -> Outcome {
    let inner_folder = descriptors::get(folder).filter(|_| folder as u32 != CWD);
    if !paths::any() || address == 0 {
        return match inner_folder {
            Some(folder) => then(Target::Library { folder, address }),
            None => Native,
        };
    }
    if let Some(path) = paths::Short::read(address) {
        if !paths::mounted(path.bytes()) {
            return Native;
        }
        if library::present() {
            return then(Target::Library { folder: u64::from(CWD), address: path.address() });
        }
    }
    let path = match paths::read(address) {
        Ok(path) => path,
        // The kernel that is asked will find the same.
        Err(_) => return Native,
    };
    let absolute = path.first() == Some(&b'/');
    if let Some(link) = paths::descriptor_link(&path) {
        return then(Target::Library { folder: u64::from(CWD), address: link.as_ptr() as u64 });
    }
    let mut path = path;
    if !absolute && folder as u32 != CWD {
        let Some(inner) = inner_folder else { return Native };
        // Only with `..` can it lead out of the mount point.
        let outside = path.split(|&byte| byte == b'/').any(|part| part == b"..");
        let Some(mut whole) = outside.then(|| inner_path(inner)).flatten() else {
            return then(Target::Library { folder: inner, address });
        };
        whole.push(b'/');
        whole.append(&mut path);
        path = whole;
        if paths::place(&path) == Place::Host {
            let Ok(path) = CString::new(path) else { return Native };
            let path = CString::new(paths::normalize(path.to_bytes())).unwrap_or_default();
            return then(Target::Host(path.as_ptr() as u64));
        }
        return then(Target::Library { folder: inner, address });
    }
    match paths::place(&path) {
        Place::Host => Native,
        Place::HostAt(path) => then(Target::Host(path.as_ptr() as u64)),
        Place::Library(path) if !library::present() => Done(out_of_reach(&path)),
        Place::Library(path) => {
            then(Target::Library { folder: u64::from(CWD), address: path.as_ptr() as u64 })
        }
    }
}

/// The path of the library's directory.
fn inner_path(fd: u64) -> Option<Vec<u8>> {
    let link = CString::new(format!("/proc/self/fd/{fd}")).ok()?;
    let mut buffer = vec![0u8; libc::PATH_MAX as usize];
    let arguments = [link.as_ptr() as u64, buffer.as_mut_ptr() as u64, buffer.len() as u64];
    let state = State::current()?;
    let bytes = library::own_call(state, libc::SYS_readlink, &arguments);
    buffer.truncate(usize::try_from(bytes).ok()?);
    Some(buffer)
}

/// The error of a forked process for a path below a mount point, and once a line that says why.
fn out_of_reach(path: &CStr) -> i64 {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let path = path.to_string_lossy();
        eprintln!("kyozon-linux exec: {path}: a forked process cannot reach files of the library");
    }
    -i64::from(libc::EIO)
}

/// The path of a program for execve(2), which is a file of the host. An empty path names the descriptor `folder`.
pub(super) fn host_path(state: &State, folder: u64, address: u64) -> Result<CString, i64> {
    let path = paths::read(address)?;
    if paths::executable_link(&path) {
        return Ok(state.program.path.clone());
    }
    let fail = |error: i32| -i64::from(error);
    let string = |path: Vec<u8>| CString::new(path).map_err(|_| fail(libc::ENOENT));
    if folder as u32 == CWD || path.first() == Some(&b'/') {
        return match paths::place(&path) {
            Place::Host => string(path),
            Place::HostAt(path) => Ok(path),
            Place::Library(path) if library::present() => {
                let path = path.to_string_lossy();
                let what = format!("execve: {path} is a file of the library: copy it to the host");
                Err(crate::process::refuse(&what))
            }
            Place::Library(path) => Err(out_of_reach(&path)),
        };
    }
    if descriptors::get(folder).is_some() {
        let what = "execve: the program is a file of the library: copy it to the host";
        return Err(crate::process::refuse(what));
    }
    let link = std::fs::read_link(format!("/proc/self/fd/{}", folder as u32));
    let mut whole = link.map_err(|_| fail(libc::EBADF))?.into_os_string().into_vec();
    if !path.is_empty() {
        whole.push(b'/');
        whole.extend(path);
    }
    string(whole)
}

/// Calls whose first argument is a path.
fn path(state: &State, mut a: [u64; 6]) -> Outcome {
    resolve(u64::from(CWD), a[0], |target| match target {
        Target::Host(path) => {
            a[0] = path;
            Done(host::wait(state.number.get() as i64, &a))
        }
        Target::Library { address, .. } => {
            a[0] = address;
            Done(inner(state, a))
        }
    })
}

/// Calls whose first arguments are a directory and a path.
fn at(state: &State, mut a: [u64; 6]) -> Outcome {
    resolve(a[0], a[1], |target| match target {
        Target::Host(path) => {
            a[1] = path;
            Done(host::wait(state.number.get() as i64, &a))
        }
        Target::Library { folder, address } => {
            (a[0], a[1]) = (folder, address);
            Done(inner(state, a))
        }
    })
}

/// The library's new descriptor gets a number; the host's has one.
fn opened(state: &State, inner: bool, outcome: Outcome, flags: u64) -> Outcome {
    match outcome {
        Done(fd) if inner => {
            let close_on_exec = flags & libc::O_CLOEXEC as u64 != 0;
            installed(state, fd, descriptors::install(fd, close_on_exec, 0))
        }
        outcome => outcome,
    }
}

fn open_target(state: &State, folder: u64, address: u64, flags: u64, mode: u64) -> Outcome {
    let outcome = resolve(folder, address, |target| match target {
        Target::Host(path) => {
            crate::reserve::release();
            Done(host::wait(libc::SYS_openat, &[u64::from(CWD), path, flags, mode]))
        }
        Target::Library { folder, address } => {
            let arguments = [folder, address, flags & !DIRECT, mode, 0, 0];
            let fd = library::program_call(state, libc::SYS_openat, arguments);
            opened(state, true, Done(fd), flags)
        }
    });
    if outcome == Native && paths::read(address).is_ok_and(|path| paths::executable_link(&path)) {
        let path = state.program.path.as_ptr() as u64;
        return Done(host::wait(libc::SYS_openat, &[u64::from(CWD), path, flags, mode]));
    }
    outcome
}

fn open(state: &State, a: [u64; 6]) -> Outcome {
    let (flags, mode) = if state.number.get() as i64 == libc::SYS_creat {
        ((libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64, a[1])
    } else {
        (a[1], a[2])
    };
    open_target(state, u64::from(CWD), a[0], flags, mode)
}

fn openat(state: &State, a: [u64; 6]) -> Outcome {
    open_target(state, a[0], a[1], a[2], a[3])
}

fn openat2(state: &State, mut a: [u64; 6]) -> Outcome {
    resolve(a[0], a[1], |target| match target {
        Target::Host(path) => {
            a[1] = path;
            Done(host::wait(libc::SYS_openat2, &a))
        }
        Target::Library { folder, address } => {
            (a[0], a[1]) = (folder, address);
            // struct open_how has flags, mode and resolve.
            let mut how: [u64; 3] = match host::read_value(a[2]) {
                Ok(how) if a[3] == size_of_val(&how) as u64 => how,
                Ok(_) => return error(libc::E2BIG),
                Err(error) => return Done(error),
            };
            how[0] &= !DIRECT;
            a[2] = how.as_ptr() as u64;
            opened(state, true, Done(inner(state, a)), how[0])
        }
    })
}

/// `/proc/self/exe` is the program, not our command.
fn executable(state: &State, address: u64, buffer: u64, bytes: u64) -> Option<Outcome> {
    if !paths::executable_link(&paths::read(address).ok()?) {
        return None;
    }
    let own = state.program.path.to_bytes();
    let bytes = own.len().min(bytes as usize);
    for (i, &byte) in own[..bytes].iter().enumerate() {
        if let Err(error) = host::write_value(buffer + i as u64, byte) {
            return Some(Done(error));
        }
    }
    Some(Done(bytes as i64))
}

fn readlink(state: &State, a: [u64; 6]) -> Outcome {
    executable(state, a[0], a[1], a[2]).unwrap_or_else(|| path(state, a))
}

fn readlinkat(state: &State, a: [u64; 6]) -> Outcome {
    executable(state, a[1], a[2], a[3]).unwrap_or_else(|| at(state, a))
}

/// Two paths must be of one kernel.
fn two_paths(state: &State, folders: [u64; 2], addresses: [u64; 2], flags: u64) -> Outcome {
    let number = match state.number.get() as i64 {
        libc::SYS_rename | libc::SYS_renameat => libc::SYS_renameat2,
        libc::SYS_link => libc::SYS_linkat,
        other => other,
    };
    let mut kinds = [0, 0];
    let mut arguments = [0; 4];
    let mut strings = Vec::new();
    for i in 0..2 {
        (arguments[2 * i], arguments[2 * i + 1]) = (folders[i], addresses[i]);
        let outcome = resolve(folders[i], addresses[i], |target| {
            let (kind, folder, address) = match target {
                Target::Host(address) => (1, u64::from(CWD), address),
                Target::Library { folder, address } => (2, folder, address),
            };
            kinds[i] = kind;
            // Strings of `resolve` do not live long enough.
            if let Ok(string) = paths::read(address) {
                let string = std::ffi::CString::new(string).unwrap_or_default();
                arguments[2 * i + 1] = string.as_ptr() as u64;
                strings.push(string);
            }
            arguments[2 * i] = folder;
            Done(0)
        });
        if kinds[i] == 0 && outcome != Native {
            return outcome;
        }
    }
    let [a, b, c, d] = arguments;
    match kinds {
        [0, 0] => Native,
        [2, 2] => Done(library::program_call(state, number, [a, b, c, d, flags, 0])),
        [2, _] | [_, 2] => error(libc::EXDEV),
        _ => Done(host::wait(number, &[a, b, c, d, flags])),
    }
}

fn two(state: &State, a: [u64; 6]) -> Outcome {
    two_paths(state, [u64::from(CWD); 2], [a[0], a[1]], 0)
}

fn two_at(state: &State, a: [u64; 6]) -> Outcome {
    let flags = if state.number.get() as i64 == libc::SYS_renameat { 0 } else { a[4] };
    two_paths(state, [a[0], a[2]], [a[1], a[3]], flags)
}

fn symlink(state: &State, a: [u64; 6]) -> Outcome {
    symlinkat(state, [a[0], u64::from(CWD), a[1], 0, 0, 0])
}

fn symlinkat(state: &State, a: [u64; 6]) -> Outcome {
    resolve(a[1], a[2], |target| match target {
        Target::Host(path) => Done(host::wait(libc::SYS_symlinkat, &[a[0], u64::from(CWD), path])),
        Target::Library { folder, address } => Done(library::program_call(
            state,
            libc::SYS_symlinkat,
            [a[0], folder, address, 0, 0, 0],
        )),
    })
}

/// The library's working directory, after it has changed.
fn inner_cwd(state: &State) -> Option<Vec<u8>> {
    let mut buffer = vec![0u8; libc::PATH_MAX as usize];
    let arguments = [buffer.as_mut_ptr() as u64, buffer.len() as u64];
    let bytes = library::own_call(state, libc::SYS_getcwd, &arguments);
    (bytes > 0).then(|| {
        buffer.truncate(bytes as usize - 1);
        buffer
    })
}

/// The result of a change to a directory of the library (`inner`), or of the host.
fn changed(state: &State, inner: bool, result: i64) -> Outcome {
    if result == 0 {
        paths::set_cwd(if inner { inner_cwd(state) } else { None });
    }
    Done(result)
}

fn chdir(state: &State, a: [u64; 6]) -> Outcome {
    let outcome = resolve(u64::from(CWD), a[0], |target| match target {
        Target::Host(path) => changed(state, false, host::call(libc::SYS_chdir, &[path])),
        Target::Library { address, .. } => {
            changed(state, true, library::own_call(state, libc::SYS_chdir, &[address]))
        }
    });
    match outcome {
        Native if paths::cwd().is_some() => {
            changed(state, false, host::call(libc::SYS_chdir, &[a[0]]))
        }
        outcome => outcome,
    }
}

fn fchdir(state: &State, a: [u64; 6]) -> Outcome {
    match descriptors::get(a[0]) {
        Some(fd) => changed(state, true, library::own_call(state, libc::SYS_fchdir, &[fd])),
        None if paths::cwd().is_some() => {
            changed(state, false, host::call(libc::SYS_fchdir, &[a[0]]))
        }
        None => Native,
    }
}

fn getcwd(state: &State, a: [u64; 6]) -> Outcome {
    match paths::cwd() {
        Some(_) if library::present() => Done(inner(state, a)),
        Some(path) => {
            if a[1] <= path.len() as u64 {
                return error(libc::ERANGE);
            }
            for (at, byte) in (a[0]..).zip(path.iter().copied().chain([0])) {
                if let Err(error) = host::write_value(at, byte) {
                    return Done(error);
                }
            }
            Done(path.len() as i64 + 1)
        }
        None => Native,
    }
}

/// Files of both kernels are created with it.
fn umask(state: &State, a: [u64; 6]) -> Outcome {
    if library::present() {
        library::own_call(state, libc::SYS_umask, &a[..1]);
    }
    Native
}

/// The host's descriptor cannot watch files of the library. Programs know this error: they look at the files instead.
fn inotify_add_watch(_: &State, a: [u64; 6]) -> Outcome {
    resolve(u64::from(CWD), a[1], |target| match target {
        Target::Host(path) => Done(host::call(libc::SYS_inotify_add_watch, &[a[0], path, a[2]])),
        Target::Library { .. } => error(libc::ENOSPC),
    })
}

/// The root is the host's.
fn chroot(_: &State, a: [u64; 6]) -> Outcome {
    resolve(u64::from(CWD), a[0], |target| match target {
        Target::Host(path) => Done(host::call(libc::SYS_chroot, &[path])),
        Target::Library { .. } => error(libc::EPERM),
    })
}
