//! The image loader, on hostile ELF files.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    kyozon_tender::elf::fuzz(input);
});
