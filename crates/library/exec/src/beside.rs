//! A second program in this process, usually a server for the first one: two processes cannot share the library.
//!
//! Both programs have threads, heap and TLS of their own. They share descriptors, the working directory and signal
//! actions. If the second program exits, the first goes on.

use crate::program::Program;
use crate::state::State;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

/// Programs that do not listen start this long before the first one.
const PATIENCE: Duration = Duration::from_secs(10);

static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();

/// Makes a thread's program the second one.
pub fn set(state: &State) {
    // There is one at most.
    let _ = PROGRAM.set(state.program.clone());
}

/// Whether a thread is of the second program.
pub fn has(state: &State) -> bool {
    PROGRAM.get().is_some_and(|program| Arc::ptr_eq(program, &state.program))
}

static LISTENS: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// A program listens on a socket of the library.
pub fn listens() {
    *LISTENS.0.lock().expect("no panic while locked") = true;
    LISTENS.1.notify_all();
}

/// Waits until a program listens.
pub fn wait() {
    let listens = LISTENS.0.lock().expect("no panic while locked");
    let _ = LISTENS.1.wait_timeout_while(listens, PATIENCE, |listens| !*listens);
}
