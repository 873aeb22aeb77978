//! Processes: fork, execve and the end.
//!
//! The library lives in one process. A forked process is a copy without the library's threads: its paths below mount
//! points fail, and all else is the host's. Fork therefore fails while the program has descriptors of the library,
//! unless the child is sure to execute a program that does not inherit them (`CLONE_VFORK`). `CLONE_VM` without
//! `CLONE_THREAD` is ignored: the child gets a copy of the memory, see [`vfork`].

use crate::state::State;
use crate::threads::{self, Clone};
use crate::{descriptors, direction, host, library, patch, trap, vfork};
use kyozon_devices::disk::Qcow2Disk;
use std::path::PathBuf;
use std::sync::OnceLock;

/// File systems of images, to unmount at the end.
static MOUNTED: OnceLock<Vec<std::ffi::CString>> = OnceLock::new();

/// The images in the format qcow2, which the end writes back.
static QCOW2: OnceLock<Vec<(PathBuf, Qcow2Disk)>> = OnceLock::new();

/// Names the images in the format qcow2 that [`exit`] writes back.
pub fn set_qcow2(images: Vec<(PathBuf, Qcow2Disk)>) {
    QCOW2.get_or_init(|| images);
}

/// Names the file systems that [`exit`] unmounts.
pub fn set_mounted(paths: Vec<std::ffi::CString>) {
    MOUNTED.get_or_init(|| paths);
}

/// Says on standard error what cannot be done.
pub fn refuse(what: &str) -> i64 {
    eprintln!("kyozon-linux exec: {what}");
    -i64::from(libc::ENOSYS)
}

/// A new process.
pub fn fork(state: &State, clone: Clone) -> i64 {
    if clone.has(libc::CLONE_VFORK) {
        if descriptors::any(true) {
            return refuse(
                "vfork: the new program would inherit descriptors of the library: set close-on-exec",
            );
        }
    } else if descriptors::any(false) {
        return refuse("fork: descriptors of the library cannot be shared with another process");
    }
    let shared = clone.has(libc::CLONE_VFORK) && clone.has(libc::CLONE_VM);
    let frames = if shared { vfork::Frames::new(state.registers.get().rsp) } else { None };
    let (registers, fs) = clone.child(state);
    let dropped = (libc::CLONE_VM | libc::CLONE_SETTLS | libc::CLONE_SIGHAND) as u64;
    let flags = (clone.flags & !dropped) | clone.exit_signal;
    let result = host::call(libc::SYS_clone, &[flags, 0, clone.parent_tid, clone.child_tid, 0]);
    if result == 0 {
        vfork::set(frames);
        descriptors::clear();
        patch::disable();
        threads::forked();
        state.tid.set(host::call(libc::SYS_gettid, &[]) as i32);
        direction::set_first(state);
        state.registers.set(registers);
        state.program_fs.set(fs);
        if !trap::traced() && trap::arm(state).is_err() {
            host::call(libc::SYS_exit_group, &[127]);
        }
    } else if let Some(frames) = frames {
        frames.take();
    }
    result
}

/// Writes everything back and unmounts the images.
pub fn unmount() {
    for path in MOUNTED.get().into_iter().flatten() {
        library::call(libc::SYS_sync, &[]);
        let flags = libc::MNT_DETACH as u64;
        library::call(libc::SYS_umount2, &[path.as_ptr() as u64, 0]);
        library::call(libc::SYS_umount2, &[path.as_ptr() as u64, flags]);
    }
    // Not every file system flushes its disk when it is unmounted.
    for (image, disk) in QCOW2.get().into_iter().flatten() {
        if let Err(error) = disk.write_back() {
            eprintln!("kyozon-linux exec: {}: {error}", image.display());
        }
    }
}

/// Ends the process. What programs wrote to images is in the images.
pub fn exit(status: u64) -> ! {
    vfork::show();
    if library::present() {
        unmount();
    }
    loop {
        host::call(libc::SYS_exit_group, &[status]);
    }
}
