//! A ring between many, of whom some are hostile.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = kyozon_channel::fuzz::mpmc(input);
});
