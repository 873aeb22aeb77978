//! Functions whose results tell user space what exists, and those behind them by which the same can be done. Current
//! rootkits hook these to hide.
//!
//! Sources: the public descriptions of Singularity, KoviD, Diamorphine and Reptile, and Linux's sources for the
//! functions behind each listing.

use super::stubs::{ACCEPTS, NOTHING};
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// What may precede the name of a system call.
const PREFIXES: [&str; 5] =
    ["__x64_sys_", "__ia32_compat_sys_", "__ia32_sys_", "__se_sys_", "__do_sys_"];

/// What is shown, and by which functions. One of [`PREFIXES`] may precede a name.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (
        "listings of directories",
        &[
            "getdents",
            "getdents64",
            "filldir",
            "filldir64",
            "compat_filldir",
            "iterate_dir",
            "proc_root_readdir",
            "proc_pid_readdir",
            "next_tgid",
            "next_tid",
            "proc_task_readdir",
            "proc_fill_cache",
            "proc_readdir",
            "proc_readdir_de",
            "kernfs_fop_readdir",
            "dcache_readdir",
            "verify_dirent_name",
            "call_filldir",
        ],
    ),
    (
        "what a path names",
        &[
            "stat",
            "lstat",
            "newstat",
            "newlstat",
            "newfstatat",
            "statx",
            "vfs_statx",
            "vfs_fstatat",
            "readlink",
            "readlinkat",
            "chdir",
            "statfs",
            "access",
            "faccessat",
            "faccessat2",
            "do_faccessat",
            "vfs_getattr",
            "vfs_getattr_nosec",
            "filename_lookup",
            "path_lookupat",
            "path_openat",
            "do_filp_open",
            "lookup_fast",
            "walk_component",
            "link_path_walk",
            "proc_pid_lookup",
            "proc_root_lookup",
            "proc_lookup",
            "proc_lookup_de",
            "pid_revalidate",
            "kernfs_iop_lookup",
            "getname_flags",
        ],
    ),
    (
        "what is read",
        &[
            "read",
            "pread64",
            "readv",
            "preadv",
            "vfs_read",
            "ksys_read",
            "openat",
            "do_sys_openat2",
            "preadv2",
            "open",
            "openat2",
            "seq_read",
            "seq_read_iter",
            "proc_reg_read",
            "proc_reg_read_iter",
            "kernfs_fop_read_iter",
            "_copy_to_iter",
        ],
    ),
    ("requests by rings", &["io_uring_enter", "io_issue_sqe"]),
    (
        "listings of sockets",
        &[
            "tcp4_seq_show",
            "tcp6_seq_show",
            "udp4_seq_show",
            "udp6_seq_show",
            "raw_seq_show",
            "raw6_seq_show",
            "unix_seq_show",
            "packet_seq_show",
            "inet_diag_dump",
            "inet_diag_dump_icsk",
            "tcp_diag_dump",
            "udp_diag_dump",
            "raw_diag_dump",
            "unix_diag_dump",
            "packet_diag_dump",
            "sock_diag_rcv",
            "sock_diag_rcv_msg",
            "recvmsg",
            "netlink_recvmsg",
            "netlink_dump",
            "netlink_unicast",
            "tcp_seq_start",
            "tcp_seq_next",
            "established_get_next",
            "listening_get_next",
            "udp_seq_start",
            "udp_seq_next",
            "raw_seq_start",
            "raw_seq_next",
            "unix_seq_start",
            "unix_seq_next",
            "packet_seq_start",
            "packet_seq_next",
            "seq_pad",
        ],
    ),
    (
        "listings of mounts",
        &["show_mountinfo", "show_vfsmnt", "show_vfsstat", "statmount", "listmount"],
    ),
    ("listings of network devices", &["dev_seq_show", "rtnl_dump_ifinfo"]),
    ("system calls", &["x64_sys_call", "x32_sys_call", "ia32_sys_call", "do_syscall_64"]),
    ("what a capture of packets sees", &["packet_rcv", "tpacket_rcv", "packet_rcv_spkt"]),
    (
        "signals",
        &[
            "kill",
            "tkill",
            "tgkill",
            "getpgid",
            "getpgrp",
            "getsid",
            "sched_getaffinity",
            "getpriority",
            "pidfd_send_signal",
            "kill_something_info",
            "kill_pid_info",
            "kill_pid_info_type",
            "group_send_sig_info",
            "do_send_sig_info",
            "check_kill_permission",
        ],
    ),
    (
        "listings of processes",
        &[
            "find_task_by_vpid",
            "find_pid_ns",
            "find_ge_pid",
            "find_vpid",
            "do_task_stat",
            "taskstats_user_cmd",
            "proc_pid_status",
            "proc_pid_stat",
            "sysinfo",
            "proc_pid_instantiate",
        ],
    ),
    ("how busy the machine is", &["show_stat", "loadavg_proc_show", "account_process_tick"]),
    ("packets that look like pings", &["icmp_rcv", "icmpv6_rcv"]),
    // /proc/modules and /proc/PID/mounts have functions of these names.
    ("listings of modules and mounts", &["m_show", "m_start", "m_next"]),
    (
        "modules",
        &[
            "init_module",
            "finit_module",
            "delete_module",
            "do_init_module",
            "load_module",
            "find_module_all",
        ],
    ),
    (
        "symbols of the kernel",
        &["s_show", "s_start", "s_next", "kallsyms_lookup_name", "kallsyms_on_each_symbol"],
    ),
    (
        "BPF",
        &[
            "bpf",
            "__sys_bpf",
            "bpf_obj_get_next_id",
            "bpf_prog_get_curr_or_next",
            "bpf_prog_get_info_by_fd",
            "bpf_iter_run_prog",
            "bpf_seq_write",
            "bpf_seq_printf",
            "bpf_ringbuf_output",
            "bpf_ringbuf_reserve",
            "bpf_ringbuf_submit",
            "bpf_map_get",
            "bpf_prog_get",
            "__htab_map_lookup_elem",
            "perf_event_output",
        ],
    ),
    (
        "the logs of the kernel and of its audit",
        &[
            "do_syslog",
            "syslog",
            "audit_log_start",
            "audit_log_end",
            "kmsg_read",
            "devkmsg_read",
            "vprintk_emit",
            "vprintk",
            "vprintk_store",
        ],
    ),
    (
        "input of terminals",
        &[
            "n_tty_read",
            "tty_read",
            "n_tty_receive_buf",
            "n_tty_receive_buf2",
            "receive_buf",
            "tty_insert_flip_string",
            "n_tty_receive_buf_common",
            "tty_ldisc_receive_buf",
            "tty_port_default_receive_buf",
            "tty_insert_flip_string_fixed_flag",
            "__tty_insert_flip_string_flags",
            "input_event",
            "input_handle_event",
            "kbd_event",
            "kbd_keycode",
        ],
    ),
    (
        "credentials",
        &[
            "commit_creds",
            "prepare_creds",
            "prepare_kernel_cred",
            "override_creds",
            "setuid",
            "setreuid",
            "setresuid",
            "capset",
            "__sys_setuid",
            "__sys_setreuid",
            "__sys_setresuid",
            "cap_task_fix_setuid",
            "security_task_fix_setuid",
            "cap_bprm_creds_from_file",
        ],
    ),
    // Whoever hooks these gets the calls of the hooks that the action `disarm` takes out.
    ("what is called in the place of hooks", &[NOTHING[0], NOTHING[1], ACCEPTS]),
    (
        "enforcement of policies",
        &[
            "avc_has_perm",
            "selinux_capable",
            "security_bprm_check",
            "cap_capable",
            "capable",
            "ns_capable",
            "security_capable",
            "inode_permission",
            "generic_permission",
            "security_inode_permission",
            "selinux_inode_permission",
        ],
    ),
];

