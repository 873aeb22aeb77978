//! The findings of this check.

use super::layout::TaskLayout;
use super::task::{name, Identity, TaskState};
use super::{repair, view};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::WalkError;
use alloc::format;
use alloc::string::{String, ToString};

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

/// The finding for a task that is missing from `views`.
pub fn finding<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: Identity,
    views: u8,
) -> Finding {
    let task = TaskState::read(kernel, layout, identity.task);
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
    let others = layout.expected(leads) & !views;
    let found =
        if others == 0 { "in none".to_string() } else { format!("only in {}", names(others)) };
    let kind = if leads { "pid" } else { "tid" };
    Finding {
        what: what.to_string(),
        address: identity.task,
        symbol: format!(
            "{}, {kind} {}{process}",
            name(kernel, layout, identity.task),
            identity.pid
        ),
        owner: "nobody".to_string(),
        expected: format!("in {}", names(views)),
        found,
        repairs: repair::repairs(kernel, layout, &identity, views),
    }
}

/// The finding for a process list that cannot be walked to its end.
pub fn damaged_list(layout: &TaskLayout, error: WalkError) -> Finding {
    let (address, found) = match error {
        WalkError::WildPointer(address) => {
            (address, format!("a link to {address:#x}, which holds no process"))
        }
        WalkError::TooLong => {
            (layout.init_task, "a cycle that never returns to init_task".to_string())
        }
    };
    Finding {
        what: "damaged process list".to_string(),
        address,
        symbol: "init_task".to_string(),
        owner: "nobody".to_string(),
        expected: "a list that returns to init_task".to_string(),
        found,
        repairs: alloc::vec::Vec::new(),
    }
}
