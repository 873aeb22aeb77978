//! Entry into the cokernel's user mode, and the state of Linux that is switched for it.

use super::state::{entry, space, trip_pointer};
use crate::arch::x86_64::vectors::Vectors;
use crate::arch::x86_64::{self as arch, entry::LAYER_USER_SWITCHED, user_state};
use crate::owned::Owned;
use crate::user;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::{Frame, LinuxRegisters, Range, SERVICE_BAD_ADDRESS};

/// Top of the stack on which the cokernel handles interrupted user mode; 0 if it has no such handler.
static USER_STACK: AtomicU64 = AtomicU64::new(0);
/// Owner: the code that switches the user state, which is a service on its way to user mode, or the code that leaves
/// the trip. `None` in a mode that has nothing to switch.
static SAVED: Owned<Option<user_state::Saved>> = Owned::new(None);
/// Owner: a service, or the code that leaves the trip.
static VECTORS: Owned<Vectors> = Owned::new(Vectors::NEW);

/// Addresses of typed code. Owner: all code of the layer; written by a service, when none of it has run.
static TYPED: Owned<Range> = Owned::new(Range { base: 0, bytes: 0 });

/// Sets the addresses of typed code.
///
/// # Safety
///
/// No frame of typed code exists yet, and none will at other addresses.
pub(crate) unsafe fn set_typed(typed: Range) {
    // SAFETY: a service; an interrupt that reads half of it finds no frame of typed code in any case.
    unsafe { *TYPED.get() = typed };
}

fn is_typed(frame: &Frame) -> bool {
    // SAFETY: not written any more when a frame of typed code exists.
    user::is_typed(frame, unsafe { TYPED.get() })
}

/// Whether the CPU was in user mode or in typed code at `frame`.
pub(crate) fn is_program(frame: &Frame) -> bool {
    user::is_user(frame) || is_typed(frame)
}

/// Sets the place for the user state, [`Services::user_state`](super::services::Services::user_state).
///
/// # Safety
///
/// Called once, on the first trip, before the cokernel starts.
pub(crate) unsafe fn set_saved(saved: Option<user_state::Saved>) {
    // SAFETY: the caller's promise.
    unsafe { *SAVED.get() = saved };
}

/// Sets the stack that the CPU switches to when user mode is interrupted, 0 for none.
///
/// # Safety
///
/// The bytes of a [`Frame`] below `top` are the cokernel's writable memory.
pub(crate) unsafe fn set_stack(top: u64) {
    USER_STACK.store(top, Relaxed);
    // Ring 0's stack in a 64-bit task state segment is at byte 4. Intel SDM 3A 8.7.
    // SAFETY: this field of the trampoline's segment belongs to the layer.
    unsafe { ((entry().tss + 4) as *mut u64).write_unaligned(top) };
}

/// Copies `frame` to the top of the user stack. Returns that address, or `SERVICE_BAD_ADDRESS`.
#[no_mangle]
extern "C" fn layer_check_user(frame: *const Frame) -> i64 {
    let top = USER_STACK.load(Relaxed);
    if top == 0 || !space().can_read::<Frame>(frame as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    let to = (top - size_of::<Frame>() as u64) as *mut Frame;
    // SAFETY: `set_stack` was promised the target; they may overlap.
    unsafe { ptr::copy(frame, to, 1) };
    to as i64
}

/// The last call before user mode, or before typed code, which can change nothing that is switched for user mode.
#[no_mangle]
extern "C" fn layer_prepare_user(frame: &mut Frame) {
    if is_typed(frame) {
        user::sanitize_typed(frame, arch::stack_selector());
        return;
    }
    user::sanitize(frame, entry().paging_levels);
    // SAFETY: an atomic of the entry code; on the way to user mode.
    unsafe {
        if LAYER_USER_SWITCHED.load(Relaxed) == 0 {
            switch();
        }
    }
}

/// Switches the user state.
///
/// # Safety
///
/// A service, or on the way to user mode; the state is Linux's: this trip has not switched it.
#[inline(never)]
unsafe fn switch() {
    // SAFETY: the caller's promise, and an atomic of the entry code.
    unsafe {
        if let Some(saved) = SAVED.get() {
            user_state::to_cokernel(saved, &mut (*trip_pointer()).user);
            LAYER_USER_SWITCHED.store(1, Relaxed);
        }
    }
}

/// Gives user mode the vector registers until the end of the trip, or takes them back. See
/// [`BootBlock::vectors`](kyozon_abi::layer::BootBlock::vectors).
pub(crate) extern "C" fn vectors(give: u64) -> i64 {
    // SAFETY: a service; the layer and kernel mode are built without these registers.
    unsafe {
        if give == 0 {
            VECTORS.get().take_back();
        } else {
            if LAYER_USER_SWITCHED.load(Relaxed) == 0 {
                switch();
            }
            // There is something to put back, also where nothing else is switched.
            LAYER_USER_SWITCHED.store(1, Relaxed);
            VECTORS.get().give();
        }
    }
    0
}

/// Linux's system registers, without the descriptor tables: those that are switched for user mode as they were saved.
///
/// # Safety
///
/// Only a service calls it, with a place for the user state.
pub(crate) unsafe fn linux_registers() -> LinuxRegisters {
    // SAFETY: an atomic of the entry code; a service may read what was saved.
    let saved = unsafe {
        match LAYER_USER_SWITCHED.load(Relaxed) {
            0 => None,
            _ => SAVED.get().as_ref(),
        }
    };
    user_state::system_registers(saved)
}

/// On the way out, after [`switch`] or [`vectors`] in this trip.
#[no_mangle]
extern "C" fn layer_user_back() {
    // SAFETY: we are leaving: no other code is on the way to user mode.
    unsafe {
        VECTORS.get().take_back();
        if let Some(saved) = SAVED.get() {
            user_state::to_linux(saved);
        }
        LAYER_USER_SWITCHED.store(0, Relaxed);
    }
}

/// Puts Linux's user state back, if this trip has switched it.
pub(crate) fn put_back() {
    // SAFETY: an atomic of the entry code.
    if unsafe { LAYER_USER_SWITCHED.load(Relaxed) } != 0 {
        layer_user_back();
    }
}

/// Moves a frame of user mode to the address at which the cokernel's handler expects it. Returns that address.
pub(crate) fn to_user_stack(frame: &Frame) -> u64 {
    let to = USER_STACK.load(Relaxed) - size_of::<Frame>() as u64;
    // SAFETY: `set_stack` was promised the target, and user mode was only entered with it set. Nothing lies on that
    // stack while the CPU is in user mode.
    unsafe { (to as *mut Frame).write(*frame) };
    to
}
