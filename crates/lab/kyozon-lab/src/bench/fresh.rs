//! Whether the committed tables that count instructions are those of today's code.

use super::{delay, ipc, lab, latency, trip, Measure};
use crate::cache;
use anyhow::{Context, Result};
use kyozon_results::Table;
use std::fs;
use std::path::Path;

/// The tables whose figures repeat.
const REPEATABLE: [(&str, Measure); 5] = [
    ("lab", lab),
    ("latency", latency::measure),
    ("trip", trip::measure),
    ("ipc", ipc::measure),
    ("interrupt-delay", delay::measure),
];
/// Greatest difference of two medians, as a part of the committed one.
const TOLERANCE: f64 = 0.01;

/// Measures the repeatable tables anew and compares them with those in `results`: their number, and a line for each
/// row that differs.
pub fn compare(results: &Path) -> Result<(usize, Vec<String>)> {
    let scratch = cache::scratch()?;
    for name in ["pages.toml", "costs.toml"] {
        fs::copy(results.join(name), scratch.path().join(name)).context(name)?;
    }
    let mut lines = Vec::new();
    for (name, measure) in REPEATABLE {
        measure(scratch.path()).with_context(|| format!("table {name}"))?;
        let fresh = Table::read(scratch.path(), name)?;
        lines.extend(differences(&Table::read(results, name)?, &fresh));
    }
    Ok((REPEATABLE.len(), lines))
}

/// A line for each row that only one of the tables has, or whose medians differ by more than [`TOLERANCE`].
fn differences(committed: &Table, fresh: &Table) -> Vec<String> {
    let of = |table: &Table| -> Vec<(String, f64)> {
        table.rows.iter().map(|row| (row.label(), row.median)).collect()
    };
    let (committed_rows, fresh_rows) = (of(committed), of(fresh));
    let find = |rows: &[(String, f64)], name: &str| {
        rows.iter().find(|(other, _)| other == name).map(|(_, median)| *median)
    };
    let mut lines = Vec::new();
    for (name, median) in &committed_rows {
        match find(&fresh_rows, name) {
            None => lines.push(format!("{}: {name} is not measured any more", committed.name)),
            Some(now) if (now - median).abs() > TOLERANCE * median.abs() => {
                lines.push(format!("{}: {name} is {now}, not {median}", committed.name));
            }
            Some(_) => (),
        }
    }
    let new = fresh_rows.iter().filter(|(name, _)| find(&committed_rows, name).is_none());
    lines.extend(new.map(|(name, _)| format!("{}: {name} is not in the table", committed.name)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_results::Row;

    #[test]
    fn rows_are_compared_by_name() {
        let table = |rows: &[(&str, u64)]| {
            let mut table = Table::new("trip", "t", "e", "c");
            for (name, median) in rows {
                table = table.row(Row::from_samples(name, "instructions", &[*median]).unwrap());
            }
            table
        };
        let committed = table(&[("a", 1000), ("b", 1000), ("gone", 5)]);
        let fresh = table(&[("b", 1011), ("a", 990), ("new", 5)]);
        let expected = [
            "trip: b is 1011, not 1000",
            "trip: gone is not measured any more",
            "trip: new is not in the table",
        ];
        assert_eq!(differences(&committed, &fresh), expected);
    }
}
