//! Addresses and offsets that the check needs, looked up once.

use super::queues::QueueLayout;
use super::view;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use crate::walk::{offset, Lists, XArrays};
use alloc::format;

/// Maximum length of the cgroup hash table, in lists; Linux has 128.
const MAX_BUCKETS: u64 = 4096;

/// A lock in Linux.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// Virtual address.
    pub address: u64,
    /// Size in bytes, 4 or 8, within one word.
    pub bytes: u64,
    /// The bits that are set while there is a writer.
    pub writer: u64,
}

impl Lock {
    /// The word that holds the lock: its address, its value, and the mask of the lock's bits.
    pub fn word<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> Option<(u64, u64, u64)> {
        let word = self.address & !7;
        let mask =
            if self.bytes == 8 { u64::MAX } else { 0xffff_ffff << (8 * (self.address - word)) };
        Some((word, kernel.u64(word)?, mask))
    }

    /// Whether no writer holds the lock; readers do not matter.
    pub fn has_no_writer<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        kernel.uint(self.address, self.bytes).is_some_and(|value| value & self.writer == 0)
    }
}

/// The cgroup lists.
#[derive(Clone, Copy, Debug)]
pub struct CgroupLayout {
    /// Address and length of the hash table of `css_set`.
    pub table: u64,
    pub buckets: u64,
    /// Offsets in `css_set`.
    pub hlist: u64,
    pub lists: [u64; 3],
    /// Offsets in `task_struct`.
    pub of_task: u64,
    pub node: u64,
    pub lock: Lock,
}

/// Where a signal for a process waits.
#[derive(Clone, Copy, Debug)]
pub struct SignalLayout {
    /// Offset of the lock in `sighand_struct`.
    pub lock: u64,
    /// Offset in `task_struct` of the signals that wait for the thread, as bits.
    pub waiting: u64,
    /// Offset in `task_struct` of the flags of what is to be done before the task returns to user mode.
    pub work: u64,
}

/// Where a task's relatives are. Every process is among its parent's children, and in the lists of its process group
/// and its session at their PIDs.
#[derive(Clone, Copy, Debug)]
pub struct RelativeLayout {
    /// Offsets in `task_struct`.
    pub children: u64,
    pub sibling: u64,
    /// Offsets in `task_struct` and `pid` of what `pid_links` and `tasks` have for groups and sessions.
    pub links: [u64; 2],
    pub lists: [u64; 2],
}

/// Addresses of variables and offsets of members.
#[derive(Clone, Debug)]
pub struct TaskLayout {
    pub lists: Lists,
    pub xarrays: XArrays,
    pub init_task: u64,
    /// Address of the xarray of `init_pid_ns.idr`.
    pub pid_index: u64,
    pub tasklist_lock: Lock,
    pub pidmap_lock: Lock,
    // In `task_struct`.
    pub tasks: u64,
    pub thread_node: u64,
    pub thread_group: Option<u64>,
    pub pid: u64,
    pub tgid: u64,
    pub start_time: u64,
    pub run_time: u64,
    pub flags: u64,
    pub state: u64,
    pub exit_state: u64,
    /// Less than 0 unless the task is the first thread of its process.
    pub exit_signal: Option<u64>,
    pub sighand: u64,
    /// `on_rq` and `on_cpu`: nonzero while the task waits for a CPU, or has one.
    pub on_queue: [Option<u64>; 2],
    pub comm: u64,
    pub comm_bytes: u64,
    pub signal: u64,
    pub group_leader: u64,
    pub thread_pid: u64,
    pub pid_links: [u64; 2],
    // In `signal_struct`.
    pub thread_head: u64,
    pub signal_tgid: u64,
    // In `pid`.
    pub pid_tasks: [u64; 2],
    pub pid_number: u64,
    pub pid_count: u64,
    pub groups: Option<CgroupLayout>,
    /// What ends a process; `None` if the kernel does not describe it.
    pub signals: Option<SignalLayout>,
    /// Where else a task is; `None` if the kernel does not describe it.
    pub queues: Option<QueueLayout>,
    pub relatives: Option<RelativeLayout>,
}

