//! Passes the linker script's path to the build scripts of unikernels, as `DEP_KYOZON_UNIKERNEL_SCRIPT`.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rerun-if-changed=unikernel.ld");
    println!("cargo:script={folder}/unikernel.ld");
}
