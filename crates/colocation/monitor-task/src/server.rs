//! The work of one tick.

use crate::case::{name, Case, Outcome};
use crate::disarm::Disarming;
use crate::journal::Journal;
use crate::kept::Kept;
use crate::system::{Patient, System};
use crate::table::{Added, OpenFindings};
use crate::watch::TORN;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::events::{
    CheckStatus, MonitorStatus, CHECK_LEARNING, CHECK_WATCHING, EVENT_FINDING, EVENT_NOTE,
    EVENT_REPAIR, EVENT_RESTART, MAX_CHECKS,
};
use kyozon_abi::layer::MAX_WRITES;
use kyozon_monitor::check::{Budget, Check, Coverage, Repairs, Step, Watched};
use kyozon_monitor::class::Class;
use kyozon_monitor::crash_kernel;
use kyozon_monitor::finding::Finding;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::memory::{KernelMemory, PAGE_BYTES};
use kyozon_monitor::policy::{Action, Policy};

/// Steps of the progress that is reported while a check learns, in percent.
const PROGRESS: u64 = 25;
/// Transactions tried per check and tick.
const REPAIRS_PER_TICK: usize = 4;
/// Ticks without transactions, the checks' alone, after one for which the other CPUs did not stand still.
const BUSY_TICKS: u32 = 7;
/// Milliseconds without a tick after which Linux may have taken back what explains its writes. At 250 Hz, it optimizes
/// a kprobe 20 ms after it made the slot (`OPTIMIZE_DELAY` in Linux's `kprobes.c`), and frees the slot of one that it
/// removed after an RCU grace period.
const LATE_MS: u64 = 30;
/// Lines after which an open finding is reported again: half of the event ring.
const REMIND_LINES: u64 = 128;
/// Findings of a check that are reported again with one heartbeat.
const REMINDERS: usize = 4;

/// Percentage of a slice that the checks with a limit for their passes have together, beside the others.
const FOR_LIMITS: u64 = 90;
/// Maximum percentage of a slice that a check gets for its limit: whoever makes the passes of one longer must not end
/// those of another.
const MAX_SHARE: u64 = 50;

/// A check with its share of a slice and its statistics.
struct CheckEntry<M> {
    index: usize,
    check: Box<dyn Check<M>>,
    status: CheckStatus,
    /// Time taken by the current pass so far.
    pass_tsc: u64,
    /// Time taken by the last step, including time in which other code had the CPU.
    last_step_tsc: u64,
    /// Time-stamp counter when the current pass began; `None` before its first step.
    pass_began: Option<u64>,
    open: OpenFindings,
    /// A note has said that repairs wait for other findings to be closed.
    waits: bool,
}

/// How much time the checks get: so much of each period, in time-stamp ticks.
struct Pace {
    slice: u64,
    period: u64,
    tsc_khz: u64,
}

/// The checks and their open findings.
pub struct Server<'k, M> {
    entries: Vec<CheckEntry<M>>,
    policy: Policy,
    disarming: Disarming,
    tsc_khz: u64,
    /// Every check has completed its first pass, and a note has said so.
    watches: bool,
    /// Linux's writes to memory that checks have named are watched.
    sees_writes: bool,
    /// Ticks until transactions are tried again.
    rest: u32,
    /// Number of watched writes that were lost, and how many of them a note has reported.
    lost_writes: u64,
    reported_lost: u64,
    kept: Kept<'k>,
    /// Number of lines that were reported. A long line counts twice, because it takes two records of the ring.
    lines: u64,
    slices: u64,
    full_slices: u64,
    /// When the last tick began.
    last_tick: Option<u64>,
    /// The finding for which Linux is restarted, once it is known what may be started.
    restarting: Option<Cause>,
}

/// The event ring has no status for another check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The name of the check that was refused.
    pub name: &'static str,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room for the check {}: raise MAX_CHECKS, now {MAX_CHECKS}", self.name)
    }
}

/// A budget that ends at a value of the time-stamp counter.
struct Deadline<'a, S> {
    system: &'a S,
    tsc_khz: u64,
    half: u64,
    end: u64,
}

