//! The tick that waits for the cokernel.

use super::state::trip;
use crate::arch::x86_64::entry::{LAYER_TICK, LAYER_WORK, WORK_TICK};
use crate::owned::Owned;
use crate::tick;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::TickEvent;

/// Interrupts write it; services copy it after they have taken its `WORK_TICK`.
static PENDING: Owned<TickEvent> =
    Owned::new(TickEvent { number: 0, missed: 0, scheduled_tsc: 0, entered_tsc: 0 });

/// Keeps `event` for the cokernel's next `idle`, merged with a tick that is already pending.
fn keep(event: TickEvent) {
    // SAFETY: interrupts own it, and no other code runs during `layer_keep_trip`; an atomic of the entry code.
    unsafe {
        let pending = PENDING.get();
        *pending = if LAYER_WORK.load(Relaxed) & WORK_TICK != 0 {
            tick::merge(pending, &event)
        } else {
            event
        };
        LAYER_WORK.fetch_or(WORK_TICK, Relaxed);
    }
}

/// Keeps a tick that came while the cokernel ran, at `now`, and schedules the next one.
pub(crate) fn keep_tick(now: u64) {
    let inside = trip!(ticks_inside) + 1;
    let due = trip!(next_tsc);
    trip!(ticks_inside = inside);
    trip!(next_tsc = due.wrapping_add(trip!(period_tsc)));
    keep(TickEvent {
        number: trip!(event).number + u64::from(inside),
        missed: 0,
        scheduled_tsc: due,
        entered_tsc: now,
    });
}

/// Keeps the tick of a trip that continues in the middle of the cokernel.
#[no_mangle]
pub(crate) extern "C" fn layer_keep_trip() {
    keep(trip!(event));
}

/// Hands the pending tick to the cokernel.
#[no_mangle]
pub(crate) extern "C" fn layer_kept_tick() {
    // SAFETY: the handler is the cokernel's, or one that does nothing. An interrupt that overwrites the event during
    // the copy makes it the newer tick, and sets the bit again.
    unsafe {
        LAYER_WORK.fetch_and(!WORK_TICK, Relaxed);
        let event = (&raw const *PENDING.get()).read_volatile();
        let tick: extern "C" fn(*const TickEvent) = core::mem::transmute(LAYER_TICK.load(Relaxed));
        tick(&event);
    }
}
