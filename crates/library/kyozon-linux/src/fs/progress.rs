//! How far a long operation is, on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Counts, and shows on a terminal what it counted, a few times a second.
pub struct Progress {
    files: u64,
    bytes: u64,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    /// Nothing is done yet.
    pub fn start() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { files: 0, bytes: 0, shown: Instant::now(), terminal }
    }

    /// Counts an entry that is complete.
    pub fn file(&mut self) {
        self.files += 1;
        self.show();
    }

    /// Counts bytes.
    pub fn bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.show();
    }

    fn show(&mut self) {
        if self.terminal && self.shown.elapsed() > Duration::from_millis(200) {
            self.shown = Instant::now();
            eprint!("\r{} files, {} MiB ", self.files, self.bytes >> 20);
            // Nobody misses a line of progress.
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    /// The last line. What is printed next begins a line of its own.
    fn drop(&mut self) {
        if self.terminal {
            eprintln!("\r{} files, {} MiB", self.files, self.bytes >> 20);
        }
    }
}
