//! An image: the loader.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    kyozon_tender::elf::fuzz(input);
});
