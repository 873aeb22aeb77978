//! The results of one benchmark: its rows and their origin.

use crate::error::{one_line, require, Error, Result};
use crate::file;
use crate::origin::{self, Load};
use crate::pages::Pages;
use crate::row::Row;
use crate::stats::ENOUGH_FOR_P99;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The results of one benchmark, as in `docs/results/<name>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Identifier and name of the file: a lower-case letter, then lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Heading.
    pub title: String,
    /// One paragraph: what is measured, from where to where.
    pub explanation: String,
    /// Command that measures it again.
    pub command: String,
    /// Short commit, with `-dirty` if the tree differs from it in anything but `docs/results`.
    pub commit: String,
    /// Version of each tool that the measurement uses.
    pub versions: BTreeMap<String, String>,
    /// Start of the measurement: UTC, `YYYY-MM-DDThh:mm:ssZ`.
    pub date: String,
    /// Load of the machine.
    pub load: Load,
    /// CPU model.
    pub machine: String,
    /// Rows, in the order of the page.
    pub rows: Vec<Row>,
}

impl Table {
    /// Begins a table, before the measurement: takes commit, date, load and machine of this moment and of the current
    /// directory.
    #[must_use]
    pub fn new(name: &str, title: &str, explanation: &str, command: &str) -> Self {
        let load = origin::load();
        Self {
            name: name.into(),
            title: title.into(),
            explanation: explanation.into(),
            command: command.into(),
            commit: origin::commit(Path::new(".")),
            versions: BTreeMap::new(),
            date: origin::now(),
            load: Load { start: load, end: load },
            machine: origin::machine(),
            rows: Vec::new(),
        }
    }

    /// Begins the table `name` with the title and explanation that `dir/pages.toml` has for it. `command` measures it
    /// again.
    ///
    /// # Errors
    ///
    /// `pages.toml` is invalid or does not describe the table.
    pub fn described(dir: &Path, name: &str, command: &str) -> Result<Self> {
        let words = Pages::description(dir, name)?;
        Ok(Self::new(name, &words.title, &words.explanation(), command))
    }

    /// Sets the version of a tool.
    #[must_use]
    pub fn version(mut self, tool: &str, version: &str) -> Self {
        self.versions.insert(tool.into(), version.into());
        self
    }

    /// Appends a row.
    #[must_use]
    pub fn row(mut self, row: Row) -> Self {
        self.rows.push(row);
        self
    }

    /// Records the load at the end and writes `dir/<name>.json`, creating `dir` if it is absent. Returns the path of
    /// the file.
    ///
    /// # Errors
    ///
    /// A field is invalid, or the file cannot be written.
    pub fn write(mut self, dir: &Path) -> Result<PathBuf> {
        self.load.end = origin::load();
        let text = self.to_json()?;
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        file::write(dir, &format!("{}.json", self.name), &text)
    }

    /// The text of the file: fields in the order of declaration, maps in the order of their keys.
    ///
    /// # Errors
    ///
    /// A field is invalid.
    pub fn to_json(&self) -> Result<String> {
        self.validate()
            .map_err(|error| error.in_file(Path::new(&format!("{}.json", self.name))))?;
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads and validates `dir/<name>.json`.
    ///
    /// # Errors
    ///
    /// The file is missing or invalid. The error is one line that names the file and the field.
    pub fn read(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(format!("{name}.json"));
        let text = file::read(&path)?;
        let parse = || -> Result<Self> {
            let mut json = serde_json::Deserializer::from_str(&text);
            let mut table: Self = serde_path_to_error::deserialize(&mut json)
                .map_err(|error| Error::Syntax(error.to_string()))?;
            json.end()?;
            // Older files have the 99th percentile of any number of samples.
            for row in &mut table.rows {
                let few = row.n_of.is_none() && row.n < ENOUGH_FOR_P99 as u64;
                row.p99 = row.p99.filter(|_| !few);
            }
            let problem = format!("`{}` is not the name of the file", table.name);
            require(table.name == name, "name", &problem)?;
            table.validate()?;
            Ok(table)
        };
        parse().map_err(|error| error.in_file(&path))
    }

    /// Reads every `*.json` in `dir`, in the order of their names.
    ///
    /// # Errors
    ///
    /// As [`Table::read`].
    pub fn read_all(dir: &Path) -> Result<Vec<Self>> {
        file::stems(dir, ".json")?.iter().map(|name| Self::read(dir, name)).collect()
    }

    /// The one row that is called `name` or `group/name`, or why there is none.
    pub(crate) fn find(&self, name: &str) -> Result<&Row, String> {
        let called = |row: &&Row| row.name == name || row.label() == name;
        let mut rows = self.rows.iter().filter(called);
        match (rows.next(), rows.next()) {
            (Some(row), None) => Ok(row),
            (None, _) => Err(format!("no row `{name}`")),
            (Some(_), Some(_)) => Err(format!("more than one row `{name}`")),
        }
    }

    /// Checks every field. Errors name the field.
    fn validate(&self) -> Result<()> {
        let letter = |first: char| first.is_ascii_lowercase();
        let other = |c: char| letter(c) || c.is_ascii_digit() || c == '-' || c == '_';
        let identifier = self.name.starts_with(letter) && self.name.chars().all(other);
        require(identifier, "name", &format!("`{}` is not an identifier", self.name))?;
        let texts = [("title", &self.title), ("explanation", &self.explanation)];
        let texts = texts.into_iter().chain([("command", &self.command)]);
        for (field, text) in texts.chain([("commit", &self.commit), ("machine", &self.machine)]) {
            one_line(field, text)?;
        }
        for (tool, version) in &self.versions {
            one_line("versions", tool)?;
            one_line(&format!("versions.{tool}"), version)?;
        }
        require(origin::is_date(&self.date), "date", "not YYYY-MM-DDThh:mm:ssZ")?;
        require(self.load.start.is_finite(), "load.start", "not a finite number")?;
        require(self.load.end.is_finite(), "load.end", "not a finite number")?;
        require(!self.rows.is_empty(), "rows", "none")?;
        let mut seen = BTreeSet::new();
        for (i, row) in self.rows.iter().enumerate() {
            let parent = format!("rows[{i}]");
            row.validate().map_err(|error| error.below(&parent))?;
            let again = format!("`{}` again", row.label());
            require(seen.insert(row.label()), "name", &again)
                .map_err(|error| error.below(&parent))?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
