use super::files::{committed, is_text};
use super::tools::count_results;
use super::*;

#[test]
fn results_add_up() {
    let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\nnoise\n\
                test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
    assert_eq!(count_results(text).unwrap(), Count { passed: 4, failed: 2, skipped: 1 });
}

#[test]
fn programs_are_not_text() {
    assert!(is_text("共存\n".as_bytes()) && is_text(b""));
    assert!(!is_text(b"\x7fELF\x02\x01\x01\0") && !is_text(b"caf\xe9"));
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = committed(tree, "src").unwrap();
    assert!(files.iter().any(|(name, text)| name == "src/suite.rs" && is_text(text)));
}
