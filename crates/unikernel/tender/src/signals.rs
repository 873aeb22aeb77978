//! The signal that interrupts a guest's processor, and the signals that end a run.

use crate::error::{ensure, Context, Result};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::Error;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;
use vmm_sys_util::signal::{register_signal_handler, SIGRTMIN};

/// The signal that interrupts a processor.
pub fn kick_signal() -> i32 {
    SIGRTMIN()
}

extern "C" fn interrupted(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Installs an empty handler for the kick signal: it interrupts system calls, and has no other effect.
pub fn handle_kicks() -> Result<()> {
    register_signal_handler(kick_signal(), interrupted).context("sigaction")
}

/// Blocks SIGINT, SIGTERM and SIGHUP for this thread and all threads that it makes later. The returned descriptor
/// reports them.
pub fn block() -> Result<OwnedFd> {
    // SAFETY: the set is this function's own; the descriptor is new and has no other owner.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC);
        ensure!(Internal, fd >= 0, "signalfd: {}", Error::last_os_error());
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A duration for `ppoll`, at most 136 years: the kernel refuses longer ones.
pub fn timespec(time: Duration) -> Timespec {
    let tv_sec = time.as_secs().min(1 << 32) as i64;
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// The entry of `poll` that waits until a descriptor is readable.
pub fn poll_fd(fd: &impl AsRawFd) -> PollFd<'_> {
    // SAFETY: the owner stays borrowed as long as the result exists. `EventFd` of vmm-sys-util does not implement
    // `AsFd`.
    PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) }, PollFlags::IN)
}

/// Why [`wait`] returned.
pub enum Woken {
    /// All guests have ended.
    Done,
    /// This signal arrived.
    Signal(u8),
    /// The time limit has passed.
    TimeOver,
}

/// Waits until all guests have ended, a signal arrives, or the time limit passes.
pub fn wait(signals: &OwnedFd, done: &EventFd, until: Option<Instant>) -> Result<Woken> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let limit = left.map(timespec);
        let mut polls = [poll_fd(signals), poll_fd(done)];
        let ready = match poll(&mut polls, limit.as_ref()) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error).context("poll"),
        };
        let [signal, end] = polls.map(|poll| !poll.revents().is_empty());
        if signal {
            // One `signalfd_siginfo`; its first word is the signal's number.
            let mut info = [0_u8; 128];
            let _ = rustix::io::read(signals, &mut info);
            return Ok(Woken::Signal(info[0]));
        } else if end {
            return Ok(Woken::Done);
        } else if ready == 0 && until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Woken::TimeOver);
        }
    }
}