impl<S: System> Budget for Deadline<'_, S> {
    fn spent(&mut self) -> bool {
        self.system.now() as i64 - self.end as i64 >= 0
    }

    fn clock_ms(&mut self) -> u64 {
        self.system.now() / self.tsc_khz
    }

    fn half_spent(&mut self) -> bool {
        self.system.now() as i64 - self.half as i64 >= 0
    }
}

impl<'k, M: KernelMemory> Server<'k, M> {
    /// A server without checks, which does about findings what `policy` says. The time-stamp counter counts
    /// `tsc_khz` in a millisecond. `kept` is memory that outlives a failure of the monitor.
    pub fn new(policy: Policy, tsc_khz: u64, kept: &'k [AtomicU64]) -> Self {
        Self {
            entries: Vec::new(),
            policy,
            disarming: Disarming::default(),
            tsc_khz: tsc_khz.max(1),
            watches: false,
            sees_writes: false,
            rest: 0,
            lost_writes: 0,
            reported_lost: 0,
            kept: Kept::new(kept),
            lines: 0,
            slices: 0,
            full_slices: 0,
            last_tick: None,
            restarting: None,
        }
    }

    /// Adds a check.
    ///
    /// # Errors
    ///
    /// [`NoRoom`] if there are [`MAX_CHECKS`] checks: the status of another one could not be published.
    pub fn add(&mut self, check: Box<dyn Check<M>>) -> Result<(), NoRoom> {
        let index = self.entries.len();
        let name = check.about().name;
        if index == MAX_CHECKS {
            return Err(NoRoom { name });
        }
        let status = CheckStatus { state: CHECK_LEARNING, ..CheckStatus::named(name) };
        let mut open = OpenFindings::default();
        self.kept.cases(index).for_each(|case| open.inherit(case));
        self.entries.push(CheckEntry {
            index,
            check,
            status,
            pass_tsc: 0,
            last_step_tsc: 0,
            pass_began: None,
            open,
            waits: false,
        });
        Ok(())
    }

    /// Publishes every check, and reports the findings that a monitor before this one had open.
    pub fn start(&mut self, system: &mut impl System) {
        for entry in &mut self.entries {
            entry.publish(system);
            let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
            for case in entry.open.iter() {
                let line = format!("open before the restart: {}", case.line);
                journal.report(EVENT_NOTE, entry.index, &line);
            }
        }
    }

    /// Number of findings that this server has reported.
    pub fn findings(&self) -> u64 {
        self.entries.iter().map(|entry| entry.status.findings).sum()
    }

