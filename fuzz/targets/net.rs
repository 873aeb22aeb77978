//! A queue of a network's port, by a hostile guest.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = kyozon_devices::fuzz::net(input);
});
