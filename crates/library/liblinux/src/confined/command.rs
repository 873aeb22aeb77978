//! The child's command line, and what it inherits.

use super::config::Config;
use super::spec::{self, Spec};
use crate::Error;
use kyozon_devices::disk::Image;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Closes all files of a new process but these when it executes its program.
///
/// # Safety
///
/// The caller is a child of fork.
unsafe fn keep_only(files: &[RawFd]) -> io::Result<()> {
    /// From linux/close_range.h.
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: changes only flags of descriptors and signals of this new process.
    unsafe {
        // A terminal sends these to parent and child. The parent decides when the kernel ends.
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_RANGE_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        for file in files {
            if libc::fcntl(*file, libc::F_SETFD, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// The command that starts the child with its descriptors and nothing else.
pub fn command(config: &Config, area: &OwnedFd, image: &File) -> Result<Command, Error> {
    let Some((program, first)) = config.program.split_first() else {
        return Err(Error::Config("no program for the kernel".into()));
    };
    let disk = |(disk, write): &(Image, bool)| spec::Disk {
        fd: disk.as_fd().as_raw_fd(),
        write: *write,
        limits: disk.file_limits(),
        qcow2: disk.is_qcow2(),
    };
    let spec = Spec {
        parent: std::process::id(),
        area: area.as_raw_fd(),
        slots: config.threads,
        image: image.as_raw_fd(),
        path: config.image.clone(),
        memory_bytes: config.memory_bytes,
        options: config.options.join(" "),
        disks: config.disks.iter().map(disk).collect(),
        probe: config.probe,
    };
    let mut files = vec![spec.area, spec.image];
    files.extend(spec.disks.iter().map(|disk| disk.fd));
    let mut command = Command::new(program);
    command.args(first).args(spec.words()).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the function makes only system calls.
    unsafe { command.pre_exec(move || keep_only(&files)) };
    Ok(command)
}
