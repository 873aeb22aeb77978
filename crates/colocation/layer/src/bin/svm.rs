//! The hypervisor of mode vmm as a flat image. `build.rs` says how it is made.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    kyozon_colocation::vmm::svm::log::failed(format_args!("hypervisor: {info}"))
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("svm: an image for the bare machine; build it for x86_64-unknown-none");
}
