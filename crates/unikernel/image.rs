//! Links unikernels where the tender expects them.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=../unikernel/unikernel.ld");
    if std::env::var_os("CARGO_FEATURE_IMAGE").is_none() {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-T{root}/../unikernel/unikernel.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=--no-pie");
    } else {
        // The linker is a C compiler, which would add a C library and its start.
        for word in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none"] {
            println!("cargo:rustc-link-arg-bins={word}");
        }
    }
}
