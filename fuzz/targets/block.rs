//! A disk's queue under a hostile guest.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = kyozon_devices::fuzz::block(input);
});
