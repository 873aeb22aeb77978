//! The members of one task.
//!
//! An attacker can write each of them. Those that Linux itself needs to run the task (`signal`, `group_leader`, the
//! `pid` structure, `on_rq`) are believed more than those that Linux only shows or that matter for a moment (`pid`,
//! `start_time`, a state): a forged one of the latter delays a finding, and does not prevent it.

use super::layout::TaskLayout;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::string::String;

/// The highest PID: `PID_MAX_LIMIT` of include/linux/threads.h.
pub const MAX_PID: u64 = 4 << 20;

// include/linux/sched.h.
pub const PF_EXITING: u32 = 4;
const PF_KTHREAD: u32 = 0x20_0000;
const PF_IO_WORKER: u32 = 0x10;
const PF_USER_WORKER: u32 = 0x4000;
const TASK_NEW: u32 = 0x800;
const TASK_DEAD: u32 = 0x80;
const EXIT_DEAD: u32 = 0x10;

/// Tells whether the memory of a task still belongs to the same task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Start time in nanoseconds.
    start: u64,
    pub signal: u64,
}

impl Stamp {
    /// Reads the stamp; `None` if the memory at `task` cannot hold a task.
    pub fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> Option<Self> {
        let start = kernel.u64(task.wrapping_add(layout.start_time))?;
        let signal = kernel.u64(task.wrapping_add(layout.signal))?;
        task.is_multiple_of(16).then_some(Self { start, signal })
    }

    /// Whether both are stamps of the same task, if its start time may have been rewritten.
    pub fn resembles(&self, other: &Self) -> bool {
        self.signal == other.signal
    }
}

/// Identifies a task: the memory of its structure may be reused for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Address of the `task_struct`.
    pub task: u64,
    /// PID in the initial namespace.
    pub pid: u32,
    /// The PID that the task shows.
    pub shown_pid: u32,
    stamp: Stamp,
}

impl Identity {
    /// Reads the identity; `None` if the memory at `task` cannot hold a task.
    pub fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> Option<Self> {
        let stamp = Stamp::read(kernel, layout, task)?;
        let shown_pid = kernel.u32(task.wrapping_add(layout.pid))?;
        let pid_struct = kernel.u64(task.wrapping_add(layout.thread_pid))?;
        let pid = pid_number(kernel, layout, pid_struct).unwrap_or(shown_pid);
        Some(Self { task, pid, shown_pid, stamp })
    }

    /// Whether the task shows a possible PID that is not that of its `pid` structure: one of them is forged.
    pub fn shows_another_pid(&self) -> bool {
        let possible = 1..=MAX_PID as u32;
        self.shown_pid != self.pid && possible.contains(&self.shown_pid)
    }
}

/// The PID in the initial namespace that the `pid` structure at `pid` stands for; `None` if it is free or damaged.
pub fn pid_number<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    pid: u64,
) -> Option<u32> {
    if pid == 0 || !pid.is_multiple_of(8) {
        return None;
    }
    // A count of 0: the structure was freed.
    kernel.u32(pid.wrapping_add(layout.pid_count)).filter(|count| *count != 0)?;
    let number = kernel.u32(pid.wrapping_add(layout.pid_number))?;
    (number != 0 && u64::from(number) <= MAX_PID).then_some(number)
}

/// The state of a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskState {
    pub task: u64,
    pub leader: u64,
    pub signal: u64,
    /// The `pid` structure; 0 after the exit.
    pub pid_struct: u64,
    flags: u32,
    state: u32,
    exit_state: u32,
    sighand: u64,
    queued: bool,
    /// Nanoseconds of CPU time.
    pub run_time: u64,
}

impl TaskState {
    pub fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> Option<Self> {
        let at = |offset: u64| task.wrapping_add(offset);
        let mut on_queue = layout.on_queue.iter().flatten();
        Some(Self {
            task,
            leader: kernel.u64(at(layout.group_leader))?,
            signal: kernel.u64(at(layout.signal))?,
            pid_struct: kernel.u64(at(layout.thread_pid))?,
            flags: kernel.u32(at(layout.flags))?,
            state: kernel.u32(at(layout.state))?,
            exit_state: kernel.u32(at(layout.exit_state))?,
            sighand: kernel.u64(at(layout.sighand))?,
            queued: on_queue.any(|offset| kernel.u32(at(*offset)).is_some_and(|on| on != 0)),
            run_time: kernel.u64(at(layout.run_time))?,
        })
    }

    /// Whether the memory can belong to a live task; freed memory may be reused and hold anything. An exit clears
    /// `signal`, and no task runs without it. The threads of a process share `signal`, and the first one is its own
    /// leader.
    pub fn is_in_use<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &TaskLayout) -> bool {
        let leads = |offset: u64| kernel.u64(self.leader.wrapping_add(offset));
        self.signal != 0
            && leads(layout.group_leader) == Some(self.leader)
            && leads(layout.signal) == Some(self.signal)
    }

    /// Whether the task is the first thread of its process.
    pub fn is_leader(&self) -> bool {
        self.leader == self.task
    }

    /// Whether the task is a kernel thread.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// Whether it is a thread that works for a process within the kernel (io_uring, vhost).
    pub fn is_worker(&self) -> bool {
        self.flags & (PF_IO_WORKER | PF_USER_WORKER) != 0
    }

    /// Whether its fork is unfinished: the task is added to the structures one by one, and has not run yet.
    pub fn is_new(&self) -> bool {
        self.state == TASK_NEW
    }

    /// Whether the task is exiting: its cgroup no longer lists it.
    pub fn is_exiting(&self) -> bool {
        self.flags & PF_EXITING != 0 || self.exit_state != 0
    }

    /// Whether the task is being removed from the structures, or is removed; Linux sets this before the first removal.
    /// A failed fork counts as dead.
    pub fn is_dead(&self) -> bool {
        self.exit_state & EXIT_DEAD != 0 || self.state == TASK_DEAD
    }

    /// Whether an exit has removed the task from the structures, or is about to, and has taken its signal handlers.
    pub fn is_released(&self) -> bool {
        self.sighand == 0
    }

    /// Whether the task claims to be dead, but still has its signal handlers. `__exit_signal` takes them away and
    /// removes the task from the structures in one section under `tasklist_lock`: no exit leaves this state outside of
    /// it. The memory of a failed fork keeps the parent's pointer.
    pub fn is_falsely_dead(&self) -> bool {
        self.exit_state & EXIT_DEAD != 0 && self.state != TASK_DEAD && self.sighand != 0
    }

    /// Whether the task has a CPU or waits for one.
    pub fn is_queued(&self) -> bool {
        self.queued
    }
}

/// Whether the task at `task` neither begins nor ends; `None` if it cannot be read.
pub fn is_settled<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
) -> Option<bool> {
    let member = |offset: u64| kernel.u32(task.wrapping_add(offset));
    Some(
        member(layout.flags)? & PF_EXITING == 0
            && !matches!(member(layout.state)?, TASK_NEW | TASK_DEAD)
            && member(layout.exit_state)? == 0,
    )
}

/// Whether the task at `task` says that it is a kernel thread.
pub fn says_kernel<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
) -> Option<bool> {
    Some(kernel.u32(task.wrapping_add(layout.flags))? & PF_KTHREAD != 0)
}

/// The name of the task at `task`.
pub fn name<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &TaskLayout, task: u64) -> String {
    kernel.c_string(task.wrapping_add(layout.comm), layout.comm_bytes as usize).unwrap_or_default()
}
