//! Bounds: the minimum or maximum of a ratio or a count in a table.

use crate::error::{one_line, require, Error, Result};
use crate::file;
use crate::row::Row;
use crate::table::Table;
use serde::Deserialize;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    bound: Vec<Bound>,
}

/// One bound of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bound {
    row: Option<String>,
    ratio: Option<[String; 2]>,
    #[serde(default = "median")]
    value: String,
    at_most: Option<f64>,
    at_least: Option<f64>,
    why: String,
}

fn median() -> String {
    "median".into()
}

/// A limit of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Limit {
    pub(crate) fn figure(self) -> f64 {
        match self {
            Self::AtLeast(figure) | Self::AtMost(figure) => figure,
        }
    }

    pub(crate) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::AtLeast(figure) => Self::AtLeast(change(figure)),
            Self::AtMost(figure) => Self::AtMost(change(figure)),
        }
    }
}

/// One bound, checked against its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the table.
    pub table: String,
    /// Name of the row, or both of a ratio: `none / alone`.
    pub row: String,
    /// The figure: `median`, `p99`, `avg`, `worst`, `low`, `high`, or an extra column.
    pub value: String,
    /// The figure in the unit of the row, or the reason why there is none.
    pub measured: Result<f64, String>,
    /// The limits: `at most 250`.
    pub bound: String,
    /// The reason for the bound.
    pub why: String,
    /// Whether the bound holds. A bound on a missing figure never holds.
    pub pass: bool,
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verdict = if self.pass { "pass" } else { "FAIL" };
        write!(f, "{verdict} {}: {} {}: ", self.table, self.row, self.value)?;
        match &self.measured {
            // No figure here is exact to more than four digits after the point.
            Ok(measured) if measured.fract() == 0.0 => write!(f, "{measured}")?,
            Ok(measured) => write!(f, "{measured:.4}")?,
            Err(reason) => write!(f, "{reason}")?,
        }
        write!(f, ", {} ({})", self.bound, self.why)
    }
}

/// The bounds of one table or of all tables, in the order of the tables and of their files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// A line per bound.
    pub lines: Vec<Line>,
}

impl Report {
    /// Whether every bound holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.lines.iter().all(|line| line.pass)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        let failed = self.lines.iter().filter(|line| !line.pass).count();
        writeln!(f, "{} bounds, {failed} failed", self.lines.len())
    }
}

/// Checks the tables in `dir` against their bounds: all tables that have bounds, or the one called `table`.
///
/// # Errors
///
/// A table or bounds file is invalid, a bound is on a time or a rate, or `table` has neither file. The error is one
/// line that names the file.
pub fn check(dir: &Path, table: Option<&str>) -> Result<Report> {
    let names = match table {
        Some(name) if !bounds_path(dir, name).exists() => {
            Table::read(dir, name)?;
            return Ok(Report::default());
        }
        Some(name) => vec![name.to_string()],
        None => file::stems(dir, ".bounds.toml")?,
    };
    let mut report = Report::default();
    for name in names {
        report.lines.extend(check_table(dir, &name)?);
    }
    Ok(report)
}

fn bounds_path(dir: &Path, table: &str) -> PathBuf {
    dir.join(format!("{table}.bounds.toml"))
}

fn check_table(dir: &Path, name: &str) -> Result<Vec<Line>> {
    let (path, bounds) = (bounds_path(dir, name), read(dir, name)?);
    let measured = dir.join(format!("{name}.json")).exists();
    let table = if measured { Some(Table::read(dir, name)?) } else { None };
    let line = |(i, bound): (usize, &Bound)| {
        let checked = bound.check(name, table.as_ref());
        checked.map_err(|error| error.below(&format!("bound[{i}]")).in_file(&path))
    };
    bounds.iter().enumerate().map(line).collect()
}

/// The bounds of the table `name`; none if they have no file.
pub(crate) fn read(dir: &Path, name: &str) -> Result<Vec<Bound>> {
    let path = bounds_path(dir, name);
    if !path.exists() {
        return Ok(Vec::new());
    }
    parse(&file::read(&path)?).map_err(|error| error.in_file(&path))
}

/// Reads the bounds. Errors are one line and start with the field.
pub(crate) fn parse(text: &str) -> Result<Vec<Bound>> {
    let bounds: Bounds = file::from_toml(text)?;
    require(!bounds.bound.is_empty(), "bound", "none")?;
    for (i, bound) in bounds.bound.iter().enumerate() {
        bound.validate().map_err(|error| error.below(&format!("bound[{i}]")))?;
    }
    Ok(bounds.bound)
}

