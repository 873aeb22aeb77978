//! Confines the keeper before it serves: it keeps the groups' folders and the system calls that it needs.

use crate::confine::{check_signal_target, ALWAYS};
use crate::error::{Context, Result};
use kyozon_bpf::{self as bpf, fail_with, Filter, Threads, ALLOW};
use landlock::{
    Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, ABI,
};
use std::path::Path;

/// System calls that the keeper needs in addition to [`ALWAYS`].
const KEEPER_CALLS: [i64; 22] = [
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_accept4,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_getsockopt,
    libc::SYS_geteuid,
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_lstat,
    libc::SYS_statx,
    libc::SYS_flock,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_dup,
    libc::SYS_mmap,
    libc::SYS_mprotect,
];

/// Denies all other system calls, and all files but the groups' folders in `base`, which the keeper removes. The keeper
/// still opens regions for reading through `/proc/self/fd`: Landlock does not restrict files that exist only in memory.
///
/// # Errors
///
/// The kernel refuses a Landlock rule or the filter.
pub fn confine(base: &Path) -> Result<()> {
    rustix::thread::set_no_new_privs(true).context("prctl")?;
    let (all, remove) = (AccessFs::from_all(ABI::V5), AccessFs::RemoveFile | AccessFs::RemoveDir);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(base)?, remove | AccessFs::ReadDir))?;
    if let Some(above) = base.parent() {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(above)?, AccessFs::RemoveDir))?;
    }
    rules.restrict_self().context("landlock")?;
    let calls = ALWAYS.into_iter().chain(KEEPER_CALLS);
    let mut calls: Vec<_> = calls.map(|call| (call as u32, "yes")).collect();
    calls.push((libc::SYS_tgkill as u32, "signal"));
    let mut filter = Filter::new("no");
    filter.dispatch(calls, "no")?;
    check_signal_target(&mut filter);
    filter.label("no");
    filter.end(fail_with(libc::EPERM));
    filter.label("yes");
    filter.end(ALLOW);
    bpf::install(&filter.finish()?, Threads::Calling).context("seccomp")
}
