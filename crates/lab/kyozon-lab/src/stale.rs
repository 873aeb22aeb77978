//! A breakpoint that Linux has replaced, and that QEMU executes all the same.
//!
//! While Linux patches its own code it puts `int3` in the place of an instruction. With several CPUs, QEMU's TCG now
//! and then executes that byte after Linux has replaced it. Linux's report gives the defect away: it shows the code as
//! it is in memory, and there the byte before the instruction pointer is no breakpoint.

use std::fmt;

/// The opcode of `int3`.
const INT3: u8 = 0xcc;
const REPORT: &str = "Oops: int3";

/// Why a test failed that may run once more.
#[derive(Debug)]
pub struct StaleBreakpoint;

impl fmt::Display for StaleBreakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QEMU executed a breakpoint that Linux had replaced")
    }
}

impl std::error::Error for StaleBreakpoint {}

impl StaleBreakpoint {
    /// Whether `console` has reports of breakpoints in the kernel, and each shows another byte in the place of `int3`.
    pub fn is_in(console: &str) -> bool {
        let mut reports = console.split(REPORT).skip(1).map(executed_byte).peekable();
        reports.peek().is_some()
            && reports.all(|byte| byte.is_some_and(|executed| executed != INT3))
    }
}

/// The byte in memory that the kernel had executed when it began `report`: `int3` leaves the instruction pointer behind
/// itself.
fn executed_byte(report: &str) -> Option<u8> {
    // Another report may follow that has a line of code, too.
    let report = report.split("Oops: ").next()?;
    let (_, registers) = report.split_once("RIP: 0010:")?;
    let (_, code) = registers.split_once("Code: ")?;
    let (before, at) = code.lines().next()?.split_once(" <")?;
    let is_byte = |text: &str| text.len() == 2 && u8::from_str_radix(text, 16).is_ok();
    let last = before.split(' ').next_back()?;
    let shown = is_byte(last) && is_byte(at.split_once('>')?.0);
    shown.then(|| u8::from_str_radix(last, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report as Linux 6.12 prints it; `bytes` stand around the instruction pointer.
    fn report(rip: &str, bytes: &str) -> String {
        format!(
            "[    9.71] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n\
             [    9.71] CPU: 1 UID: 0 PID: 214 Comm: rmmod Tainted: G           OE      6.12.1\n\
             [    9.71] RIP: {rip}:__schedule+0x429/0xb20\n\
             [    9.71] Code: 48 8b 45 c0 65 48 2b 04 25 {bytes} 48 8b 05 5a 00\n\
             [    9.71] RSP: 0018:ffffb1a4 EFLAGS: 00000246\n\
             [    9.71] Kernel panic - not syncing: Fatal exception\n"
        )
    }

    #[test]
    fn a_nop_that_was_executed_as_a_breakpoint_is_stale() {
        assert!(StaleBreakpoint::is_in(&report("0010", "0f <1f> 44 00 00")));
        assert!(StaleBreakpoint::is_in(&report("0010", "eb <1c> 90")));
    }

    #[test]
    fn a_breakpoint_that_is_in_memory_is_a_real_one() {
        assert!(!StaleBreakpoint::is_in(&report("0010", "cc <1f> 44 00 00")));
        let both = report("0010", "0f <1f> 44") + &report("0010", "cc <1f> 44");
        assert!(!StaleBreakpoint::is_in(&both));
    }

    #[test]
    fn without_the_bytes_there_is_no_evidence() {
        let unreadable =
            report("0010", "0f <1f>").replace("48 8b 45 c0", "Unable to access opcode bytes at");
        for console in [
            unreadable.split("Unable").next().unwrap().to_owned() + "Bad RIP value.\n",
            report("0010", "0f 1f 44"),
            report("0010", "0f <1f"),
            report("0010", "zz <1f>"),
            report("0010", "0f <>"),
            report("0010", "(0f <1f>"),
            "[    9.71] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n".to_owned(),
        ] {
            assert!(!StaleBreakpoint::is_in(&console), "{console}");
        }
    }

    #[test]
    fn other_reports_are_no_evidence() {
        let fault = report("0010", "0f <1f> 44").replace("int3: 0000", "0002");
        assert!(!StaleBreakpoint::is_in(&fault));
        assert!(!StaleBreakpoint::is_in("all is well\n"));
        // The first report has no code, the second is not of a breakpoint.
        let cut = format!("[    9.7] {REPORT}: 0000 [#1] PREEMPT SMP\n{fault}");
        assert!(!StaleBreakpoint::is_in(&cut));
        // A breakpoint in user mode is the program's.
        assert!(!StaleBreakpoint::is_in(&report("0033", "0f <1f> 44")));
    }
}
