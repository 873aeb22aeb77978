//! The work of one tick.

use crate::case::{Case, Outcome};
use crate::system::System;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::events::{CheckStatus, EVENT_FINDING, EVENT_NOTE, EVENT_REPAIR, MAX_CHECKS};
use kyozon_abi::layer::REPORT_BYTES;
use kyozon_monitor::check::{Budget, Check, Step};
use kyozon_monitor::finding::Finding;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::memory::KernelMemory;

/// Maximum number of open findings per check. Further ones are reported, but not repaired.
const MAX_CASES: usize = 64;
/// Transactions tried per check and tick.
const REPAIRS_PER_TICK: usize = 4;

/// A check with its share of a slice and its statistics.
struct CheckEntry<M> {
    check: Box<dyn Check<M>>,
    /// Percentage of a slice.
    share: u64,
    status: CheckStatus,
    /// Time taken by the current pass so far.
    pass_tsc: u64,
    /// Time taken by the last step, including time in which other code had the CPU.
    last_step_tsc: u64,
    cases: Vec<Case>,
}

/// The checks and their open findings.
pub struct Server<M> {
    entries: Vec<CheckEntry<M>>,
    repairs: bool,
}

/// A budget that ends at a value of the time-stamp counter.
struct Deadline<'a, S> {
    system: &'a S,
    end: u64,
}

impl<S: System> Budget for Deadline<'_, S> {
    fn spent(&mut self) -> bool {
        self.system.now() as i64 - self.end as i64 >= 0
    }
}

impl<M: KernelMemory> Server<M> {
    /// A server without checks. It repairs findings if `repairs` is true.
    pub fn new(repairs: bool) -> Self {
        Self { entries: Vec::new(), repairs }
    }

    /// Adds a check that gets `share` percent of each slice, plus the time that the checks before it left unused.
    /// Beyond [`MAX_CHECKS`] checks the call has no effect.
    pub fn add(&mut self, check: Box<dyn Check<M>>, share: u64) {
        if self.entries.len() == MAX_CHECKS {
            return;
        }
        let status = CheckStatus::named(check.name());
        self.entries.push(CheckEntry {
            check,
            share,
            status,
            pass_tsc: 0,
            last_step_tsc: 0,
            cases: Vec::new(),
        });
    }

    /// Excludes `tsc` time-stamp ticks from the statistics of the longest last step: that step was cut off at the end
    /// of its tick, and other code had the CPU for so long.
    pub fn exclude_time_away(&mut self, tsc: u64) {
        if let Some(entry) = self.entries.iter_mut().max_by_key(|entry| entry.last_step_tsc) {
            let away = tsc.min(entry.last_step_tsc);
            entry.last_step_tsc -= away;
            entry.pass_tsc = entry.pass_tsc.saturating_sub(away);
            entry.status.total_tsc = entry.status.total_tsc.saturating_sub(away);
        }
    }

    /// Handles a tick that began at `began` and may take `slice`, both in time-stamp ticks. Repairs of earlier findings
    /// go first, since the checks use up the whole slice.
    pub fn tick<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        began: u64,
        slice: u64,
    ) {
        if self.repairs {
            for (index, entry) in self.entries.iter_mut().enumerate() {
                entry.repair(system, index);
            }
        }
        let mut shares = 0;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            shares += entry.share;
            let until = began.wrapping_add(slice * shares.min(100) / 100);
            let findings = entry.step(kernel, system, until, index);
            for finding in findings {
                entry.add_finding(finding, system, index, self.repairs);
            }
        }
    }
}

impl<M: KernelMemory> CheckEntry<M> {
    /// Runs one step of the check and returns its findings.
    fn step<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        end: u64,
        index: usize,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let start = system.now();
        let step = self.check.step(
            kernel,
            &mut Deadline { system, end },
            &mut |finding| findings.push(finding),
            &mut self.status.retries,
        );
        let now = system.now();
        let took = now.wrapping_sub(start);
        self.last_step_tsc = took;
        self.status.total_tsc = self.status.total_tsc.wrapping_add(took);
        self.pass_tsc = self.pass_tsc.wrapping_add(took);
        if let Step::Done(items) = step {
            self.status.passes += 1;
            self.status.items = items;
            self.status.pass_tsc = core::mem::take(&mut self.pass_tsc);
            self.status.last_tsc = now;
            // A finding that a whole pass did not confirm again no longer exists.
            self.cases.retain(Case::is_open);
            system.publish(index, &self.status);
        }
        findings
    }

    fn add_finding(
        &mut self,
        finding: Finding,
        system: &mut impl System,
        index: usize,
        repairs: bool,
    ) {
        if let Some(known) = self.cases.iter_mut().find(|case| case.matches(&finding)) {
            known.renew(finding.repairs);
            return;
        }
        self.status.findings += 1;
        report(system, EVENT_FINDING, index, &line(&finding));
        system.publish(index, &self.status);
        if self.cases.len() < MAX_CASES {
            self.cases.push(Case::new(finding));
        } else if repairs {
            report(system, EVENT_NOTE, index, "too many open findings: not repaired");
        }
    }

    fn repair(&mut self, system: &mut impl System, index: usize) {
        let mut tried = 0;
        let mut at = 0;
        while at < self.cases.len() && tried < REPAIRS_PER_TICK {
            let case = &mut self.cases[at];
            if !case.is_open() {
                at += 1;
                continue;
            }
            tried += 1;
            match case.advance(system) {
                Outcome::Waits => at += 1,
                Outcome::Refused(reason) => {
                    let line = format!("{}: not repaired: {reason}", case.name());
                    report(system, EVENT_NOTE, index, &line);
                    at += 1;
                }
                Outcome::Repaired => {
                    let line = format!("{}: repaired", case.name());
                    self.cases.remove(at);
                    self.status.repairs += 1;
                    report(system, EVENT_REPAIR, index, &line);
                    system.publish(index, &self.status);
                }
            }
        }
    }
}

/// The line that reports a finding.
fn line(finding: &Finding) -> String {
    let Finding { what, address, symbol, owner, expected, found, .. } = finding;
    let owner = if owner == "nobody" { String::new() } else { format!("; leads to {owner}") };
    let found = match expected.as_str() {
        "" => found.clone(),
        expected => format!("expected {expected}, found {found}"),
    };
    format!("{what}: {symbol} at {address:#x}: {found}{owner}")
}

/// Reports `line`, cut to the length of a report.
fn report(system: &mut impl System, kind: u32, index: usize, line: &str) {
    let mut end = line.len().min(REPORT_BYTES as usize);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    system.report(kind, index as u32, &line[..end]);
}

#[cfg(test)]
mod tests;
