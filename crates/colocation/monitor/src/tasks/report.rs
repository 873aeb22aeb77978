//! The findings of this check.

use super::layout::TaskLayout;
use super::pass::Damage;
use super::task::{name, Identity, TaskState};
use super::{repair, view};
use crate::class::Class;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::WalkError;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The names of `views`, separated by commas.
pub fn names(views: u8) -> String {
    let mut text = String::new();
    for (_, name) in view::NAMES.iter().filter(|(view, _)| views & view != 0) {
        if !text.is_empty() {
            text += ", ";
        }
        text += name;
    }
    text
}

/// The finding for a task that is missing from `views`; a pass saw it in those of `seen_in`.
pub fn finding<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: Identity,
    views: u8,
    seen_in: u8,
) -> Finding {
    let task = TaskState::read(kernel, layout, identity.task);
    let start = kernel.u64(identity.task.wrapping_add(layout.start_time));
    let leads = task.is_none_or(|task| task.is_leader());
    let what = match task {
        Some(task) if task.is_kernel_thread() => "hidden kernel thread",
        _ if leads => "hidden process",
        _ => "hidden thread",
    };
    let process = match task {
        Some(task) if !task.is_leader() => {
            let number = kernel.u32(identity.task.wrapping_add(layout.tgid)).unwrap_or(0);
            format!(" of {}, pid {number}", name(kernel, layout, task.leader))
        }
        _ => String::new(),
    };
    // An exit takes the task from its control group early.
    let left_group = view::CGROUP & !seen_in;
    let others = layout.expected(leads) & !views & !left_group;
    let found = match others {
        0 if seen_in & view::QUEUE != 0 => "only in a CPU's run queue".to_string(),
        0 if seen_in & view::ALL == 0 => {
            "only by its parent, process group, session or threads".to_string()
        }
        0 => "in none".to_string(),
        _ => format!("only in {}", names(others)),
    };
    let kind = if leads { "pid" } else { "tid" };
    let number = if identity.shows_another_pid() {
        format!("{} (its pid structure: {})", identity.shown_pid, identity.pid)
    } else {
        identity.pid.to_string()
    };
    Finding {
        what: what.to_string(),
        address: identity.task,
        symbol: format!("{}, {kind} {number}{process}", name(kernel, layout, identity.task)),
        expected: format!("in {}", names(views)),
        found,
        repairs: repair::repairs(kernel, layout, &identity, views),
        stop: start.map_or_else(Vec::new, |it| repair::stop(kernel, layout, identity.task, it)),
        ..Finding::new(Class::ProcessHidden)
    }
}

/// The address by which a damaged list is known.
pub fn damaged_at(layout: &TaskLayout, damage: &Damage) -> u64 {
    if damage.view == view::TASKS {
        layout.init_task
    } else {
        damage.head
    }
}

/// The finding for a list that cannot be walked to its end; `name` gives the name of a task.
pub fn damaged_list(layout: &TaskLayout, damage: &Damage, name: impl Fn(u64) -> String) -> Finding {
    let (what, start) = match damage.view {
        view::TASKS => ("damaged process list", "init_task"),
        view::PID => ("damaged PID index", "init_pid_ns"),
        view::CGROUP => ("damaged control group list", "css_set"),
        _ => ("damaged thread list", "its process"),
    };
    let symbol = match damage.process {
        Some(process) => format!("threads of {}", name(process)),
        None => start.to_string(),
    };
    let found = match damage.error {
        WalkError::WildPointer(address) => {
            format!("a link to {address:#x}, which holds no task")
        }
        WalkError::TooLong => format!("a cycle that never returns to {start}"),
    };
    Finding {
        what: what.to_string(),
        address: damaged_at(layout, damage),
        symbol,
        expected: format!("a list that returns to {start}"),
        found,
        ..Finding::new(Class::ProcessListDamaged)
    }
}
