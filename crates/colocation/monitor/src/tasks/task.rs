//! One task, read.

use super::layout::TaskLayout;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::string::String;

/// Highest process number: `PID_MAX_LIMIT` of include/linux/threads.h.
pub const MAX_PID: u64 = 4 << 20;

// include/linux/sched.h.
const PF_EXITING: u32 = 4;
const PF_KTHREAD: u32 = 0x20_0000;
const TASK_NEW: u32 = 0x800;
const TASK_DEAD: u32 = 0x80;
const EXIT_DEAD: u32 = 0x10;

/// Which task: its structure's memory may have become another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Address of the `task_struct`.
    pub task: u64,
    /// Its number in the first namespace.
    pub pid: u32,
    /// When it began, in nanoseconds.
    pub start: u64,
}

impl Identity {
    /// `None` where the memory at `task` holds no task.
    pub fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> Option<Self> {
        let pid = kernel.u32(task.wrapping_add(layout.pid))?;
        let start = kernel.u64(task.wrapping_add(layout.start_time))?;
        (task % 16 == 0 && pid != 0 && u64::from(pid) <= MAX_PID).then_some(Self {
            task,
            pid,
            start,
        })
    }

    /// Whether it is still this task that lies there.
    pub fn is_current<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &TaskLayout) -> bool {
        Self::read(kernel, layout, self.task) == Some(*self)
    }
}

/// What a task is doing.
#[derive(Clone, Copy, Debug)]
pub struct TaskState {
    pub task: u64,
    pub leader: u64,
    pub signal: u64,
    /// Its `pid` structure; 0 after its exit.
    pub pid_struct: u64,
    flags: u32,
    state: u32,
    exit_state: u32,
    /// Nanoseconds that it has run.
    pub run_time: u64,
}

impl TaskState {
    pub fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: u64,
    ) -> Option<Self> {
        let at = |offset: u64| task.wrapping_add(offset);
        Some(Self {
            task,
            leader: kernel.u64(at(layout.group_leader))?,
            signal: kernel.u64(at(layout.signal))?,
            pid_struct: kernel.u64(at(layout.thread_pid))?,
            flags: kernel.u32(at(layout.flags))?,
            state: kernel.u32(at(layout.state))?,
            exit_state: kernel.u32(at(layout.exit_state))?,
            run_time: kernel.u64(at(layout.run_time))?,
        })
    }

    /// Whether the memory can be a task's that is in use: what was a task may have been given to someone else, and hold
    /// anything. A release clears `signal`, which no task can run without; a process's threads share it, and its first
    /// one leads itself.
    pub fn in_use<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, layout: &TaskLayout) -> bool {
        let leads = |offset: u64| kernel.u64(self.leader.wrapping_add(offset));
        self.signal != 0
            && leads(layout.group_leader) == Some(self.leader)
            && leads(layout.signal) == Some(self.signal)
    }

    /// Whether it is the first thread of its process.
    pub fn is_leader(&self) -> bool {
        self.leader == self.task
    }

    /// Whether it is a thread of the kernel's own.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// Whether its fork is not finished: it is entered into the structures one by one, and never ran.
    pub fn is_new(&self) -> bool {
        self.state == TASK_NEW
    }

    /// Whether it is leaving: control groups have let it go already.
    pub fn is_exiting(&self) -> bool {
        self.flags & PF_EXITING != 0 || self.exit_state != 0
    }

    /// Whether it is being taken out of all structures, or is out; this is set before the first of them. A fork that
    /// failed is dead too.
    pub fn is_dead(&self) -> bool {
        self.exit_state & EXIT_DEAD != 0 || self.state == TASK_DEAD
    }
}

/// The name of a task.
pub fn name<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &TaskLayout, task: u64) -> String {
    kernel.c_string(task.wrapping_add(layout.comm), layout.comm_bytes as usize).unwrap_or_default()
}
