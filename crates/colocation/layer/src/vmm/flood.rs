//! Lines that come too fast are counted instead.

/// Most lines in a second.
const MOST: u32 = 16;

/// What was said lately.
#[derive(Debug, Default)]
pub struct Flood {
    begin: u64,
    lines: u32,
    missed: u64,
}

/// What is to be said.
#[derive(Debug, PartialEq, Eq)]
pub enum Say {
    /// This line.
    Line,
    /// This line, and how many before it were not.
    AndMissed(u64),
    /// Not this one.
    Nothing,
}

impl Flood {
    /// Nothing was said.
    pub const fn new() -> Self {
        Self { begin: 0, lines: 0, missed: 0 }
    }

    /// A line is to be said at `now`; `second`: the same clock's ticks in a second.
    pub fn next(&mut self, now: u64, second: u64) -> Say {
        if now.wrapping_sub(self.begin) >= second {
            (self.begin, self.lines) = (now, 0);
        }
        if self.lines == MOST {
            self.missed += 1;
            return Say::Nothing;
        }
        self.lines += 1;
        match core::mem::take(&mut self.missed) {
            0 => Say::Line,
            missed => Say::AndMissed(missed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted() {
        let mut flood = Flood::new();
        let said = |flood: &mut Flood, at: u64| flood.next(5000 + at, 1000);
        assert!((0..16).all(|at| said(&mut flood, at) == Say::Line));
        assert!((16..1000).all(|at| said(&mut flood, at) == Say::Nothing));
        assert_eq!(said(&mut flood, 1000), Say::AndMissed(984));
        assert_eq!(said(&mut flood, 1001), Say::Line);
    }
}
