//! The interrupter: ends calls of the library that wait while a signal for the program is pending.
//!
//! A signal handler cannot call the library. It counts a request, and a thread of ours sends the library's signal. The
//! program's thread waits for that before it makes another call, so that the wrong call is never interrupted.

use crate::state::State;
use crate::{host, library};
use std::sync::atomic::{AtomicU32, Ordering};

/// The signal that ends calls, with a handler in the library that never runs: without one, init's threads ignore it.
const SIGNAL: u64 = libc::SIGUSR1 as u64;

/// Requests that have been made; the interrupter waits on this word.
static REQUESTS: AtomicU32 = AtomicU32::new(0);
/// Thread ids, of the library, to interrupt. 0 is a free place.
static PLACES: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    let operation = (operation | libc::FUTEX_PRIVATE_FLAG) as u64;
    host::call(libc::SYS_futex, &[word.as_ptr() as u64, operation, u64::from(value), 0, 0, 0]);
}

/// Starts the interrupter. Its thread has the caller's signal mask.
pub fn start() -> std::io::Result<()> {
    let action = crate::signals::Action { handler: 2, ..Default::default() };
    library::call(libc::SYS_rt_sigaction, &[SIGNAL, &raw const action as u64, 0, 8]);
    std::thread::Builder::new().name("exec-interrupt".into()).spawn(run).map(drop)
}

fn run() {
    let Ok(thread) = library::attach() else { return };
    loop {
        let seen = REQUESTS.load(Ordering::Acquire);
        for place in &PLACES {
            let tid = place.load(Ordering::Acquire);
            if tid != 0 {
                // SAFETY: tkill takes no address.
                unsafe { thread.syscall(libc::SYS_tkill, [u64::from(tid), SIGNAL, 0, 0, 0, 0]) };
                place.store(0, Ordering::Release);
                futex(place, libc::FUTEX_WAKE, u32::MAX >> 1);
            }
        }
        futex(&REQUESTS, libc::FUTEX_WAIT, seen);
    }
}

/// Ends the call of the library that the calling thread is in, or is about to make. A signal handler may call this.
pub fn request(state: &State) {
    let tid = state.library_tid.load(Ordering::Relaxed);
    let claim = |place: &AtomicU32| {
        place.compare_exchange(0, tid, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    // Without a free place, the signal waits until the call ends by itself.
    if tid != 0 && PLACES.iter().any(claim) {
        REQUESTS.fetch_add(1, Ordering::AcqRel);
        futex(&REQUESTS, libc::FUTEX_WAKE, 1);
    }
}

/// Waits until no request for the calling thread is left. The library's signal is then pending at the most; the next
/// call clears it.
pub fn settle(state: &State) {
    let tid = state.library_tid.load(Ordering::Relaxed);
    for place in &PLACES {
        while place.load(Ordering::Acquire) == tid {
            futex(place, libc::FUTEX_WAIT, tid);
        }
    }
}
