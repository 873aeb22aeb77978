//! One row of a table: one quantity, measured in one way.

use crate::error::{one_line, require, Error, Result};
use crate::stats::{Sample, Stats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that an extra column must not have.
const RESERVED: [&str; 7] = ["n", "n_of", "median", "p99", "ci95", "avg", "worst"];

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
    /// Number of samples, or of what `n_of` names.
    pub n: u64,
    /// What `n` counts, in the plural: `rounds`. Without it, the table's page says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_of: Option<String>,
    /// Median.
    pub median: f64,
    /// 99th percentile of at least 100 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
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
    /// The distribution of the samples, as [`Stats::quantiles`] gives it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantiles: BTreeMap<String, f64>,
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
        Ok(Self::new(name, unit, Stats::of(samples).map_err(in_row(name))?))
    }

    /// A row from rounds of samples in `unit`: `n`, the median and its interval are of the rounds' medians.
    ///
    /// # Errors
    ///
    /// As [`Stats::of_rounds`], with the name of the row.
    pub fn from_rounds(name: &str, unit: &str, rounds: &[Vec<f64>]) -> Result<Self> {
        let row = Self::new(name, unit, Stats::of_rounds(rounds).map_err(in_row(name))?);
        Ok(row.counting("rounds"))
    }

    fn new(name: &str, unit: &str, stats: Stats) -> Self {
        let Stats { n, median, p99, ci95, avg, worst } = stats;
        Self {
            name: name.into(),
            group: None,
            unit: unit.into(),
            n,
            n_of: None,
            median,
            p99,
            ci95,
            avg,
            worst,
            note: None,
            extra: BTreeMap::new(),
            quantiles: BTreeMap::new(),
        }
    }

    /// A row of the ratios of paired samples: the first of `over` divided by the first of `under`, and so on.
    ///
    /// # Errors
    ///
    /// As [`Row::from_samples`].
    pub fn ratio(name: &str, over: &[f64], under: &[f64]) -> Result<Self> {
        let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
        Ok(Self::from_samples(name, "ratio", &ratios)?.counting("rounds"))
    }

    /// Says what `n` counts.
    #[must_use]
    pub fn counting(mut self, what: &str) -> Self {
        self.n_of = Some(what.into());
        self
    }

    /// Adds the distribution of the row's `samples`.
    ///
    /// # Errors
    ///
    /// As [`Stats::quantiles`], with the name of the row.
    pub fn distribution<S: Sample>(mut self, samples: &[S]) -> Result<Self> {
        self.quantiles = Stats::quantiles(samples).map_err(in_row(&self.name))?;
        Ok(self)
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
            "p99" => self.p99,
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
        self.n_of.as_deref().map_or(Ok(()), |text| one_line("n_of", text))?;
        let figures = [("median", self.median), ("avg", self.avg), ("worst", self.worst)];
        for (field, figure) in figures.into_iter().chain(self.p99.map(|p99| ("p99", p99))) {
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
        let level = |text: &str| text.parse().is_ok_and(|level: f64| (0.0..=1.0).contains(&level));
        require(self.quantiles.keys().all(|key| level(key)), "quantiles", "not a part of 1")?;
        // Decimal fractions of this form are in order as texts, too.
        let (figures, worst) = (self.quantiles.values(), |figure: &f64| *figure <= self.worst);
        let right = figures.clone().is_sorted() && figures.clone().all(worst);
        require(right, "quantiles", "not in order or above `worst`")
    }
}

fn in_row(name: &str) -> impl FnOnce(Error) -> Error + '_ {
    move |error| Error::Row { name: name.into(), error: Box::new(error) }
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
        assert_eq!(row.n_of.as_deref(), Some("rounds"));
        assert!(Row::ratio("x", &[1.0], &[0.0]).is_err());
    }

    #[test]
    fn a_missing_p99_is_no_value() {
        let row = Row::from_rounds("x", "us", &[vec![1.0, 2.0, 3.0], vec![4.0]]).unwrap();
        assert_eq!((row.n, row.median, row.worst), (2, 3.0, 4.0));
        assert_eq!((row.value("p99"), row.n_of.as_deref()), (None, Some("rounds")));
    }

    #[test]
    fn distributions_are_checked() {
        let row = Row::from_samples("x", "us", &[1.0, 2.0]).unwrap();
        let row = row.distribution(&[1.0, 2.0]).unwrap();
        row.validate().unwrap();
        let with = |level: &str, figure: f64| {
            let mut row = row.clone();
            row.quantiles.insert(level.into(), figure);
            row.validate().unwrap_err().to_string()
        };
        assert_eq!(with("2", 2.0), "quantiles: not a part of 1");
        assert_eq!(with("0.5", 9.0), "quantiles: not in order or above `worst`");
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
        assert_eq!(problem(Row { p99: Some(4.0), ..row() }), "p99: above `worst`");
        assert_eq!(problem(Row { avg: f64::NAN, ..row() }), "avg: not a finite number");
        assert_eq!(problem(Row { ci95: [2.5, 3.0], ..row() }), "ci95: does not enclose `median`");
        assert_eq!(problem(row().extra("p99", 1.0)), "extra.p99: reserved name");
        assert_eq!(problem(row().extra("x", f64::NAN)), "extra.x: not a finite number");
    }
}
