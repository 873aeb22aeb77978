//! The cokernel's host on a machine without Linux. `build.rs` says how it is made.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    kyozon_colocation::alone::start::panicked(info)
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("alone: an image for the bare machine; build it for x86_64-unknown-none");
}
