//! Resource limits that hold in the library, too: the size of files.

use super::Outcome::{Done, Native};
use super::{owned, Call, Outcome};
use crate::state::State;
use crate::{host, library};

pub(super) const CALLS: &[(i64, Call)] =
    &[(libc::SYS_setrlimit, setrlimit), (libc::SYS_prlimit64, prlimit)];

const FILE_SIZE: u64 = libc::RLIMIT_FSIZE as u64;

fn limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    host::call(libc::SYS_getrlimit, &[FILE_SIZE, &raw mut limit as u64]);
    limit
}

/// Gives the library the host's limit.
pub fn limit_files() -> Result<(), i64> {
    let limit = limit();
    // On a task that may raise it.
    match library::call(libc::SYS_prlimit64, &[0, FILE_SIZE, &raw const limit as u64, 0]) {
        0 => Ok(()),
        error => Err(error),
    }
}

/// Whether a call that failed with EFBIG went beyond the limit, which brings a signal.
pub(super) fn exceeded(state: &State) -> bool {
    let writes = [
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_pwritev2,
        libc::SYS_truncate,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_sendfile,
        libc::SYS_splice,
        libc::SYS_copy_file_range,
    ];
    writes.contains(&(state.number.get() as i64)) && limit().rlim_cur != libc::RLIM_INFINITY
}

fn changed(result: i64) -> Outcome {
    if result == 0 {
        if let Err(error) = limit_files() {
            return Done(error);
        }
    }
    Done(result)
}

fn setrlimit(_: &State, a: [u64; 6]) -> Outcome {
    if a[0] as u32 as u64 != FILE_SIZE || !library::present() {
        return Native;
    }
    changed(host::call(libc::SYS_setrlimit, &a[..2]))
}

fn prlimit(_: &State, mut a: [u64; 6]) -> Outcome {
    let process = owned::process_id(a[0]);
    if a[1] as u32 as u64 != FILE_SIZE || a[2] == 0 || !library::present() {
        if process == a[0] {
            return Native;
        }
        a[0] = process;
        return Done(host::call(libc::SYS_prlimit64, &a[..4]));
    }
    a[0] = process;
    // Of whatever process: the own one's limit is asked for.
    changed(host::call(libc::SYS_prlimit64, &a[..4]))
}
