//! The open findings of one check.
//!
//! A finding stays open until it is repaired, or until two complete passes in a row no longer saw it. It is reported
//! when it is opened and when it is closed, and again when later lines may have displaced its own from the event ring.
//!
//! The table is bounded, and nothing that an attacker adds takes the place of a finding that can still be repaired: if
//! the table is full, a new finding takes the place of one that was given up, or is reported and not listed.

use crate::case::{Case, Outcome};
use crate::journal::Journal;
use crate::system::System;
use crate::watch::{Watch, TORN};
use alloc::vec::Vec;
use kyozon_monitor::finding::{Finding, Links, Verdict};
use kyozon_monitor::policy::Action;

/// Maximum number of open findings of a check.
pub const MAX_OPEN: usize = 1024;
/// Complete passes in a row that must miss a finding that is gone.
const GONE_PASSES: u32 = 2;

/// The open findings of one check.
#[derive(Default)]
pub struct OpenFindings {
    cases: Vec<Case>,
    /// Number of findings that were not listed, or gave their place to another.
    pub unlisted: u64,
    /// The case to repair next.
    next: usize,
    /// The repairs that were carried out.
    watch: Watch,
}

/// What [`OpenFindings::add`] did with a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It confirms an open finding.
    Known,
    /// It confirms an open finding, with another value.
    Changed,
    /// It is new, and open from now on.
    Opened,
    /// It is new, and there is no room for it.
    Unlisted,
}

impl OpenFindings {
    /// Number of open findings.
    pub fn count(&self) -> usize {
        self.cases.len()
    }

    /// Adds a case that a monitor before this one had open.
    pub fn inherit(&mut self, case: Case) {
        if self.cases.len() < MAX_OPEN {
            self.cases.push(case);
        }
    }

    /// Adds `finding`, about which `action` is done, and which was reported as line number `line` at time `now`.
    pub fn add(&mut self, finding: &Finding, action: Action, now: u64, line: u64) -> Added {
        if let Some(known) = self.cases.iter_mut().find(|case| case.matches(finding)) {
            if !known.confirm(finding, action, now) {
                return Added::Known;
            }
            known.line_number = line;
            return Added::Changed;
        }
        let case = Case::new(finding, action, now, line);
        if self.cases.len() < MAX_OPEN {
            self.cases.push(case);
            return Added::Opened;
        }
        self.unlisted += 1;
        match self.cases.iter().position(|case| case.is_given_up() && !case.is_inherited()) {
            Some(place) => {
                self.cases[place] = case;
                Added::Opened
            }
            None => Added::Unlisted,
        }
    }

    /// Closes the findings at `address`.
    pub fn close(&mut self, address: u64) {
        self.cases.retain(|case| case.address != address);
    }

    /// A pass is complete. `stands` says whether the check still sees the finding of this kind at this address. Returns
    /// the cases that are gone.
    pub fn end_pass(&mut self, stands: impl Fn(&str, u64) -> bool) -> Vec<Case> {
        for case in &mut self.cases {
            let is_seen = case.is_inherited() || stands(&case.what, case.address);
            case.missed_passes = if is_seen { 0 } else { case.missed_passes + 1 };
        }
        let (gone, open) = self.cases.drain(..).partition(|case| case.missed_passes >= GONE_PASSES);
        self.cases = open;
        gone
    }

    /// Tries the next transactions, of at most `tries` cases, each at most once. `done` gets each case that is
    /// repaired, stopped or refused. `read` reads a word of Linux's memory at a physical address.
    pub fn repair<S: System>(
        &mut self,
        journal: &mut Journal<'_, S>,
        tries: usize,
        read: impl Fn(u64) -> Option<u64>,
        mut done: impl FnMut(&mut Journal<'_, S>, &Case, Outcome),
    ) {
        let mut tried = 0;
        for _ in 0..self.cases.len() {
            if tried == tries || self.cases.is_empty() {
                return;
            }
            self.next %= self.cases.len();
            let case = &mut self.cases[self.next];
            if !case.is_due() || self.watch.is_torn(case.address) {
                self.next += 1;
                continue;
            }
            tried += 1;
            match case.advance(journal.system, &read, |case, links| self.watch.add(case, links)) {
                Outcome::Waits => self.next += 1,
                outcome @ (Outcome::Refused(_) | Outcome::Stopped) => {
                    done(journal, case, outcome);
                    self.next += 1;
                }
                Outcome::Repaired => {
                    let case = self.cases.remove(self.next);
                    done(journal, &case, Outcome::Repaired);
                }
            }
        }
    }

    /// Whether a repair of the object at `address` turned out to be torn.
    pub fn is_spoiled(&self, address: u64) -> bool {
        self.watch.is_spoiled(address)
    }

    /// Looks at some of the repairs that were carried out. An object whose links are torn is not repaired again.
    pub fn look<S: System>(
        &mut self,
        check: usize,
        journal: &mut Journal<'_, S>,
        verify: impl Fn(&Links) -> Verdict,
    ) {
        for address in self.watch.look(check, journal, verify) {
            let same = |case: &&mut Case| case.address == address;
            self.cases.iter_mut().filter(same).for_each(|case| case.hold(TORN));
        }
    }

    /// The case whose last line is the oldest, if `lines` is at least `behind` lines later.
    pub fn most_displaced(&mut self, lines: u64, behind: u64) -> Option<&mut Case> {
        self.cases
            .iter_mut()
            .min_by_key(|case| case.line_number)
            .filter(|case| lines - case.line_number >= behind)
    }

    /// The open cases.
    pub fn iter(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter()
    }
}
