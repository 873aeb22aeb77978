//! `pthread_create` and what belongs to it. A `pthread_t` is the address of a record in the heap that all machines
//! share.

use crate::error::*;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use kyozon_unikernel::thread::{self, Builder, JoinHandle};

/// The thread can be joined.
const JOINABLE: u32 = 0;
/// Somebody joins or has detached it.
const CLAIMED: u32 = 1;

/// A thread's record.
#[derive(Default)]
pub struct Thread {
    claim: AtomicU32,
    value: AtomicPtr<c_void>,
    /// Whoever claims it has it; written before anybody knows of the record.
    handle: UnsafeCell<Option<JoinHandle<()>>>,
}

// SAFETY: the handle is written by its maker and taken by the one who claims the thread.
unsafe impl Sync for Thread {}
// SAFETY: handles can be sent.
unsafe impl Send for Thread {}

/// `pthread_attr_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Attributes {
    /// Bytes of stack; 0: as it is otherwise.
    stack: usize,
    detached: c_int,
}

/// What runs: from C, where pointers go anywhere.
struct Work(extern "C" fn(*mut c_void) -> *mut c_void, *mut c_void);

// SAFETY: C's promise: the argument is for the thread.
unsafe impl Send for Work {}

kyozon_unikernel::private! {
    /// The record of this machine's thread; null in the first.
    static SELF: *const Thread = core::ptr::null();
}

/// As in POSIX. Of attributes, the stack's size and being detached.
///
/// # Safety
///
/// As in POSIX.
#[no_mangle]
pub unsafe extern "C" fn pthread_create(
    to: *mut *const Thread,
    attributes: *const Attributes,
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: null, or the caller's.
    let attributes = unsafe { attributes.as_ref() };
    let builder = match attributes {
        Some(Attributes { stack: 1.., .. }) => {
            Builder::new().stack_size(attributes.map_or(0, |a| a.stack))
        }
        _ => Builder::new(),
    };
    let record = Arc::new(Thread::default());
    let (own, work) = (record.clone(), Work(run, argument));
    let made = builder.spawn(move || {
        let Work(run, argument) = { work };
        SELF.set(Arc::as_ptr(&own));
        own.value.store(run(argument), Ordering::Release);
    });
    let Ok(handle) = made else { return EAGAIN };
    if attributes.is_some_and(|a| a.detached != 0) {
        record.claim.store(CLAIMED, Ordering::Release);
    } else {
        // SAFETY: the thread itself does not look at it, and nobody else knows of it yet.
        unsafe { *record.handle.get() = Some(handle) };
    }
    // SAFETY: room for the caller's `pthread_t`.
    unsafe { to.write(Arc::into_raw(record)) };
    0
}

/// Takes a thread's handle, once.
///
/// # Safety
///
/// A record that was not joined or detached.
unsafe fn claim(thread: *const Thread) -> Result<(Arc<Thread>, JoinHandle<()>), c_int> {
    if thread.is_null() {
        return Err(ESRCH);
    }
    // SAFETY: the caller's promise.
    let record = unsafe { &*thread };
    if record.claim.swap(CLAIMED, Ordering::AcqRel) != JOINABLE {
        return Err(EINVAL);
    }
    // SAFETY: whoever claims has the handle, and the reference that `pthread_create` gave away.
    unsafe {
        let record = Arc::from_raw(thread);
        let handle = (*record.handle.get()).take().ok_or(EINVAL)?;
        Ok((record, handle))
    }
}

/// As in POSIX; `EOWNERDEAD` where the thread died.
///
/// # Safety
///
/// As in POSIX.
#[no_mangle]
pub unsafe extern "C" fn pthread_join(thread: *const Thread, to: *mut *mut c_void) -> c_int {
    if thread == pthread_self() {
        return EDEADLK;
    }
    // SAFETY: the caller's promise.
    let (record, handle) = match unsafe { claim(thread) } {
        Ok(claimed) => claimed,
        Err(error) => return error,
    };
    let ended = handle.join();
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(record.value.load(Ordering::Acquire)) };
    }
    match ended {
        Ok(()) | Err(thread::Ended::Left) => 0,
        Err(_) => EOWNERDEAD,
    }
}

/// As in POSIX.
///
/// # Safety
///
/// As in POSIX.
#[no_mangle]
pub unsafe extern "C" fn pthread_detach(thread: *const Thread) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { claim(thread) } {
        Ok(_) => 0,
        Err(error) => error,
    }
}

/// As in POSIX. In the first thread it ends all, as there `main` returns.
#[no_mangle]
pub extern "C" fn pthread_exit(value: *mut c_void) -> ! {
    // SAFETY: null, or kept by the thread's closure, which never returns now.
    if let Some(own) = unsafe { SELF.get().as_ref() } {
        own.value.store(value, Ordering::Release);
        // SAFETY: in POSIX, nobody uses a thread's stack behind its end.
        unsafe { thread::leave() }
    }
    kyozon_unikernel::exit(0)
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_self() -> *const Thread {
    SELF.get()
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_equal(one: *const Thread, other: *const Thread) -> c_int {
    (one == other).into()
}

/// As in POSIX.
///
/// # Safety
///
/// Room for one.
#[no_mangle]
pub unsafe extern "C" fn pthread_attr_init(to: *mut Attributes) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { to.write(Attributes { stack: 0, detached: 0 }) };
    0
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_attr_setstacksize(to: &mut Attributes, bytes: usize) -> c_int {
    if bytes < 8192 {
        return EINVAL;
    }
    to.stack = bytes;
    0
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_attr_setdetachstate(to: &mut Attributes, detached: c_int) -> c_int {
    to.detached = detached;
    0
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_attr_destroy(_: &mut Attributes) -> c_int {
    0
}
