//! Addresses and structure offsets of the small Linux.

use crate::fake::TEXT;

pub const INIT_TASK: u64 = TEXT + 0x1000;
pub const INIT_PID_NS: u64 = TEXT + 0x2000;
pub const TASKLIST_LOCK: u64 = TEXT + 0x3000;
pub const PIDMAP_LOCK: u64 = TEXT + 0x3040;
/// In the upper half of its word, as in 6.1 and 6.12.
pub const CSS_SET_LOCK: u64 = TEXT + 0x3084;
pub const CSS_SET_TABLE: u64 = TEXT + 0x30a0;
pub const KPROBE_TABLE: u64 = TEXT + 0x3400;
pub const OPS_LIST: u64 = TEXT + 0x3600;
pub const EXIT_POINT: u64 = TEXT + 0x3640;
pub const CRASH_KEXEC: u64 = TEXT + 0x3700;
pub const AGGREGATE: u64 = TEXT + 0x3710;
pub const ALL_RETURNS: u64 = TEXT + 0x3720;

// `task_struct`.
pub const STATE: u64 = 0;
pub const FLAGS: u64 = 8;
pub const EXIT_STATE: u64 = 12;
pub const PID: u64 = 16;
pub const START: u64 = 24;
pub const RUN_TIME: u64 = 32;
pub const COMM: u64 = 40;
pub const SIGNAL: u64 = 56;
pub const LEADER: u64 = 64;
pub const THREAD_PID: u64 = 72;
pub const LINKS: u64 = 80;
pub const TASKS: u64 = 144;
pub const THREAD_NODE: u64 = 160;
pub const THREAD_GROUP: u64 = 176;
pub const CGROUPS: u64 = 192;
pub const CG_LIST: u64 = 200;
pub const SIGHAND: u64 = 216;
pub const ON_RQ: u64 = 224;
pub const ON_CPU: u64 = 228;
pub const TASK_BYTES: u64 = 256;
// `signal_struct`.
pub const SIGNAL_PIDS: u64 = 0;
pub const THREAD_HEAD: u64 = 32;
// `pid`.
pub const PID_TASKS: u64 = 16;
pub const NUMBERS: u64 = 48;
// `xa_node`.
pub const SLOTS: u64 = 40;
pub const MARKS: u64 = 552;
// `css_set`.
pub const DYING: u64 = 32;
pub const HLIST: u64 = 48;

pub const LAYOUTS: &[(&str, u64, u64)] = &[
    ("list_head.next", 0, 8),
    ("list_head.prev", 8, 8),
    ("hlist_head.first", 0, 8),
    ("hlist_node.next", 0, 8),
    ("hlist_node.pprev", 8, 8),
    ("hlist_node", 0, 16),
    ("qrwlock", 0, 8),
    ("qspinlock", 0, 4),
    ("task_struct.__state", STATE, 4),
    ("task_struct.flags", FLAGS, 4),
    ("task_struct.exit_state", EXIT_STATE, 4),
    ("task_struct.pid", PID, 4),
    ("task_struct.tgid", PID + 4, 4),
    ("task_struct.start_time", START, 8),
    ("task_struct.se.sum_exec_runtime", RUN_TIME, 8),
    ("task_struct.comm", COMM, 16),
    ("task_struct.signal", SIGNAL, 8),
    ("task_struct.group_leader", LEADER, 8),
    ("task_struct.thread_pid", THREAD_PID, 8),
    ("task_struct.pid_links", LINKS, 64),
    ("task_struct.tasks", TASKS, 16),
    ("task_struct.thread_node", THREAD_NODE, 16),
    ("task_struct.sighand", SIGHAND, 8),
    ("task_struct.on_rq", ON_RQ, 4),
    ("task_struct.on_cpu", ON_CPU, 4),
    ("task_struct.cgroups", CGROUPS, 8),
    ("task_struct.cg_list", CG_LIST, 16),
    ("signal_struct.pids", SIGNAL_PIDS, 32),
    ("signal_struct.thread_head", THREAD_HEAD, 16),
    ("pid.count", 0, 4),
    ("pid.tasks", PID_TASKS, 32),
    ("pid.numbers", NUMBERS, 0),
    ("upid.nr", 0, 4),
    ("pid_namespace.idr", 16, 24),
    ("idr.idr_rt", 0, 16),
    ("xarray.xa_head", 8, 8),
    ("xa_node.shift", 0, 1),
    ("xa_node.count", 2, 1),
    ("xa_node.slots", SLOTS, 512),
    ("xa_node.marks", MARKS, 24),
    ("css_set.tasks", 0, 16),
    ("css_set.mg_tasks", 16, 16),
    ("css_set.dying_tasks", DYING, 16),
    ("css_set.hlist", HLIST, 16),
    ("ftrace_ops.func", 0, 8),
    ("ftrace_ops.next", 8, 8),
    ("ftrace_ops.saved_func", 16, 8),
    ("kprobe.hlist", 0, 16),
    ("kprobe.list", 16, 16),
    ("kprobe.addr", 32, 8),
    ("kprobe.flags", 40, 4),
    ("kprobe.pre_handler", 48, 8),
    ("kprobe.post_handler", 56, 8),
    ("kretprobe.handler", 64, 8),
    ("tracepoint.funcs", 24, 8),
    ("#PIDTYPE_PID", 0, 0),
    ("#PIDTYPE_TGID", 1, 0),
];
