//! Frames from the other end of a network's socket.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    kyozon_tender::device::host::fuzz(input);
});
