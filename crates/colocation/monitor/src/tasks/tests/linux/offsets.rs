//! Addresses and structure offsets of the small Linux.

use crate::fake::TEXT;

pub const INIT_TASK: u64 = TEXT + 0x1000;
pub const INIT_PID_NS: u64 = TEXT + 0x2000;
pub const TASKLIST_LOCK: u64 = TEXT + 0x3000;
pub const PIDMAP_LOCK: u64 = TEXT + 0x3040;
/// In the upper half of its word, as in 6.1 and 6.12.
pub const CSS_SET_LOCK: u64 = TEXT + 0x3084;
pub const CSS_SET_TABLE: u64 = TEXT + 0x30a0;
pub const INIT_CRED: u64 = TEXT + 0x3200;
pub const INIT_USER_NS: u64 = TEXT + 0x3300;
pub const KPROBE_TABLE: u64 = TEXT + 0x3400;
pub const OPS_LIST: u64 = TEXT + 0x3600;
pub const EXIT_POINT: u64 = TEXT + 0x3640;
pub const CRASH_KEXEC: u64 = TEXT + 0x3700;
pub const AGGREGATE: u64 = TEXT + 0x3710;
pub const ALL_RETURNS: u64 = TEXT + 0x3720;
/// The number of CPUs, 1, and the masks of possible and online CPUs.
pub const CPU_COUNT: u64 = TEXT + 0x3800;
pub const POSSIBLE_CPUS: u64 = TEXT + 0x3808;
pub const ONLINE_CPUS: u64 = TEXT + 0x3810;
/// The table of the CPUs' areas, and the CPU's area.
pub const AREAS: u64 = TEXT + 0x3818;
pub const AREA: u64 = TEXT + 0x3900;
/// Offset in an area of the run queue: the pointers to the task that runs and to the idle task, and the queues.
pub const RUN_QUEUE: u64 = 16;
pub const FAIR: u64 = 64;
/// A bitmap of a word, and a list for each of eight priorities.
pub const REAL_TIME: u64 = 96;
pub const DEADLINE: u64 = 240;
pub const EXTENSIBLE: u64 = 256;
pub const QUEUE_BYTES: u64 = 320;
/// In a queue of fair tasks: the entity that runs, and the tree's root.
pub const FAIR_ROOT: u64 = 8;

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
pub const REAL_CRED: u64 = 232;
pub const MEMORY: u64 = 240;
pub const EXECUTIONS: u64 = 248;
pub const FILTER_MODE: u64 = 252;
pub const WORK: u64 = 256;
pub const TO_DO: u64 = 264;
pub const WAITING: u64 = 272;
pub const MARK: u64 = 280;
pub const TRACER: u64 = 288;
pub const FILTER: u64 = 296;
/// An entity of the fair class: its node, and its own queue if it is a group.
pub const ENTITY: u64 = 304;
pub const GROUP_QUEUE: u64 = 24;
pub const RT_NODE: u64 = 336;
pub const DL_NODE: u64 = 352;
pub const SCX_NODE: u64 = 376;
pub const CHILDREN: u64 = 392;
pub const SIBLING: u64 = 408;
pub const PARENT: u64 = 424;
pub const EXIT_SIGNAL: u64 = 432;
pub const TASK_BYTES: u64 = 440;
// `cred`: four user IDs of 4 bytes from here on.
pub const USERS: u64 = 8;
pub const PERMITTED: u64 = 24;
pub const NAMESPACE: u64 = 32;
pub const EFFECTIVE: u64 = 40;
// `mm_struct`.
pub const VECTOR: u64 = 8;
// `signal_struct`.
pub const SIGNAL_PIDS: u64 = 0;
pub const THREAD_HEAD: u64 = 32;
/// In `sighand_struct`, which is in the same memory.
pub const SIGLOCK: u64 = 56;
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
    ("task_struct.exit_signal", EXIT_SIGNAL, 4),
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
    ("task_struct.real_cred", REAL_CRED, 8),
    ("task_struct.mm", MEMORY, 8),
    ("task_struct.self_exec_id", EXECUTIONS, 4),
    ("task_struct.seccomp.mode", FILTER_MODE, 4),
    ("task_struct.seccomp.filter", FILTER, 8),
    ("task_struct.ptrace", TRACER, 4),
    ("seccomp_filter.cache.allow_native", 8, 8),
    ("task_struct.thread_info.syscall_work", WORK, 8),
    ("cred.uid", USERS, 4),
    ("cred.suid", USERS + 4, 4),
    ("cred.euid", USERS + 8, 4),
    ("cred.fsuid", USERS + 12, 4),
    ("cred.cap_permitted", PERMITTED, 8),
    ("cred.user_ns", NAMESPACE, 8),
    ("cred.cap_effective", EFFECTIVE, 8),
    ("mm_struct.saved_auxv", VECTOR, 64),
    ("task_struct.thread_info.flags", TO_DO, 8),
    ("sighand_struct.siglock", SIGLOCK, 4),
    ("task_struct.pending.signal", WAITING, 8),
    ("task_struct.stack_canary", MARK, 8),
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
    ("rq.curr", 0, 8),
    ("rq.idle", 8, 8),
    ("rq", 0, QUEUE_BYTES),
    ("rq.cfs", FAIR, 32),
    ("rq.rt.active.bitmap", REAL_TIME, 8),
    ("rq.rt.active.queue", REAL_TIME + 8, 128),
    ("rq.dl.root.rb_root.rb_node", DEADLINE, 8),
    ("rq.scx.runnable_list", EXTENSIBLE, 16),
    ("cfs_rq.curr", 0, 8),
    ("cfs_rq.tasks_timeline.rb_root.rb_node", FAIR_ROOT, 8),
    ("sched_entity.run_node", 0, 24),
    ("sched_entity.my_q", GROUP_QUEUE, 8),
    ("sched_rt_entity.run_list", 0, 16),
    ("task_struct.se", ENTITY, 32),
    ("task_struct.rt", RT_NODE, 16),
    ("task_struct.dl.rb_node", DL_NODE, 24),
    ("task_struct.scx.runnable_node", SCX_NODE, 16),
    ("task_struct.children", CHILDREN, 16),
    ("task_struct.sibling", SIBLING, 16),
    ("rb_node.__rb_parent_color", 0, 8),
    ("rb_node.rb_right", 8, 8),
    ("rb_node.rb_left", 16, 8),
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
    ("#SYSCALL_WORK_BIT_SECCOMP", 1, 0),
    ("#PIDTYPE_PID", 0, 0),
    ("#PIDTYPE_TGID", 1, 0),
    ("#PIDTYPE_PGID", 2, 0),
    ("#PIDTYPE_SID", 3, 0),
];
