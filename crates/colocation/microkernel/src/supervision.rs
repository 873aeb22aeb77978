//! Supervised tasks: a task that fails is reported, and started again.
//!
//! A task fails if it faults, exits with another code than 0, or waits for no tick for longer than it allowed itself.
//! It starts again at a later tick; the wait doubles while it fails soon after its start.

use crate::boot;
use crate::elf::Image;
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::memory::PAGE;
use crate::task::Handle;
use core::mem::offset_of;
use kyozon_abi::events::{MonitorStatus, EVENT_FAULT, EVENT_NOTE, MONITOR_ENDED, MONITOR_INDEX};
use kyozon_abi::layer::{MAX_TASKS, REPORT_BYTES};
use kyozon_abi::line;
use kyozon_abi::task::*;

type Line = line::Line<{ REPORT_BYTES as usize }>;

/// Failures in succession after which a task is not started again.
const MAX_FAILURES: u32 = 8;
/// Seconds after which a running task's earlier failures no longer count.
const STEADY_SECONDS: u64 = 60;
/// Ticks that a task must have let pass, of those that this kernel has seen: after a pause of the whole machine, the
/// first one counts all that were missed.
const MIN_SEEN_TICKS: u64 = 50;
/// A tick that never comes.
const NEVER: u64 = u64::MAX;

/// The supervision of one task. Times are numbers of ticks.
#[derive(Clone, Copy)]
pub struct Supervision {
    /// Whether the task asked for it.
    pub active: bool,
    /// Maximum number of ticks without a wait for one, 0 for no limit.
    pub patience: u64,
    /// The last tick that the task waited for, 0 for none, and the number of ticks that the kernel had seen by then.
    pub waited: (u64, u64),
    /// Number of times that it was started again.
    pub restarts: u64,
    /// The tick at which it was started.
    started: u64,
    /// The tick at which it is to be started again.
    restart_at: u64,
    /// Failures in succession.
    failures: u32,
    /// Whether its failures are published as the monitor's.
    pub is_monitor: bool,
    /// Whether its own last status says why it ended.
    pub explained: bool,
}

impl Supervision {
    /// None.
    pub const NONE: Self = Self {
        active: false,
        patience: 0,
        waited: (0, 0),
        restarts: 0,
        started: 0,
        restart_at: NEVER,
        failures: 0,
        is_monitor: false,
        explained: false,
    };

    /// The next tick at which the kernel has to look at the task.
    fn next_look(&self, now: u64) -> u64 {
        match self.patience {
            0 => self.restart_at,
            patience => self.restart_at.min(now.saturating_add(patience)),
        }
    }
}

impl Kernel {
    /// The current task asks for supervision.
    pub(crate) fn supervise(&mut self, patience: u64) -> Result<i64, i64> {
        self.needs(RIGHT_TICK)?;
        let (now, task) = (self.now, self.current_task());
        let supervision = &mut self.tasks[task].supervision;
        (supervision.active, supervision.patience) = (true, patience);
        self.look_at = self.look_at.min(supervision.next_look(now));
        Ok(0)
    }

    /// Records that `task` failed; it ends next. The status says so, unless the task itself has.
    #[cold]
    pub(crate) fn failed(&mut self, task: usize, reason: &[u8], machine: &mut impl Machine) {
        let (now, second) = (self.now, u64::from(self.tick_hz));
        let s = &mut self.tasks[task].supervision;
        if s.is_monitor && !s.explained {
            let mut status = MonitorStatus {
                state: MONITOR_ENDED,
                restarts: s.restarts,
                ..MonitorStatus::default()
            };
            status.set_reason(reason);
            machine.publish(MONITOR_INDEX as u64, &status.to_words());
        }
        if !s.active {
            return;
        }
        if now.saturating_sub(s.started) >= STEADY_SECONDS * second {
            s.failures = 0;
        }
        s.failures += 1;
        s.restart_at = match s.failures {
            1 => now + 1,
            failures if failures <= MAX_FAILURES => now + (second << (failures - 2)),
            _ => NEVER,
        };
        self.look_at = self.look_at.min(s.restart_at);
        if s.restart_at == NEVER {
            let line = Line::new(format_args!(
                "task {task} failed {MAX_FAILURES} times in succession: it is not started again"
            ));
            machine.report(EVENT_FAULT, 0, line.bytes());
        }
    }

    /// Looks at every supervised task: at most once per tick, and only if one is due.
    #[cold]
    pub(crate) fn look(&mut self, machine: &mut impl Machine) {
        let now = self.now;
        self.look_at = NEVER;
        for task in 0..MAX_TASKS {
            let s = self.tasks[task].supervision;
            if !s.active {
                continue;
            }
            let (waited, seen) = s.waited;
            let stuck = s.patience != 0
                && waited != 0
                && now.saturating_sub(waited) > s.patience
                && self.seen_ticks - seen > MIN_SEEN_TICKS;
            if self.tasks[task].alive && stuck {
                let line = Line::new(format_args!(
                    "task {task} stopped: it has not waited for a tick for {} ticks",
                    now - waited
                ));
                machine.report(EVENT_FAULT, 0, line.bytes());
                self.failed(task, line.bytes(), machine);
                self.ending |= 1 << task;
                self.end_tasks(machine);
            } else if !self.tasks[task].alive && s.restart_at <= now {
                self.restart(task, machine);
            }
            self.look_at = self.look_at.min(self.tasks[task].supervision.next_look(now));
        }
    }

    /// Starts `task`, which has ended, as at the first time. Its heap and its kept memory are not cleared.
    fn restart(&mut self, task: usize, machine: &mut impl Machine) {
        let now = self.now;
        let s = &mut self.tasks[task].supervision;
        s.restart_at = NEVER;
        let Some(image) = machine.task_image(task) else { return };
        let Ok(image) = Image::read(image) else { return };
        s.restarts += 1;
        (s.started, s.waited, s.explained, s.patience) = (now, (0, 0), false, 0);
        let restarts = s.restarts;
        let space = self.tasks[task].space;
        for segment in image.segments().iter().filter(|segment| segment.write) {
            for page in 0..segment.pages {
                let from = segment.bytes.get((page * PAGE) as usize..).unwrap_or(&[]);
                let from = &from[..from.len().min(PAGE as usize)];
                space.refill(machine, segment.address + page * PAGE, from);
            }
        }
        for page in (0..TASK_SHARE_BYTES).step_by(PAGE as usize) {
            space.unmap(machine, TASK_SHARE_BASE + page);
        }
        space.set_word(machine, TASK_INFO + offset_of!(StartInfo, restarts) as u64, restarts);
        let t = &mut self.tasks[task];
        t.handles.fill(Handle::NONE);
        (t.fault_handler, t.endpoints, t.notifications) = (None, 0, 0);
        let (rights, priorities) = boot::privileges(task);
        self.add_task(task, rights, priorities.1);
        for other in (0..MAX_TASKS).filter(|other| *other != task) {
            if self.tasks[other].alive && (task == 0 || other == 0) {
                self.introduce(task, other);
            }
        }
        // Translations of the share window's pages.
        self.live = u8::MAX;
        self.add_thread(task, 0, image.entry, TASK_INFO, priorities.0);
        let line = Line::new(format_args!("task {task} was started again, restart {restarts}"));
        machine.report(EVENT_NOTE, 0, line.bytes());
    }
}
