//! The lines that the server reports, and their number.

use crate::kept::Kept;
use crate::system::System;
use kyozon_abi::events::EVENT_TEXT_BYTES;
use kyozon_abi::layer::REPORT_BYTES;
use kyozon_monitor::class::Class;

/// Where a check's lines go.
pub struct Journal<'a, S> {
    /// The services.
    pub system: &'a mut S,
    /// The open findings that a restart keeps.
    pub kept: &'a Kept<'a>,
    /// Number of records of the event ring that the lines took.
    pub lines: &'a mut u64,
}

impl<S: System> Journal<'_, S> {
    /// Reports `line` of check number `check`, cut to the length of a report.
    pub fn report(&mut self, kind: u32, check: usize, line: &str) {
        self.report_about(kind, check, None, line);
    }

    /// Reports `line` about a finding of `class`.
    pub fn report_about(&mut self, kind: u32, check: usize, class: Option<Class>, line: &str) {
        let mut end = line.len().min(REPORT_BYTES as usize);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        *self.lines += end.div_ceil(EVENT_TEXT_BYTES).max(1) as u64;
        self.system.report(kind, Class::event_code(class, check), &line[..end]);
    }
}