impl Bound {
    fn validate(&self) -> Result<()> {
        one_line("why", &self.why)?;
        require(
            self.row.is_some() != self.ratio.is_some(),
            "row",
            "needs either `row` or `ratio`",
        )?;
        let limits = [self.at_least, self.at_most];
        let any = limits.iter().any(Option::is_some);
        require(any, "at_most", "needs `at_most` or `at_least`")?;
        let finite = limits.iter().flatten().all(|limit| limit.is_finite());
        require(finite, "at_most", "`at_most` and `at_least` must be finite")?;
        let [low, high] = [limits[0].unwrap_or(f64::MIN), limits[1].unwrap_or(f64::MAX)];
        require(low <= high, "at_most", "below `at_least`")
    }

    /// The limits that the bound sets for one of the row's `values`.
    pub(crate) fn limits(&self, row: &Row, values: &[&str]) -> Vec<Limit> {
        let meant = self.row.as_ref().is_some_and(|name| called(row, name));
        if !meant || !values.contains(&self.value.as_str()) {
            return Vec::new();
        }
        self.both()
    }

    /// The limits that the bound sets for the ratio of two rows' medians.
    pub(crate) fn limits_of_ratio(&self, over: &Row, under: &Row) -> Vec<Limit> {
        match &self.ratio {
            Some([a, b]) if called(over, a) && called(under, b) && self.value == "median" => {
                self.both()
            }
            _ => Vec::new(),
        }
    }

    fn both(&self) -> Vec<Limit> {
        let limits = [self.at_least.map(Limit::AtLeast), self.at_most.map(Limit::AtMost)];
        limits.into_iter().flatten().collect()
    }

    /// A bound on a missing figure fails; a bound that must not exist is an error.
    fn check(&self, name: &str, table: Option<&Table>) -> Result<Line> {
        let measured = match (table, &self.row, &self.ratio) {
            (None, ..) => Err("the table is missing".into()),
            (Some(table), Some(row), _) => match table.find(row) {
                Ok(row) if is_time_or_rate(self.unit(row)) => {
                    let (label, unit) = (row.label(), self.unit(row));
                    let rule = "bounds hold ratios and counts, not times and rates";
                    return Err(Error::field("row", format!("`{label}` is in `{unit}`: {rule}")));
                }
                row => row.and_then(|row| self.figure(row)),
            },
            (Some(table), None, Some(ratio)) => self.ratio(table, ratio),
            (Some(_), None, None) => Err("no row is named".into()),
        };
        let within = |figure: &f64| {
            self.at_most.is_none_or(|limit| *figure <= limit)
                && self.at_least.is_none_or(|limit| *figure >= limit)
        };
        let at_least = self.at_least.map(|limit| format!("at least {limit}"));
        let at_most = self.at_most.map(|limit| format!("at most {limit}"));
        let row = self.ratio.as_ref().map(|rows| rows.join(" / "));
        Ok(Line {
            table: name.into(),
            row: row.or(self.row.clone()).unwrap_or_default(),
            value: self.value.clone(),
            pass: measured.as_ref().is_ok_and(within),
            measured,
            bound: at_least.into_iter().chain(at_most).collect::<Vec<_>>().join(" and "),
            why: self.why.clone(),
        })
    }

    /// The unit of the bounded figure: an extra column has its own, in its name.
    fn unit<'a>(&'a self, row: &'a Row) -> &'a str {
        if row.extra.contains_key(&self.value) {
            &self.value
        } else {
            &row.unit
        }
    }

    fn figure(&self, row: &Row) -> Result<f64, String> {
        row.value(&self.value).ok_or_else(|| format!("`{}` has no such value", row.label()))
    }

    fn ratio(&self, table: &Table, [over, under]: &[String; 2]) -> Result<f64, String> {
        let (over, under) = (table.find(over)?, table.find(under)?);
        if over.unit != under.unit {
            return Err(format!("ratio of `{}` to `{}`", over.unit, under.unit));
        }
        let ratio = self.figure(over)? / self.figure(under)?;
        ratio.is_finite().then_some(ratio).ok_or_else(|| "the ratio is not finite".into())
    }
}

fn called(row: &Row, name: &str) -> bool {
    row.name == name || row.label() == name
}

/// Whether a unit depends on the speed of the machine: `us`, `MB/s`, `events per second`, `cycles`
/// other than modelled ones.
fn is_time_or_rate(unit: &str) -> bool {
    const WORDS: &str = "ns us µs μs ms s sec secs second seconds minute minutes hour hours \
        nanoseconds microseconds milliseconds cycles hz khz mhz ghz bps kbps mbps gbps iops rps";
    let unit = unit.to_lowercase().replace("modelled cycles", "");
    let mut words = unit.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.any(|word| WORDS.split_whitespace().any(|time| time == word))
}

#[cfg(test)]
mod tests;
