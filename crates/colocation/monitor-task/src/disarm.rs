//! Taking out a module's hooks: the plans of a check, carried out and looked at again.
//!
//! A plan is asked for, and each of its steps is tried. Then another plan is asked for: it must be without steps. If
//! it is not, hooks are back, or were changed meanwhile, and there is another round. Rounds are few: a module that puts
//! its hooks back for ever is reported, and left to the operator.

use crate::case::request;
use crate::journal::Journal;
use crate::system::System;
use alloc::format;
use alloc::vec::Vec;
use kyozon_abi::events::{EVENT_NOTE, EVENT_REPAIR};
use kyozon_abi::layer::{REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE, REPAIR_INVALID};
use kyozon_monitor::class::Class;
use kyozon_monitor::disarm::{Culprit, Plan};

/// Maximum number of owners of which the server knows that their hooks were taken out.
pub const MAX_JOBS: usize = 16;
/// Rounds after which hooks that come back are left.
pub const MAX_ROUNDS: u32 = 8;
/// Transactions per tick.
const STEPS_PER_TICK: usize = 4;
/// Tries of one plan for which the other CPUs may miss the rendezvous.
const MAX_BUSY: u32 = 100;
/// Maximum number of hooks that are reported one by one, of those taken out and of those left: they take the place of
/// other lines in the event ring.
const MAX_LINES: usize = 48;

/// Where a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A plan is to be asked for.
    Asks,
    /// It is being made.
    Waits,
    /// Its steps are tried: the next one, and the tries so far for which Linux did not stand still.
    Works(Plan, usize, u32),
    Ended,
}

/// The hooks of one owner.
#[derive(Clone, Debug)]
struct Job {
    culprit: Culprit,
    /// The finding that blames it: its class, and the check that makes the plans.
    class: Class,
    check: usize,
    state: State,
    /// Plans with steps so far.
    rounds: u32,
    /// Since the finding that began it, or that began it again: hooks taken out, lines about hooks, and whether those
    /// that are left were named.
    removed: u64,
    lines: usize,
    named_left: bool,
}

/// The owners whose hooks are taken out.
#[derive(Default)]
pub struct Disarming {
    jobs: Vec<Job>,
}

impl Disarming {
    /// A finding of `class` blames `culprit`; check number `check` makes plans. `is_new`: the finding was not open
    /// before. Returns false if there is no room.
    pub fn begin(&mut self, culprit: Culprit, class: Class, check: usize, is_new: bool) -> bool {
        if let Some(known) = self.jobs.iter_mut().find(|job| job.culprit.is_same(&culprit)) {
            if known.state == State::Ended && is_new && known.rounds < MAX_ROUNDS {
                (known.state, known.removed, known.culprit) = (State::Asks, 0, culprit);
                (known.lines, known.named_left) = (0, false);
            }
            return true;
        }
        if self.jobs.len() == MAX_JOBS {
            let ended = self.jobs.iter().position(|job| job.state == State::Ended);
            let Some(ended) = ended else { return false };
            self.jobs.remove(ended);
        }
        let (state, rounds, removed, lines, named_left) = (State::Asks, 0, 0, 0, false);
        self.jobs.push(Job { culprit, class, check, state, rounds, removed, lines, named_left });
        true
    }

    /// Calls `ask` for each owner of which check number `check` is to make a plan now. Those for which it returns false
    /// are asked for at a later tick.
    pub fn ask(&mut self, check: usize, mut ask: impl FnMut(Culprit) -> bool) {
        let asking = move |job: &&mut Job| job.check == check && job.state == State::Asks;
        for job in self.jobs.iter_mut().filter(asking) {
            if ask(job.culprit) {
                job.state = State::Waits;
            }
        }
    }

    /// A plan was made.
    pub fn take<S: System>(&mut self, plan: Plan, journal: &mut Journal<'_, S>) {
        let waits = |job: &&mut Job| job.culprit == plan.culprit && job.state == State::Waits;
        if let Some(job) = self.jobs.iter_mut().find(waits) {
            job.take(plan, journal);
        }
    }

