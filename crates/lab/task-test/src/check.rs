//! Counts what is as it should be, and tells what is not.

use core::fmt::Debug;
use kyozon_task::report;

/// One test.
pub struct Checks {
    name: &'static str,
    done: u32,
    failed: u32,
}

impl Checks {
    /// None yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, done: 0, failed: 0 }
    }

    /// `have` should be `want`.
    pub fn same<T: Debug + PartialEq>(&mut self, what: &str, have: T, want: T) {
        self.done += 1;
        if have != want {
            self.failed += 1;
            let _ = report!("test {}: {what}: {have:?}, wanted {want:?}", self.name);
        }
    }

    /// The last word.
    pub fn end(self) {
        let _ = report!("test {}: checks {} failed {}", self.name, self.done, self.failed);
    }
}
