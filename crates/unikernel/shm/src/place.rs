//! Where the two sides run: on CPUs of their own. Two that wait for each other on one CPU measure its scheduler.

/// The calling thread takes a side, 0 or 1.
#[cfg(feature = "image")]
pub fn take(_: usize) {}

/// The calling thread takes a side, 0 or 1.
#[cfg(not(feature = "image"))]
pub fn take(side: usize) {
    use kyozon_tender::pins::{allowed, Pins};
    use std::sync::OnceLock;
    // As it was before the first side was taken.
    static PINS: OnceLock<Pins> = OnceLock::new();
    let pins = PINS.get_or_init(|| Pins::new(&allowed(), 2).unwrap_or_default());
    // Where that cannot be, it runs where it is.
    let _ = pins.pin(Some(side), None);
}