    /// Publishes the heartbeat: the monitor's status with the server's counts. Called about once a second. Reports
    /// again the open findings whose lines may have been displaced from the event ring.
    pub fn beat(&mut self, system: &mut impl System, status: &MonitorStatus) {
        let counts = MonitorStatus {
            beat_tsc: system.now(),
            slices: self.slices,
            full_slices: self.full_slices,
            ..*status
        };
        system.publish_monitor(&counts);
        let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
        let reported = core::mem::replace(&mut self.reported_lost, self.lost_writes);
        let lost = self.lost_writes.saturating_sub(reported);
        if lost > 0 {
            let line =
                format!("{lost} writes to watched memory came too fast to be judged one by one");
            journal.report(EVENT_NOTE, 0, &line);
        }
        for entry in &mut self.entries {
            for _ in 0..REMINDERS {
                let Some(case) = entry.open.most_displaced(*journal.lines, REMIND_LINES) else {
                    break;
                };
                let line = format!("still open: {}", case.line);
                journal.report_about(EVENT_NOTE, entry.index, case.class, &line);
                case.line_number = *journal.lines;
            }
        }
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

    /// Handles a tick that began at `began` and may take `slice`, both in time-stamp ticks. Looks at earlier repairs,
    /// and repairs of earlier findings, go first, since the checks use up the whole slice.
    pub fn tick<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        began: u64,
        slice: u64,
    ) {
        if self.restarting.is_some() {
            // All else would come too late.
            return self.go_on_restarting(kernel, system, began.wrapping_add(slice));
        }
        let mut cause = None;
        if self.policy.writes() && self.rest > 0 {
            self.rest -= 1;
        } else if self.policy.writes() {
            let mut patient = Patient::new(system);
            let system = &mut patient;
            let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
            for entry in &mut self.entries {
                let check = &entry.check;
                entry.open.look(entry.index, &mut journal, |links| check.verify(kernel, links));
            }
            let is_intact =
                |entry: &CheckEntry<M>| entry.needs_intact_code() || entry.open.count() == 0;
            let intact = self.entries.iter().all(is_intact);
            for entry in &mut self.entries {
                if intact || !entry.needs_intact_code() {
                    entry.waits = false;
                    cause = cause.or(entry.repair(kernel, &mut journal));
                } else {
                    entry.wait_for_code(&mut journal);
                }
            }
            let entries = &mut self.entries;
            self.disarming.advance(&mut journal, |check| {
                let entry = entries.get_mut(check);
                entry.into_iter().for_each(|entry| entry.status.repairs += 1);
            });
            if patient.is_busy {
                self.rest = BUSY_TICKS;
            }
        }
        let period = began.wrapping_sub(self.last_tick.replace(began).unwrap_or(began));
        let (mut began, mut slice) = (began, slice);
        if self.sees_writes {
            if period / self.tsc_khz > LATE_MS {
                self.entries.iter_mut().for_each(|entry| entry.check.misses_ticks());
            }
            cause = cause.or(self.judge_writes(kernel, system, began.wrapping_add(slice / 2)));
            let now = system.now();
            slice = slice.saturating_sub(now.wrapping_sub(began));
            began = now;
        }
        let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
        let pace = Pace { slice, period, tsc_khz: self.tsc_khz };
        let needs: u64 = self.entries.iter().map(|entry| entry.need(&pace)).sum();
        let mut shares = 0;
        let mut full = false;
        let mut blamed = Vec::new();
        for entry in &mut self.entries {
            shares += entry.share(&pace, needs);
            let until = began.wrapping_add(slice * shares.min(100) / 100);
            let (findings, step) = entry.step(kernel, journal.system, self.tsc_khz, until);
            full |= step == Step::Spent;
            for finding in findings {
                cause =
                    cause.or(entry.add_finding(finding, &mut journal, &self.policy, &mut blamed));
            }
            if matches!(step, Step::Done(_)) {
                entry.end_pass(&mut journal);
                while let Some(plan) = entry.check.plan() {
                    self.disarming.take(plan, &mut journal);
                }
            }
        }
        self.disarm(kernel, system, &blamed);
        self.slices += 1;
        self.full_slices += u64::from(full);
        if let Some(cause) = cause {
            self.begin_restarting(system, cause);
            self.go_on_restarting(kernel, system, began.wrapping_add(slice));
        }
        if !self.watches {
            self.learn(kernel, system);
        }
    }

    /// A restart is to follow because of `cause`. What was found before each check had completed a pass may come with
    /// every boot, so that a restart would lead to the next: then it is only reported.
    #[cold]
    fn begin_restarting<S: System>(&mut self, system: &mut S, cause: Cause) {
        if self.watches {
            self.restarting = Some(cause);
            return;
        }
        let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
        let Cause { check, class, name } = cause;
        let line = format!("{name}: not restarted: found before the monitor had learned");
        journal.report_about(EVENT_RESTART, check, class, &line);
    }

    /// Restarts the machine, without a crash kernel that is changed. Before that, all of the crash kernel is looked at
    /// anew, until `end` in this tick: an attacker may have waited for the restart.
    #[cold]
    fn go_on_restarting<S: System>(&mut self, kernel: &Kernel<'_, M>, system: &mut S, end: u64) {
        if self.restarting.is_none() {
            return;
        }
        let mut is_sound = true;
        for entry in &mut self.entries {
            let mut budget = Deadline { system: &*system, tsc_khz: self.tsc_khz, half: end, end };
            match entry.check.is_sound(kernel, &mut budget) {
                Some(sound) => is_sound &= sound && !entry.open.iter().any(is_crash_kernel),
                None => return,
            }
        }
        let Some(Cause { check, class, name }) = self.restarting.take() else { return };
        let how = match (is_sound, crash_kernel::can_start(kernel)) {
            (false, _) => " without its changed crash kernel",
            (true, false) => " without its crash kernel, for whose start __kexec_lock is held",
            (true, true) => "",
        };
        let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
        let line = format!("{name}: restarting Linux{how}");
        journal.report_about(EVENT_RESTART, check, class, &line);
        journal.system.restart(how.is_empty());
        journal.report_about(EVENT_RESTART, check, class, "the machine does not restart");
    }

