//! The io_uring instances that tasks use, for people (`include/linux/io_uring_types.h` and `io_uring/tctx.h` of Linux).
//!
//! By a ring, a process has Linux read, write, connect and open without a system call that others could watch. A task
//! keeps the rings that it has used in an xarray; one that it has closed meanwhile stays there while another has it.
//! Besides, a ring is an open file, also of a process that got it from another one, and after the thread that made it
//! has ended.

#[cfg(test)]
mod tests;

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use crate::tasks::listing::{self, Task};
use crate::walk::{XArrayEntry, XArrays};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Maximum number of steps over the rings of a task, and of rings of all tasks.
const MAX_STEPS: u32 = 1 << 12;
const MAX_RINGS: usize = 1 << 16;
/// Maximum number of open files of a process.
const MAX_FILES: u64 = 1 << 16;
/// A kernel thread fetches the requests (`IORING_SETUP_SQPOLL`).
const POLLED: u32 = 1 << 1;

pub(crate) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("fdtable", "fd", Optional),
        ("fdtable", "max_fds", Optional),
        ("file", "f_op", Optional),
        ("file", "private_data", Optional),
        ("files_struct", "fdt", Optional),
        ("io_ring_ctx", "cq_entries", Optional),
        ("io_ring_ctx", "flags", Optional),
        ("io_ring_ctx", "nr_user_bufs", Optional),
        ("io_ring_ctx", "nr_user_files", Optional),
        ("io_ring_ctx", "sq_data", Optional),
        ("io_ring_ctx", "sq_entries", Optional),
        ("io_sq_data", "thread", Optional),
        ("io_tctx_node", "ctx", Optional),
        ("io_uring_task", "xa", Optional),
        ("task_struct", "files", Optional),
        ("task_struct", "io_uring", Optional),
        ("task_struct", "pid", Optional),
    ],
    constants: &[],
};

/// A ring that a process has used, or has as an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Address of the `struct io_ring_ctx`.
    pub address: u64,
    /// The first of the process's threads that has used it or has the file.
    pub user: Task,
    /// Number of requests, and of results, that it has room for.
    pub entries: [u32; 2],
    /// PID of the kernel thread that fetches its requests; 0 if that has ended. `None` if system calls hand them in.
    pub polled_by: Option<u32>,
    /// Number of files that were registered with it, and of buffers; `None` if the kernel does not say.
    pub registered: [Option<u32>; 2],
}

/// The rings of one walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// The rings, by the processes' PIDs.
    pub rings: Vec<Ring>,
    /// Whether every structure was walked to its end.
    pub is_complete: bool,
}

struct Layout {
    /// Offset in a task of the pointer to its record, and there of the xarray.
    record: u64,
    xarray: u64,
    xarrays: XArrays,
    /// Offset in an entry of the pointer to the ring.
    ring: u64,
    entries: [u64; 2],
    flags: u64,
    /// Offsets of the pointers to what the kernel thread has, and there to that thread; of its PID.
    thread: [u64; 2],
    pid: u64,
    registered: [Option<u64>; 2],
    files: Files,
}

/// Where a process has its open files, and how a ring's is told from others.
struct Files {
    /// Offset in a task of the pointer to the process's files, and there of that to the table.
    table: [u64; 2],
    /// Offsets in the table of its number of places, and of the pointer to them.
    places: [u64; 2],
    /// Offsets in a file of the pointers to its operations and to what they work on; the operations of a ring.
    operations: u64,
    private: u64,
    of_ring: u64,
}

impl Files {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let at = |of: &str, member: &str| Some(profile.field(of, member)?.offset);
        Some(Self {
            table: [at("task_struct", "files")?, at("files_struct", "fdt")?],
            places: [at("fdtable", "max_fds")?, at("fdtable", "fd")?],
            operations: at("file", "f_op")?,
            private: at("file", "private_data")?,
            of_ring: profile.symbol("io_uring_fops")?,
        })
    }

    /// The address of the open files of the task at `task`; 0 without any.
    fn of<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, task: u64) -> u64 {
        kernel.u64(task.wrapping_add(self.table[0])).unwrap_or(0)
    }

    /// The addresses of the rings among the open files at `files`, and whether these are all.
    fn rings<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, files: u64) -> (Vec<u64>, bool) {
        let word = |at: u64| kernel.u64(at).filter(|&word| word != 0);
        let places = || {
            let table = word(files.wrapping_add(self.table[1]))?;
            let count = kernel.u32(table.wrapping_add(self.places[0]))?;
            Some((u64::from(count), word(table.wrapping_add(self.places[1]))?))
        };
        let Some((count, first)) = places().filter(|_| files != 0) else {
            return (Vec::new(), files == 0);
        };
        let open =
            (0..count.min(MAX_FILES)).filter_map(|place| word(first.wrapping_add(8 * place)));
        let rings =
            open.filter(|file| word(file.wrapping_add(self.operations)) == Some(self.of_ring));
        let rings = rings.filter_map(|file| word(file.wrapping_add(self.private)));
        (rings.collect(), count <= MAX_FILES)
    }
}

