//! Counts checks and reports those that fail.

use core::fmt::Debug;
use kyozon_task::report;

/// One test.
pub struct Checks {
    name: &'static str,
    done: u32,
    failed: u32,
}

impl Checks {
    /// A test without checks so far.
    pub fn new(name: &'static str) -> Self {
        Self { name, done: 0, failed: 0 }
    }

    /// Checks that `have` equals `want`.
    pub fn same<T: Debug + PartialEq>(&mut self, what: &str, have: T, want: T) {
        self.done += 1;
        if have != want {
            self.failed += 1;
            let _ = report!("test {}: {what}: {have:?}, expected {want:?}", self.name);
        }
    }

    /// Reports the totals.
    pub fn end(self) {
        let _ = report!("test {}: checks {} failed {}", self.name, self.done, self.failed);
    }
}