    /// Has the checks judge the writes that wait, or a part of them if that takes until `end`: the others wait on.
    /// Returns the finding for which Linux is to be restarted.
    fn judge_writes<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        end: u64,
    ) -> Option<Cause> {
        let mut cause = None;
        loop {
            let writes = system.writes();
            if core::mem::replace(&mut self.lost_writes, writes.lost) < writes.lost {
                self.entries.iter_mut().for_each(|entry| entry.check.sees_writes(false));
            }
            for entry in self.entries.iter_mut().filter(|_| !writes.list().is_empty()) {
                let mut findings = Vec::new();
                entry.check.judge_writes(kernel, writes.list(), &mut |it| findings.push(it));
                let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
                for finding in findings {
                    // Writes blame no module.
                    let blamed = &mut Vec::new();
                    cause =
                        cause.or(entry.add_finding(finding, &mut journal, &self.policy, blamed));
                }
            }
            let is_last = writes.list().len() < MAX_WRITES;
            if is_last || system.now() as i64 - end as i64 >= 0 {
                return cause;
            }
        }
    }

    /// Has plans made for the owners that findings blame, and for those whose hooks were just taken out.
    fn disarm<S: System>(&mut self, kernel: &Kernel<'_, M>, system: &mut S, blamed: &[Blamed]) {
        let Self { entries, disarming, kept, lines, .. } = self;
        for Blamed { address, check, class, is_new } in blamed {
            let mut note = |line: &str| {
                let mut journal = Journal { system, kept, lines };
                journal.report_about(EVENT_NOTE, *check, Some(*class), line);
            };
            let known = entries
                .iter()
                .find_map(|entry| Some((entry.index, entry.check.culprit(kernel, *address)?)));
            match known {
                Some((check, culprit)) if disarming.begin(culprit, *class, check, *is_new) => {}
                Some(_) => note("too many modules are being disarmed: this one is left"),
                None if *is_new => note(&format!(
                    "{address:#x}: not disarmed: nothing is there, or the cokernel's own module"
                )),
                None => {}
            }
        }
        for entry in entries.iter_mut() {
            disarming.ask(entry.index, |culprit| entry.check.disarm(culprit));
        }
    }

    /// Has writes watched, where that is possible, to what the checks name.
    #[cold]
    fn watch_writes<S: System>(&mut self, kernel: &Kernel<'_, M>, system: &mut S) {
        let all = self.entries.iter().flat_map(|entry| entry.check.watched(kernel));
        let (seen, refused): (Vec<_>, Vec<_>) = all.partition(|watched| system.watch(watched));
        self.sees_writes = !seen.is_empty();
        if self.sees_writes && refused.is_empty() {
            self.entries.iter_mut().for_each(|entry| entry.check.sees_writes(true));
        }
        for Watched { range, .. } in refused.iter().filter(|_| self.sees_writes) {
            let line =
                format!("writes to {:#x} to {:#x} cannot be watched", range.start, range.end);
            Journal { system, kept: &self.kept, lines: &mut self.lines }
                .report(EVENT_NOTE, 0, &line);
        }
    }

    /// Reports the progress of first passes, and when the last one is complete.
    #[cold]
    fn learn<S: System>(&mut self, kernel: &Kernel<'_, M>, system: &mut S) {
        let mut journal = Journal { system, kept: &self.kept, lines: &mut self.lines };
        for entry in &mut self.entries {
            entry.learn(&mut journal);
        }
        self.watches = self.entries.iter().all(|entry| entry.status.passes > 0);
        if self.watches {
            let line = format!("monitoring Linux {}", kernel.profile.release());
            journal.report(EVENT_NOTE, 0, &line);
            self.watch_writes(kernel, system);
        }
    }
}

impl<M: KernelMemory> CheckEntry<M> {
    /// Whether its repairs wait until no other check has an open finding.
    fn needs_intact_code(&self) -> bool {
        self.check.about().repairs == Repairs::OnIntactCode
    }

