//! Functions whose results tell user space what exists. Current rootkits hook these to hide.
//!
//! Sources: the public descriptions of Singularity, KoviD, Diamorphine and Reptile, and Linux's sources for the
//! functions behind each listing.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

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
        ],
    ),
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
        ],
    ),
    (
        "listings of processes",
        &[
            "find_task_by_vpid",
            "find_pid_ns",
            "taskstats_user_cmd",
            "proc_pid_status",
            "proc_pid_stat",
            "sysinfo",
        ],
    ),
    (
        "modules",
        &[
            "init_module",
            "finit_module",
            "delete_module",
            "do_init_module",
            "load_module",
            "m_show",
        ],
    ),
    ("symbols of the kernel", &["s_show", "kallsyms_lookup_name", "kallsyms_on_each_symbol"]),
    (
        "BPF",
        &[
            "bpf",
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
        ],
    ),
    (
        "credentials",
        &["commit_creds", "prepare_creds", "override_creds", "setuid", "setreuid", "setresuid"],
    ),
    (
        "enforcement of policies",
        &["avc_has_perm", "selinux_capable", "security_bprm_check", "cap_capable"],
    ),
];

/// The addresses of all sensitive functions that a kernel with `profile` has.
pub(super) fn addresses(profile: &Profile<'_>) -> Vec<u64> {
    let names = FUNCTIONS.iter().flat_map(|(_, names)| names.iter());
    let names = names.flat_map(|name| {
        let calls = PREFIXES.iter().map(move |prefix| format!("{prefix}{name}"));
        core::iter::once(String::from(*name)).chain(calls)
    });
    let mut addresses: Vec<u64> = names
        .flat_map(|name| {
            profile.symbols_called(&name).map(|symbol| symbol.address).collect::<Vec<_>>()
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// What the function at `function` shows, if it is sensitive; 0 stands for all functions.
pub(super) fn shows<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    function: u64,
) -> Option<&'static str> {
    if function == 0 {
        return Some("every function");
    }
    // A hook may be behind the first instruction, and several symbols can have one address.
    let (_, offset) = kernel.profile.nearest(function)?;
    let start = function - offset;
    let mut symbols =
        kernel.profile.symbols_from(start).take_while(|symbol| symbol.address == start);
    symbols.find_map(|symbol| {
        let call = PREFIXES.iter().find_map(|prefix| symbol.name.strip_prefix(prefix));
        // The compiler's copies have a suffix.
        let name = call.or_else(|| symbol.name.split('.').next())?;
        let list = FUNCTIONS.iter().find(|(_, names)| names.contains(&name))?;
        Some(list.0)
    })
}
