//! The size of what users of typed code must trust: a reader can take in the checker as a whole.

use super::files::committed;
use super::report::Count;
use super::Outcome;
use anyhow::{ensure, Result};
use std::path::Path;

/// The checker's source; its unit tests are in modules named `tests`.
const CHECKER: &str = "crates/typed/checker/src";
/// Maximum code lines of the checker.
const MOST: usize = 4_000;
/// Largest files that a message names.
const SHOWN: usize = 3;

/// Counts the code lines of the checker.
pub(super) fn check(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let files = committed(tree, CHECKER)?;
    let files = files.iter().map(|(file, bytes)| (&file[..], String::from_utf8_lossy(bytes)));
    let mut sizes: Vec<(usize, &str)> = files
        .filter(|(file, _)| file.ends_with(".rs") && !file.ends_with("/tests.rs"))
        .map(|(file, text)| (code_lines(&text), file))
        .collect();
    sizes.sort_unstable();
    let total: usize = sizes.iter().map(|(lines, _)| lines).sum();
    let largest: Vec<String> = sizes
        .iter()
        .rev()
        .take(SHOWN)
        .map(|(lines, file)| format!("{} ({lines})", file.trim_start_matches(CHECKER)))
        .collect();
    ensure!(total > 0, "{CHECKER} has no code: the checker has moved");
    ensure!(
        total <= MOST,
        "{CHECKER} has {total} code lines, {} more than the {MOST} of docs/architecture/typed.md: make it simpler; its \
         largest files are {}",
        total - MOST,
        largest.join(", ")
    );
    Ok((Count { passed: 1, skipped: 0, failed: 0 }, format!("{total} of {MOST} code lines")))
}

/// Lines before the module of tests that are neither empty nor a comment.
fn code_lines(text: &str) -> usize {
    let lines = text.lines().take_while(|line| !line.starts_with("mod tests {"));
    lines.map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_lines_are_no_comments_and_no_tests() {
        let text = "//! A crate.\n\nfn f() {\n    // why\n    g() // what\n}\n\n#[cfg(test)]\nmod tests {\n    x\n}\n";
        assert_eq!(code_lines(text), 4);
        assert_eq!(code_lines("mod tests;\n    /// x\n"), 1);
    }

    #[test]
    fn a_tree_without_the_checker_is_an_error() {
        assert!(check(Path::new(env!("CARGO_MANIFEST_DIR")), false).is_err());
    }
}
