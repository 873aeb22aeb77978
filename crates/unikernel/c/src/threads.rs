//! `pthread_create` and the other functions of threads. A `pthread_t` is the address of a record in the heap that all
//! machines share.

use crate::error::*;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use kyozon_unikernel::thread::{self, Builder, JoinHandle};

/// The thread can be joined.
const JOINABLE: u32 = 0;
/// The thread is being joined, or was detached.
const CLAIMED: u32 = 1;

/// A thread's record.
#[derive(Default)]
pub struct Thread {
    claim: AtomicU32,
    value: AtomicPtr<c_void>,
    /// Belongs to the claimer; written before any other thread knows the record.
    handle: UnsafeCell<Option<JoinHandle<()>>>,
}

// SAFETY: the handle is written by the thread's creator, and taken only by its claimer.
unsafe impl Sync for Thread {}
// SAFETY: join handles are `Send`.
unsafe impl Send for Thread {}

/// `pthread_attr_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Attributes {
    /// Bytes of stack; 0 for the default.
    stack: usize,
    detached: c_int,
}

/// The thread's function and argument.
struct Work(extern "C" fn(*mut c_void) -> *mut c_void, *mut c_void);

// SAFETY: the caller of `pthread_create` passes the argument to the thread.
unsafe impl Send for Work {}

kyozon_unikernel::private! {
    /// The record of this machine's thread; null in the first.
    static SELF: *const Thread = core::ptr::null();
}

/// As in POSIX. Of the attributes, the stack's size and the detach state count.
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
    // SAFETY: null, or the caller's attributes.
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
        // SAFETY: the thread itself does not access the handle, and no other thread knows the record yet.
        unsafe { *record.handle.get() = Some(handle) };
    }
    // SAFETY: the caller has room for a `pthread_t`.
    unsafe { to.write(Arc::into_raw(record)) };
    0
}

/// Takes a thread's handle; only the first call succeeds.
///
/// # Safety
///
/// The thread was not joined or detached before.
unsafe fn claim(thread: *const Thread) -> Result<(Arc<Thread>, JoinHandle<()>), c_int> {
    if thread.is_null() {
        return Err(ESRCH);
    }
    // SAFETY: the caller's promise.
    let record = unsafe { &*thread };
    if record.claim.swap(CLAIMED, Ordering::AcqRel) != JOINABLE {
        return Err(EINVAL);
    }
    // SAFETY: the claimer owns the handle, and the reference that `pthread_create` leaked.
    unsafe {
        let record = Arc::from_raw(thread);
        let handle = (*record.handle.get()).take().ok_or(EINVAL)?;
        Ok((record, handle))
    }
}

/// As in POSIX. Returns `EOWNERDEAD` if the thread died.
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

/// As in POSIX, but in the first thread it ends all threads, as a return from `main` does.
#[no_mangle]
pub extern "C" fn pthread_exit(value: *mut c_void) -> ! {
    // SAFETY: null, or kept alive by the thread's closure, which does not return any more.
    if let Some(own) = unsafe { SELF.get().as_ref() } {
        own.value.store(value, Ordering::Release);
        // SAFETY: in POSIX, no code uses a thread's stack after its end.
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
/// The pointer is to memory for the attributes.
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
