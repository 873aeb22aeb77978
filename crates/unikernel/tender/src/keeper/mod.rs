//! The keeper of a group that several runs join: a process of its own, which ends with the last of them.
//!
//! The first run makes the keeper before it reads an image, and then joins as every other run does. So no run has to
//! outlive another. The keeper holds the tokens and the regions, keeps the regions' rights, and writes arrivals,
//! departures and deaths into their headers. It runs no guest and maps only regions. A run whose socket closes is dead.
//! If the keeper is killed, the group ends: each tender ends its guests.

mod confine;
mod ending;
mod joining;
mod listing;
mod regions;
mod rendezvous;
mod revoking;
mod spawning;
mod state;
#[cfg(test)]
mod tests;

use crate::error::{Context, Result};
use kyozon_join::place::{Lock, Place};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::net::{accept_with, SocketFlags};
use rustix::time::Timespec;
use state::State;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

/// Maximum connections at the same time: one for each peer, and some for commands that only list or kill.
const CONNECTIONS: usize = 100;

/// Starts the keeper of a group. Releases the group's lock when runs can connect to the keeper. The calling process
/// must have one thread.
///
/// # Errors
///
/// There are too few descriptors or processes.
pub fn start(place: &Place, name: &str, listener: OwnedFd, lock: Lock) -> Result<()> {
    let state = State::new(name).context("cannot make a group")?;
    // SAFETY: the caller has one thread. The child has copies of all that it uses, and never returns from this
    // function.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).context("cannot make the group's keeper"),
        0 => {
            // The keeper takes the lock itself when it ends. Dropping this copy would release the parent's.
            std::mem::forget(lock);
            // SAFETY: as above. A second fork makes init the keeper's parent, which waits for it.
            if unsafe { libc::fork() } == 0 {
                let code = i32::from(keep(place, state, listener).is_err());
                // SAFETY: ends this process.
                unsafe { libc::_exit(code) }
            }
            // SAFETY: ends the first child.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `child` is this function's own child, and `status` is valid for the call.
            unsafe { libc::waitpid(child, &mut status, 0) };
            drop((listener, state, lock));
            Ok(())
        }
    }
}

/// The keeper's process: closes all inherited descriptors but the group's, confines itself and serves.
fn keep(place: &Place, mut state: State, listener: OwnedFd) -> Result<()> {
    let mut kept: Vec<i32> = state.descriptors();
    kept.push(listener.as_raw_fd());
    kept.sort_unstable();
    // SAFETY: the process has one thread, and no code uses the descriptors that are closed here. A session of its own
    // keeps the terminal's signals away: they are for the runs.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"kyozon-group".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        let mut next = 3_u32;
        for fd in kept {
            if fd as u32 > next {
                libc::close_range(next, fd as u32 - 1, 0);
            }
            next = next.max(fd as u32 + 1);
        }
        libc::close_range(next, u32::MAX, 0);
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigprocmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut());
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
    confine::confine(place.base())?;
    serve(place, &mut state, &listener)?;
    let _ = listener.into_raw_fd();
    Ok(())
}

/// Serves until the last connection and the group's folder are gone.
fn serve(place: &Place, state: &mut State, listener: &OwnedFd) -> Result<()> {
    loop {
        let connections = state.connections();
        let mut fds: Vec<_> = connections
            .iter()
            .filter_map(|id| Some(PollFd::new(state.socket(*id)?, PollFlags::IN)))
            .collect();
        if connections.len() < CONNECTIONS {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        let limit = state.deadline().and_then(|left: Duration| Timespec::try_from(left).ok());
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("poll"),
        }
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        for (id, ready) in connections.iter().zip(&ready) {
            if *ready {
                state.receive(*id);
            }
        }
        if ready.len() > connections.len() {
            accept(state, listener);
        }
        state.expire();
        let name = state.name.clone();
        if state.is_over() && place.leave(&name, || accept(state, listener)) {
            state.finish();
            return Ok(());
        }
        state.settle();
    }
}

/// Accepts a connection. Returns `false` if there was none.
fn accept(state: &mut State, listener: &OwnedFd) -> bool {
    let Ok(socket) = accept_with(listener.as_fd(), SocketFlags::CLOEXEC) else { return false };
    state.accept(socket);
    true
}
