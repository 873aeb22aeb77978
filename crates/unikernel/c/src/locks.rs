//! Mutex, condition variable and barrier, as POSIX has them, over those of the channel.

use crate::error::*;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use kyozon_channel::error::Error;
use kyozon_channel::sync::{Acquired, Condvar, RawMutex, Woken};
use kyozon_unikernel::{clock, vm::Vm};

/// `pthread_mutex_t`: robust, as POSIX calls it.
#[derive(Debug)]
#[repr(C)]
pub struct Mutex {
    raw: RawMutex,
    /// Its holder's: not 0 where somebody died in it, and nobody has said that all is in order.
    poisoned: UnsafeCell<u64>,
}

/// `pthread_cond_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Cond(Condvar);

/// `pthread_barrier_t`. But for `mutex` and `all`, under the mutex.
#[derive(Debug)]
#[repr(C)]
pub struct Barrier {
    mutex: RawMutex,
    all: Condvar,
    count: UnsafeCell<u64>,
    here: UnsafeCell<u64>,
    phase: UnsafeCell<u64>,
}

/// `struct timespec`.
#[derive(Debug)]
#[repr(C)]
pub struct Time {
    seconds: i64,
    nanoseconds: i64,
}

// As the header has them.
const _: () = assert!(size_of::<Mutex>() == 24 && size_of::<Cond>() == 8);
const _: () = assert!(size_of::<Barrier>() == 48 && size_of::<Time>() == 16);

/// What one of the waits of a barrier returns, and one only.
const SERIAL: c_int = -1;

fn number(error: Error) -> c_int {
    match error {
        Error::TimedOut => ETIMEDOUT,
        Error::Deadlock => EDEADLK,
        _ => EPERM,
    }
}

impl Mutex {
    /// Notes how it was taken.
    fn taken(&self, then: Acquired) -> c_int {
        let poisoned = then == Acquired::Poisoned;
        // SAFETY: the holder's, which the caller is.
        unsafe { *self.poisoned.get() = poisoned.into() };
        if poisoned {
            EOWNERDEAD
        } else {
            0
        }
    }

    /// How it is to be given back.
    fn then(&self) -> Acquired {
        // SAFETY: the holder's, which the caller is; where it is not, the number is not used.
        match unsafe { self.poisoned.get().read_volatile() } {
            0 => Acquired::Clean,
            _ => Acquired::Poisoned,
        }
    }
}

/// As in POSIX; attributes are not looked at.
///
/// # Safety
///
/// Memory for one, that nobody uses.
#[no_mangle]
pub unsafe extern "C" fn pthread_mutex_init(mutex: *mut Mutex, _: *const u8) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { mutex.write_bytes(0, 1) };
    0
}

/// As in POSIX: `EOWNERDEAD` where its owner died; it is taken then.
#[no_mangle]
pub extern "C" fn pthread_mutex_lock(mutex: &Mutex) -> c_int {
    mutex.raw.lock(&Vm, None).map_or_else(number, |then| mutex.taken(then))
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_mutex_trylock(mutex: &Mutex) -> c_int {
    mutex.raw.try_lock(&Vm).map_or(EBUSY, |then| mutex.taken(then))
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_mutex_unlock(mutex: &Mutex) -> c_int {
    if mutex.raw.unlock(&Vm, mutex.then()) {
        0
    } else {
        EPERM
    }
}

/// As in POSIX: what it guards is in order again.
#[no_mangle]
pub extern "C" fn pthread_mutex_consistent(mutex: &Mutex) -> c_int {
    if mutex.then() == Acquired::Clean {
        return EINVAL;
    }
    mutex.taken(Acquired::Clean)
}

/// As in POSIX.
#[no_mangle]
pub extern "C" fn pthread_mutex_destroy(mutex: &Mutex) -> c_int {
    match mutex.raw.try_lock(&Vm) {
        None => EBUSY,
        Some(then) => {
            mutex.raw.unlock(&Vm, then);
            0
        }
    }
}

/// As in POSIX; attributes are not looked at.
///
/// # Safety
///
/// Memory for one, that nobody uses.
#[no_mangle]
pub unsafe extern "C" fn pthread_cond_init(cond: *mut Cond, _: *const u8) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cond.write_bytes(0, 1) };
    0
}

fn wait(cond: &Cond, mutex: &Mutex, deadline: Option<u64>) -> c_int {
    match cond.0.wait(&Vm, &mutex.raw, mutex.then(), deadline) {
        Ok((then, woken)) => match mutex.taken(then) {
            0 if woken == Woken::TimedOut => ETIMEDOUT,
            error => error,
        },
        Err(error) => number(error),
    }
}

/// As in POSIX: may return for no reason.
#[no_mangle]
pub extern "C" fn pthread_cond_wait(cond: &Cond, mutex: &Mutex) -> c_int {
    wait(cond, mutex, None)
}

/// As in POSIX: until a time since 1970.
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
pub extern "C" fn pthread_cond_destroy(_: &Cond) -> c_int {
    0
}

/// As in POSIX; attributes are not looked at.
///
/// # Safety
///
/// Memory for one, that nobody uses.
#[no_mangle]
pub unsafe extern "C" fn pthread_barrier_init(
    barrier: *mut Barrier,
    _: *const u8,
    count: u32,
) -> c_int {
    if count == 0 {
        return EINVAL;
    }
    // SAFETY: the caller's promise; zeros are how its parts begin.
    unsafe {
        barrier.write_bytes(0, 1);
        *(*barrier).count.get() = count.into();
    }
    0
}

/// As in POSIX. Fails where a thread died in it.
#[no_mangle]
pub extern "C" fn pthread_barrier_wait(barrier: &Barrier) -> c_int {
    let Ok(Acquired::Clean) = barrier.mutex.lock(&Vm, None) else { return EPERM };
    // SAFETY: under the mutex, which `wait` gives back and takes again.
    unsafe {
        let phase = *barrier.phase.get();
        *barrier.here.get() += 1;
        if *barrier.here.get() == *barrier.count.get() {
            *barrier.here.get() = 0;
            *barrier.phase.get() = phase.wrapping_add(1);
            barrier.all.notify_all(&Vm);
            barrier.mutex.unlock(&Vm, Acquired::Clean);
            return SERIAL;
        }
        while barrier.phase.get().read_volatile() == phase {
            let again = barrier.all.wait(&Vm, &barrier.mutex, Acquired::Clean, None);
            match again {
                Ok((Acquired::Clean, _)) => {}
                Ok((then, _)) => {
                    barrier.mutex.unlock(&Vm, then);
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
pub extern "C" fn pthread_barrier_destroy(_: &Barrier) -> c_int {
    0
}
