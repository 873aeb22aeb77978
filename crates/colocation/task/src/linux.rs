//! Ticks, Linux's memory, reports and status. Each needs a right, which the first task has.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use core::fmt;
use kyozon_abi::events::StatusWords;
use kyozon_abi::layer::{
    LinuxRegisters, Range, RepairRequest, Report, TickEvent, Window, Writes, MAX_RANGES,
    REPORT_BYTES,
};
use kyozon_abi::line::Line;
use kyozon_abi::task::{
    PUBLISH, REGISTERS, REGISTERS_OF_ANOTHER, REPAIR, REPORT, RESET, RESET_ONLY, WAIT_TICK, WATCH,
    WINDOW, WRITES,
};

/// Waits for the next tick. `missed` counts the ticks since this thread last waited.
pub fn wait_tick() -> Result<TickEvent> {
    let mut r = Registers::default();
    // SAFETY: no memory is touched.
    Error::check(unsafe { raw::call(WAIT_TICK, &mut r) })?;
    let [number, missed, scheduled_tsc, entered_tsc, ..] = r.words;
    Ok(TickEvent { number, missed, scheduled_tsc, entered_tsc })
}

/// Writes a line to the event ring and the serial line. `kind` is one of `EVENT_*`, `code` a number specific to it.
pub fn report(kind: u32, code: u32, line: &[u8]) -> Result<()> {
    let report = Report { kind, code, text: line.as_ptr() as u64, bytes: line.len() as u64 };
    // SAFETY: the kernel reads the memory that `report` names, which is valid until the call returns.
    unsafe { raw::simple(REPORT, (&raw const report) as u64, 0, 0) }.map(drop)
}

/// Publishes the status with `index`: a check's, or the monitor's.
pub fn publish(index: usize, status: &StatusWords) -> Result<()> {
    // SAFETY: the kernel reads the words.
    unsafe { raw::simple(PUBLISH, index as u64, (&raw const *status) as u64, 0) }.map(drop)
}

/// Carries out a repair transaction. Returns `REPAIR_*` of `abi::layer`.
pub fn repair(request: &RepairRequest) -> Result<i64> {
    // SAFETY: the kernel reads the structure.
    unsafe { raw::simple(REPAIR, (&raw const *request) as u64, 0, 0) }
        .map(|answer| -(answer as i64))
}

/// The ranges of Linux's memory that can be read, each at `TASK_WINDOW_BASE` plus its base.
pub fn window() -> Result<Window> {
    let mut window = Window { count: 0, ram: [Range::default(); MAX_RANGES] };
    // SAFETY: the kernel writes the structure.
    unsafe { raw::simple(WINDOW, (&raw mut window) as u64, 0, 0) }?;
    Ok(window)
}

/// The system registers of this CPU as Linux left them.
pub fn registers() -> Result<LinuxRegisters> {
    let mut registers = LinuxRegisters::default();
    // SAFETY: the kernel writes the structure.
    unsafe { raw::simple(REGISTERS, (&raw mut registers) as u64, 0, 0) }?;
    Ok(registers)
}

/// The system registers of another CPU, if one has shown them since the last call. Each is asked about once a second.
pub fn other_registers() -> Result<LinuxRegisters> {
    let mut registers = LinuxRegisters::default();
    // SAFETY: the kernel writes the structure.
    unsafe { raw::simple(REGISTERS, (&raw mut registers) as u64, REGISTERS_OF_ANOTHER, 0) }?;
    Ok(registers)
}

/// Sends what is left for the serial line, and starts Linux's crash kernel if it has one and `uses_crash_kernel`, or
/// resets the machine. Returns only if that is impossible.
pub fn reset(uses_crash_kernel: bool) -> Result<()> {
    let how = if uses_crash_kernel { 0 } else { RESET_ONLY };
    // SAFETY: no memory is touched.
    unsafe { raw::simple(RESET, how, 0, 0) }.map(drop)
}

/// Watches Linux's writes to `range`, whole pages of its memory, from now on. `space`: physical address of the top page
/// table of the address space in which Linux patches the range, or 0. Only with the hypervisor.
pub fn watch(range: Range, space: u64) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(WATCH, range.base, range.bytes, space) }.map(drop)
}

/// Fetches watched writes.
pub fn writes() -> Result<Writes> {
    let mut writes = Writes::NONE;
    // SAFETY: the kernel writes the structure.
    unsafe { raw::simple(WRITES, (&raw mut writes) as u64, 0, 0) }?;
    Ok(writes)
}

/// Like [`report()`], with formatting. Longer text is cut off.
pub fn report_fmt(kind: u32, code: u32, text: fmt::Arguments<'_>) -> Result<()> {
    report(kind, code, Line::<{ REPORT_BYTES as usize }>::new(text).bytes())
}

/// Reports a note with the syntax of `format!`. Returns a [`Result`].
#[macro_export]
macro_rules! report {
    ($($part:tt)*) => {
        $crate::linux::report_fmt($crate::linux::EVENT_NOTE, 0, ::core::format_args!($($part)*))
    };
}

pub use kyozon_abi::events::EVENT_NOTE;