    /// Tries the next steps. Calls `removed` with the number of the check for each hook that was taken out.
    pub fn advance<S: System>(
        &mut self,
        journal: &mut Journal<'_, S>,
        mut removed: impl FnMut(usize),
    ) {
        let works = |job: &&mut Job| matches!(job.state, State::Works(..));
        let Some(job) = self.jobs.iter_mut().find(works) else { return };
        for _ in 0..STEPS_PER_TICK {
            match job.advance(journal) {
                Some(REPAIR_DONE) => removed(job.check),
                Some(REPAIR_BUSY) | None => return,
                Some(_) => {}
            }
        }
    }
}

impl Job {
    fn report<S: System>(&self, kind: u32, journal: &mut Journal<'_, S>, line: &str) {
        journal.report_about(kind, self.check, Some(self.class), line);
    }

    /// Reports what became of a hook, unless there were too many.
    fn report_hook<S: System>(&mut self, kind: u32, journal: &mut Journal<'_, S>, line: &str) {
        self.lines += 1;
        if self.lines <= MAX_LINES {
            self.report(kind, journal, line);
        }
    }

    fn take<S: System>(&mut self, plan: Plan, journal: &mut Journal<'_, S>) {
        let Plan { owner, removals, left, omitted, .. } = &plan;
        let others = left.len() as u64 + omitted;
        if removals.is_empty() {
            let line = match (owner.is_empty(), self.removed) {
                (true, _) => "not disarmed: the code that was to blame is gone".into(),
                (_, 0) => {
                    format!("{owner}: not disarmed: none of its {others} hooks can be taken out")
                }
                (_, removed) => {
                    format!("{owner}: disarmed: {removed} hooks taken out, {others} left")
                }
            };
            self.report_left(&plan, journal);
            let kind = if self.removed == 0 { EVENT_NOTE } else { EVENT_REPAIR };
            self.report(kind, journal, &line);
            self.state = State::Ended;
            return;
        }
        if self.rounds == MAX_ROUNDS {
            let count = removals.len();
            let line = format!(
                "{owner}: {count} hooks are there again after {MAX_ROUNDS} rounds, and are left"
            );
            self.report(EVENT_NOTE, journal, &line);
            self.state = State::Ended;
            return;
        }
        self.report_left(&plan, journal);
        self.rounds += 1;
        self.state = State::Works(plan, 0, 0);
    }

    fn report_left<S: System>(&mut self, plan: &Plan, journal: &mut Journal<'_, S>) {
        if core::mem::replace(&mut self.named_left, true) {
            return;
        }
        for left in &plan.left {
            let line = format!("{}: left: {}: {}", plan.owner, left.hook, left.why);
            self.report_hook(EVENT_NOTE, journal, &line);
        }
    }

    /// Tries the next step. Returns its result, if there is one.
    fn advance<S: System>(&mut self, journal: &mut Journal<'_, S>) -> Option<i64> {
        let State::Works(plan, next, busy) = &mut self.state else { return None };
        let Some(removal) = plan.removals.get(*next) else {
            // The next plan must be without steps.
            self.state = State::Asks;
            return None;
        };
        let request = request(&removal.repair);
        let result = request.map_or(REPAIR_INVALID, |request| journal.system.repair(&request));
        let (owner, hook) = (&plan.owner, &removal.hook);
        let (kind, line) = match result {
            REPAIR_DONE => (EVENT_REPAIR, format!("{owner}: taken out: {hook}")),
            REPAIR_CHANGED => (EVENT_NOTE, format!("{owner}: changed meanwhile: {hook}")),
            REPAIR_BUSY if *busy < MAX_BUSY => {
                *busy += 1;
                return Some(result);
            }
            REPAIR_BUSY => {
                let count = plan.removals.len() - *next;
                let line = format!("{owner}: {count} hooks are left: Linux does not stand still");
                self.report(EVENT_NOTE, journal, &line);
                self.state = State::Ended;
                return Some(result);
            }
            _ => {
                (EVENT_NOTE, format!("{owner}: not taken out: {hook}: the layer rejected the step"))
            }
        };
        *next += 1;
        self.removed += u64::from(result == REPAIR_DONE);
        self.report_hook(kind, journal, &line);
        Some(result)
    }
}
