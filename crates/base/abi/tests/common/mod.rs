//! A header that is generated from sources, committed, and held against them.

use std::{fs, path::Path};

/// A header of these sources, as the `cbindgen.toml` beside them says.
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

/// Fails where a header is not this text; with `BLESS` it is written first.
pub fn assert_fresh(path: &Path, package: &str, want: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, want).expect("write the header");
    }
    let have = fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(have == want, "{path} is stale: BLESS=1 cargo test -p {package} --test header");
}
