//! What keeps a group together that several runs have joined: a process of its own, which ends with the last of them.
//!
//! The first run makes it, before it has read an image, and joins as every other does. No run has to outlive
//! another. The keeper holds the tokens and the regions, writes arrivals, departures and deaths into the regions'
//! headers, and keeps their rights; it runs no guest and maps nothing but regions. A run that loses its socket is dead.
//! If the keeper itself is killed, the group ends: each tender ends its guests.

mod confine;
mod ending;
mod joining;
mod listing;
mod regions;
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

/// Maximum connections at one time: one for each peer, and some that only list.
const CONNECTIONS: usize = 100;

/// Makes the process that keeps a group. The lock is given back when it can be reached.
pub fn start(place: &Place, name: &str, listener: OwnedFd, lock: Lock) -> Result<()> {
    let state = State::new(name).context("cannot make a group")?;
    // SAFETY: the caller has one thread. The child goes on with what it has, and never returns from here.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).context("cannot make the group's keeper"),
        0 => {
            // Its own is taken under the lock again; this copy must not give it back.
            std::mem::forget(lock);
            // SAFETY: as above. Init waits for the second child.
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
            // SAFETY: waits for this function's child.
            unsafe { libc::waitpid(child, &mut status, 0) };
            drop((listener, state, lock));
            Ok(())
        }
    }
}

/// What the process does, from its first instruction.
fn keep(place: &Place, mut state: State, listener: OwnedFd) -> Result<()> {
    let mut kept: Vec<i32> = state.descriptors();
    kept.push(listener.as_raw_fd());
    kept.sort_unstable();
    // SAFETY: this is a process of one thread, in which no code relies on the descriptors that are closed: all but the
    // group's. What a terminal sends is for the runs.
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
    confine::give_up(place.base())?;
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

/// Accepts a connection. `false` if there was none.
fn accept(state: &mut State, listener: &OwnedFd) -> bool {
    let Ok(socket) = accept_with(listener.as_fd(), SocketFlags::CLOEXEC) else { return false };
    state.accept(socket);
    true
}