    /// Percentage of each slice with which its passes take as long as they may; 0 if there is no limit.
    fn need(&self, pace: &Pace) -> u64 {
        let pass_ms = self.check.about().pass_ms;
        if pass_ms == 0 {
            return 0;
        }
        let limit = pass_ms.saturating_mul(pace.tsc_khz);
        let available = u128::from(limit) * u128::from(pace.slice);
        let taken = u128::from(self.status.pass_tsc) * u128::from(pace.period);
        let needed = taken.saturating_mul(100);
        needed.div_ceil(available.max(1)).min(1 << 32) as u64
    }

    /// Percentage of this slice that it gets, if all checks together need `needs` for their limits: all passes become
    /// longer by the same factor if that is too much.
    fn share(&self, pace: &Pace, needs: u64) -> u64 {
        let granted = self.need(pace) * FOR_LIMITS / needs.max(FOR_LIMITS);
        granted.min(MAX_SHARE).max(self.check.about().share)
    }

    /// Runs one step of the check and returns its findings.
    fn step<S: System>(
        &mut self,
        kernel: &Kernel<'_, M>,
        system: &mut S,
        tsc_khz: u64,
        end: u64,
    ) -> (Vec<Finding>, Step) {
        let mut findings = Vec::new();
        let start = system.now();
        let pass_began = *self.pass_began.get_or_insert(start);
        let half = start.wrapping_add((end.wrapping_sub(start) as i64 / 2) as u64);
        let step = self.check.step(
            kernel,
            &mut Deadline { system, tsc_khz, half, end },
            &mut |finding| findings.push(finding),
            &mut self.status.retries,
        );
        self.cover();
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
            self.status.wall_tsc = now.wrapping_sub(pass_began);
            self.pass_began = None;
        }
        (findings, step)
    }

    /// Takes over what the check says about its coverage.
    fn cover(&mut self) {
        let Coverage { learning, item_bytes, unjudged, restarts, dropped, .. } =
            self.check.coverage();
        let status = &mut self.status;
        status.state = if learning { CHECK_LEARNING } else { CHECK_WATCHING };
        (status.item_bytes, status.unjudged) = (item_bytes, unjudged);
        (status.restarts, status.dropped) = (restarts, dropped);
    }

    /// Publishes how much of the first pass is done, and reports it in steps of [`PROGRESS`].
    fn learn(&mut self, journal: &mut Journal<'_, impl System>) {
        let learned = match self.status.passes {
            0 => u64::from(self.check.coverage().learned.min(99)),
            _ => 100,
        };
        let before = core::mem::replace(&mut self.status.learned, learned);
        if learned == before {
            return;
        }
        self.publish(journal.system);
        if learned / PROGRESS > before / PROGRESS {
            let line = format!(
                "learning: {} {} %",
                self.check.about().name,
                learned / PROGRESS * PROGRESS
            );
            journal.report(EVENT_NOTE, self.index, &line);
        }
    }

    /// Returns the finding that asks for a restart.
    fn add_finding(
        &mut self,
        mut finding: Finding,
        journal: &mut Journal<'_, impl System>,
        policy: &Policy,
        blamed: &mut Vec<Blamed>,
    ) -> Option<Cause> {
        if is_allowed(&finding, policy) {
            return None;
        }
        let (index, action) = (self.index, policy.of(finding.class));
        if self.open.is_spoiled(finding.address) {
            (finding.repairs, finding.held) = (Vec::new(), TORN);
        }
        if finding.restored {
            journal.report_about(EVENT_NOTE, index, Some(finding.class), &finding.line());
            self.open.close(finding.address);
            journal.kept.forget_at(index, finding.address);
            self.publish(journal.system);
            return None;
        }
        let now = journal.system.now();
        let added = self.open.add(&finding, action, now, *journal.lines + 1);
        if action == Action::Disarm && finding.culprit != 0 {
            let (address, class) = (finding.culprit, finding.class);
            blamed.push(Blamed { address, check: index, class, is_new: added != Added::Known });
        }
        if added == Added::Known {
            return None;
        }
        self.status.findings += 1;
        journal.report_about(EVENT_FINDING, index, Some(finding.class), &finding.line());
        let mut restarts = action == Action::Restart;
        match added {
            Added::Opened | Added::Changed => {
                let case = Case::new(&finding, action, now, 0);
                journal.kept.forget(index, case.address, case.hash());
                journal.kept.keep(index, &case);
            }
            Added::Unlisted if action.writes() => {
                journal.report(EVENT_NOTE, index, "too many open findings: not repaired");
                restarts = action == Action::RepairOrRestart;
            }
            Added::Known | Added::Unlisted => {}
        }
        self.publish(journal.system);
        restarts.then(|| Cause {
            check: index,
            class: Some(finding.class),
            name: name(&finding.what, &finding.symbol),
        })
    }

    /// Reports once that repairs wait until no other check has an open finding.
    #[cold]
    fn wait_for_code(&mut self, journal: &mut Journal<'_, impl System>) {
        if self.waits {
            return;
        }
        if let Some(case) = self.open.iter().find(|case| case.is_due()) {
            self.waits = true;
            let line = format!("{}: not repaired: changed code is open", case.name());
            journal.report_about(EVENT_NOTE, self.index, case.class, &line);
        }
    }

    /// Returns the finding that asks for a restart, because it cannot be repaired.
    fn repair(
        &mut self,
        kernel: &Kernel<'_, M>,
        journal: &mut Journal<'_, impl System>,
    ) -> Option<Cause> {
        let (index, status, check) = (self.index, &mut self.status, &mut self.check);
        let mut cause = None;
        let before = status.repairs;
        let read = |address: u64| {
            let page = kernel.memory.page(address & !(PAGE_BYTES - 1))?;
            Some(page.get((address % PAGE_BYTES / 8) as usize)?.load(Relaxed))
        };
        self.open.repair(journal, REPAIRS_PER_TICK, read, |journal, case, outcome| match outcome {
            Outcome::Refused(reason) => {
                let line = format!("{}: not repaired: {reason}", case.name());
                journal.report_about(EVENT_NOTE, index, case.class, &line);
                if case.action == Action::RepairOrRestart {
                    cause = Some(Cause { check: index, class: case.class, name: case.name() });
                }
            }
            Outcome::Stopped => {
                status.repairs += 1;
                let line = format!("{}: SIGKILL is pending", case.name());
                journal.report_about(EVENT_REPAIR, index, case.class, &line);
            }
            _ => {
                status.repairs += 1;
                check.forget(case.address);
                journal.kept.forget(index, case.address, case.hash());
                let line = format!("{}: repaired", case.name());
                journal.report_about(EVENT_REPAIR, index, case.class, &line);
            }
        });
        if self.status.repairs != before {
            self.publish(journal.system);
        }
        cause
    }

    /// Closes the findings that two passes in a row no longer saw.
    fn end_pass(&mut self, journal: &mut Journal<'_, impl System>) {
        let check = &self.check;
        for case in self.open.end_pass(|what, address| check.stands(what, address)) {
            journal.kept.forget(self.index, case.address, case.hash());
            let line = format!("{}: gone", case.name());
            journal.report_about(EVENT_NOTE, self.index, case.class, &line);
        }
        self.publish(journal.system);
    }

    fn publish(&mut self, system: &mut impl System) {
        self.status.open = self.open.count() as u64;
        self.status.unlisted = self.open.unlisted;
        system.publish(self.index, &self.status);
    }
}

/// A finding that blames a module, whose hooks are to be taken out.
struct Blamed {
    /// An address in the module's code.
    address: u64,
    /// Number of the check that blames it.
    check: usize,
    class: Class,
    is_new: bool,
}

/// A finding that asks for a restart.
struct Cause {
    check: usize,
    class: Option<Class>,
    name: String,
}

/// Whether the operator knows of it: a module or a BPF program of the policy does what is sensitive.
fn is_allowed(finding: &Finding, policy: &Policy) -> bool {
    let owner = match finding.class {
        Class::HookSensitive => finding.owner.strip_prefix("module "),
        Class::BpfProgramSensitive => finding.owner.strip_prefix("bpf "),
        _ => None,
    };
    owner.is_some_and(|owner| policy.allowed().any(|name| name == owner))
}

/// Whether a finding is about the image of the crash kernel.
fn is_crash_kernel(case: &Case) -> bool {
    case.class == Some(Class::CrashKernelModified)
}

#[cfg(test)]
mod tests;
