//! The check `tasks`: finds tasks that are missing from a structure where Linux keeps tasks (cross-view validation).
//!
//! A hidden task is unlinked from some structures and keeps running. Each structure is a *view* of the tasks: the
//! process list, the thread list of each process, the PID index (`init_pid_ns.idr`) with the lists at each PID, and
//! the cgroup lists. A pass records which views have each task. It also visits the CPUs' run queues, which have
//! every task that runs, and by samples what leads from one process to another: a parent's children, process groups
//! and sessions. A task that a view lacks is a *suspect*. Later slices look at it again, one task at a time. It is
//! reported after [`CONFIRM_RECHECKS`] consecutive looks in which the same task was missing, the locks of the
//! structures were free, and the task was neither new nor dead. Attackers can forge each of these excuses, so none
//! is believed for ever.
//!
//! The tasks of a pass are also judged by what they may do (`privileges`).
//!
//! One call of [`Check::step`] is one look: Linux must run between two calls.

mod hooks;
mod layout;
mod list_cursor;
pub mod listing;
mod pass;
mod privileges;
mod queues;
mod repair;
mod report;
mod seen;
mod suspect;
mod task;
mod verify;
mod wants;

use crate::check::{About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::finding::{Finding, Links, Verdict};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use crate::random::Random;
use alloc::string::String;
use alloc::vec::Vec;
use hooks::Hooks;
use layout::TaskLayout;
use pass::{Damage, Pass, Progress};
use privileges::Privileges;
use seen::SeenTasks;
use suspect::{Recheck, SuspectTask};
use task::Identity;

/// Maximum number of tasks that a pass records, in 0.5 to 1 MiB of memory. If there are more, each pass judges a random
/// part of them.
pub const MAX_TASKS: usize = 1 << 16;
/// Consecutive looks that confirm a suspect.
pub const CONFIRM_RECHECKS: u32 = 3;
/// Steps from the beginning of one pass to that of the next, while nobody is suspected.
const PACE: u32 = 20;
/// Number of tasks that the first pass expects.
const FIRST_POPULATION: u32 = 4096;
/// A pass walks the children of one in `1 << RELATIVES` tasks, and so many of the process groups and sessions.
const RELATIVES: u32 = 2;
/// Maximum number of suspects, and of suspects looked at per slice.
const MAX_SUSPECTS: usize = 64;
const SUSPECTS_PER_SLICE: usize = 16;
/// Maximum number of suspects with an excuse: many exits at once must not displace the others.
const MAX_EXCUSED_SUSPECTS: usize = 16;
/// Maximum number of reported tasks that gave way to other suspects.
const MAX_SET_ASIDE: usize = 256;
/// Why a task is not put back.
const HOOKED: &str =
    "a module's handler (kprobe, ftrace or tracepoint) may put the task back as well";
/// Nodes or slots that the pass visits between two looks at suspects, about as much work as a look. A slice has at
/// least one look and this many nodes, however short it is: neither suspects nor the pass can starve the other.
const NODES_PER_LOOK: u32 = 4;
/// Maximum number of empty slots that are skipped at once.
const EMPTY_SLOTS: usize = 64;
/// Consecutive passes that must find a list damaged before it is reported; doubled with each report.
const DAMAGED_PASSES: u32 = 3;

/// The views, one bit each.
pub(crate) mod view {
    /// The process list.
    pub const TASKS: u8 = 1;
    /// The thread list in the process's signal structure.
    pub const THREADS: u8 = 2;
    /// The thread list at the process's first thread (`thread_group`), in Linux before 6.7.
    pub const GROUP: u8 = 4;
    /// The PID index, and the thread list at the PID.
    pub const PID: u8 = 8;
    /// The process list at the PID.
    pub const TGID: u8 = 16;
    /// The cgroup lists.
    pub const CGROUP: u8 = 32;
    /// A CPU's run queue; no task must be in one.
    pub const QUEUE: u8 = 64;
    /// The views of all tasks, or of all processes: one of them has every task that Linux knows.
    pub const LISTED: u8 = TASKS | PID | TGID | CGROUP;
    /// All of them.
    pub const ALL: u8 = LISTED | THREADS | GROUP | QUEUE;
    /// The name of each view in findings.
    pub const NAMES: [(u8, &str); 6] = [
        (TASKS, "the process list"),
        (THREADS, "its process's thread list"),
        (GROUP, "its process's thread_group list"),
        (PID, "the PID index"),
        (TGID, "its PID's process list"),
        (CGROUP, "its control group"),
    ];
}

/// A damaged list, and the passes that found it so.
struct DamagedList {
    damage: Damage,
    passes: u32,
    report_at: u32,
}

/// The check `tasks`.
pub struct TaskCheck {
    layout: TaskLayout,
    hooks: Hooks,
    random: Random,
    seen: SeenTasks,
    pass: Pass,
    /// Number of PIDs that the index had in the last pass that walked it to its end.
    population: u32,
    /// Whether the pass has begun.
    in_pass: bool,
    pace: Pace,
    /// The slot of `seen` to judge next; `None` while the pass is still walking.
    judging: Option<usize>,
    suspects: Vec<SuspectTask>,
    /// The suspect to look at next.
    next_suspect: usize,
    /// Reported tasks that gave way to other suspects: those that this pass has judged again, and the others.
    set_aside: Vec<u64>,
    set_aside_before: Vec<u64>,
    damaged: Vec<DamagedList>,
    /// Tasks with an excuse that no list of all tasks has: those of this pass, and of the one before.
    unlisted: Vec<Identity>,
    unlisted_before: Vec<Identity>,
    privileges: Privileges,
    coverage: Coverage,
}

impl TaskCheck {
    /// The check for a kernel with `profile`. Linux must not know `seed`.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] if the profile lacks something that the check needs.
    pub fn new(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError> {
        Self::with_room(profile, seed, MAX_TASKS)
    }

    /// The check with room for `tasks` tasks in a pass.
    fn with_room(profile: &Profile<'_>, seed: u64, tasks: usize) -> Result<Self, ProfileError> {
        let layout = TaskLayout::new(profile)?;
        let mut random = Random::new(seed);
        Ok(Self {
            pass: Pass::new(&layout, &mut random, 0, RELATIVES, FIRST_POPULATION),
            population: FIRST_POPULATION,
            in_pass: false,
            pace: Pace::every(PACE),
            layout,
            hooks: Hooks::new(profile),
            seen: SeenTasks::new(tasks, &mut random),
            random,
            judging: None,
            suspects: Vec::new(),
            next_suspect: 0,
            set_aside: Vec::new(),
            set_aside_before: Vec::new(),
            damaged: Vec::new(),
            unlisted: Vec::new(),
            unlisted_before: Vec::new(),
            privileges: Privileges::new(profile, tasks),
            coverage: Coverage { learning: true, ..Coverage::default() },
        })
    }

    /// Looks at the next suspect again, and reports it if that confirms it.
    fn recheck_next<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) {
        if self.next_suspect >= self.suspects.len() {
            self.next_suspect = 0;
        }
        let Some(suspect) = self.suspects.get_mut(self.next_suspect) else { return };
        match suspect.recheck(kernel, &self.layout) {
            verdict @ (Recheck::Clear | Recheck::Unresolved) => {
                self.coverage.dropped += u64::from(verdict == Recheck::Unresolved);
                self.suspects.swap_remove(self.next_suspect);
                return;
            }
            Recheck::Busy => *retries += 1,
            Recheck::Unsure => {}
            Recheck::Confirmed(missing) => {
                let SuspectTask { identity, seen_in, .. } = *suspect;
                let mut finding = report::finding(kernel, &self.layout, identity, missing, seen_in);
                let held = suspect.held().or_else(|| self.hooks.any(kernel).then_some(HOOKED));
                if let Some(held) = held {
                    (finding.repairs, finding.held) = (Vec::new(), held);
                }
                found(finding)
            }
        }
        self.next_suspect += 1;
    }

    /// Judges a task that the views `bits` have. One that ends has its CPU for some time after Linux has removed it
    /// from all lists, and its memory may be another thing's: its excuse is not examined before the next pass sees it
    /// again.
    fn judge<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, task: u64, bits: u8) {
        self.privileges.look(kernel, &self.layout, task);
        let incomplete = self.pass.incomplete_for(kernel, &self.layout, task);
        let verdict = suspect::judge(kernel, &self.layout, task, bits, incomplete);
        let unreached = verdict.as_ref().map_or(0, |suspect| suspect.unreached);
        if let Some(known) = self.suspects.iter_mut().find(|suspect| suspect.identity.task == task)
        {
            return known.another_pass(bits, unreached);
        }
        if let Some(suspect) = verdict {
            let is_ending = bits & view::LISTED == 0 && suspect.is_excused();
            if (is_ending || suspect.is_stray())
                && !self.unlisted_before.contains(&suspect.identity)
            {
                if self.unlisted.len() < MAX_SUSPECTS {
                    self.unlisted.push(suspect.identity);
                }
                return;
            }
            if self.set_aside_before.contains(&task) {
                self.set_aside.push(task);
            }
            self.add_suspect(suspect);
        }
    }

    /// Adds a suspect, in the place of a less urgent one if there is no room: one that has been reported, or one with
    /// an excuse. The next pass brings back what is still missing.
    #[cold]
    fn add_suspect(&mut self, suspect: SuspectTask) {
        let excused = self.suspects.iter().filter(|suspect| suspect.is_excused()).count();
        if suspect.is_excused() && excused >= MAX_EXCUSED_SUSPECTS {
            self.coverage.dropped += 1;
            return;
        }
        if self.suspects.len() < MAX_SUSPECTS {
            self.suspects.push(suspect);
            return;
        }
        self.coverage.dropped += 1;
        let from = self.random.below(MAX_SUSPECTS as u64) as usize;
        let mut places = (from..MAX_SUSPECTS).chain(0..from);
        let replaceable =
            |at: &usize| self.suspects[*at].reported || self.suspects[*at].is_excused();
        if let Some(at) = places.find(replaceable) {
            let gone = core::mem::replace(&mut self.suspects[at], suspect);
            if gone.reported && self.set_aside.len() < MAX_SET_ASIDE {
                self.set_aside.push(gone.identity.task);
            }
        }
    }

    /// Reports the lists that several passes in a row could not walk to their end.
    fn report_damages(&mut self, found: &mut dyn FnMut(Finding), name: impl Fn(u64) -> String) {
        let before = core::mem::take(&mut self.damaged);
        for damage in core::mem::take(&mut self.pass.damages) {
            let known = before
                .iter()
                .find(|known| (known.damage.view, known.damage.head) == (damage.view, damage.head));
            let (passes, report_at) =
                known.map_or((0, DAMAGED_PASSES), |known| (known.passes, known.report_at));
            let mut list = DamagedList { damage, passes: passes + 1, report_at };
            if list.passes >= list.report_at {
                list.report_at = list.report_at.saturating_mul(2);
                found(report::damaged_list(&self.layout, &damage, &name));
            }
            self.damaged.push(list);
        }
    }

    /// Does one step of the pass; returns the number of tasks when it is over.
    fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        found: &mut dyn FnMut(Finding),
    ) -> Option<u64> {
        let Some(slot) = self.judging else {
            if self.pass.advance(kernel, &self.layout, &mut self.seen) == Progress::Done {
                self.judging = Some(0);
            }
            return None;
        };
        if slot < self.seen.slots() {
            let (task, next) = self.seen.take_from(slot, EMPTY_SLOTS);
            if let Some((task, bits)) = task {
                self.judge(kernel, task, bits);
            }
            self.judging = Some(next);
            return None;
        }
        let layout = self.layout.clone();
        self.report_damages(found, |task| task::name(kernel, &layout, task));
        self.privileges.end_pass(kernel, &self.layout, found);
        self.coverage.learning = false;
        self.coverage.unjudged = self.pass.unjudged + self.privileges.lacking();
        self.coverage.restarts += self.pass.restarts;
        let count = self.seen.clear(&mut self.random);
        self.population = self.pass.population(self.population);
        let highest_pid = self.pass.highest_pid;
        self.pass =
            Pass::new(&self.layout, &mut self.random, highest_pid, RELATIVES, self.population);
        self.judging = None;
        self.suspects.iter_mut().for_each(SuspectTask::pass_ended);
        self.set_aside_before = core::mem::take(&mut self.set_aside);
        self.unlisted_before = core::mem::take(&mut self.unlisted);
        Some(count as u64)
    }
}

