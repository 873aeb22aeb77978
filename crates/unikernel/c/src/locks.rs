//! POSIX mutexes, condition variables and barriers, built on those of the channel.

use crate::error::*;
use crate::users::Users;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use kyozon_channel::error::Error;
use kyozon_channel::sync::{Acquired, Condvar, RawMutex, Woken};
use kyozon_unikernel::{clock, vm::Vm};

/// `pthread_mutex_t`, always robust in the sense of POSIX.
#[derive(Debug)]
#[repr(C)]
pub struct Mutex {
    raw: RawMutex,
    /// Not 0 if a holder died, and the data was not declared consistent since. Only the holder accesses it.
    poisoned: UnsafeCell<u64>,
}

/// `pthread_cond_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Cond(Condvar);

/// `pthread_barrier_t`. The mutex guards the fields after `all`.
#[derive(Debug)]
#[repr(C)]
pub struct Barrier {
    mutex: RawMutex,
    all: Condvar,
    count: UnsafeCell<u64>,
    arrived: UnsafeCell<u64>,
    phase: UnsafeCell<u64>,
}

/// `struct timespec`.
#[derive(Debug)]
#[repr(C)]
pub struct Time {
    seconds: i64,
    nanoseconds: i64,
}

// The sizes in pthread.h.
const _: () = assert!(size_of::<Mutex>() == 24 && size_of::<Cond>() == 8);
const _: () = assert!(size_of::<Barrier>() == 48 && size_of::<Time>() == 16);

/// The threads that may still touch an object after another thread was released.
static USERS: Users = Users::new();

/// Prepares the calling thread for this module, before its first call.
pub fn enter() {
    USERS.enter(&Vm);
}

/// `PTHREAD_BARRIER_SERIAL_THREAD`: the result of exactly one of a barrier's waits.
const SERIAL: c_int = -1;

fn number(error: Error) -> c_int {
    match error {
        Error::TimedOut => ETIMEDOUT,
        Error::Deadlock => EDEADLK,
        _ => EPERM,
    }
}

impl Mutex {
    /// Records how the mutex was acquired. Returns the result for the caller.
    fn acquired(&self, how: Acquired) -> c_int {
        let poisoned = how == Acquired::Poisoned;
        if self.state() != how {
            // SAFETY: the caller holds the mutex.
            unsafe { *self.poisoned.get() = poisoned.into() };
        }
        if poisoned {
            EOWNERDEAD
        } else {
            0
        }
    }

    /// How the mutex is to be released.
    fn state(&self) -> Acquired {
        // SAFETY: the caller holds the mutex; if not, the value is not used.
        match unsafe { self.poisoned.get().read_volatile() } {
            0 => Acquired::Clean,
            _ => Acquired::Poisoned,
        }
    }
}

/// As in POSIX, but attributes are ignored.
///
/// # Safety
///
/// The pointer is to memory for the object, which is not in use.
#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_init(mutex: *mut Mutex, _: *const u8) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { mutex.write_bytes(0, 1) };
    0
}

