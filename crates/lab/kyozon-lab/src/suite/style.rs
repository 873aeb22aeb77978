//! Rules of style that no other tool checks: the width of lines, and one name for each mode.

use super::files::{committed, file_count};
use super::Outcome;
use anyhow::{ensure, Result};
use regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// Maximum width of a line, in characters.
const WIDTH: usize = 120;
/// Violations that a message names; it counts the rest.
const SHOWN: usize = 5;
/// The files whose lines have a maximum width.
const WIDE: [&str; 6] = ["rs", "c", "h", "sh", "toml", "md"];

/// The name that the paper gave to its layer, as a word.
static MODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:hal|HAL|Hal)\b").expect("a constant pattern"));

/// Checks every text file against the rules.
pub(super) fn check(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let files = committed(tree, ".")?;
    let mut found = Vec::new();
    for (file, bytes) in &files {
        // The check `text` reports files that are not UTF-8.
        let text = String::from_utf8_lossy(bytes);
        found.extend(violations(file, &text));
    }
    let more = found.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    ensure!(found.is_empty(), "{}{more}", found[..found.len().min(SHOWN)].join("; "));
    Ok(file_count(files.len()))
}

/// Every line of `file` that breaks a rule, as `FILE:LINE: RULE`.
fn violations(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Measured results, and the files made from them, keep their wording, and their lines are rows.
    if file.starts_with("docs/results/") || file.ends_with(".lock") || is_generated(text) {
        return found;
    }
    let extension = file.rsplit('.').next().unwrap_or_default();
    let wide = WIDE.contains(&extension);
    for (i, line) in text.lines().enumerate() {
        if wide && line.chars().count() > WIDTH && !may_be_long(extension, line) {
            found.push(format!("{file}:{}: more than {WIDTH} columns", i + 1));
        }
        if MODE.is_match(line) && !cites_paper(line) && file != THIS {
            found.push(format!("{file}:{}: the mode's name is `none`", i + 1));
        }
    }
    found
}

/// This file and its tests have the forbidden word.
const THIS: &str = "crates/lab/kyozon-lab/src/suite/style.rs";

/// A generated file is marked as such in its first lines.
fn is_generated(text: &str) -> bool {
    text.lines().take(3).any(|line| line.contains("Generated from"))
}

/// The paper's own layer keeps its name.
fn cites_paper(line: &str) -> bool {
    ["paper", "Oikawa"].iter().any(|word| line.contains(word))
}

/// Lines that cannot be broken: URLs, rows of a Markdown table, Rust code, whose width rustfmt decides, strings of
/// C, which stay whole so that they can be searched for (Linux, coding-style.rst, section 2), and values of TOML, which
/// are scripts, patterns and inline tables. The `about` of a test is prose.
fn may_be_long(extension: &str, line: &str) -> bool {
    let start = line.trim_start();
    let is_row = extension == "md" && start.starts_with('|');
    let is_code = extension == "rs" && !start.starts_with("//");
    let is_string = matches!(extension, "c" | "h") && line.contains('"');
    let is_value = extension == "toml" && !start.starts_with('#') && !start.starts_with("about");
    line.contains("://") || is_row || is_code || is_string || is_value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(file: &str, text: &str) -> usize {
        violations(file, text).len()
    }

    #[test]
    fn violations_name_file_and_line() {
        let text = format!("// short\n// {}\n", "x".repeat(118));
        assert_eq!(violations("a.rs", &text), ["a.rs:2: more than 120 columns"]);
        let found = violations("docs/a.md", "a\nb\nin HAL mode\n");
        assert_eq!(found, ["docs/a.md:3: the mode's name is `none`"]);
    }

    #[test]
    fn width_is_counted_in_characters() {
        assert_eq!(count("a.md", &"共".repeat(120)), 0);
        assert_eq!(count("a.md", &"共".repeat(121)), 1);
    }

    #[test]
    fn long_lines_fail_in_each_kind_of_file() {
        for extension in WIDE {
            let mark = if matches!(extension, "rs" | "c" | "h") { "//" } else { "#" };
            let line = format!("{mark} {}", "x".repeat(120));
            assert_eq!(count(&format!("a.{extension}"), &line), 1, "{extension}");
        }
        assert_eq!(count("a.svg", &"x".repeat(200)), 0);
    }

    #[test]
    fn unbreakable_lines_may_be_long() {
        let long = "x".repeat(120);
        for (file, line) in [
            ("a.md", format!("| {long} |")),
            ("a.rs", format!("    // https://{long}")),
            ("a.rs", format!("    layout!(\"{long}\");")),
            ("a.c", format!("\tpr_err(\"{long}\");")),
            ("a.toml", format!("stdout = '{long}'")),
            ("docs/results/a.md", long.clone()),
            ("a.h", format!("/* Generated from b */\n{long}")),
        ] {
            assert_eq!(count(file, &line), 0, "{file}: {line}");
        }
        assert_eq!(count("a.rs", &format!("    /// \"{long}\"")), 1);
        assert_eq!(count("a.toml", &format!("about = \"{long}\"")), 1);
    }

    #[test]
    fn only_citations_of_the_paper_name_its_layer() {
        assert_eq!(count("a.c", "/* mode hal */"), 1);
        assert_eq!(count("tests/a", "kyozon_hal x86hal halt shall"), 0);
        assert_eq!(count("README.md", "the paper's HAL costs 2.75 times"), 0);
    }
}
