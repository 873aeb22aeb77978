//! Ticks, Linux beside us, and whoever watches. A task needs the right for each; the first one has it.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use core::fmt;
use kyozon_abi::events::CheckStatus;
use kyozon_abi::layer::{
    Range, RepairRequest, Report, TickEvent, Window, MAX_RANGES, REPORT_BYTES,
};
use kyozon_abi::line::Line;
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

/// As [`report()`], with formatting. What is longer than a line is cut.
pub fn report_fmt(kind: u32, code: u32, what: fmt::Arguments<'_>) -> Result<()> {
    report(kind, code, Line::<{ REPORT_BYTES as usize }>::new(what).bytes())
}

/// Reports a line for people, as `format!` makes it. Gives a [`Result`].
#[macro_export]
macro_rules! report {
    ($($part:tt)*) => {
        $crate::linux::report_fmt($crate::linux::EVENT_NOTE, 0, ::core::format_args!($($part)*))
    };
}

pub use kyozon_abi::events::EVENT_NOTE;
