//! Links the flat image:
//!
//! ```text
//! cargo build --release --target x86_64-unknown-none -p kyozon-colocation --bin layer --features image
//! objcopy -O binary target/x86_64-unknown-none/release/layer layer.bin
//! ```
//!
//! The hypervisor is built in the same way, with `svm` for `layer` and for `image`. The ELF file that boots a cokernel
//! without Linux:
//!
//! ```text
//! cargo build --release --target x86_64-unknown-none -p kyozon-colocation --bin alone --features alone
//! ```

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=layer.ld");
    println!("cargo:rerun-if-changed=alone.ld");
    println!("cargo:rerun-if-changed=svm.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bin=layer=-T{root}/layer.ld");
        if std::env::var_os("CARGO_FEATURE_ALONE").is_some() {
            println!("cargo:rustc-link-arg-bin=alone=-T{root}/alone.ld");
            println!("cargo:rustc-link-arg-bin=alone=--no-pie");
        }
        // The image has a fixed address, and nothing would relocate it.
        println!("cargo:rustc-link-arg-bin=layer=--no-pie");
        if std::env::var_os("CARGO_FEATURE_SVM").is_some() {
            println!("cargo:rustc-link-arg-bin=svm=-T{root}/svm.ld");
            println!("cargo:rustc-link-arg-bin=svm=--no-pie");
        }
    }
}
