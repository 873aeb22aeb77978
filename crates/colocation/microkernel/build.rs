//! Links the flat image:
//!
//! ```text
//! cargo build --release --target x86_64-unknown-none -p kyozon-microkernel --bin cokernel --features image
//! objcopy -O binary target/x86_64-unknown-none/release/cokernel cokernel.bin
//! ```

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=cokernel.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bin=cokernel=-T{root}/cokernel.ld");
        // The image has a fixed address; no loader relocates it.
        println!("cargo:rustc-link-arg-bin=cokernel=--no-pie");
    }
}
