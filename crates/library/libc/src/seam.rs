//! The structures of `include/kyozon/seam.h`, which has the rules. A test compares both.

use core::ffi::{c_int, c_long, c_ulong, c_void};

/// Grows when the bytes of the structures, or their meaning, change.
pub const VERSION: c_ulong = 1;

/// Type of the entry in the auxiliary vector that holds the address of a [`Seam`].
pub const AT_KYOZON: c_ulong = 0x4b59_5a4e;

/// Bytes of the caller's stack that a function of the host may use.
pub const STACK_BYTES: usize = 1024;

/// The host's functions.
#[derive(Debug)]
#[repr(C)]
pub struct Seam {
    /// [`VERSION`].
    pub version: c_ulong,
    /// A system call: its number and six arguments.
    pub call:
        unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long,
    /// Starts a thread; returns its ID or a negative error number.
    pub start_thread: unsafe extern "C" fn(*const Thread) -> c_int,
    /// Unmaps the memory with the calling thread's stack, at this address and of this size, and ends the thread.
    pub unmap_exit: unsafe extern "C" fn(*mut c_void, c_ulong) -> !,
}

/// A thread to start.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// What the thread executes.
    pub function: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// Its argument.
    pub argument: *mut c_void,
    /// End of the stack, from which it grows down.
    pub stack_end: *mut c_void,
    /// Lowest byte of the stack.
    pub stack_start: *mut c_void,
    /// FS base of the thread.
    pub fs_base: *mut c_void,
    /// Receives the thread's ID before the thread's first instruction.
    pub tid: *mut c_int,
    /// Becomes 0 when the thread ends; one waiter of this futex wakes.
    pub clear_tid: *mut c_int,
}

/// What [`Seam::start_thread`] asks of clone(2).
#[cfg(feature = "std")]
pub const THREAD_FLAGS: c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// Declares a host's functions, which are written in assembly, and defines a constant with the [`Seam`] of them.
#[macro_export]
macro_rules! seam {
    ($name:ident: $call:ident, $start_thread:ident, $unmap_exit:ident) => {
        extern "C" {
            fn $call(
                number: ::core::ffi::c_long,
                a1: ::core::ffi::c_long,
                a2: ::core::ffi::c_long,
                a3: ::core::ffi::c_long,
                a4: ::core::ffi::c_long,
                a5: ::core::ffi::c_long,
                a6: ::core::ffi::c_long,
            ) -> ::core::ffi::c_long;
            fn $start_thread(thread: *const $crate::seam::Thread) -> ::core::ffi::c_int;
            fn $unmap_exit(base: *mut ::core::ffi::c_void, bytes: ::core::ffi::c_ulong) -> !;
        }

        /// The host's functions.
        pub const $name: $crate::seam::Seam = $crate::seam::Seam {
            version: $crate::seam::VERSION,
            call: $call,
            start_thread: $start_thread,
            unmap_exit: $unmap_exit,
        };
    };
}

/// Whether a system call may wait. It then returns `-EINTR` after a handler without `SA_RESTART`, from the call's first
/// instruction on: signal(7), and the header's rules.
#[cfg(feature = "std")]
#[must_use]
pub fn waits(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_write
            | libc::SYS_readv
            | libc::SYS_writev
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_pause
            | libc::SYS_rt_sigsuspend
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_futex
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_connect
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_flock
            | libc::SYS_msgrcv
            | libc::SYS_msgsnd
            | libc::SYS_semop
            | libc::SYS_mq_timedreceive
            | libc::SYS_mq_timedsend
    )
}