impl TaskLayout {
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        let symbol = |name: &str| {
            profile.symbol(name).ok_or_else(|| ProfileError::Missing(format!("symbol {name}")))
        };
        let constant = |name: &str| {
            let value = profile.constant(name).filter(|value| *value < 16);
            value.ok_or_else(|| ProfileError::Missing(format!("constant {name}")))
        };
        let task = |path: &str| offset(profile, "task_struct", path);
        let types = [constant("PIDTYPE_PID")?, constant("PIDTYPE_TGID")?];
        let (pid_links, pid_tasks) = (task("pid_links")?, offset(profile, "pid", "tasks")?);
        let node = profile.size_of("hlist_node").unwrap_or(16);
        let comm = profile.field("task_struct", "comm").map_or(0, |field| field.bytes.min(64));
        if profile.size_of("qrwlock") != Some(8) || profile.size_of("qspinlock") != Some(4) {
            return Err(ProfileError::Malformed("qrwlock or qspinlock has an unexpected size"));
        }
        Ok(Self {
            lists: Lists::new(profile)?,
            xarrays: XArrays::new(profile)?,
            init_task: symbol("init_task")?,
            pid_index: symbol("init_pid_ns")?
                .wrapping_add(offset(profile, "pid_namespace", "idr")?)
                .wrapping_add(offset(profile, "idr", "idr_rt")?),
            // The lowest byte is the writer's (include/asm-generic/qrwlock.h).
            tasklist_lock: Lock { address: symbol("tasklist_lock")?, bytes: 8, writer: 0xff },
            pidmap_lock: Lock { address: symbol("pidmap_lock")?, bytes: 4, writer: u64::MAX },
            tasks: task("tasks")?,
            thread_node: task("thread_node")?,
            thread_group: task("thread_group").ok(),
            pid: task("pid")?,
            tgid: task("tgid")?,
            start_time: task("start_time")?,
            run_time: task("se.sum_exec_runtime")?,
            flags: task("flags")?,
            state: task("__state")?,
            exit_state: task("exit_state")?,
            exit_signal: task("exit_signal").ok(),
            sighand: task("sighand")?,
            on_queue: [task("on_rq").ok(), task("on_cpu").ok()],
            comm: task("comm")?,
            comm_bytes: comm,
            signal: task("signal")?,
            group_leader: task("group_leader")?,
            thread_pid: task("thread_pid")?,
            pid_links: types.map(|kind| pid_links + kind * node),
            thread_head: offset(profile, "signal_struct", "thread_head")?,
            signal_tgid: offset(profile, "signal_struct", "pids")? + types[1] * 8,
            pid_tasks: types.map(|kind| pid_tasks + kind * 8),
            pid_number: offset(profile, "pid", "numbers")? + offset(profile, "upid", "nr")?,
            pid_count: offset(profile, "pid", "count")?,
            groups: groups(profile).ok(),
            signals: signals(profile),
            queues: QueueLayout::new(profile),
            relatives: relatives(profile, node),
        })
    }

    /// The views that must have a task; `leader`: the first thread of a process.
    pub fn expected(&self, leader: bool) -> u8 {
        let group = if self.groups.is_some() { view::CGROUP } else { 0 };
        let ring = if self.thread_group.is_some() && !leader { view::GROUP } else { 0 };
        let process = if leader { view::TASKS | view::TGID } else { 0 };
        view::THREADS | view::PID | group | ring | process
    }

    /// The locks that guard `views`.
    pub fn locks(&self, views: u8) -> impl Iterator<Item = Lock> {
        let groups = self.groups.filter(|_| views & view::CGROUP != 0).map(|groups| groups.lock);
        let numbers = (views & view::PID != 0).then_some(self.pidmap_lock);
        let lists = (views & !view::CGROUP != 0).then_some(self.tasklist_lock);
        lists.into_iter().chain(numbers).chain(groups)
    }
}

fn signals(profile: &Profile<'_>) -> Option<SignalLayout> {
    let offset = |structure, path| profile.field(structure, path).map(|field| field.offset);
    Some(SignalLayout {
        lock: offset("sighand_struct", "siglock")?,
        waiting: offset("task_struct", "pending.signal")?,
        work: offset("task_struct", "thread_info.flags").filter(|offset| offset % 8 == 0)?,
    })
}

/// `node`: the size of a list's node.
fn relatives(profile: &Profile<'_>, node: u64) -> Option<RelativeLayout> {
    let offset = |structure, path| profile.field(structure, path).map(|field| field.offset);
    let kind = |name| profile.constant(name).filter(|kind| *kind < 16);
    let kinds = [kind("PIDTYPE_PGID")?, kind("PIDTYPE_SID")?];
    let (links, lists) = (offset("task_struct", "pid_links")?, offset("pid", "tasks")?);
    Some(RelativeLayout {
        children: offset("task_struct", "children")?,
        sibling: offset("task_struct", "sibling")?,
        links: kinds.map(|kind| links + kind * node),
        lists: kinds.map(|kind| lists + kind * 8),
    })
}

fn groups(profile: &Profile<'_>) -> Result<CgroupLayout, ProfileError> {
    let symbol = |name: &str| {
        profile.symbol(name).ok_or_else(|| ProfileError::Missing(format!("symbol {name}")))
    };
    let table = symbol("css_set_table")?;
    let behind =
        profile.symbols_from(table.saturating_add(1)).next().map_or(table, |symbol| symbol.address);
    let list = |name: &str| offset(profile, "css_set", name);
    Ok(CgroupLayout {
        table,
        buckets: ((behind - table) / 8).min(MAX_BUCKETS),
        hlist: list("hlist")?,
        lists: [list("tasks")?, list("mg_tasks")?, list("dying_tasks")?],
        of_task: offset(profile, "task_struct", "cgroups")?,
        node: offset(profile, "task_struct", "cg_list")?,
        lock: Lock { address: symbol("css_set_lock")?, bytes: 4, writer: u64::MAX },
    })
}
