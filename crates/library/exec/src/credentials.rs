//! Credentials of a program's thread in the library: those that the host's thread has. Access checks, owners of new
//! files, and what setuid(2) and its relatives take away, are then the same in both kernels.
//!
//! Capabilities are the exception. The library belongs to whoever starts it, as a user namespace does: who can write
//! an image's file can change everything in it anyway. So threads have all capabilities over the library while the
//! process has those that it started with, if any. When a thread gives some up, what is left counts in both.

use crate::host;
use std::sync::OnceLock;

/// linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;
/// linux/securebits.h: changes of user ids take no capabilities.
const NO_SETUID_FIXUP: u64 = 1 << 2;
/// linux/securebits.h: the thread keeps its permitted capabilities. What the host leaves decides.
const KEEP_CAPS: u64 = 1 << 4;

/// Capabilities of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    effective: u64,
    permitted: u64,
    inheritable: u64,
}

/// What the process started with.
struct Start {
    capabilities: Capabilities,
    root: bool,
}

static START: OnceLock<Start> = OnceLock::new();

/// A system call of one of the kernels.
type Kernel<'a> = &'a dyn Fn(i64, [u64; 3]) -> i64;

fn host(number: i64, arguments: [u64; 3]) -> i64 {
    host::call(number, &arguments)
}

fn check(result: i64) -> Result<(), i64> {
    if result < 0 {
        Err(result)
    } else {
        Ok(())
    }
}

fn capabilities(kernel: Kernel) -> Result<Capabilities, i64> {
    let header = [VERSION_3, 0];
    let mut data = [[0u32; 3]; 2];
    let arguments = [header.as_ptr() as u64, data.as_mut_ptr() as u64, 0];
    check(kernel(libc::SYS_capget, arguments))?;
    let word = |i: usize| u64::from(data[0][i]) | u64::from(data[1][i]) << 32;
    Ok(Capabilities { effective: word(0), permitted: word(1), inheritable: word(2) })
}

fn set_capabilities(kernel: Kernel, set: Capabilities) -> Result<(), i64> {
    let header = [VERSION_3, 0];
    let words = [set.effective, set.permitted, set.inheritable];
    let data = [words.map(|word| word as u32), words.map(|word| (word >> 32) as u32)];
    check(kernel(libc::SYS_capset, [header.as_ptr() as u64, data.as_ptr() as u64, 0]))
}

/// Real, effective and saved ids.
fn ids(kernel: Kernel, number: i64) -> Result<[u64; 3], i64> {
    let mut ids = [0u32; 3];
    let [real, effective, saved] = &mut ids;
    let addresses = [real, effective, saved].map(|id| &raw mut *id as u64);
    check(kernel(number, addresses))?;
    Ok(ids.map(u64::from))
}

fn groups(kernel: Kernel) -> Result<Vec<u32>, i64> {
    let count = kernel(libc::SYS_getgroups, [0, 0, 0]);
    check(count)?;
    let mut groups = vec![0u32; count as usize];
    let count = kernel(libc::SYS_getgroups, [groups.len() as u64, groups.as_mut_ptr() as u64, 0]);
    check(count)?;
    groups.truncate(count as usize);
    Ok(groups)
}

/// What the library's thread may do: everything, until the host's has lost something.
fn allowed(now: u64, start: u64, all: u64) -> u64 {
    if now & start == start {
        all
    } else {
        now & all
    }
}

/// Notes what the process may do, before any program runs.
pub fn start() {
    let none = Capabilities { effective: 0, permitted: 0, inheritable: 0 };
    let user = ids(&host, libc::SYS_getresuid).unwrap_or_default();
    START.get_or_init(|| Start {
        capabilities: capabilities(&host).unwrap_or(none),
        root: user.contains(&0),
    });
}

/// Makes a new task of the library, which is root's, the calling thread's.
pub fn adopt(library: Kernel) -> Result<(), i64> {
    // A user who is not root has capabilities here which must survive the change of ids, and hold in access(2).
    let root = START.get().is_some_and(|start| start.root);
    let bits = KEEP_CAPS | if root { 0 } else { NO_SETUID_FIXUP };
    check(library(libc::SYS_prctl, [libc::PR_SET_SECUREBITS as u64, bits, 0]))?;
    follow(library)
}

/// Gives the calling thread's task of the library the credentials that the host's thread has now.
pub fn follow(library: Kernel) -> Result<(), i64> {
    const SAME: u64 = u32::MAX as u64;
    let before = capabilities(library)?;
    let raise =
        || set_capabilities(library, Capabilities { effective: before.permitted, ..before });
    raise()?;
    let list = groups(&host)?;
    if list != groups(library)? {
        check(library(libc::SYS_setgroups, [list.len() as u64, list.as_ptr() as u64, 0]))?;
    }
    for (get, set, set_file) in [
        (libc::SYS_getresgid, libc::SYS_setresgid, libc::SYS_setfsgid),
        (libc::SYS_getresuid, libc::SYS_setresuid, libc::SYS_setfsuid),
    ] {
        check(library(set, ids(&host, get)?))?;
        // Setting an impossible one returns the present one.
        let file = host(set_file, [SAME, 0, 0]);
        if library(set_file, [SAME, 0, 0]) != file {
            raise()?;
            library(set_file, [file as u64, 0, 0]);
        }
    }
    let now = capabilities(&host)?;
    let first = START.get().map_or(now, |start| start.capabilities);
    set_capabilities(
        library,
        Capabilities {
            effective: allowed(now.effective, first.effective, before.permitted)
                & allowed(now.permitted, first.permitted, before.permitted),
            permitted: allowed(now.permitted, first.permitted, before.permitted),
            inheritable: before.inheritable,
        },
    )
}

#[cfg(test)]
mod tests;
