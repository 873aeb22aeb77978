//! The host's errors, kept for the user: a guest learns only that a request failed.

use super::{Failed, SENSELESS, UNSUPPORTED};
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Mutex, MutexGuard};

/// A request that failed on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What failed: read, write, flush, discard, or write of zeros.
    pub operation: &'static str,
    /// First byte on the disk.
    pub at: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// The kind of the error; `StorageFull` if the host's file system is full.
    pub kind: ErrorKind,
    /// The host's error number, if it has one.
    pub code: Option<i32>,
    /// The error's text.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, at, bytes, text, .. } = self;
        write!(f, "{operation} of {bytes} bytes at byte {at}: {text}")
    }
}

/// Errors of one disk.
#[derive(Debug, Default)]
pub struct Errors(Mutex<(u64, Option<Failure>)>);

impl Errors {
    fn lock(&self) -> MutexGuard<'_, (u64, Option<Failure>)> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The last failed request.
    pub fn last(&self) -> Option<Failure> {
        self.lock().1.clone()
    }

    /// The number of failed requests.
    pub fn count(&self) -> u64 {
        self.lock().0
    }

    /// Keeps an error, and translates it for the guest.
    pub(super) fn check(
        &self,
        operation: &'static str,
        at: u64,
        bytes: u64,
        done: Result<()>,
    ) -> std::result::Result<(), Failed> {
        let Err(error) = done else { return Ok(()) };
        let unsupported = error.kind() == ErrorKind::Unsupported;
        self.keep(operation, at, bytes, &error);
        Err(if unsupported { UNSUPPORTED } else { SENSELESS })
    }

    fn keep(&self, operation: &'static str, at: u64, bytes: u64, error: &Error) {
        let (kind, code, text) = (error.kind(), error.raw_os_error(), error.to_string());
        let failure = Failure { operation, at, bytes, kind, code, text };
        let mut all = self.lock();
        *all = (all.0 + 1, Some(failure));
    }
}
