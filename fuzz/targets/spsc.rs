//! A ring between two peers, one of which is hostile.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = kyozon_channel::fuzz::spsc(input);
});
