//! Places the two sides on two CPUs. On one CPU the experiments would measure its scheduler.

/// Places the calling thread, which is side 0 or 1. The tender places machines.
#[cfg(feature = "image")]
pub fn to_side(_: usize) {}

/// Places the calling thread, which is side 0 or 1.
#[cfg(not(feature = "image"))]
pub fn to_side(side: usize) {
    use kyozon_tender::pins::{allowed, Pins};
    use std::sync::OnceLock;
    // Computed once, before the first pin changes the set of allowed CPUs.
    static PINS: OnceLock<Pins> = OnceLock::new();
    let pins = PINS.get_or_init(|| Pins::new(&allowed(), 2).unwrap_or_default());
    // A thread that cannot be pinned stays where it is.
    let _ = pins.pin(Some(side), None);
}
