//! Links the task at the address that the microkernel expects.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=../../colocation/task/task.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-T{root}/../../colocation/task/task.ld");
        println!("cargo:rustc-link-arg-bins=--no-pie");
    }
}
