//! The structures that the module shares with the layer, and the cokernel's address ranges. All are set on the first
//! trip.

use crate::owned::Owned;
use crate::space::Space;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use kyozon_abi::layer::{LayerEntry, Trip};

static ENTRY: AtomicPtr<LayerEntry> = AtomicPtr::new(ptr::null_mut());
static TRIP: AtomicPtr<Trip> = AtomicPtr::new(ptr::null_mut());
/// Owner: services.
static SPACE: Owned<Option<Space>> = Owned::new(None);

/// Keeps the module's structures. Called once, before any other function here.
pub(crate) fn set(entry: *mut LayerEntry, trip: *mut Trip) {
    ENTRY.store(entry, Relaxed);
    TRIP.store(trip, Relaxed);
}

/// Sets the address ranges of the cokernel.
///
/// # Safety
///
/// Called once, on the first trip, before the cokernel starts.
pub(crate) unsafe fn set_space(space: Space) {
    // SAFETY: the caller's promise: no service has a reference.
    unsafe { *SPACE.get() = Some(space) };
}

/// The module's structure, complete before the first trip.
#[inline]
pub(crate) fn entry() -> &'static LayerEntry {
    // SAFETY: set before anything else runs, and never written again: the module maps it read-only.
    unsafe { &*ENTRY.load(Relaxed) }
}

/// The same, for the fields that the module writes between trips.
#[inline]
pub(crate) fn entry_pointer() -> *const LayerEntry {
    ENTRY.load(Relaxed)
}

/// The trip that the module and the trampoline share with the layer; null before the first trip.
#[inline]
pub(crate) fn trip_pointer() -> *mut Trip {
    TRIP.load(Relaxed)
}

/// Reads or writes a field of the trip. One field at a time: the module and the trampoline also access the trip.
macro_rules! trip {
    ($field:ident) => {
        // SAFETY: the module's structure, mapped as long as the layer is.
        unsafe { (&raw const (*$crate::cokernel::state::trip_pointer()).$field).read_volatile() }
    };
    ($field:ident = $value:expr) => {{
        let value = $value;
        // SAFETY: as above.
        unsafe {
            (&raw mut (*$crate::cokernel::state::trip_pointer()).$field).write_volatile(value)
        }
    }};
}
pub(crate) use trip;

/// [`Trip::parked`].
pub(crate) fn parked() -> &'static AtomicU32 {
    // SAFETY: the module's structure, mapped as long as the layer is; this word is accessed by atomics only.
    unsafe { AtomicU32::from_ptr(&raw mut (*trip_pointer()).parked) }
}

/// [`Trip::look`].
pub(crate) fn look() -> &'static AtomicU32 {
    // SAFETY: as in `parked`.
    unsafe { AtomicU32::from_ptr(&raw mut (*trip_pointer()).look) }
}

/// For services: the address ranges that the cokernel may pass to them.
pub(crate) fn space() -> &'static Space {
    // SAFETY: services own it, and it is not written after the first trip.
    unsafe { SPACE.get() }.as_ref().expect("set before start")
}

/// Whether `address` lies in the cokernel's text.
pub(crate) fn in_cokernel(address: u64) -> bool {
    let e = entry();
    address.wrapping_sub(e.cokernel) < e.cokernel_text_bytes
}

/// Ticks of the time-stamp counter in `us` microseconds.
pub(crate) fn us_to_tsc(us: u64) -> u64 {
    us * entry().tsc_khz / 1000
}
