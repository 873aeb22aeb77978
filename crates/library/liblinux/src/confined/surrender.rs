//! What the child gives up before it runs the kernel, apart from system calls.

use std::{io, ptr};

fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// New privileges, capabilities, and a life of its own: the child dies with the process `parent`. The calling thread
/// must be the only one.
pub fn privileges(parent: u32) -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`, for the calling thread.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    const NO_CAPABILITIES: [u32; 6] = [0; 6];
    // SAFETY: the calls take numbers, except capset, whose structures are those of its version 3.
    unsafe {
        // A host that permits no user namespaces to this user refuses; everything below holds nevertheless.
        libc::unshare(libc::CLONE_NEWUSER);
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::syscall(libc::SYS_capset, HEADER.as_ptr(), NO_CAPABILITIES.as_ptr()))?;
        // Not readable or traceable by other processes of the user.
        check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        // Last: a change of capabilities resets it.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // There is no signal for a death before.
        if libc::getppid() as u32 != parent {
            return Err(io::Error::other("the process that started this one has ended"));
        }
    }
    Ok(())
}

/// Resources: at most `memory` bytes of addresses and files of `file` bytes; no more files, threads or core files.
pub fn resources(memory: u64, file: u64) -> io::Result<()> {
    for (resource, most) in [
        (libc::RLIMIT_AS, memory),
        (libc::RLIMIT_FSIZE, file),
        (libc::RLIMIT_NOFILE, 0),
        (libc::RLIMIT_NPROC, 0),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
    ] {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure is valid.
        check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
        // The user may have set a lower one.
        limit.rlim_max = limit.rlim_max.min(most);
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the structure is valid.
        check(unsafe { libc::setrlimit(resource, &raw const limit) })?;
    }
    Ok(())
}

/// Standard input and output. What the child has to say is in the log.
pub fn standard_files() {
    for fd in 0..=2 {
        // SAFETY: nothing of this process uses them from here on.
        unsafe { libc::close(fd) };
    }
    // SAFETY: no handler runs; a file that reaches its maximum size gives an error instead of a signal.
    unsafe { libc::sigaction(libc::SIGXFSZ, &ignore(), ptr::null_mut()) };
}

fn ignore() -> libc::sigaction {
    // SAFETY: a structure of integers; all zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = libc::SIG_IGN;
    action
}