/// As in POSIX. Returns `EOWNERDEAD` if its owner died; the caller then holds the mutex.
#[no_mangle]
pub extern "C" fn pthread_mutex_lock(mutex: &Mutex) -> c_int {
    mutex.raw.lock(&Vm, None).map_or_else(number, |how| mutex.acquired(how))
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_mutex_trylock(mutex: &Mutex) -> c_int {
    mutex.raw.try_lock(&Vm).map_or(EBUSY, |how| mutex.acquired(how))
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_mutex_unlock(mutex: &Mutex) -> c_int {
    let mut contended = false;
    let note = || {
        contended = true;
        USERS.set(&Vm, mutex);
    };
    let released = mutex.raw.unlock_with(&Vm, mutex.state(), note);
    if contended {
        USERS.clear(&Vm);
    }
    if released {
        0
    } else {
        EPERM
    }
}

/// As in POSIX: declares the guarded data consistent.
#[no_mangle]
pub extern "C" fn pthread_mutex_consistent(mutex: &Mutex) -> c_int {
    if mutex.state() == Acquired::Clean {
        return EINVAL;
    }
    mutex.acquired(Acquired::Clean)
}

/// As in POSIX. Its memory can be used for something else at once, as that of conditions and barriers.
#[no_mangle]
pub extern "C" fn pthread_mutex_destroy(mutex: &Mutex) -> c_int {
    match mutex.raw.try_lock(&Vm) {
        None => EBUSY,
        Some(how) => {
            mutex.raw.unlock(&Vm, how);
            USERS.wait(&Vm, mutex);
            0
        }
    }
}

/// As in POSIX, but attributes are ignored.
///
/// # Safety
///
/// The pointer is to memory for the object, which is not in use.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_init(cond: *mut Cond, _: *const u8) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cond.write_bytes(0, 1) };
    0
}

fn wait(cond: &Cond, mutex: &Mutex, deadline: Option<u64>) -> c_int {
    let sleep = || cond.0.sleep(&Vm, &mutex.raw, mutex.state(), deadline);
    // The thread that destroys the condition may hold the mutex.
    let woken = match USERS.using(&Vm, cond, sleep) {
        Ok(slept) => slept.woken,
        Err(error) => return number(error),
    };
    // Whatever the time: the caller must hold the mutex.
    match pthread_mutex_lock(mutex) {
        0 if woken == Woken::TimedOut => ETIMEDOUT,
        result => result,
    }
}

/// As in POSIX; spurious wake-ups happen.
#[no_mangle]
pub extern "C" fn pthread_cond_wait(cond: &Cond, mutex: &Mutex) -> c_int {
    wait(cond, mutex, None)
}

/// As in POSIX: `until` counts from 1970.
#[no_mangle]
pub extern "C" fn pthread_cond_timedwait(cond: &Cond, mutex: &Mutex, until: &Time) -> c_int {
    if !(0..1_000_000_000).contains(&until.nanoseconds) {
        return EINVAL;
    }
    let until = i128::from(until.seconds) * 1_000_000_000 + i128::from(until.nanoseconds);
    let left = (until - i128::from(clock::time_of_day())).clamp(0, i64::MAX.into()) as u64;
    wait(cond, mutex, Some(clock::now().saturating_add(left)))
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_cond_signal(cond: &Cond) -> c_int {
    cond.0.notify_one(&Vm);
    0
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_cond_broadcast(cond: &Cond) -> c_int {
    cond.0.notify_all(&Vm);
    0
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_cond_destroy(cond: &Cond) -> c_int {
    USERS.wait(&Vm, cond);
    0
}

/// As in POSIX, but attributes are ignored.
///
/// # Safety
///
/// The pointer is to memory for the object, which is not in use.
#[no_mangle]
pub unsafe extern "C" fn pthread_barrier_init(
    barrier: *mut Barrier,
    _: *const u8,
    count: u32,
) -> c_int {
    if count == 0 {
        return EINVAL;
    }
    // SAFETY: the caller's promise; zeros initialize all parts.
    unsafe {
        barrier.write_bytes(0, 1);
        *(*barrier).count.get() = count.into();
    }
    0
}

/// As in POSIX. Returns `EPERM` if a thread died inside.
#[no_mangle]
pub extern "C" fn pthread_barrier_wait(barrier: &Barrier) -> c_int {
    USERS.using(&Vm, barrier, || arrive(barrier))
}

fn arrive(barrier: &Barrier) -> c_int {
    let Ok(Acquired::Clean) = barrier.mutex.lock(&Vm, None) else { return EPERM };
    // SAFETY: under the mutex, which `wait` releases and takes again.
    unsafe {
        let phase = *barrier.phase.get();
        *barrier.arrived.get() += 1;
        if *barrier.arrived.get() == *barrier.count.get() {
            *barrier.arrived.get() = 0;
            *barrier.phase.get() = phase.wrapping_add(1);
            barrier.all.notify_all(&Vm);
            barrier.mutex.unlock(&Vm, Acquired::Clean);
            return SERIAL;
        }
        while barrier.phase.get().read_volatile() == phase {
            let again = barrier.all.wait(&Vm, &barrier.mutex, Acquired::Clean, None);
            match again {
                Ok((Acquired::Clean, _)) => {}
                Ok((how, _)) => {
                    barrier.mutex.unlock(&Vm, how);
                    return EPERM;
                }
                Err(_) => return EPERM,
            }
        }
    }
    barrier.mutex.unlock(&Vm, Acquired::Clean);
    0
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_barrier_destroy(barrier: &Barrier) -> c_int {
    USERS.wait(&Vm, barrier);
    0
}
