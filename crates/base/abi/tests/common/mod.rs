//! Generates a C header from Rust sources and compares it with the committed one.

use std::{fs, path::Path};

/// The header for `sources`, relative to `root/src`, by `root/cbindgen.toml`.
pub fn generate(root: &Path, sources: &[&str]) -> String {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut text = Vec::new();
    let builder = cbindgen::Builder::new().with_config(config);
    sources
        .iter()
        .fold(builder, |builder, source| builder.with_src(root.join("src").join(source)))
        .generate()
        .expect("the sources parse")
        .write(&mut text);
    String::from_utf8(text).expect("generated text is UTF-8")
}

/// Fails if the file at `path` differs from `want`. If `BLESS` is set, writes it first.
pub fn assert_fresh(path: &Path, package: &str, want: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, want).expect("write the header");
    }
    let have = fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(have == want, "{path} is stale: BLESS=1 cargo test -p {package} --test header");
}