/// The sensitive functions of a kernel.
#[derive(Debug)]
pub(super) struct Sensitive {
    /// In the order of their addresses, with what they show.
    functions: Vec<(Range<u64>, &'static str)>,
}

impl Sensitive {
    /// Those of a kernel with `profile`. The compiler's copies, whose names have a suffix, are among them.
    pub fn new(profile: &Profile<'_>) -> Self {
        let mut functions = Vec::new();
        for (shows, names) in FUNCTIONS {
            let names = names.iter().flat_map(|name| {
                let calls = PREFIXES.iter().map(move |prefix| format!("{prefix}{name}"));
                core::iter::once(String::from(*name)).chain(calls)
            });
            for name in names {
                let is_its = |rest: &str| rest.is_empty() || rest.starts_with('.');
                let symbols = profile.symbols_starting_with(&name);
                let starts = symbols.filter(|symbol| is_its(&symbol.name[name.len()..]));
                functions.extend(starts.map(|symbol| {
                    let mut behind = profile.symbols_from(symbol.address);
                    let next = behind.find(|next| next.address > symbol.address);
                    (symbol.address..next.map_or(u64::MAX, |next| next.address), *shows)
                }));
            }
        }
        functions.sort_by_key(|(function, _)| function.start);
        functions.dedup_by_key(|(function, _)| function.start);
        Self { functions }
    }

    /// Where they begin.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.functions.iter().map(|(function, _)| function.start)
    }

    /// What the function shows that has `address`, if it is sensitive; 0 stands for all functions. A hook may be behind
    /// the first instruction.
    pub fn shows(&self, address: u64) -> Option<&'static str> {
        if address == 0 {
            return Some("every function");
        }
        let behind = self.functions.partition_point(|(function, _)| function.start <= address);
        let (function, shows) = self.functions.get(behind.checked_sub(1)?)?;
        function.contains(&address).then_some(*shows)
    }
}
