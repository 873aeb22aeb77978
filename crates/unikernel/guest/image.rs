//! The build script of unikernels: links them at the address and with the page rights that the tender expects.

use std::env;

fn main() {
    if env::var_os("CARGO_FEATURE_IMAGE").is_none() {
        return;
    }
    let script = env::var("DEP_KYOZON_UNIKERNEL_SCRIPT").expect(
        "a unikernel depends on kyozon-unikernel, whose build script names the linker script",
    );
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=--no-pie");
    } else {
        // The linker is the C compiler, which would add the C library and its startup code.
        for option in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none"] {
            println!("cargo:rustc-link-arg-bins={option}");
        }
    }
}