impl Make for TaskCheck {
    const ABOUT: About = About {
        name: "tasks",
        wants: &[wants::WANTS, queues::WANTS, privileges::WANTS],
        share: 8,
        pass_ms: 200,
        repairs: Repairs::OnIntactCode,
    };

    fn make(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError> {
        Self::new(profile, seed)
    }
}

impl<M: KernelMemory> Check<M> for TaskCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        let mut aside = self.set_aside.iter().chain(&self.set_aside_before);
        let mut lists = self.damaged.iter();
        self.suspects.iter().any(|suspect| suspect.identity.task == address)
            || aside.any(|task| *task == address)
            || lists.any(|list| report::damaged_at(&self.layout, &list.damage) == address)
            || self.privileges.stands(what, address)
    }

    fn forget(&mut self, address: u64) {
        self.suspects.retain(|suspect| suspect.identity.task != address);
    }

    fn verify(&self, kernel: &Kernel<'_, M>, links: &Links) -> Verdict {
        verify::verify(kernel, &self.layout, links)
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn waiting(&self) -> u64 {
        let suspects = self.suspects.iter().filter(|suspect| !suspect.reported).count();
        suspects as u64 + u64::from(self.privileges.is_waiting())
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        let is_sure = self.suspects.iter().all(|suspect| suspect.reported)
            && !self.privileges.is_waiting()
            && self.damaged.iter().all(|list| list.passes >= DAMAGED_PASSES);
        let mut looks = self.suspects.len().min(SUSPECTS_PER_SLICE);
        if self.pace.rests(self.in_pass) && is_sure {
            (0..looks).for_each(|_| self.recheck_next(kernel, found, retries));
            return Step::Rests;
        }
        self.in_pass = true;
        if self.judging.is_none() {
            self.pass.resume(kernel, &self.layout, retries);
        }
        loop {
            if looks > 0 {
                looks -= 1;
                self.recheck_next(kernel, found, retries);
            }
            for _ in 0..NODES_PER_LOOK {
                if let Some(count) = self.advance(kernel, found) {
                    self.in_pass = false;
                    return Step::Done(count);
                }
            }
            if budget.spent() {
                return Step::Spent;
            }
        }
    }
}

#[cfg(test)]
mod tests;
