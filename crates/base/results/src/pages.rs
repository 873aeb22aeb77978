//! The words of the pages: `pages.toml`, beside the tables.
//!
//! It has the heading and the explanation of each table, and the lines of the summary, each of which compares a row of
//! this project with a figure of a peer or a paper. This project's figures come from the tables, never from this file.

use crate::error::{one_line, require, Error, Result};
use crate::file;
use crate::plot::Plot;
use crate::row::Row;
use crate::table::Table;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the file.
const FILE: &str = "pages.toml";

/// The contents of the file. An absent file counts as empty.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Pages {
    /// By name of the table.
    pub(crate) table: BTreeMap<String, Description>,
    /// Lines of the summary, in their order.
    pub(crate) summary: Vec<Entry>,
    /// Text about the peers' figures, such as the hardware that they were measured on.
    pub(crate) notes: Vec<String>,
}

/// The words of a table's page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// Heading.
    pub(crate) title: String,
    /// One paragraph: what is measured, from where to where. Line breaks do not count.
    pub(crate) explanation: String,
    /// Extra columns that the page shows; the others stay in the JSON.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// The panels of the plot; without any, bars.
    #[serde(default)]
    pub(crate) plot: Vec<Plot>,
}

/// A line of the summary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The question that the line helps to answer: the heading above it.
    pub(crate) question: String,
    /// The measured quantity.
    pub(crate) what: String,
    /// This project's figure.
    pub(crate) ours: Figure,
    /// The figure of the peer or the paper.
    pub(crate) peer: Option<Peer>,
    /// The row that holds the ratio, if it was measured as a ratio; without it, the two figures are divided.
    pub(crate) ratio: Option<Figure>,
}

/// A figure in a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Name of the table.
    pub(crate) table: String,
    /// The row, as `name` or `group/name`.
    row: String,
    /// The row's figure, by the names that bounds use.
    #[serde(default = "median")]
    value: String,
    /// The figure is the quotient of the row and this one, in the same table.
    over: Option<String>,
    /// Unit to show, if it is not the row's.
    unit: Option<String>,
}

/// The figure with which this project's figure is compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    /// Its name, and for a published figure the hardware.
    pub(crate) name: String,
    /// A published figure, in the unit of this project's figure.
    value: Option<f64>,
    /// A figure that was measured together with this project's.
    figure: Option<Figure>,
}

fn median() -> String {
    "median".into()
}

/// A figure and its unit; `None` if its table or row was not measured here.
pub(crate) type Measured<'a> = Option<(f64, &'a str)>;

impl Pages {
    /// Reads and validates `dir/pages.toml`.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let parse = |text: &str| -> Result<Self> {
            let pages: Self = file::from_toml(text)?;
            pages.validate()?;
            Ok(pages)
        };
        parse(&file::read(&path)?).map_err(|error| error.in_file(&path))
    }

    /// The words for the table `name`.
    pub(crate) fn description(dir: &Path, name: &str) -> Result<Description> {
        let missing = || Error::field(format!("table.{name}"), "missing").in_file(&dir.join(FILE));
        Self::read(dir)?.table.remove(name).ok_or_else(missing)
    }

    fn validate(&self) -> Result<()> {
        for (name, description) in &self.table {
            one_line(&format!("table.{name}.title"), &description.title)?;
            one_line(&format!("table.{name}.explanation"), &description.explanation())?;
            for (i, plot) in description.plot.iter().enumerate() {
                let parent = format!("table.{name}.plot[{i}]");
                plot.validate().map_err(|error| error.below(&parent))?;
            }
        }
        for (i, entry) in self.summary.iter().enumerate() {
            let parent = format!("summary[{i}]");
            one_line("question", &entry.question).map_err(|error| error.below(&parent))?;
            one_line("what", &entry.what).map_err(|error| error.below(&parent))?;
            if let Some(peer) = &entry.peer {
                let one = peer.value.is_some() != peer.figure.is_some();
                require(one, "peer", "needs either `value` or `figure`")
                    .and_then(|()| one_line("peer.name", &peer.name))
                    .map_err(|error| error.below(&parent))?;
            }
        }
        Ok(())
    }
}

impl Description {
    /// The paragraph as one line.
    pub(crate) fn explanation(&self) -> String {
        self.explanation.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Figure {
    pub(crate) fn of<'a>(&'a self, tables: &'a [Table]) -> Measured<'a> {
        let table = tables.iter().find(|table| table.name == self.table)?;
        let figure = |row: &Row| row.value(&self.value);
        let row = table.find(&self.row).ok()?;
        let unit = self.unit.as_deref().unwrap_or(&row.unit);
        Some(match &self.over {
            None => (figure(row)?, unit),
            Some(over) => (figure(row)? / figure(table.find(over).ok()?)?, unit),
        })
    }
}

impl Peer {
    pub(crate) fn of<'a>(&'a self, unit: &'a str, tables: &'a [Table]) -> Measured<'a> {
        match (self.value, &self.figure) {
            (Some(value), _) => Some((value, unit)),
            (None, figure) => figure.as_ref()?.of(tables),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn error(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), text).unwrap();
        let error = Pages::read(dir.path()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error[error.find(FILE).unwrap()..].to_string()
    }

    #[test]
    fn errors_name_the_field() {
        let entry =
            "[[summary]]\nquestion = 'q'\nwhat = 'w'\nours = { table = 'boot', row = 'alone' }\n";
        for (text, expected) in [
            ("[table.boot]\ntitle = ' '\nexplanation = 'e'", "pages.toml: table.boot.title: empty"),
            ("[table.boot]\ntitle = 't'", "pages.toml: table.boot: missing field `explanation`"),
            ("[[summary]]\nwhat = 'w'", "pages.toml: summary[0]: missing field `question`"),
            (
                "[[summary]]\nquestion = 'q'\nwhat = 'w'",
                "pages.toml: summary[0]: missing field `ours`",
            ),
            (
                "[table.boot]\ntitle = 't'\nexplanation = 'e'\n[[table.boot.plot]]\nkind = 'lines'\n\
                 title = 't'\nunit = 'us'",
                "pages.toml: table.boot.plot[0].value: is for `lines`",
            ),
            (
                &format!("{entry}peer = {{ name = 'p' }}"),
                "pages.toml: summary[0].peer: needs either",
            ),
            (
                &format!("{entry}peer = {{ value = 1.0 }}"),
                "pages.toml: summary[0].peer: missing field",
            ),
        ] {
            assert!(error(text).starts_with(expected), "{}", error(text));
        }
    }

    #[test]
    fn undescribed_tables_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let error = Pages::description(dir.path(), "boot").unwrap_err().to_string();
        assert!(error.ends_with("pages.toml: table.boot: missing"), "{error}");
    }
}
