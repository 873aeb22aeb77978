//! Links the task where the microkernel expects it.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=../task/task.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-T{root}/../task/task.ld");
        println!("cargo:rustc-link-arg-bins=--no-pie");
    }
}
