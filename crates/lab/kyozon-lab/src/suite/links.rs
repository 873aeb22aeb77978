//! The documentation's references into the tree: relative links, and the names in the lists of files that a mechanism
//! crosses.

use super::files::{committed, file_count};
use super::Outcome;
use anyhow::{ensure, Result};
use regex::Regex;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, iter};

/// A Markdown link: its target without the fragment.
static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\]\(([^)#\s]+)[^)]*\)").expect("a constant pattern"));
/// A row of a list of files: number, link, what happens there.
static STEP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\| \d+ \| \[[^\]]+\]\([^)]+\) \|").expect("a constant pattern"));
/// A name in code quotes, also as a call.
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`([A-Za-z_]\w*)(?:\(\))?`").expect("a constant pattern"));
/// Names of the modes: no file has to define them.
const MODES: [&str; 3] = ["alone", "none", "vmm"];

/// Checks every Markdown file.
pub(super) fn check(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let mut files = committed(tree, ".")?;
    files.retain(|(file, _)| file.ends_with(".md"));
    let found: Vec<String> = files
        .iter()
        .flat_map(|(file, bytes)| broken(tree, file, &String::from_utf8_lossy(bytes)))
        .collect();
    ensure!(found.is_empty(), "{}", found.join("; "));
    Ok(file_count(files.len()))
}

/// The references of `file` that lead nowhere, as `FILE:LINE: PROBLEM`.
fn broken(tree: &Path, file: &str, text: &str) -> Vec<String> {
    let folder = tree.join(file).parent().map_or_else(PathBuf::new, Path::to_owned);
    let targets = |text: &str| -> Vec<PathBuf> {
        LINK.captures_iter(text)
            .map(|link| link[1].to_owned())
            .filter(|target| !target.contains(':'))
            .map(|target| folder.join(target))
            .collect()
    };
    // A step may name the function that the next step begins with: any step of the page may have it.
    let steps: String = text.lines().filter(|line| STEP.is_match(line)).collect();
    let linked: Vec<String> =
        targets(&steps).iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: HashSet<&str> =
        linked.iter().flat_map(|text| text.split(|c| !is_word(c))).chain(MODES).collect();
    let mut found = Vec::new();
    for (number, line) in iter::zip(1.., text.lines()) {
        for path in targets(line).iter().filter(|path| !path.exists()) {
            found.push(format!("{file}:{number}: {} does not exist", path.display()));
        }
        if STEP.is_match(line) {
            let names = NAME.captures_iter(line).map(|name| name.extract::<1>().1[0]);
            for name in names.filter(|name| !words.contains(name)) {
                found.push(format!("{file}:{number}: no linked file has `{name}`"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        broken(Path::new(env!("CARGO_MANIFEST_DIR")), "a.md", text).len()
    }

    #[test]
    fn links_must_exist() {
        let text = "[a](src/lib.rs#L1) [b](https://example.org) [c](#here)\n[d](src/nothing.rs)\n";
        let found = broken(Path::new(env!("CARGO_MANIFEST_DIR")), "a.md", text);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("a.md:2: ") && found[0].ends_with("nothing.rs does not exist")
        );
    }

    #[test]
    fn names_in_steps_exist_in_linked_files() {
        assert_eq!(count("| 1 | [x](src/suite/links.rs) | `broken`, then `alone`: `x.y` |"), 0);
        assert_eq!(count("| 1 | [x](src/lib.rs) | `no_such_function` is called |"), 1);
        assert_eq!(count("[x](src/lib.rs): `no_such_function` is called"), 0);
    }
}
