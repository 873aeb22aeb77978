//! Links unikernels where the tender expects them.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=../unikernel/unikernel.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-T{root}/../unikernel/unikernel.ld");
        println!("cargo:rustc-link-arg-bins=--no-pie");
    }
}
