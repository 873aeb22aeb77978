//! The CPUs, and the tasks that run on them, as the kernel's structures have them, for people.
//!
//! A task that is in no list of tasks needs a CPU all the same, and the CPU's run queue has it meanwhile.

#[cfg(test)]
mod tests;

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use crate::tasks::listing;
use crate::walk::{is_in_mask, Areas};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of a task's name (`TASK_COMM_LEN`).
const NAME_BYTES: usize = 16;

pub(crate) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("rq", "curr", Optional),
        ("rq", "idle", Optional),
        ("task_struct", "comm", Optional),
        ("task_struct", "pid", Optional),
        ("task_struct", "start_time", Optional),
    ],
    constants: &[],
};

/// The task that runs on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Address of the `task_struct`.
    pub address: u64,
    /// The PID that it shows; 0 if the CPU is idle.
    pub pid: u32,
    /// Nanoseconds from the boot to its start.
    pub start: u64,
    /// Its name, of printable ASCII.
    pub name: String,
    /// Whether no list of tasks has it.
    pub is_unlisted: bool,
    /// Whether it says that it begins or ends.
    pub is_in_flux: bool,
}

/// A CPU that the machine has, or that can be added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number in Linux.
    pub number: u64,
    /// Whether Linux runs on it.
    pub is_online: bool,
    /// The task that runs on it; `None` if it cannot be read.
    pub task: Option<Running>,
    /// Address of its descriptor table.
    pub descriptors: u64,
    /// Address of its task state segment.
    pub task_state: u64,
}

/// The CPUs of one walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// The CPUs, by number.
    pub cpus: Vec<Cpu>,
    /// Whether all could be read, and all lists of tasks were walked to their ends.
    pub is_complete: bool,
}

/// Where the state of a CPU lies.
#[derive(Debug)]
struct Layout {
    areas: Areas,
    /// Addresses of the masks of CPUs that can be there, and of those on which Linux runs.
    possible: u64,
    online: u64,
    /// Offsets in an area: the task that runs, the one of an idle CPU, the descriptors, and the task state segment.
    running: u64,
    idle: u64,
    descriptors: u64,
    task_state: u64,
    // In `task_struct`.
    pid: u64,
    start: u64,
    name: u64,
}

impl Layout {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
        let queue = profile.symbol("runqueues")?;
        Some(Self {
            areas: Areas::new(profile)?,
            possible: profile.symbol("__cpu_possible_mask")?,
            online: profile.symbol("__cpu_online_mask")?,
            running: queue.wrapping_add(offset("rq", "curr")?),
            idle: queue.wrapping_add(offset("rq", "idle")?),
            descriptors: profile.symbol("gdt_page")?,
            task_state: profile.symbol("cpu_tss_rw")?,
            pid: offset("task_struct", "pid")?,
            start: offset("task_struct", "start_time")?,
            name: offset("task_struct", "comm")?,
        })
    }

    /// The CPUs, and the tasks that are not idle tasks.
    fn walk<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> (Cpus, BTreeSet<u64>) {
        let mut all = Cpus { cpus: Vec::new(), is_complete: true };
        let mut busy = BTreeSet::new();
        for number in 0.. {
            let Some(area) = self.areas.of(kernel, number) else { break };
            let is_in = |mask| is_in_mask(kernel, mask, number);
            let (Some(is_possible), Some(is_online)) = (is_in(self.possible), is_in(self.online))
            else {
                all.is_complete = false;
                break;
            };
            if !is_possible && !is_online {
                continue;
            }
            let word = |offset: u64| kernel.u64(area.wrapping_add(offset));
            let task = word(self.running).and_then(|task| self.read(kernel, task));
            match &task {
                Some(task) if word(self.idle) != Some(task.address) => {
                    busy.insert(task.address);
                }
                Some(_) => {}
                None => all.is_complete &= !is_online,
            }
            all.cpus.push(Cpu {
                number,
                is_online,
                task,
                descriptors: area.wrapping_add(self.descriptors),
                task_state: area.wrapping_add(self.task_state),
            });
        }
        (all, busy)
    }

    fn read<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, address: u64) -> Option<Running> {
        let at = |offset: u64| address.wrapping_add(offset);
        Some(Running {
            address,
            pid: kernel.u32(at(self.pid))?,
            start: kernel.u64(at(self.start))?,
            name: kernel.c_string(at(self.name), NAME_BYTES)?,
            is_unlisted: false,
            is_in_flux: false,
        })
    }
}

/// Walks over the CPUs, and over all lists of tasks, once; `None` if the kernel does not describe its CPUs.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that the walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Option<Cpus>, ProfileError> {
    let Some(layout) = Layout::new(kernel.profile) else { return Ok(None) };
    // Before the lists: a task that begins later is in none of them.
    let (mut all, mut unlisted) = layout.walk(kernel);
    let listed = listing::in_lists(kernel)?;
    all.is_complete &= listed.is_complete;
    listed.tasks.iter().for_each(|task| {
        unlisted.remove(&task.address);
    });
    for task in all.cpus.iter_mut().filter_map(|cpu| cpu.task.as_mut()) {
        task.is_unlisted = listed.is_complete && unlisted.contains(&task.address);
        task.is_in_flux = task.is_unlisted && !listing::is_settled(kernel, task.address)?;
    }
    Ok(Some(all))
}
