//! A second program in this process, usually a server for the first one: two processes cannot share the library.
//!
//! Both programs have threads, heap and TLS of their own. They share descriptors, the working directory and signal
//! actions.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Programs that do not listen start this long before the first one.
const PATIENCE: Duration = Duration::from_secs(10);

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
