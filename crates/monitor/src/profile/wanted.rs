//! What the checks ask a profile for: the one list. A new check adds its lines here.

/// Whether a kernel can be without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No profile without it.
    Required,
    /// The check that wants it does without, or does not run.
    Optional,
}

use Need::{Optional, Required};

/// Symbols without which no profile is made. All others are in it as well.
pub const SYMBOLS: &[&str] = &[
    "_text",
    "_end",
    "_etext",
    "__start_rodata",
    "__end_rodata",
    "init_task",
    "init_top_pgt",
    "init_pid_ns",
    "tasklist_lock",
    "pidmap_lock",
];

/// Structure, path of the member, need. The size of every structure named here is in the profile too.
pub const MEMBERS: &[(&str, &str, Need)] = &[
    ("list_head", "next", Required),
    ("list_head", "prev", Required),
    ("hlist_head", "first", Required),
    ("hlist_node", "next", Required),
    ("hlist_node", "pprev", Required),
    // Tasks.
    ("task_struct", "__state", Required),
    ("task_struct", "cg_list", Optional),
    ("task_struct", "cgroups", Optional),
    ("task_struct", "comm", Required),
    ("task_struct", "exit_state", Required),
    ("task_struct", "flags", Required),
    ("task_struct", "group_leader", Required),
    ("task_struct", "pid", Required),
    ("task_struct", "pid_links", Required),
    ("task_struct", "se.sum_exec_runtime", Required),
    ("task_struct", "signal", Required),
    ("task_struct", "start_time", Required),
    ("task_struct", "tasks", Required),
    ("task_struct", "tgid", Required),
    ("task_struct", "thread_node", Required),
    ("task_struct", "thread_pid", Required),
    ("signal_struct", "pids", Required),
    ("signal_struct", "thread_head", Required),
    ("pid", "numbers", Required),
    ("pid", "tasks", Required),
    ("upid", "nr", Required),
    ("pid_namespace", "idr", Required),
    ("idr", "idr_rt", Required),
    ("xarray", "xa_flags", Required),
    ("xarray", "xa_head", Required),
    ("xa_node", "count", Required),
    ("xa_node", "marks", Required),
    ("xa_node", "offset", Required),
    ("xa_node", "parent", Required),
    ("xa_node", "shift", Required),
    ("xa_node", "slots", Required),
    ("css_set", "dying_tasks", Optional),
    ("css_set", "hlist", Optional),
    ("css_set", "mg_tasks", Optional),
    ("css_set", "tasks", Optional),
    ("qrwlock", "cnts", Required),
    ("qrwlock", "wait_lock", Required),
    ("qspinlock", "val", Required),
    // Sites that Linux patches itself.
    ("jump_entry", "code", Optional),
    ("jump_entry", "key", Optional),
    ("jump_entry", "target", Optional),
    ("static_key", "enabled", Optional),
    ("static_key", "entries", Optional),
    ("static_key", "type", Optional),
    ("static_call_site", "addr", Optional),
    ("static_call_site", "key", Optional),
    ("static_call_key", "func", Optional),
    ("static_call_key", "mods", Optional),
    ("static_call_key", "type", Optional),
    ("ftrace_page", "index", Optional),
    ("ftrace_page", "next", Optional),
    ("ftrace_page", "records", Optional),
    ("dyn_ftrace", "flags", Optional),
    ("dyn_ftrace", "ip", Optional),
    ("ftrace_ops", "flags", Optional),
    ("ftrace_ops", "func", Optional),
    ("ftrace_ops", "list", Optional),
    ("ftrace_ops", "next", Optional),
    ("ftrace_ops", "trampoline", Optional),
    ("ftrace_ops", "trampoline_size", Optional),
    ("kprobe", "addr", Optional),
    ("kprobe", "ainsn", Optional),
    ("kprobe", "flags", Optional),
    ("kprobe", "hlist", Optional),
    ("kprobe", "opcode", Optional),
    ("optimized_kprobe", "kp", Optional),
    ("optimized_kprobe", "optinsn", Optional),
    ("module", "list", Optional),
    ("module", "name", Optional),
    ("module", "state", Optional),
    ("module", "core_layout", Optional),
    ("module", "mem", Optional),
    ("module_layout", "base", Optional),
    ("module_layout", "size", Optional),
    ("module_layout", "text_size", Optional),
    ("module_memory", "base", Optional),
    ("module_memory", "size", Optional),
    ("bpf_ksym", "end", Optional),
    ("bpf_ksym", "lnode", Optional),
    ("bpf_ksym", "name", Optional),
    ("bpf_ksym", "prog", Optional),
    ("bpf_ksym", "start", Optional),
    ("bpf_trampoline", "func", Optional),
    ("bpf_trampoline", "hlist", Optional),
    ("bpf_trampoline", "key", Optional),
];

/// Structures of which only the size is wanted.
pub const STRUCTURES: &[&str] = &[];

/// Values of enumerations.
pub const CONSTANTS: &[(&str, Need)] = &[
    ("PIDTYPE_PID", Required),
    ("PIDTYPE_TGID", Required),
    ("PIDTYPE_MAX", Required),
    ("MOD_TEXT", Optional),
    ("MODULE_STATE_LIVE", Optional),
    ("MODULE_STATE_GOING", Optional),
];
