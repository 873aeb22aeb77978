//! `kyozon run`: the tender runs the guests; this module prints the summary.

use crate::cli::RunOptions;
use kyozon_tender::console;
use kyozon_tender::run::{self, Summary};
use serde_json::json;
use std::process::ExitCode;

/// Runs a unikernel and returns its exit status.
pub fn run(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let summary = run::run(&options.options())?;
    if options.json {
        console::message(&describe(&summary));
    }
    Ok(ExitCode::from(summary.status))
}

fn describe(summary: &Summary) -> String {
    json!({
        "backend": summary.backend.name(),
        "status": summary.status,
        "guests": summary.guests,
        "start_us": summary.start.as_micros() as u64,
        "run_us": summary.ran.as_micros() as u64,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_summary_is_one_json_line() {
        let summary = Summary {
            backend: kyozon_tender::options::Backend::Process,
            status: 3,
            guests: vec![0, 3],
            start: Duration::from_micros(1500),
            ran: Duration::from_millis(2),
        };
        let text = describe(&summary);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["backend"], "process");
        assert_eq!((&value["guests"][1], &value["start_us"]), (&json!(3), &json!(1500)));
        assert!(!text.contains('\n'));
    }
}
