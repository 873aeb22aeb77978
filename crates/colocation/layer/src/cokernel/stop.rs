//! A trip that ends in the middle of the cokernel: cut off until the next tick, or stopped for good.

use super::state::{trip, trip_pointer};
use super::{reports, user_mode};
use crate::arch::x86_64::{self as arch, entry::*};
use crate::line;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::events::EVENT_FAULT;
use kyozon_abi::layer::{
    Fault, Frame, FAULT_EXCEPTION, FAULT_LAYER, FAULT_RUNAWAY, TRIP_STOPPED, USER_GATE,
};

/// Records the address at which the cokernel was interrupted; the trip ends in a gate.
fn note_fault(reason: u32, frame: &Frame) {
    // SAFETY: the module's structure, mapped as long as the layer is.
    unsafe { (*trip_pointer()).user.switched |= USER_GATE };
    trip!(fault = Fault { reason, reserved: 0, cr2: arch::cr2(), cr3: arch::cr3(), frame: *frame });
}

/// Gives the CPU back in the middle of the cokernel, with `result`; the next trip continues at the same place.
pub(crate) fn cut_off(frame: &Frame, result: u32) {
    note_fault(FAULT_RUNAWAY, frame);
    trip!(result = result);
    // SAFETY: the cokernel was interrupted outside of the layer, so no other code uses these.
    unsafe {
        if user_mode::is_program(frame) {
            LAYER_RESUME_RSP.store(user_mode::to_user_stack(frame), Relaxed);
            LAYER_RESUME.store(layer_resume_user as *const () as u64, Relaxed);
        } else {
            (&raw mut LAYER_CUT_FRAME).write(*frame);
            LAYER_CUT_CR2.store(arch::cr2(), Relaxed);
            LAYER_RESUME_RSP.store(layer_scratch_top as *const () as u64, Relaxed);
            LAYER_RESUME.store(layer_resume_cut as *const () as u64, Relaxed);
        }
    }
    user_mode::put_back();
}

/// Ends the cokernel for `reason` (`FAULT_*`): reports, and gives the CPU back for good.
pub(crate) fn stop(reason: u32, frame: &Frame) -> ! {
    note_fault(reason, frame);
    trip!(result = TRIP_STOPPED);
    let line = line::of_fault(&trip!(fault));
    // SAFETY: nothing of the cokernel or of a service runs again.
    unsafe {
        reports::write(EVENT_FAULT, frame.vector as u32, line.bytes());
        reports::drain_serial();
    }
    user_mode::put_back();
    // SAFETY: Linux continues from here.
    unsafe { layer_abandon() }
}

/// An exception in kernel mode. Returns the address to which the frame was moved if it is one of typed code.
#[no_mangle]
extern "C" fn layer_fault(frame: &Frame) -> u64 {
    if user_mode::is_program(frame) {
        user_mode::to_user_stack(frame)
    } else {
        stop(FAULT_EXCEPTION, frame)
    }
}

/// User mode was interrupted, and the cokernel has no handler for that.
#[no_mangle]
pub(crate) extern "C" fn layer_unhandled(frame: &Frame) -> ! {
    stop(FAULT_EXCEPTION, frame)
}

/// The layer itself failed.
pub fn panicked() -> ! {
    if trip_pointer().is_null() {
        // SAFETY: the trampoline's frame is on the stack of the trip, whatever happened.
        unsafe { layer_abandon() }
    }
    stop(FAULT_LAYER, &Frame::default())
}
