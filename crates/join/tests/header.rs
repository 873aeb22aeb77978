//! `include/kyozon/join.h` is what this crate says, and a C compiler takes it.

use std::{fs, path::Path, process::Command};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generate() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml");
    let mut text = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(root().join("src/c.rs"))
        .generate()
        .expect("the module parses")
        .write(&mut text);
    // What is for readers of Rust; a comment does not know the prefix.
    let text = String::from_utf8(text).expect("generated text is UTF-8");
    text.replace("`JOIN_", "`KYOZON_JOIN_").replace(" # Safety\n\n", " Callers keep to this:\n\n")
}

#[test]
fn header_is_fresh() {
    let path = root().join("include/kyozon/join.h");
    let want = generate();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &want).expect("write the header");
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        have == want,
        "{} is stale: BLESS=1 cargo test -p kyozon-join --test header",
        path.display()
    );
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
