//! The check `liveness`: each CPU that has work takes timer interrupts, and Linux has not panicked.
//!
//! Linux adds the time of every timer interrupt to the CPU's statistics, so a CPU that is not idle and whose sum stands
//! still has its interrupts off, or was lost. An idle CPU needs no timer interrupt, and Linux's own clock stands still
//! while all are idle. With CPUs that run without a timer (`nohz_full`), nothing is judged.

use crate::check::{About, Budget, Check, Coverage, Make, Repairs, Step};
use crate::class::Class;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use crate::walk::Areas;
use alloc::format;
use alloc::vec::Vec;

/// The kind of finding.
const STALLED: &str = "CPU without timer interrupts";
/// Milliseconds between two looks at a CPU, and looks in a row that confirm a stall: ten seconds. A pause of the whole
/// machine is one look.
const LOOK_MS: u64 = 100;
const LOOKS: u32 = 100;
/// The kind of finding, and the looks in a row that confirm it: a panic that a crash kernel follows is over by then.
const PANICKED: &str = "Linux panicked";
const PANIC_LOOKS: u32 = 10;
/// `PANIC_CPU_INVALID`: no CPU.
const NO_CPU: u32 = u32::MAX;
/// Maximum number of words of a CPU's statistics that are read.
const MAX_WORDS: u64 = 16;
/// Bytes of a task's name (`TASK_COMM_LEN`).
const NAME_BYTES: usize = 16;

const WANTS: &[Wants] = &[Wants {
    symbols: &[],
    members: &[
        ("kernel_cpustat", "cpustat", Optional),
        ("rq", "curr", Optional),
        ("rq", "idle", Optional),
        ("task_struct", "comm", Optional),
    ],
    constants: &[],
}];

/// Where the state of a CPU lies.
#[derive(Debug)]
struct Layout {
    areas: Areas,
    /// Offset of the statistics in an area, and their words.
    statistics: u64,
    words: u64,
    /// Offsets of the tasks in an area: the one that runs, and the one for an idle CPU.
    running: u64,
    idle: u64,
    /// Offset of a task's name.
    name: Option<u64>,
    /// Address of a byte that is not 0 if CPUs run without a timer.
    without_timer: Option<u64>,
}

impl Layout {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let member = |structure, member| profile.field(structure, member);
        let queue = profile.symbol("runqueues")?;
        let statistics = member("kernel_cpustat", "cpustat")?;
        Some(Self {
            areas: Areas::new(profile)?,
            statistics: profile.symbol("kernel_cpustat")?.wrapping_add(statistics.offset),
            words: (statistics.bytes / 8).min(MAX_WORDS),
            running: queue.wrapping_add(member("rq", "curr")?.offset),
            idle: queue.wrapping_add(member("rq", "idle")?.offset),
            name: member("task_struct", "comm").map(|field| field.offset),
            without_timer: profile.symbol("tick_nohz_full_running"),
        })
    }

    /// The sum of the statistics of the CPU with this area; `None` if it is idle, or cannot be read.
    fn busy_sum<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, area: u64) -> Option<u64> {
        let word = |offset: u64| kernel.u64(area.wrapping_add(offset));
        if word(self.running)? == word(self.idle)? {
            return None;
        }
        (0..self.words).try_fold(0, |sum: u64, at| {
            Some(sum.wrapping_add(word(self.statistics.wrapping_add(8 * at))?))
        })
    }

    fn has_cpus_without_timer<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        self.without_timer.is_some_and(|at| kernel.u8(at) != Some(0))
    }

    fn finding<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, cpu: usize, area: u64) -> Finding {
        let task = kernel.u64(area.wrapping_add(self.running)).unwrap_or(0);
        let name = self.name.and_then(|name| kernel.c_string(task.wrapping_add(name), NAME_BYTES));
        Finding {
            what: STALLED.into(),
            address: area,
            symbol: format!("CPU {cpu}"),
            found: format!(
                "none for {} s, in the task {}",
                LOOK_MS * u64::from(LOOKS) / 1000,
                name.unwrap_or_else(|| format!("at {task:#x}"))
            ),
            ..Finding::new(Class::LinuxStalled)
        }
    }
}

