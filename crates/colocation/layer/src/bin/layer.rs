//! The layer as a flat image. `build.rs` says how it is made.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod image {
    use kyozon_colocation as _;

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        kyozon_colocation::cokernel::stop::panicked()
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("layer: an image for the bare machine; build it for x86_64-unknown-none");
}
