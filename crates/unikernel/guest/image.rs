//! Links unikernels where the tender expects them.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    // The unikernels of `crates/lab` lie in another part's folder.
    let script = ["../guest", "../../unikernel/guest"]
        .map(|folder| format!("{root}/{folder}/unikernel.ld"))
        .into_iter()
        .find(|script| std::path::Path::new(script).exists())
        .expect("crates/unikernel/guest/unikernel.ld exists");
    println!("cargo:rerun-if-changed={script}");
    if std::env::var_os("CARGO_FEATURE_IMAGE").is_none() {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-T{script}");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=--no-pie");
    } else {
        // The linker is a C compiler, which would add a C library and its start.
        for word in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none"] {
            println!("cargo:rustc-link-arg-bins={word}");
        }
    }
}
