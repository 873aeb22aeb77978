//! A device's registers and queues under a hostile driver.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = kyozon_devices::fuzz::registers(input);
});
