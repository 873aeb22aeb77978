//! Signals: one that interrupts a guest's processor, and those that end the run.

use crate::error::{ensure, Context, Result};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;
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
        let time = left.map(|left| libc::timespec {
            tv_sec: left.as_secs().min(1 << 32) as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        });
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(signals.as_raw_fd()), poll(done.as_raw_fd())];
        let limit = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: structures of this function's.
        let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), 2, limit, std::ptr::null()) };
        if ready < 0 {
            let error = Error::last_os_error();
            ensure!(Internal, error.raw_os_error() == Some(libc::EINTR), "ppoll: {error}");
        } else if polls[0].revents != 0 {
            let mut info = [0_u8; 128];
            // SAFETY: room for one structure of 128 bytes, whose first word is the signal.
            unsafe { libc::read(signals.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) };
            return Ok(Woken::Signal(info[0]));
        } else if polls[1].revents != 0 {
            return Ok(Woken::Done);
        } else if ready == 0 && until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Woken::TimeOver);
        }
    }
}
