//! One row of a table: one quantity, measured in one way.

use crate::error::{one_line, require, Error, Result};
use crate::stats::{Sample, Stats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that an extra column must not have.
const RESERVED: [&str; 6] = ["n", "median", "p99", "ci95", "avg", "worst"];

/// One measured quantity. Figures are in `unit`; [`Stats`] explains them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name of the quantity, unique within its group.
    pub name: String,
    /// The conditions, if the table compares several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Unit of the figures: `instructions`, `modelled cycles`, `us`, `ratio`, `events`, ...
    pub unit: String,
    /// Number of samples.
    pub n: u64,
    /// Median.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 95 % confidence interval of the median, `[low, high]`.
    pub ci95: [f64; 2],
    /// Arithmetic mean.
    pub avg: f64,
    /// Largest sample.
    pub worst: f64,
    /// A remark for readers, about this row alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Further columns, each with its own unit in its name or in the explanation of the table.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
}

/// The rows that one command measured: `kyozon bench --json` prints them, and the laboratory makes tables of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowSet {
    /// Rows of the experiment's main table.
    pub rows: Vec<Row>,
    /// Rows of its second table, for details.
    pub further: Vec<Row>,
}

impl Row {
    /// A row from samples in `unit`, in any order.
    ///
    /// # Errors
    ///
    /// As [`Stats::of`], with the name of the row.
    pub fn from_samples<S: Sample>(name: &str, unit: &str, samples: &[S]) -> Result<Self> {
        let Stats { n, median, p99, ci95, avg, worst } = Stats::of(samples)
            .map_err(|error| Error::Row { name: name.into(), error: Box::new(error) })?;
        Ok(Self {
            name: name.into(),
            group: None,
            unit: unit.into(),
            n,
            median,
            p99,
            ci95,
            avg,
            worst,
            note: None,
            extra: BTreeMap::new(),
        })
    }

    /// A row of the ratios of paired samples: the first of `over` divided by the first of `under`, and so on.
    ///
    /// # Errors
    ///
    /// As [`Row::from_samples`].
    pub fn ratio(name: &str, over: &[f64], under: &[f64]) -> Result<Self> {
        let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
        Self::from_samples(name, "ratio", &ratios)
    }

    /// Puts the row into a group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets the note.
    #[must_use]
    pub fn note(mut self, note: &str) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Sets one extra column.
    #[must_use]
    pub fn extra(mut self, column: &str, value: f64) -> Self {
        self.extra.insert(column.into(), value);
        self
    }

    /// `group/name`, or the name alone.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.group {
            Some(group) => format!("{group}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// The figure that a bound calls `value`; `low` and `high` are the ends of the median's interval.
    pub(crate) fn value(&self, value: &str) -> Option<f64> {
        match value {
            "median" => Some(self.median),
            "p99" => Some(self.p99),
            "avg" => Some(self.avg),
            "worst" => Some(self.worst),
            "low" => Some(self.ci95[0]),
            "high" => Some(self.ci95[1]),
            column => self.extra.get(column).copied(),
        }
    }

    /// Checks every field. Errors name the field.
    pub(crate) fn validate(&self) -> Result<()> {
        one_line("name", &self.name)?;
        one_line("unit", &self.unit)?;
        self.group.as_deref().map_or(Ok(()), |text| one_line("group", text))?;
        self.note.as_deref().map_or(Ok(()), |text| one_line("note", text))?;
        require(self.n > 0, "n", "no samples")?;
        let [low, high] = self.ci95;
        let figures = [("median", self.median), ("p99", self.p99), ("avg", self.avg)];
        for (field, figure) in figures.into_iter().chain([("worst", self.worst)]) {
            require(figure.is_finite(), field, "not a finite number")?;
            require(figure <= self.worst, field, "above `worst`")?;
        }
        require(low <= self.median && self.median <= high, "ci95", "does not enclose `median`")?;
        require(low.is_finite() && high <= self.worst, "ci95", "not finite or above `worst`")?;
        for (column, figure) in &self.extra {
            one_line("extra", column)?;
            let field = format!("extra.{column}");
            require(!RESERVED.contains(&column.as_str()), &field, "reserved name")?;
            require(figure.is_finite(), &field, "not a finite number")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builder() {
        let row = Row::from_samples("none", "instructions", &[7u64, 5, 6]).unwrap();
        let row = row.group("default").note("warm").extra("mmio", 2.0);
        assert_eq!(row.label(), "default/none");
        assert_eq!(row.value("median"), Some(6.0));
        assert_eq!(row.value("mmio"), Some(2.0));
        assert_eq!(row.value("n"), None);
        row.validate().unwrap();
    }

    #[test]
    fn ratios_are_of_paired_samples() {
        let row = Row::ratio("vm : threads", &[2.0, 6.0, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((row.median, row.value("low"), row.value("high")), (2.0, Some(1.0), Some(3.0)));
        assert!(Row::ratio("x", &[1.0], &[0.0]).is_err());
    }

    #[test]
    fn no_samples_names_the_row() {
        let error = Row::from_samples::<f64>("none", "us", &[]).unwrap_err();
        assert_eq!(error.to_string(), "row `none`: no samples");
    }

    #[test]
    fn invalid() {
        let row = || Row::from_samples("none", "us", &[1.0, 2.0, 3.0]).unwrap();
        let problem = |row: Row| row.validate().unwrap_err().to_string();
        assert_eq!(problem(Row { n: 0, ..row() }), "n: no samples");
        assert_eq!(problem(Row { unit: " ".into(), ..row() }), "unit: empty");
        assert_eq!(problem(row().note("a\nb")), "note: more than one line");
        assert_eq!(problem(Row { p99: 4.0, ..row() }), "p99: above `worst`");
        assert_eq!(problem(Row { avg: f64::NAN, ..row() }), "avg: not a finite number");
        assert_eq!(problem(Row { ci95: [2.5, 3.0], ..row() }), "ci95: does not enclose `median`");
        assert_eq!(problem(row().extra("p99", 1.0)), "extra.p99: reserved name");
        assert_eq!(problem(row().extra("x", f64::NAN)), "extra.x: not a finite number");
    }
}
