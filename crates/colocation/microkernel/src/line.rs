//! A line of text in fixed memory.

use core::fmt;
use kyozon_abi::layer::REPORT_BYTES;

/// What does not fit is left out.
pub struct Line {
    text: [u8; REPORT_BYTES as usize],
    used: usize,
}

impl Line {
    /// Empty.
    #[allow(clippy::new_without_default)] // it is not a value that anybody would default to
    pub fn new() -> Self {
        Self { text: [0; REPORT_BYTES as usize], used: 0 }
    }

    /// What was written.
    pub fn text(&self) -> &[u8] {
        &self.text[..self.used]
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let free = &mut self.text[self.used..];
        let n = free.len().min(s.len());
        free[..n].copy_from_slice(&s.as_bytes()[..n]);
        self.used += n;
        Ok(())
    }
}
