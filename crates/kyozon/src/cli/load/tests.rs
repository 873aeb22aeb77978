use super::*;
use crate::cli::{Cli, Command};
use clap::{CommandFactory, Parser};

fn options(words: &[&str]) -> Result<LoadOptions, clap::Error> {
    let words = ["kyozon", "load"].iter().chain(words);
    match Cli::try_parse_from(words)?.command {
        Command::Load(options) => Ok(options),
        other => panic!("{other:?}"),
    }
}

fn request(words: &[&str]) -> device::Load {
    options(words).unwrap().request()
}

#[test]
fn options_become_a_request() {
    Cli::command().debug_assert();
    let plain = request(&[]);
    assert_eq!(
        (plain.mode, plain.tick_hz, plain.budget_us, plain.flags),
        (layer::MODE_NONE, 100, 200, 0)
    );
    let full = request(&[
        "--isolation",
        "vmm",
        "--hz",
        "1000",
        "--serial",
        "0x2f8",
        "--memory",
        "64K",
        "--untested-hardware",
    ]);
    assert_eq!((full.mode, full.tick_hz, full.serial_port), (layer::MODE_VMM, 1000, 0x2f8));
    assert_eq!((full.memory_bytes, full.flags), (64 << 10, device::LOAD_UNTESTED_HARDWARE));
}

#[test]
fn monitor_is_loaded_unless_another_image_is_named() {
    let watch = |words: &[&str]| options(words).unwrap().watch();
    assert_eq!((watch(&[]), request(&[]).parameter), (Watch::Repair, 0));
    let only = ["--report-only"];
    assert_eq!(
        (watch(&only), request(&only).parameter),
        (Watch::Report, task::MONITOR_REPORT_ONLY)
    );
    assert_eq!(watch(&["--parameter", "1"]), Watch::Report);
    for other in ["--cokernel", "--task", "--data"] {
        assert_eq!(watch(&[other, "x", "--parameter", "1"]), Watch::Off, "{other}");
        let error = options(&[other, "x", "--report-only"]).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{other}");
    }
}