impl Layout {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let at = |of: &str, member: &str| Some(profile.field(of, member)?.offset);
        let ring = |member: &str| at("io_ring_ctx", member);
        Some(Self {
            record: at("task_struct", "io_uring")?,
            xarray: at("io_uring_task", "xa")?,
            xarrays: XArrays::new(profile).ok()?,
            ring: at("io_tctx_node", "ctx")?,
            entries: [ring("sq_entries")?, ring("cq_entries")?],
            flags: ring("flags")?,
            thread: [ring("sq_data")?, at("io_sq_data", "thread")?],
            pid: at("task_struct", "pid")?,
            registered: ["nr_user_files", "nr_user_bufs"].map(ring),
            files: Files::new(profile)?,
        })
    }

    /// The addresses of the rings that the task at `task` has used, and whether these are all.
    fn addresses<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, task: u64) -> (Vec<u64>, bool) {
        let mut addresses = Vec::new();
        let record = kernel.u64(task.wrapping_add(self.record));
        let Some(record) = record.filter(|record| *record != 0) else { return (addresses, true) };
        let mut index = 0;
        for _ in 0..MAX_STEPS {
            match self.xarrays.next(kernel, record.wrapping_add(self.xarray), index) {
                Ok(XArrayEntry::Found(at, node)) => {
                    addresses.extend(kernel.u64(node.wrapping_add(self.ring)));
                    // No ring lies at the last address.
                    index = at.saturating_add(1);
                }
                Ok(XArrayEntry::Gap(at)) => index = at,
                Ok(XArrayEntry::End) => return (addresses, true),
                Err(_) => return (addresses, false),
            }
        }
        (addresses, false)
    }

    /// The ring at `address`, which `user` has used; `None` if its memory cannot be read.
    fn read<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        address: u64,
        user: &Task,
    ) -> Option<Ring> {
        let number = |offset: u64| kernel.u32(address.wrapping_add(offset));
        let thread = || {
            let [data, thread] = self.thread;
            let data = kernel.u64(address.wrapping_add(data)).filter(|data| *data != 0)?;
            let thread = kernel.u64(data.wrapping_add(thread)).filter(|thread| *thread != 0)?;
            kernel.u32(thread.wrapping_add(self.pid))
        };
        let is_polled = number(self.flags)? & POLLED != 0;
        Some(Ring {
            address,
            user: user.clone(),
            entries: [number(self.entries[0])?, number(self.entries[1])?],
            polled_by: is_polled.then(|| thread().unwrap_or(0)),
            registered: self.registered.map(|offset| number(offset?)),
        })
    }
}

/// Walks over all tasks once; `None` if the kernel has no rings, or does not describe them.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that a walk over tasks needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Option<Rings>, ProfileError> {
    let Some(layout) = Layout::new(kernel.profile) else { return Ok(None) };
    let tasks = listing::list(kernel)?;
    Ok(Some(of_tasks(kernel, &layout, &tasks.tasks, tasks.is_complete)))
}

fn of_tasks<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    tasks: &[Task],
    mut is_complete: bool,
) -> Rings {
    let mut rings = Vec::new();
    let (mut known, mut looked) = (BTreeSet::new(), BTreeSet::new());
    for task in tasks {
        let (mut addresses, is_whole) = layout.addresses(kernel, task.address);
        is_complete &= is_whole;
        // Most threads of a process have the same files.
        let files = layout.files.of(kernel, task.address);
        if looked.insert((task.process, files)) {
            let (open, is_whole) = layout.files.rings(kernel, files);
            is_complete &= is_whole;
            addresses.extend(open);
        }
        for address in addresses {
            if known.contains(&(task.process, address)) {
                continue;
            }
            let Some(ring) = layout.read(kernel, address, task) else { continue };
            if rings.len() == MAX_RINGS {
                is_complete = false;
                break;
            }
            known.insert((task.process, address));
            rings.push(ring);
        }
    }
    rings.sort_by_key(|ring| (ring.user.process, ring.address));
    Rings { rings, is_complete }
}