/// What the last looks at a CPU saw.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    area: u64,
    sum: u64,
    /// Looks in a row with this sum, on a CPU that was not idle.
    looks: u32,
}

impl Seen {
    /// Looks once more. Returns whether that confirms a stall.
    fn look<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        area: u64,
    ) -> bool {
        match layout.busy_sum(kernel, area) {
            Some(sum) if (area, sum) == (self.area, self.sum) => {
                self.looks = self.looks.saturating_add(1);
            }
            sum => *self = Self { area, sum: sum.unwrap_or(0), looks: 0 },
        }
        self.looks == LOOKS
    }
}

/// The CPU on which Linux panicked.
#[derive(Debug)]
struct Panic {
    /// Address of `panic_cpu`.
    at: u64,
    cpu: u32,
    /// Looks in a row that saw the same CPU.
    looks: u32,
}

impl Panic {
    /// Looks once more. Returns whether that confirms a panic.
    fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> bool {
        let cpu = kernel.u32(self.at).unwrap_or(NO_CPU);
        self.looks = match cpu {
            NO_CPU => 0,
            cpu if cpu == self.cpu => self.looks.saturating_add(1),
            _ => 1,
        };
        self.cpu = cpu;
        self.looks == PANIC_LOOKS
    }

    fn finding(&self) -> Finding {
        Finding {
            what: PANICKED.into(),
            symbol: format!("CPU {}", self.cpu),
            found: format!("for {} s", LOOK_MS * u64::from(PANIC_LOOKS) / 1000),
            ..Finding::new(Class::LinuxPanicked)
        }
    }
}

/// The check `liveness`.
#[derive(Debug)]
pub struct LivenessCheck {
    layout: Option<Layout>,
    panic: Option<Panic>,
    cpus: Vec<Seen>,
    /// Time of the last look.
    looked_ms: u64,
    /// The next CPU of this look; 0 between two looks.
    next: usize,
    unjudged: u64,
}

impl Make for LivenessCheck {
    const ABOUT: About =
        About { name: "liveness", wants: WANTS, share: 2, pass_ms: 0, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        let layout = Layout::new(profile);
        let panic = profile.symbol("panic_cpu").map(|at| Panic { at, cpu: NO_CPU, looks: 0 });
        Ok(Self { layout, panic, cpus: Vec::new(), looked_ms: 0, next: 0, unjudged: 0 })
    }
}

impl<M: KernelMemory> Check<M> for LivenessCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        Coverage { unjudged: self.unjudged, ..Coverage::default() }
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        if what == PANICKED {
            return self.panic.as_ref().is_some_and(|panic| panic.looks >= PANIC_LOOKS);
        }
        self.cpus.iter().any(|seen| seen.area == address && seen.looks >= LOOKS)
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _retries: &mut u64,
    ) -> Step {
        let now = budget.clock_ms();
        if self.next == 0 {
            if now.wrapping_sub(self.looked_ms) < LOOK_MS {
                return Step::Rests;
            }
            self.looked_ms = now;
            if let Some(panic) = &mut self.panic {
                if panic.look(kernel) {
                    found(panic.finding());
                }
            }
        }
        let judged = self.layout.as_ref().filter(|layout| !layout.has_cpus_without_timer(kernel));
        self.unjudged = u64::from(judged.is_none());
        let Some(layout) = judged else {
            (self.next, self.cpus) = (0, Vec::new());
            return Step::Done(0);
        };
        while let Some(area) = layout.areas.of(kernel, self.next as u64) {
            if self.cpus.len() == self.next {
                self.cpus.push(Seen::default());
            }
            if self.cpus[self.next].look(kernel, layout, area) {
                found(layout.finding(kernel, self.next, area));
            }
            self.next += 1;
            if budget.spent() {
                return Step::Spent;
            }
        }
        Step::Done(core::mem::take(&mut self.next) as u64)
    }
}

#[cfg(test)]
mod tests;
