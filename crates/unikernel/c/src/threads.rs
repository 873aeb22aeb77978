//! `pthread_create` and the other functions of threads. A `pthread_t` is the address of a record in the heap that all
//! machines share.

use crate::error::*;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use kyozon_unikernel::thread::{self, Builder, JoinHandle};

/// The creator is about to store the handle. Only the thread itself can know the record.
const STARTING: u32 = 0;
/// The thread can be joined.
const JOINABLE: u32 = 1;
/// The thread is being joined, or was detached.
const CLAIMED: u32 = 2;

/// A thread's record. The thread has a reference to it, which it drops at its end. As long as the thread is not
/// claimed, the value of its `pthread_t` is another reference.
#[derive(Default)]
pub struct Thread {
    claim: AtomicU32,
    value: AtomicPtr<c_void>,
    /// Written before the thread is joinable. From then on it belongs to the claimer.
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

/// The thread's function and argument, and its reference to its record. [`pthread_exit`] ends a thread without a return
/// to this closure's caller, so it contains nothing to be dropped.
struct Work(extern "C" fn(*mut c_void) -> *mut c_void, *mut c_void, *const Thread);

// SAFETY: the caller of `pthread_create` passes the argument to the thread.
unsafe impl Send for Work {}

kyozon_unikernel::private! {
    /// This machine's reference to the record of its thread; null in the first.
    static SELF: *const Thread = core::ptr::null();
}

/// Leaves the value of the calling thread, and drops its reference to its record.
fn finish(value: *mut c_void) {
    let own = SELF.replace(core::ptr::null());
    if !own.is_null() {
        // SAFETY: the thread's reference, which no other code takes.
        unsafe { Arc::from_raw(own) }.value.store(value, Ordering::Release);
    }
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
    let detached = attributes.is_some_and(|a| a.detached != 0);
    let claim = AtomicU32::new(if detached { CLAIMED } else { STARTING });
    let record = Arc::new(Thread { claim, ..Thread::default() });
    let own = Arc::into_raw(record.clone());
    let work = Work(run, argument, own);
    let made = builder.spawn(move || {
        let Work(run, argument, own) = { work };
        SELF.set(own);
        crate::locks::enter();
        finish(run(argument));
    });
    let Ok(handle) = made else {
        // SAFETY: no thread took the reference.
        drop(unsafe { Arc::from_raw(own) });
        return EAGAIN;
    };
    // SAFETY: the caller has room for a `pthread_t`.
    unsafe { to.write(own) };
    if detached {
        return 0;
    }
    // SAFETY: no thread takes the handle before the record says that it is joinable.
    unsafe { *record.handle.get() = Some(handle) };
    let joinable =
        record.claim.compare_exchange(STARTING, JOINABLE, Ordering::AcqRel, Ordering::Acquire);
    if joinable.is_ok() {
        // `claim` takes this reference.
        core::mem::forget(record);
    } else {
        // SAFETY: the thread has detached itself, and left the handle here.
        drop(unsafe { (*record.handle.get()).take() });
    }
    0
}

/// What the claimer of a thread gets.
type Claimed = (Arc<Thread>, JoinHandle<()>);

/// Takes a thread's handle; only the first call succeeds. There is no handle yet if the thread detaches itself at once.
///
/// # Safety
///
/// The thread was not joined or detached before.
unsafe fn claim(thread: *const Thread) -> Result<Option<Claimed>, c_int> {
    if thread.is_null() {
        return Err(ESRCH);
    }
    // SAFETY: the caller's promise.
    let record = unsafe { &*thread };
    match record.claim.swap(CLAIMED, Ordering::AcqRel) {
        STARTING => Ok(None),
        // SAFETY: the claimer owns the handle, and the reference that `pthread_create` left.
        JOINABLE => unsafe {
            let record = Arc::from_raw(thread);
            let handle = (*record.handle.get()).take().ok_or(EINVAL)?;
            Ok(Some((record, handle)))
        },
        _ => Err(EINVAL),
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
        Ok(Some(claimed)) => claimed,
        // The thread has told another one its name before `pthread_create` did.
        Ok(None) => return EINVAL,
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
    let is_first = SELF.get().is_null();
    finish(value);
    if is_first {
        kyozon_unikernel::exit(0)
    }
    // SAFETY: in POSIX, no code uses a thread's stack after its end. Threads in C borrow nothing.
    unsafe { thread::leave() }
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
