//! Signals: one that interrupts a guest's processor, and those that end the run.

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

/// Lets the kick signal interrupt system calls without any other effect.
pub fn handle_kicks() -> Result<()> {
    register_signal_handler(kick_signal(), interrupted).context("sigaction")
}

/// Blocks SIGINT, SIGTERM and SIGHUP for this thread and those it will make; they arrive through the descriptor.
pub fn block() -> Result<OwnedFd> {
    // SAFETY: a set of this function's; the descriptor is new, and its owner's alone.
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

/// A duration for `ppoll`. One of more than 136 years is cut short: the kernel refuses longer ones.
pub fn timespec(time: Duration) -> Timespec {
    let tv_sec = time.as_secs().min(1 << 32) as i64;
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// Waits for a descriptor to be readable.
pub fn poll_fd(fd: &impl AsRawFd) -> PollFd<'_> {
    // SAFETY: the owner is borrowed as long as the result; event descriptors of vmm-sys-util have no `AsFd`.
    PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) }, PollFlags::IN)
}

/// Why the main thread stopped waiting.
pub enum Woken {
    Done,
    Signal(u8),
    TimeOver,
}

/// Waits for a guest to end, a signal, or the time to be over.
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
            // One `signalfd_siginfo`, whose first word is the signal.
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
