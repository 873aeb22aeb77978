//! A thread that serves requests, and its task in the kernel.
//!
//! A task may do everything in the image: the host has checked what its user may do. It takes only its user's identity,
//! to which new files belong. Its working directory is the folder of its own descriptors: a path that is a number is
//! the inode that the descriptor names, and no other path is ever used.

use crate::fs::kernel::Tasks;
use liblinux::calls::{Arg, Calls, Fd, Result, CWD};
use liblinux::Errno;
use std::cell::{Cell, RefCell};
use std::ffi::CString;

/// `SECBIT_NO_SETUID_FIXUP` (linux/securebits.h): another identity leaves the capabilities as they are.
const KEEP_CAPABILITIES: u64 = 1 << 2;

/// What a request says about who makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

/// The calling thread's task.
pub struct Worker {
    /// Its system calls.
    pub calls: Box<dyn Calls>,
    /// Bytes of a file, between the kernel and the host.
    pub buffer: RefCell<Vec<u8>>,
    identity: Cell<Caller>,
    mask: Cell<u32>,
}

impl Worker {
    /// Attaches the calling thread.
    pub fn new(tasks: &Tasks) -> Result<Self> {
        let calls = tasks.attach().map_err(|_| Errno(libc::EIO))?;
        let number = |number: u64| Arg::Number(number);
        calls.call(libc::SYS_unshare, &mut [number(libc::CLONE_FS as u64)])?;
        // All tasks are threads of init and share its descriptors.
        calls.call(libc::SYS_chdir, &mut [Arg::In(b"/proc/1/fd\0")])?;
        let bits = &mut [number(libc::PR_SET_SECUREBITS as u64), number(KEEP_CAPABILITIES)];
        calls.call(libc::SYS_prctl, bits)?;
        calls.call(libc::SYS_umask, &mut [number(0)])?;
        let identity = Cell::new(Caller { user: 0, group: 0 });
        Ok(Self { calls, buffer: RefCell::default(), identity, mask: Cell::new(0) })
    }

    /// New files belong to this caller and lack these rights.
    pub fn act_as(&self, caller: Caller, mask: u32) -> Result<()> {
        if self.identity.get() != caller {
            let set = |call, id| self.calls.call(call, &mut [Arg::Number(u64::from(id))]);
            set(libc::SYS_setfsuid, caller.user)?;
            set(libc::SYS_setfsgid, caller.group)?;
            self.identity.set(caller);
        }
        if self.mask.get() != mask {
            self.calls.call(libc::SYS_umask, &mut [Arg::Number(u64::from(mask))])?;
            self.mask.set(mask);
        }
        Ok(())
    }

    /// Opens the inode that a descriptor names, under another descriptor.
    pub fn open_again(&self, inode: Fd, how: i32) -> Result<Fd> {
        self.calls.open_at(CWD, &path(inode), how, 0)
    }
}

/// The path of the inode that a descriptor names.
pub fn path(inode: Fd) -> CString {
    CString::new(inode.0.to_string()).unwrap_or_default()
}
