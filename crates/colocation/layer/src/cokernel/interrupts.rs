//! Non-maskable interrupts and machine checks while the cokernel runs.

use super::guard::{acknowledge, arm_guard, times};
use super::pending::keep_tick;
use super::state::{entry, in_cokernel, trip, us_to_tsc};
use super::stop::{cut_off, stop};
use super::user_mode::{is_program, to_user_stack};
use crate::arch::x86_64::entry::LAYER_CUTS;
use crate::interrupt::{decide, guard_at, Action, At, Extensions};
use crate::owned::Owned;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::{Frame, FAULT_LAYER, FAULT_RUNAWAY, TRIP_CUT_OFF, TRIP_MACHINE_CHECK};

/// Lower bound of the kernel-mode cut-offs in a row after which a cokernel counts as runaway; one second's worth of
/// ticks if that is more.
const MIN_CUTS: u32 = 64;
/// Microseconds of the first extension of the layer's own code.
const FIRST_EXTENSION_US: u64 = 20;

/// Owner: interrupts.
static EXTENSIONS: Owned<Extensions> = Owned::new(Extensions::new());

fn max_cuts() -> u32 {
    entry().tick_hz.max(MIN_CUTS)
}

fn place(frame: &Frame) -> At {
    if is_program(frame) {
        At::User
    } else if in_cokernel(frame.rip) {
        At::Cokernel
    } else {
        At::Layer
    }
}

/// Returns 0 to continue the interrupted code, 1 to leave the trip, else the address of user mode's frame, to which the
/// tick is delivered.
#[no_mangle]
extern "C" fn layer_on_nmi(frame: &mut Frame) -> u64 {
    let t = times();
    let at = place(frame);
    let ours = acknowledge();
    match decide(&t, at) {
        Action::Foreign if ours => {}
        Action::Foreign => {
            not_ours();
            // It may have been the guard, if the timer's clock is faster than this one.
            arm_guard(guard_at(&t));
        }
        Action::Rearm => arm_guard(guard_at(&t)),
        Action::Keep => {
            keep_tick(t.now);
            arm_guard(guard_at(&times()));
        }
        Action::Deliver => {
            keep_tick(t.now);
            arm_guard(guard_at(&times()));
            return to_user_stack(frame);
        }
        Action::Recheck => {
            // SAFETY: interrupts own it; a second one is only counted.
            let extensions = unsafe { EXTENSIONS.get() };
            match extensions.next(trip!(event).number, &t, us_to_tsc(FIRST_EXTENSION_US)) {
                Some(due) => arm_guard(due),
                None => stop(FAULT_LAYER, frame),
            }
        }
        Action::CutOff => {
            // SAFETY: an atomic of the entry code.
            if at == At::Cokernel && unsafe { LAYER_CUTS.fetch_add(1, Relaxed) } >= max_cuts() {
                stop(FAULT_RUNAWAY, frame);
            }
            cut_off(frame, TRIP_CUT_OFF);
            return 1;
        }
    }
    0
}

/// Handles an NMI that came during the handling of another one, which has delivered a tick since.
#[no_mangle]
extern "C" fn layer_on_second_nmi() {
    let t = times();
    if decide(&t, At::Layer) == Action::Foreign {
        not_ours();
    }
    arm_guard(guard_at(&t));
}

/// Counts an NMI that is neither the tick's nor the guard's, or a late one of these.
fn not_ours() {
    match trip!(stale) {
        0 => trip!(foreign = trip!(foreign) + 1),
        n => trip!(stale = n - 1),
    }
}

/// Arms the guard for a trip that begins after its guard was due. The guard's NMI went to Linux, was only counted, or
/// is still on its way.
#[no_mangle]
extern "C" fn layer_guard_passed() {
    trip!(stale = trip!(stale) + 1);
    arm_guard(guard_at(&times()));
}

/// Returns 0 to continue the interrupted code (Linux gets the machine check at the trip's end), 1 to leave the trip.
#[no_mangle]
extern "C" fn layer_on_machine_check(frame: &mut Frame) -> u64 {
    if place(frame) == At::Layer {
        return 0;
    }
    cut_off(frame, TRIP_MACHINE_CHECK);
    1
}
