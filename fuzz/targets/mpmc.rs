//! A ring between many peers, some of which are hostile.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = kyozon_channel::fuzz::mpmc(input);
});
