//! Into the background once everything works.

use anyhow::{bail, Context, Result};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::exit;

/// The process that goes into the background, before it is there. Its parent waits.
pub struct Leaving(File);

/// Starts a process that goes on with the caller's work, and waits until it has [left](Leaving::leave) or ended.
/// Returns only in the new process: the caller exits. The caller must be the only thread.
pub fn start() -> Result<Leaving> {
    let mut ends = [0; 2];
    // SAFETY: the array takes two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error()).context("cannot make a pipe");
    }
    // SAFETY: the descriptors are new.
    let [mut read, write] = ends.map(|end| unsafe { File::from_raw_fd(end) });
    // SAFETY: there is one thread: the new process has everything that this one has.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()).context("cannot start a process"),
        0 => Ok(Leaving(write)),
        child => {
            drop(write);
            let mut said = [0];
            if read.read(&mut said).is_ok_and(|bytes| bytes == 1) {
                exit(0);
            }
            exit(end(child)?)
        }
    }
}

/// Waits for a process that said why it ends. Returns its status.
fn end(child: libc::pid_t) -> Result<i32> {
    let mut status = 0;
    // SAFETY: the status is valid.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Ok(1);
        }
    }
    if libc::WIFSIGNALED(status) {
        bail!("the process was killed by signal {} before it mounted", libc::WTERMSIG(status));
    }
    Ok(libc::WEXITSTATUS(status).max(1))
}

impl Leaving {
    /// Leaves the terminal, and ends the parent with success.
    pub fn leave(mut self) -> Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.context("/dev/null")?;
        std::env::set_current_dir("/").context("/")?;
        for standard in 0..=2 {
            // SAFETY: both descriptors are open; nothing here owns the standard ones.
            if unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
                return Err(io::Error::last_os_error()).context("/dev/null");
            }
        }
        // SAFETY: takes nothing. It fails only for the leader of a group, which a new process is not.
        unsafe { libc::setsid() };
        // A parent that was killed meanwhile needs no answer.
        let _ = self.0.write_all(&[1]);
        Ok(())
    }
}
