//! `include/kyozon/join.h` matches this crate, and a C compiler accepts it.

#[path = "../../../base/abi/tests/common/mod.rs"]
mod common;

use std::{path::Path, process::Command};

/// The modules of the C interface, in the header's order.
const SOURCES: [&str; 5] = ["c.rs", "c/host.rs", "c/region.rs", "c/ring.rs", "c/lock.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generate() -> String {
    let text = common::generate(root(), &SOURCES);
    // Comments lack the prefix that cbindgen gives to names, and `# Safety` is a heading for readers of Rust.
    text.replace("`JOIN_", "`KYOZON_JOIN_").replace(" # Safety\n\n", " The caller must pass:\n\n")
}

#[test]
fn header_is_up_to_date() {
    common::assert_fresh(&root().join("include/kyozon/join.h"), "kyozon-join", &generate());
}

#[test]
fn a_c_compiler_accepts_the_header() {
    let out = Command::new("cc")
        .args(["-std=c11", "-xc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg(root().join("include/kyozon/join.h"))
        .output()
        .expect("a C compiler named cc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
