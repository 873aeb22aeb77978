//! Figures in running text: `prose.toml`, beside the tables, says which figure stands where.
//!
//! An entry quotes a sentence or a table row of a page and has `{}` in place of each figure. The figures come from the
//! tables: [`prose`] returns the page with them. Words are compared, not white space: a paragraph may be wrapped anew.

use crate::error::{one_line, require, Error, Result};
use crate::file;
use crate::pages::Figure;
use crate::render::digits;
use crate::table::Table;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the file.
const FILE: &str = "prose.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Prose {
    quote: Vec<Quote>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quote {
    /// The page, as a path from the root of the tree.
    file: String,
    /// Words of the page, each figure as `{}`.
    text: String,
    /// The figures, in the order of the text.
    figures: Vec<Rounded>,
}

#[derive(Debug, Deserialize)]
struct Rounded {
    #[serde(flatten)]
    figure: Figure,
    /// Significant digits; an integer is shown in full.
    #[serde(default = "three")]
    digits: u32,
    /// The figure is shown divided by this.
    #[serde(default = "one")]
    per: f64,
}

fn three() -> u32 {
    3
}

fn one() -> f64 {
    1.0
}

/// Path and text of each page of the tree at `root` that `dir/prose.toml` quotes, with the figures of today's tables.
///
/// # Errors
///
/// A table or `prose.toml` is invalid, a figure is missing, or a page does not have a quoted text exactly once.
pub fn prose(root: &Path, dir: &Path) -> Result<Vec<(String, String)>> {
    let path = dir.join(FILE);
    let prose: Prose =
        file::from_toml(&file::read(&path)?).map_err(|error| error.in_file(&path))?;
    let tables = Table::read_all(dir)?;
    let mut pages = BTreeMap::new();
    for (i, quote) in prose.quote.iter().enumerate() {
        let place = format!("quote[{i}]");
        let written = quote.figures(&tables).and_then(|figures| {
            if !pages.contains_key(&quote.file) {
                pages.insert(quote.file.clone(), file::read(&root.join(&quote.file))?);
            }
            let page = pages.get_mut(&quote.file).expect("just read");
            *page = quote.write(page, &figures)?;
            Ok(())
        });
        written.map_err(|error| error.below(&place).in_file(&path))?;
    }
    Ok(pages.into_iter().collect())
}

impl Quote {
    fn figures(&self, tables: &[Table]) -> Result<Vec<String>> {
        one_line("text", &self.text)?;
        let places = self.text.matches("{}").count();
        require(places == self.figures.len() && places > 0, "figures", "not one for each `{}`")?;
        let shown = |(i, rounded): (usize, &Rounded)| {
            let missing = || Error::field(format!("figures[{i}]"), "no such table, row or value");
            let (value, _) = rounded.figure.of(tables).ok_or_else(missing)?;
            Ok(digits(value / rounded.per, rounded.digits))
        };
        self.figures.iter().enumerate().map(shown).collect()
    }

    /// `page` with the figures in the quoted text.
    fn write(&self, page: &str, figures: &[String]) -> Result<String> {
        let starts = page.char_indices().map(|(at, _)| at);
        let found: Vec<Vec<(usize, usize)>> =
            starts.filter_map(|at| places(&page[at..], &self.text, at)).collect();
        require(!found.is_empty(), "text", &format!("not in {}", self.file))?;
        require(found.len() == 1, "text", &format!("more than once in {}", self.file))?;
        let mut text = page.to_owned();
        for ((from, to), figure) in found[0].iter().zip(figures).rev() {
            text.replace_range(*from..*to, figure);
        }
        Ok(text)
    }
}

/// The places of the figures in `text`, which is `at` bytes into the page, if it begins with the words of `quote`.
fn places(text: &str, quote: &str, at: usize) -> Option<Vec<(usize, usize)>> {
    let (mut rest, mut places) = (text, Vec::new());
    for (i, piece) in quote.split("{}").enumerate() {
        if i > 0 {
            let from = at + text.len() - rest.len();
            let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            // A full stop behind a figure is the sentence's.
            let length = rest[..length].trim_end_matches('.').len();
            if length == 0 {
                return None;
            }
            places.push((from, from + length));
            rest = &rest[length..];
        }
        for character in piece.chars() {
            let next = rest.chars().next()?;
            if character == ' ' && next.is_whitespace() {
                rest = rest.trim_start();
            } else if character == next {
                rest = &rest[next.len_utf8()..];
            } else {
                return None;
            }
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;
    use std::fs;

    /// A folder with a table and a page; the result of the quotes `toml`.
    fn written(page: &str, toml: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let mut table = Table::new("trip", "t", "e", "c");
        table = table.row(Row::from_samples("path", "instructions", &[247_u64]).unwrap());
        table = table.row(Row::from_samples("all", "instructions", &[585_u64]).unwrap());
        table.write(dir.path()).unwrap();
        fs::write(dir.path().join("README.md"), page).unwrap();
        fs::write(dir.path().join(FILE), toml).unwrap();
        let pages = prose(dir.path(), dir.path()).map_err(|error| error.to_string())?;
        assert_eq!(pages[0].0, "README.md");
        Ok(pages[0].1.clone())
    }

    const QUOTE: &str = "[[quote]]\nfile = 'README.md'\ntext = 'takes {} there, {} in all.'\nfigures = [\
        { table = 'trip', row = 'path' }, { table = 'trip', row = 'all', over = 'path', digits = 2 }]\n";

    #[test]
    fn figures_come_from_the_tables() {
        let page = "x\nIt takes 545\nthere, 9.99 in all. It takes long.\n";
        let expected = "x\nIt takes 247\nthere, 2.4 in all. It takes long.\n";
        assert_eq!(written(page, QUOTE).unwrap(), expected);
        assert_eq!(written(expected, QUOTE).unwrap(), expected);
    }

    #[test]
    fn a_quote_that_does_not_fit_is_an_error() {
        let twice = "takes 1 there, 2 in all. takes 1 there, 2 in all.";
        for (page, toml, expected) in [
            ("takes 5 here", QUOTE, "quote[0].text: not in README.md"),
            ("takes x there, 2 in all.", QUOTE, "quote[0].text: not in README.md"),
            (twice, QUOTE, "quote[0].text: more than once in README.md"),
            ("", &QUOTE.replace("'all'", "'none'"), "quote[0].figures[1]: no such table"),
            ("", &QUOTE.replace(", {} in", ", in"), "quote[0].figures: not one for each"),
        ] {
            let error = written(page, toml).unwrap_err();
            assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
        }
    }
}
