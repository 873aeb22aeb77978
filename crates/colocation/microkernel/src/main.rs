//! The microkernel as a flat image. `build.rs` has the commands that build it.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod image {
    use kyozon_microkernel as _;

    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
        kyozon_microkernel::arch::x86_64::panicked(info)
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("cokernel: an image for the bare machine; build it for x86_64-unknown-none");
}
