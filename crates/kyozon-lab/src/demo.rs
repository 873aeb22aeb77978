//! `make demo`: what the project does, on real kernels.

mod attack;

use crate::emulator::complaints;
use crate::guest::Guest;
use crate::kernels::{Kernel, SERIES};
use crate::{batch, product, spec::Spec};
use anyhow::{bail, ensure, Context, Result};
use attack::{Attack, ATTACKS};
use serde_json::Value;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest that the first pass over the kernel's code may take, in tenths of a second of the guest.
const LEARNING: u32 = 600;

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    attacks: usize,
    detected: usize,
    repaired: usize,
}

/// Shows each stock kernel with a monitor beside it. The last line is the verdict.
pub fn run() -> Result<ExitCode> {
    println!("Kyozon puts a second kernel beside a running Linux kernel, on the same CPU. On it runs a monitor: it looks at");
    println!("Linux's memory from outside, a fifth of a millisecond at a time, 100 times a second, whatever Linux does.");
    println!("Each Debian kernel below is booted in an emulator, unmodified, and the monitor is loaded into it while it runs.");
    println!("Then the kernel is attacked as malware does it: while it works, and while it has its interrupts off, when");
    println!("nothing inside it can react. Each attack has to be found, told, and undone.");
    let mut score = Score::default();
    let mut good = true;
    for series in SERIES {
        println!("\nLinux {series}");
        let before = Instant::now();
        if let Err(error) = show(series, &mut score) {
            println!("  FAILED   {error:#}");
            good = false;
        }
        println!("  ({:.0} s)", before.elapsed().as_secs_f64());
    }
    let Score { attacks, detected, repaired } = score;
    good &=
        attacks == 2 * ATTACKS.len() * SERIES.len() && detected == attacks && repaired == attacks;
    println!("\nWithout isolation, as here, Linux could still harm the monitor itself.");
    println!(
        "verdict: {}: detected {detected}/{attacks}, repaired {repaired}/{attacks}",
        if good { "every attack on stock kernels was found and undone" } else { "FAILED" }
    );
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A guest with something to do, and someone to look.
struct Stage {
    guest: Guest,
}

impl Stage {
    fn ask(&mut self, script: &str) -> Result<String> {
        let output = self.guest.run_for(script, Duration::from_secs(300))?;
        Ok(output.expect_success().with_context(|| script.to_owned())?.trim().to_owned())
    }

    fn status(&mut self) -> Result<Value> {
        Ok(serde_json::from_str(&self.ask("kyozon status --json")?)?)
    }

    /// Time-stamp ticks in a second: instructions, since the clock counts them.
    const HZ: f64 = 1e9;
}

fn show(series: &str, score: &mut Score) -> Result<()> {
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let mut spec =
        product::with_attacks(product::with_probe(product::install(Spec::new(&kernel))?)?)?;
    // The guest's clock counts instructions, so that a busy machine shows the same as an idle one.
    spec.devices.extend(batch::FIXED_CLOCK.map(String::from));
    spec = spec.append("tsc=reliable").with_kernel_image()?;
    let mut stage = Stage { guest: Guest::boot(&spec)? };
    println!("  booted   Debian's {} ({})", kernel.release, kernel.version);
    stage.ask("insmod /m/kyozon_probe.ko; insmod /m/kyozon-attacks.ko; cat /proc/kyozon_probe/state >/tmp/before")?;
    for line in stage.ask("kyozon load")?.replacen("loaded: ", "", 1).lines() {
        println!("  loaded   {line}");
    }
    learn(&mut stage)?;
    stage.ask("while :; do dd if=/dev/zero bs=64k count=20 | sha256sum; (true); sleep 0.05; done >/dev/null 2>&1 & echo $! >/tmp/work")?;
    for (number, attack) in ATTACKS.iter().enumerate() {
        for deaf in [false, true] {
            score.attacks += 1;
            let seen = attack.run(&mut stage, deaf)?;
            tell(attack, 2 * number + usize::from(deaf) + 1, deaf, &seen);
            score.detected += usize::from(seen.is_in_time());
            score.repaired += usize::from(seen.is_undone);
        }
    }
    stage.ask("kill $(cat /tmp/work)")?;
    leave(stage)
}

/// Until the monitor knows what the kernel's code is.
fn learn(stage: &mut Stage) -> Result<()> {
    stage
        .ask(&format!(
            "for i in $(seq {LEARNING}); do \
             kyozon status | grep -q ' text: [1-9]' && exit 0; \
             sleep 0.1; \
         done; \
         kyozon status >&2; exit 1"
        ))
        .context("the monitor did not get to know the kernel's code")?;
    let status = stage.status()?;
    let check = |name: &str| -> Result<Value> {
        let checks = status["checks"].as_array().context("checks in the status")?;
        checks.iter().find(|check| check["name"] == name).cloned().context("a check of that name")
    };
    let pages = check("text")?["items"].as_u64().unwrap_or(0);
    println!(
        "  learned  {:.1} MB of kernel code and read-only data; every process is looked for in every list it should be in",
        pages as f64 * 4096.0 / 1e6
    );
    Ok(())
}

fn tell(attack: &Attack, number: usize, deaf: bool, seen: &attack::Seen) {
    let when =
        if deaf { "and switches Linux's interrupts off for a second" } else { "while Linux works" };
    println!("  attack {number} {}, {when}", attack.does);
    match &seen.found {
        Some((after, line)) if !seen.is_in_time() => {
            println!("    FOUND TOO LATE, after {after:.2} s: {line}");
        }
        Some((after, line)) => {
            println!("    found  after {:.2} s{}: {line}", after, deafness(deaf, *after))
        }
        None => println!("    NOT FOUND"),
    }
    match (seen.undone, seen.is_undone) {
        (Some(after), true) => println!("    undone after {:.2} s: {}", after, attack.undone),
        _ => println!("    NOT UNDONE: {}", seen.left),
    }
}

fn deafness(deaf: bool, after: f64) -> &'static str {
    if deaf && after < 1.0 {
        ", while it was deaf"
    } else {
        ""
    }
}

/// What was loaded goes, and nothing stays behind.
fn leave(mut stage: Stage) -> Result<()> {
    for line in stage.ask("kyozon status")?.lines() {
        println!("  status   {line}");
    }
    println!("  {}", stage.ask("kyozon unload")?.replacen("unloaded: ", "unloaded ", 1));
    stage.ask("rmmod kyozon-attacks; cat /proc/kyozon_probe/state >/tmp/after && diff /tmp/before /tmp/after")?;
    println!(
        "  compared interrupt controller, timers, descriptor tables and CPU registers: as before"
    );
    let console = stage.guest.shutdown()?.console;
    let complaints = complaints(&console);
    ensure!(complaints.is_empty(), "the kernel complains: {}", complaints[0]);
    if console.is_empty() {
        bail!("the guest's console is empty");
    }
    Ok(())
}
