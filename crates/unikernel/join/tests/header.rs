//! `include/kyozon/join.h` is what this crate says, and a C compiler takes it.

#[path = "../../../base/abi/tests/common/mod.rs"]
mod common;

use std::{path::Path, process::Command};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generate() -> String {
    let text = common::generate(root(), &["c.rs"]);
    // What is for readers of Rust; a comment does not know the prefix.
    text.replace("`JOIN_", "`KYOZON_JOIN_").replace(" # Safety\n\n", " Callers keep to this:\n\n")
}

#[test]
fn header_is_fresh() {
    common::assert_fresh(&root().join("include/kyozon/join.h"), "kyozon-join", &generate());
}

#[test]
fn a_c_compiler_takes_it() {
    let out = Command::new("cc")
        .args(["-std=c11", "-xc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg(root().join("include/kyozon/join.h"))
        .output()
        .expect("a C compiler named cc");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
