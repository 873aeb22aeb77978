//! The tasks that the kernel's structures have now, for people.

use super::layout::TaskLayout;
use super::pass::{Pass, Progress};
use super::seen::SeenTasks;
use super::suspect::{excuse, lacking, Excuse};
use super::task::{name, Identity, TaskState};
use super::{view, MAX_TASKS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::ProfileError;
use crate::random::Random;
use alloc::string::String;
use alloc::vec::Vec;

/// A task, as the kernel's structures have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Address of the `task_struct`.
    pub address: u64,
    /// PID of the thread in the initial namespace.
    pub pid: u32,
    /// PID of its process.
    pub process: u32,
    /// Nanoseconds from the boot to its start.
    pub start: u64,
    /// Its name, of printable ASCII.
    pub name: String,
    /// Whether it is the first thread of its process.
    pub is_leader: bool,
    /// Whether it is a kernel thread.
    pub is_kernel_thread: bool,
    /// The structures that must have it and do not.
    pub missing: Vec<&'static str>,
    /// Whether it begins or ends, so that Linux may be adding it to the structures or removing it.
    pub is_in_flux: bool,
}

/// The tasks of one walk over all structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// The tasks, by PID.
    pub tasks: Vec<Task>,
    /// Whether all structures were walked to their ends.
    pub is_complete: bool,
}

/// Walks over all structures once. The idle tasks, whose PID is 0, are left out.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that the walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Tasks, ProfileError> {
    walk(kernel, TaskLayout::new(kernel.profile)?)
}

/// The same, without the run queues and what leads from one process to another: the tasks that Linux knows.
pub(crate) fn in_lists<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Tasks, ProfileError> {
    let layout = TaskLayout::new(kernel.profile)?;
    walk(kernel, TaskLayout { queues: None, relatives: None, ..layout })
}

fn walk<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: TaskLayout,
) -> Result<Tasks, ProfileError> {
    let mut random = Random::new(0);
    let mut seen = SeenTasks::new(MAX_TASKS, &mut random);
    let mut pass = Pass::new(&layout, &mut random, 0, 0, u32::MAX);
    while pass.advance(kernel, &layout, &mut seen) == Progress::More {}
    let found = (0..seen.slots()).filter_map(|slot| seen.take(slot));
    let mut tasks: Vec<Task> = found
        .filter_map(|(task, bits)| read(kernel, &layout, task, bits, pass.incomplete))
        .collect();
    tasks.sort_by_key(|task| (task.pid, task.address));
    let is_complete = pass.incomplete == 0 && pass.unjudged == 0 && pass.damages.is_empty();
    Ok(Tasks { tasks, is_complete })
}

/// Whether the memory at `task` holds a task that neither begins nor ends.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that a task needs.
pub(crate) fn is_settled<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    task: u64,
) -> Result<bool, ProfileError> {
    let layout = TaskLayout::new(kernel.profile)?;
    let state = TaskState::read(kernel, &layout, task);
    Ok(state.is_some_and(|state| !state.is_new() && !state.is_exiting() && !state.is_dead()))
}

/// The task at `task`, which the views `bits` have; `None` if its memory holds none, or an idle task.
fn read<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
    bits: u8,
    incomplete: u8,
) -> Option<Task> {
    let state = TaskState::read(kernel, layout, task)?;
    let identity = Identity::read(kernel, layout, task)?;
    if task == layout.init_task || identity.pid == 0 || !state.is_in_use(kernel, layout) {
        return None;
    }
    let (missing, unreached) =
        lacking(kernel, layout, &identity, &state, bits, incomplete).unwrap_or_default();
    let is_missing = |view: u8| (missing | unreached) & view != 0;
    let leader = Identity::read(kernel, layout, state.leader)?;
    Some(Task {
        address: task,
        pid: identity.pid,
        process: leader.pid,
        start: kernel.u64(task.wrapping_add(layout.start_time))?,
        name: name(kernel, layout, task),
        is_leader: state.is_leader(),
        is_kernel_thread: state.is_kernel_thread(),
        missing: view::NAMES
            .iter()
            .filter(|(view, _)| is_missing(*view))
            .map(|(_, name)| *name)
            .collect(),
        is_in_flux: excuse(kernel, layout, &identity, &state) != Excuse::None,
    })
}
