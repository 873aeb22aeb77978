//! Which of the descriptors 0, 1 and 2 a program was started without.
//!
//! Rust's runtime opens `/dev/null` for each of them before `main`, so that files that the program opens do not get
//! these numbers. What the program prints then vanishes, and it ends with success. This crate looks before the runtime
//! does: by a constructor of the executable (System V ABI, "Initialization and Termination Functions").
//!
//! Invariants:
//!
//! 1. The constructor only asks for flags and stores a number: nothing is initialized yet when it runs.
//! 2. Nothing here opens or prints anything.

use std::io::Error;
use std::sync::atomic::{AtomicU8, Ordering};

/// A bit for each descriptor that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

extern "C" fn look() {
    let closed = (0..3).filter(|&fd| !is_open(fd)).fold(0, |bits, fd| bits | 1 << fd);
    CLOSED.store(closed, Ordering::Relaxed);
}

#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: extern "C" fn() = look;

fn is_open(fd: i32) -> bool {
    // SAFETY: reads the flags of a descriptor, if there is one.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Whether the program was started without the descriptor `fd`, which is 0, 1 or 2.
#[must_use]
pub fn was_closed(fd: u8) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << fd != 0
}

/// An error unless the program was started with standard input: the one that reading it would have.
///
/// # Errors
/// EBADF.
pub fn input() -> Result<(), Error> {
    check(0)
}

/// An error unless the program was started with standard output: the one that writing to it would have.
///
/// # Errors
/// EBADF.
pub fn output() -> Result<(), Error> {
    check(1)
}

fn check(fd: u8) -> Result<(), Error> {
    if was_closed(fd) {
        return Err(Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}

/// Closes the descriptors that were closed, for a program that takes this one's place.
pub fn close_again() {
    for fd in (0..3).filter(|&fd| was_closed(fd)) {
        // SAFETY: the runtime opened it, and nothing owns it.
        unsafe { libc::close(fd.into()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Not a test of its own: what the test below starts.
    #[test]
    fn started_by_another_test() {
        let Ok(expected) = std::env::var("KYOZON_STANDARD_CLOSED") else { return };
        let closed = (0..3).filter(|&fd| was_closed(fd)).map(|fd| fd.to_string());
        assert_eq!(closed.collect::<String>(), expected);
        assert_eq!(output().is_err(), expected.contains('1'));
        assert_eq!(input().is_err(), expected.contains('0'));
        close_again();
        for fd in 0..3 {
            assert_eq!(is_open(fd), !expected.contains(&fd.to_string()));
        }
    }

    #[test]
    fn descriptors_that_were_closed_at_the_start_are_known() {
        let program = std::env::current_exe().unwrap();
        for (redirect, closed) in [("", ""), (">&-", "1"), ("<&-", "0"), ("<&- >&- 2>&-", "012")] {
            let script = format!("exec \"$0\" --exact tests::started_by_another_test {redirect}");
            let done = Command::new("sh")
                .args(["-c", &script])
                .arg(&program)
                .env("KYOZON_STANDARD_CLOSED", closed)
                .output()
                .unwrap();
            // What a test prints cannot count: the harness of a program without standard output fails to print.
            let failed = String::from_utf8_lossy(&done.stderr).contains("panicked at crates");
            assert!(!failed, "{redirect}: {done:?}");
            assert!(done.status.success(), "{redirect}: {done:?}");
        }
    }
}
