//! Kernel threads: the functions that they run. All are children of `kthreadd` (`kernel/kthread.c` of Linux).

use super::source::{offset, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;

/// Bytes of a task's name (`TASK_COMM_LEN` in Linux's `sched.h`).
const NAME_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct Threads {
    /// Address of the pointer to `kthreadd`.
    parent: u64,
    children: u64,
    sibling: u64,
    name: u64,
    /// Offset of a task's pointer to what its thread has; offset of the function there.
    thread: u64,
    function: u64,
}

impl Source for Threads {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("kthread", "threadfn", Optional),
            ("task_struct", "children", Optional),
            ("task_struct", "comm", Optional),
            ("task_struct", "sibling", Optional),
            ("task_struct", "worker_private", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden kernel thread";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let task = |member| offset(profile, "task_struct", member);
        Some(Self {
            parent: profile.symbol("kthreadd_task")?,
            children: task("children")?,
            sibling: task("sibling")?,
            name: task("comm")?,
            thread: task("worker_private")?,
            function: offset(profile, "kthread", "threadfn")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let head = kernel.u64(self.parent)?.wrapping_add(self.children);
        let next = visit_list(kernel, head, at, |link| {
            let task = link.wrapping_sub(self.sibling);
            let thread = kernel.u64(task.wrapping_add(self.thread)).filter(|&thread| thread != 0);
            let hook = thread.and_then(|thread| Hook::code(kernel, thread, self.function));
            hook.into_iter().for_each(|hook| see(Hook { object: task, ..hook }));
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.c_string(object.wrapping_add(self.name), NAME_BYTES);
        format!("thread {}", name.unwrap_or_default())
    }
}
