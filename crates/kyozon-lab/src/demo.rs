//! `make demo`: what the project does, on real kernels.

use crate::guest::Guest;
use crate::kernels::{Kernel, SERIES};
use crate::{cache, module, spec::Spec};
use anyhow::{ensure, Context, Result};
use std::fs;
use std::process::ExitCode;
use std::time::Instant;

/// Boots each stock kernel and loads a module that was built for it. The last line is the verdict.
pub fn run() -> Result<ExitCode> {
    println!(
        "Kyozon runs system software beside a stock Linux kernel. Today's state: the laboratory."
    );
    println!("Each Debian kernel below is booted unmodified in an emulator; a module built here is loaded into it.\n");
    let mut good = 0;
    for series in SERIES {
        let before = Instant::now();
        match boot_and_load(series) {
            Ok(line) => {
                good += 1;
                println!("  ok     {line} ({:.1} s)", before.elapsed().as_secs_f64());
            }
            Err(error) => println!("  FAILED Linux {series}: {error:#}"),
        }
    }
    let all = SERIES.len();
    println!("\nverdict: {good} of {all} stock kernels booted and took the module; no monitor yet: detected 0/0, repaired 0/0");
    Ok(if good == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn boot_and_load(series: &str) -> Result<String> {
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let built = module::build(&cache::tree()?.join("tests/lab/hello"), &kernel)?;
    let mut guest = Guest::boot(&Spec::new(&kernel))?;
    guest.put("/hello.ko", 0o644, &fs::read(&built.file)?)?;
    guest.run("insmod /hello.ko")?.expect_success().context("insmod")?;
    let said =
        guest.run("dmesg | grep hello:")?.expect_success().context("the module said nothing")?;
    guest.run("rmmod hello")?.expect_success().context("rmmod")?;
    let console = guest.shutdown()?.console;
    let complaints = crate::emulator::complaints(&console);
    ensure!(complaints.is_empty(), "the kernel complains: {}", complaints[0]);
    let said = said.split("hello: ").last().unwrap_or_default().trim();
    Ok(format!("Linux {} ({}): the module says {said:?}", kernel.release, kernel.version))
}
