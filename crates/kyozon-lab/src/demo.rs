//! `make demo`: what the project does, on real kernels.

use crate::emulator::complaints;
use crate::guest::Guest;
use crate::kernels::{Kernel, SERIES};
use crate::{cache, module, product, spec::Spec};
use anyhow::{ensure, Context, Result};
use std::fs;
use std::process::ExitCode;
use std::time::Instant;

const LOAD: &str =
    "kyozon load --cokernel /usr/lib/kyozon/cokernel-test.bin --hz 100 --budget 10000";
const TICKS: &str = "kyozon status --json | sed -n 's/.*\"ticks\": \\([0-9]*\\).*/\\1/p'";
/// Linux's own timer interrupts on all CPUs.
const LINUX_TICKS: &str = "awk '/^ *LOC:/ { print $2 }' /proc/interrupts";

/// Shows each stock kernel with a second kernel beside it. The last line is the verdict.
pub fn run() -> Result<ExitCode> {
    println!("Kyozon puts a second kernel beside a running Linux kernel, on the same CPU.");
    println!("Each Debian kernel below is booted in an emulator, unmodified. Then a small cokernel is loaded into it,");
    println!("which a timer of its own wakes 100 times a second, whatever Linux does.");
    let mut good = 0;
    for series in SERIES {
        println!("\nLinux {series}");
        let before = Instant::now();
        match show(series) {
            Ok(()) => {
                good += 1;
                println!("  good ({:.0} s)", before.elapsed().as_secs_f64());
            }
            Err(error) => println!("  FAILED: {error:#}"),
        }
    }
    let all = SERIES.len();
    println!("\nWithout isolation, as here, Linux could still harm the cokernel, and no monitor runs on it yet.");
    println!("verdict: {good} of {all} stock kernels took a cokernel and gave it up again; no monitor yet: detected 0/0, repaired 0/0");
    Ok(if good == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(series: &str) -> Result<()> {
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let probe = module::build(&cache::tree()?.join("tests/hal/probe"), &kernel)?;
    let spec =
        product::install(Spec::new(&kernel))?.file("/probe.ko", 0o644, fs::read(probe.file)?);
    let mut guest = Guest::boot(&spec)?;
    println!("  booted   Debian's {} ({})", kernel.release, kernel.version);
    let mut ask = |script: &str| -> Result<String> {
        let text = guest.run(script)?.expect_success().with_context(|| script.to_owned())?;
        Ok(text.trim().to_owned())
    };
    ask("insmod /probe.ko && cat /proc/kyozon_probe/state >/tmp/before")?;
    println!("  {}", ask(LOAD)?.replacen("loaded: ", "loaded   ", 1));
    // One shell for all four looks: they must lie close around the second.
    let looks = ask(&format!(
        "a=$({TICKS}); c=$({LINUX_TICKS}); echo 1000 >/proc/kyozon_probe/spin; d=$({LINUX_TICKS}); b=$({TICKS}); \
         echo $((b - a)) $((d - c)); sed 's/nmis //' /proc/kyozon_probe/spin"
    ))?;
    let numbers = looks.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [_, linux, inside] = numbers[..] else { anyhow::bail!("the guest said {looks:?}") };
    println!("  deaf     Linux switches its interrupts off for a second: the cokernel was woken {inside} times in it");
    ensure!(inside > 0, "the cokernel slept while Linux had interrupts off");
    println!("           (Linux's own timer came {linux} times, before and after that second)");
    for line in ask("kyozon status")?.lines() {
        println!("  status   {line}");
    }
    println!("  {}", ask("kyozon unload")?.replacen("unloaded: ", "unloaded ", 1));
    ask("cat /proc/kyozon_probe/state >/tmp/after && diff /tmp/before /tmp/after")?;
    println!(
        "  compared interrupt controller, timers, descriptor tables and CPU registers: as before"
    );
    let console = guest.shutdown()?.console;
    let complaints = complaints(&console);
    ensure!(complaints.is_empty(), "the kernel complains: {}", complaints[0]);
    Ok(())
}
