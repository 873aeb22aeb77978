//! Commands that a client of the key-value store sends.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    kyozon_kv::fuzz::commands(input);
});
