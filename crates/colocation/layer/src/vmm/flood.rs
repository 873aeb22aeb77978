//! Limits the lines of a second; lines beyond that are counted.

/// Maximum lines in a second.
const MAX_LINES: u32 = 16;

/// The lines of the last second.
#[derive(Debug, Default)]
pub struct Flood {
    begin: u64,
    lines: u32,
    missed: u64,
}

/// What to do with a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Limit {
    /// Write it.
    Write,
    /// Write it, after a line on this many dropped ones.
    WriteAfter(u64),
    /// Drop it.
    Drop,
}

impl Flood {
    /// No line yet.
    pub const fn new() -> Self {
        Self { begin: 0, lines: 0, missed: 0 }
    }

    /// Decides about a line at `now`. `second` is the same clock's ticks in a second.
    pub fn next(&mut self, now: u64, second: u64) -> Limit {
        if now.wrapping_sub(self.begin) >= second {
            (self.begin, self.lines) = (now, 0);
        }
        if self.lines == MAX_LINES {
            self.missed += 1;
            return Limit::Drop;
        }
        self.lines += 1;
        match core::mem::take(&mut self.missed) {
            0 => Limit::Write,
            missed => Limit::WriteAfter(missed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_lines_are_counted() {
        let mut flood = Flood::new();
        let next = |flood: &mut Flood, at: u64| flood.next(5000 + at, 1000);
        assert!((0..16).all(|at| next(&mut flood, at) == Limit::Write));
        assert!((16..1000).all(|at| next(&mut flood, at) == Limit::Drop));
        assert_eq!(next(&mut flood, 1000), Limit::WriteAfter(984));
        assert_eq!(next(&mut flood, 1001), Limit::Write);
    }
}
