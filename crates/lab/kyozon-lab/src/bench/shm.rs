//! Tables `shm` and `shm-paths`, both from one run of `kyozon bench shm`.

use super::{described, kyozon};
use crate::process;
use anyhow::{Context, Result};
use kyozon_results::{RowSet, Table};
use std::path::Path;
use std::time::Duration;

/// Time limit of the whole measurement.
const LIMIT: Duration = Duration::from_secs(900);

/// Measures and writes both tables.
pub fn measure(results: &Path) -> Result<()> {
    let exchange = described(results, "shm")?;
    let paths = Table { command: exchange.command.clone(), ..described(results, "shm-paths")? };
    let output = process::run_ok(kyozon()?.args(["bench", "shm", "--json"]), LIMIT)?;
    let set: RowSet = serde_json::from_str(&output).context("output of kyozon bench shm")?;
    set.rows.into_iter().fold(exchange, Table::row).write(results)?;
    set.further.into_iter().fold(paths, Table::row).write(results)?;
    Ok(())
}
