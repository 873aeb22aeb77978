//! Ticks, Linux beside us, and whoever watches. A task needs the right for each; the first one has it.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use core::fmt::{self, Write};
use kyozon_abi::events::CheckStatus;
use kyozon_abi::layer::{
    Range, RepairRequest, Report, TickEvent, Window, MAX_RANGES, REPORT_BYTES,
};
use kyozon_abi::task::{PUBLISH, REPAIR, REPORT, WAIT_TICK, WINDOW};

/// Waits for the next tick. Those that came while this thread did not wait are in `missed`.
pub fn wait_tick() -> Result<TickEvent> {
    let mut r = Registers::default();
    // SAFETY: no memory is touched.
    Error::check(unsafe { raw::call(WAIT_TICK, &mut r) })?;
    let [number, missed, scheduled_tsc, entered_tsc, ..] = r.words;
    Ok(TickEvent { number, missed, scheduled_tsc, entered_tsc })
}

/// A line for whoever watches: `kind` is one of `EVENT_*`, `code` a number that goes with it.
pub fn report(kind: u32, code: u32, line: &[u8]) -> Result<()> {
    let report = Report { kind, code, text: line.as_ptr() as u64, bytes: line.len() as u64 };
    // SAFETY: the kernel reads what `report` names, which lives until the call returns.
    unsafe { raw::simple(REPORT, (&raw const report) as u64, 0, 0) }.map(drop)
}

/// What is said of check number `check`.
pub fn publish(check: usize, status: &CheckStatus) -> Result<()> {
    // SAFETY: the kernel reads the structure.
    unsafe { raw::simple(PUBLISH, check as u64, (&raw const *status) as u64, 0) }.map(drop)
}

/// A repair transaction: `REPAIR_*` of `abi::layer`.
pub fn repair(request: &RepairRequest) -> Result<i64> {
    // SAFETY: the kernel reads the structure.
    unsafe { raw::simple(REPAIR, (&raw const *request) as u64, 0, 0) }
        .map(|answer| -(answer as i64))
}

/// What of Linux's memory can be read, at `TASK_WINDOW_BASE` plus each range.
pub fn window() -> Result<Window> {
    let mut window = Window { count: 0, ram: [Range::default(); MAX_RANGES] };
    // SAFETY: the kernel writes the structure.
    unsafe { raw::simple(WINDOW, (&raw mut window) as u64, 0, 0) }?;
    Ok(window)
}

/// A line in fixed memory; what does not fit is left out.
pub struct Line {
    text: [u8; REPORT_BYTES as usize],
    used: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { text: [0; REPORT_BYTES as usize], used: 0 }
    }
}

impl Line {
    /// What was written.
    pub fn text(&self) -> &[u8] {
        &self.text[..self.used]
    }
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let free = &mut self.text[self.used..];
        let n = free.len().min(s.len());
        free[..n].copy_from_slice(&s.as_bytes()[..n]);
        self.used += n;
        Ok(())
    }
}

/// As [`report()`], with formatting. What is longer than a line is cut.
pub fn report_fmt(kind: u32, code: u32, what: fmt::Arguments<'_>) -> Result<()> {
    let mut line = Line::default();
    let _ = line.write_fmt(what);
    report(kind, code, line.text())
}

/// Reports a line for people, as `format!` makes it. Gives a [`Result`].
#[macro_export]
macro_rules! report {
    ($($part:tt)*) => {
        $crate::linux::report_fmt($crate::linux::EVENT_NOTE, 0, ::core::format_args!($($part)*))
    };
}

pub use kyozon_abi::events::EVENT_NOTE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut() {
        let mut line = Line::default();
        let _ = write!(line, "{:300}", "x");
        assert_eq!(line.text().len(), 256);
        assert_eq!(line.text()[0], b'x');
    }
}
