//! The loop body: what is done at one tick.

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

/// Most findings that are kept in mind at a time. More are told, but not repaired.
const MAX_CASES: usize = 64;
/// Transactions that are tried at one tick.
const REPAIRS_PER_TICK: usize = 4;

/// A check with its share of a slice and its figures.
struct CheckEntry<M> {
    check: Box<dyn Check<M>>,
    /// Of 100 parts of a slice.
    share: u64,
    status: CheckStatus,
    /// Time that the pass under way has taken.
    pass_tsc: u64,
    /// Time that the last step took, from its begin to its end.
    last_step_tsc: u64,
    cases: Vec<Case>,
}

/// Checks, and what they have found.
pub struct Server<M> {
    entries: Vec<CheckEntry<M>>,
    repairs: bool,
}

/// Deadline a moment.
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
    /// Without checks. Findings are undone if `repairs`.
    pub fn new(repairs: bool) -> Self {
        Self { entries: Vec::new(), repairs }
    }

    /// Adds a check that gets `share` of 100 parts of each slice, and what those before it left. At most
    /// [`MAX_CHECKS`]; one more is not taken.
    pub fn add(&mut self, check: Box<dyn Check<M>>, share: u64) {
        if self.entries.len() == MAX_CHECKS {
            return;
        }
        let mut status = CheckStatus::default();
        let name = check.name().as_bytes();
        let n = name.len().min(status.name.len());
        status.name[..n].copy_from_slice(&name[..n]);
        self.entries.push(CheckEntry {
            check,
            share,
            status,
            pass_tsc: 0,
            last_step_tsc: 0,
            cases: Vec::new(),
        });
    }

    /// The last tick was not enough for what was begun at it: for `tsc` time-stamp ticks of it others had the CPU.
    pub fn exclude_time_away(&mut self, tsc: u64) {
        if let Some(entry) = self.entries.iter_mut().max_by_key(|entry| entry.last_step_tsc) {
            let away = tsc.min(entry.last_step_tsc);
            entry.last_step_tsc -= away;
            entry.pass_tsc = entry.pass_tsc.saturating_sub(away);
            entry.status.total_tsc = entry.status.total_tsc.saturating_sub(away);
        }
    }

    /// One tick: `began` is when, `slice` how long it may take, both in time-stamp ticks. What was found at earlier ticks
    /// is undone first: the checks take all the time there is.
    pub fn tick<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        began: u64,
        slice: u64,
    ) {
        if self.repairs {
            for (number, entry) in self.entries.iter_mut().enumerate() {
                entry.repair(system, number);
            }
        }
        let mut shares = 0;
        for (number, entry) in self.entries.iter_mut().enumerate() {
            shares += entry.share;
            let until = began.wrapping_add(slice * shares.min(100) / 100);
            let findings = entry.step(kernel, system, until, number);
            for finding in findings {
                entry.add_finding(finding, system, number, self.repairs);
            }
        }
    }
}

impl<M: KernelMemory> CheckEntry<M> {
    /// One step of the check, and what it has found.
    fn step<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        end: u64,
        number: usize,
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
            // What nobody has found again is no longer so.
            self.cases.retain(Case::is_open);
            system.publish(number, &self.status);
        }
        findings
    }

    fn add_finding(
        &mut self,
        finding: Finding,
        system: &mut impl System,
        number: usize,
        repairs: bool,
    ) {
        if let Some(known) = self.cases.iter_mut().find(|case| case.matches(&finding)) {
            known.renew(finding.repairs);
            return;
        }
        self.status.findings += 1;
        report(system, EVENT_FINDING, number, &line(&finding));
        system.publish(number, &self.status);
        if self.cases.len() < MAX_CASES {
            self.cases.push(Case::new(finding));
        } else if repairs {
            report(system, EVENT_NOTE, number, "too many findings at a time: not repaired");
        }
    }

    fn repair(&mut self, system: &mut impl System, number: usize) {
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
                Outcome::Refused(why) => {
                    let line = format!("{}: not undone: {why}", case.name());
                    report(system, EVENT_NOTE, number, &line);
                    at += 1;
                }
                Outcome::Repaired => {
                    let line = format!("{}: undone", case.name());
                    self.cases.remove(at);
                    self.status.repairs += 1;
                    report(system, EVENT_REPAIR, number, &line);
                    system.publish(number, &self.status);
                }
            }
        }
    }
}

/// A finding in one line.
fn line(finding: &Finding) -> String {
    let Finding { what, address, symbol, owner, expected, found, .. } = finding;
    let owner = if owner == "nobody" { String::new() } else { format!("; it belongs to {owner}") };
    format!("{what}: {symbol} at {address:#x}: expected {expected}, found {found}{owner}")
}

/// What is longer than a line is cut.
fn report(system: &mut impl System, kind: u32, number: usize, line: &str) {
    let mut end = line.len().min(REPORT_BYTES as usize);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    system.report(kind, number as u32, &line[..end]);
}

#[cfg(test)]
mod tests;
