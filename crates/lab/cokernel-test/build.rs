//! Links the flat image:
//!
//! ```text
//! cargo build --release --target x86_64-unknown-none -p kyozon-cokernel-test --bin cokernel-test --features image
//! objcopy -O binary target/x86_64-unknown-none/release/cokernel-test cokernel-test.bin
//! ```

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=cokernel.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bin=cokernel-test=-T{root}/cokernel.ld");
        // The image has a fixed address; no loader relocates it.
        println!("cargo:rustc-link-arg-bin=cokernel-test=--no-pie");
    }
}
