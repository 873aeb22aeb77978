//! The choice of a plot: `[[table.<name>.plot]]` of `pages.toml`.

use super::palette::Role;
use crate::error::{one_line, require, Result};
use crate::row::Row;
use crate::table::Table;
use serde::Deserialize;

/// One panel of a table's plot.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plot {
    pub(super) kind: Kind,
    /// Heading of the panel.
    pub(super) title: String,
    /// Unit of the rows.
    pub(super) unit: String,
    /// Names of the rows, if not all.
    #[serde(default)]
    rows: Vec<String>,
    /// Groups of the rows, if not all.
    #[serde(default)]
    groups: Vec<String>,
    /// For `percent`: the end of the name of the rows with which those of the same beginning are compared.
    pub(super) base: Option<String>,
    /// For `lines`: the extra column that is drawn.
    pub(super) value: Option<String>,
    /// For `stack`: the parts of a bar.
    #[serde(default)]
    pub(super) parts: Vec<Part>,
}

/// What a panel looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A bar for each median, with its interval.
    Bars,
    /// A dot for each median, with its interval, around 1.
    Ratios,
    /// A dot for each median as a difference from that of its base, with its interval, around 0 per cent.
    Percent,
    /// A bar of parts for each group.
    Stack,
    /// An extra column over the size that the end of the group's name gives.
    Lines,
    /// The distribution of the samples; without one, the median, p99 and worst.
    Distribution,
}

/// A part of a bar: the sum of the medians of some rows less the sum of others. A row that a group does not have is 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(super) name: String,
    pub(super) colour: Role,
    pub(super) plus: Vec<String>,
    #[serde(default)]
    pub(super) minus: Vec<String>,
}

impl Plot {
    pub(crate) fn validate(&self) -> Result<()> {
        one_line("title", &self.title)?;
        one_line("unit", &self.unit)?;
        let kind = self.kind;
        require(self.base.is_some() == (kind == Kind::Percent), "base", "is for `percent`")?;
        require(self.value.is_some() == (kind == Kind::Lines), "value", "is for `lines`")?;
        require(self.parts.is_empty() != (kind == Kind::Stack), "parts", "are for `stack`")
    }

    /// The panels of a table for which `pages.toml` has none: bars, one panel for each unit.
    pub(super) fn by_unit(table: &Table) -> Vec<Self> {
        let mut plots: Vec<Self> = Vec::new();
        for Row { unit, .. } in &table.rows {
            if !plots.iter().any(|plot| plot.unit == *unit) {
                plots.push(Self {
                    kind: Kind::Bars,
                    title: unit.clone(),
                    unit: unit.clone(),
                    rows: Vec::new(),
                    groups: Vec::new(),
                    base: None,
                    value: None,
                    parts: Vec::new(),
                });
            }
        }
        plots
    }

    /// The rows that the panel shows, in the table's order.
    pub(super) fn select<'a>(&self, table: &'a Table) -> Vec<&'a Row> {
        let named = |row: &Row| self.rows.is_empty() || self.rows.contains(&row.name);
        let group = |row: &Row| row.group.as_ref().is_some_and(|group| self.groups.contains(group));
        let grouped = |row: &Row| self.groups.is_empty() || group(row);
        let chosen = |row: &&Row| row.unit == self.unit && named(row) && grouped(row);
        table.rows.iter().filter(chosen).collect()
    }
}
