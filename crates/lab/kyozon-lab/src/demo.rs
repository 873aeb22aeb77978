//! `make demo`: what the project does, on real kernels.

mod attack;
mod library;
mod typed;
mod unikernels;

use crate::emulator::complaints;
use crate::guest::Guest;
use crate::kernels::{Kernel, SERIES};
use crate::{
    batch, product,
    spec::{Program, Spec},
};
use anyhow::{bail, ensure, Context, Result};
use attack::{Attack, ATTACKS};
use serde_json::Value;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time limit for the monitor's first pass over the kernel's code, in seconds of the guest.
const LEARNING: u32 = 120;

/// Counts over all demonstrations.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    attacks: usize,
    detected: usize,
    /// Attacks of which the monitor undoes the effect, and how many of them it did.
    repairable: usize,
    repaired: usize,
    /// Attempts on the monitor itself that ended as expected: it dies in mode none and survives in vmm.
    attempts: usize,
}

/// The isolation between the monitor and Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    None,
    Vmm,
}

const MODES: [Mode; 2] = [Mode::None, Mode::Vmm];

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Vmm => "vmm",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::None => "nothing in between",
            Self::Vmm => "a wall in between: Linux becomes the guest of a hypervisor while it runs",
        }
    }
}

const INTRODUCTION: &str = "\
Kyozon puts a second kernel beside a running Linux kernel, on the same CPU. The second kernel runs a monitor that
reads Linux's memory from outside, for 0.2 ms at a time, 100 times a second, whatever Linux does. Each Debian
kernel below boots unmodified in an emulator, and the monitor is loaded while it runs. Then the demo attacks the
kernel as malware does: while it works, and while its interrupts are off, when nothing inside Linux can react.
The monitor must find and report each attack, and undo it where its repair is proven. Then a module in Linux attacks the monitor itself: in mode none
the monitor dies, in mode vmm a wall of nested paging stops the attack. Finally the demo unloads everything and
checks that the machine is back in its original state.";

/// What to show.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Show these kernels only
    #[arg(value_parser = SERIES.to_vec())]
    kernels: Vec<String>,
}

/// Shows the monitor beside stock kernels in each mode, unikernels, library Linux, and typed code. The last line is the
/// verdict.
pub fn run(options: &Options) -> Result<ExitCode> {
    println!("{INTRODUCTION}");
    let wanted = |series: &&str| {
        options.kernels.is_empty() || options.kernels.iter().any(|kernel| kernel == series)
    };
    let kernels: Vec<&str> = SERIES.iter().copied().filter(wanted).collect();
    let mut score = Score::default();
    let mut good = true;
    for &series in &kernels {
        let spec = match prepare(series) {
            Ok(spec) => spec,
            Err(error) => {
                println!("\nLinux {series}\n  FAILED   {error:#}");
                good = false;
                continue;
            }
        };
        // Both modes run at the same time; the second one's lines are printed when the first has ended.
        std::thread::scope(|scope| {
            let shows = MODES.map(|mode| {
                let (spec, live) = (&spec, mode == MODES[0]);
                scope.spawn(move || present(series, spec, mode, live))
            });
            for show in shows {
                let (lines, part) = show.join().expect("a demonstration does not panic");
                print!("{lines}");
                good &= part.is_some();
                let part = part.unwrap_or_default();
                score.attacks += part.attacks;
                score.detected += part.detected;
                score.repairable += part.repairable;
                score.repaired += part.repaired;
                score.attempts += part.attempts;
            }
        });
    }
    let Score { attacks, detected, repairable, repaired, attempts } = score;
    let shows = kernels.len() * MODES.len();
    good &= attacks == 2 * ATTACKS.len() * shows && detected == attacks;
    good &= repairable > 0 && repaired == repairable;
    good &= attempts == shows;
    println!("\nTo stop devices that write to memory by themselves the wall needs an IOMMU; the emulated machine has none.");
    good &= succeeds(unikernels::show);
    good &= succeeds(library::show);
    good &= kernels.first().is_none_or(|series| succeeds(|| typed::show(series)));
    println!(
        "\nverdict: {}: detected {detected}/{attacks}, repaired {repaired}/{repairable}",
        if good {
            "every attack on stock kernels was found, the walls held; unikernels, library Linux and typed code ran"
        } else {
            "FAILED"
        }
    );
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a part of the demo succeeds; if not, prints why.
fn succeeds(show: impl FnOnce() -> Result<()>) -> bool {
    let outcome = show();
    if let Err(error) = &outcome {
        println!("  FAILED   {error:#}");
    }
    outcome.is_ok()
}

/// One kernel in one mode. Returns the lines that were not printed, and the score if nothing failed.
fn present(series: &str, spec: &Spec, mode: Mode, live: bool) -> (String, Option<Score>) {
    let mut report = Report { live, lines: String::new() };
    report.line(format_args!("\nLinux {series}, {}", mode.title()));
    let before = Instant::now();
    let mut score = Score::default();
    let outcome = show(spec, mode, &mut score, &mut report);
    if let Err(error) = &outcome {
        report.line(format_args!("  FAILED   {error:#}"));
    }
    report.line(format_args!("  ({:.0} s)", before.elapsed().as_secs_f64()));
    (report.lines, outcome.is_ok().then_some(score))
}

/// Prints lines at once if `live`, or else keeps them.
struct Report {
    live: bool,
    lines: String,
}

impl Report {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.live {
            println!("{line}");
        } else {
            self.lines += &format!("{line}\n");
        }
    }
}

/// A guest in which the attacks happen.
struct Stage {
    guest: Guest,
}

impl Stage {
    /// The output of a script that must succeed.
    fn ask(&mut self, script: &str) -> Result<String> {
        let output = self.guest.run_for(script, Duration::from_secs(300))?;
        Ok(output.expect_success().with_context(|| script.to_owned())?.trim().to_owned())
    }

    fn status(&mut self) -> Result<Value> {
        Ok(serde_json::from_str(&self.ask("kyozon status --json")?)?)
    }

    /// Ticks of the time-stamp counter in a second; each is an instruction.
    const HZ: f64 = 1e9;
}

/// The guest with module, monitor, probe and attacks.
fn prepare(series: &str) -> Result<Spec> {
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let mut spec = product::with_attacks(product::with_probe(product::install(Spec::of(
        Program::Qemu,
        &kernel,
    ))?)?)?;
    // The guest's clock counts instructions, so a busy machine shows the same times as an idle one.
    spec.devices.extend(batch::FIXED_CLOCK.map(String::from));
    spec.append("tsc=reliable").with_kernel_image()
}

/// Loads the monitor, attacks, and unloads it again.
fn show(spec: &Spec, mode: Mode, score: &mut Score, report: &mut Report) -> Result<()> {
    let mut stage = Stage { guest: Guest::boot(spec)? };
    let kernel = &spec.kernel;
    report.line(format_args!("  booted   Debian's {} ({})", kernel.release, kernel.version));
    stage.ask("insmod /m/kyozon_probe.ko; insmod /m/kyozon-attacks.ko; cat /proc/kyozon_probe/state >/tmp/before")?;
    let load = format!("kyozon load --isolation {}", mode.word());
    for line in stage.ask(&load)?.replacen("loaded: ", "", 1).lines() {
        report.line(format_args!("  loaded   {line}"));
    }
    learn(&mut stage, report)?;
    stage.ask(
        "while :; do dd if=/dev/zero bs=64k count=20 | sha256sum; (true); sleep 0.05; done >/dev/null 2>&1 &
         echo $! >/tmp/work",
    )?;
    for (number, attack) in ATTACKS.iter().enumerate() {
        for deaf in [false, true] {
            score.attacks += 1;
            let seen = attack.run(&mut stage, deaf)?;
            print_attack(attack, 2 * number + usize::from(deaf) + 1, deaf, &seen, report);
            score.detected += usize::from(seen.is_in_time());
            if attack.undone.is_some() {
                score.repairable += 1;
                score.repaired += usize::from(seen.is_undone);
            }
        }
    }
    stage.ask("kill $(cat /tmp/work)")?;
    for line in stage.ask("kyozon status")?.lines() {
        report.line(format_args!("  status   {line}"));
    }
    score.attempts += usize::from(attempt(&mut stage, mode, report)?);
    leave(stage, report)
}

/// Waits until the monitor has learned the kernel's code.
fn learn(stage: &mut Stage, report: &mut Report) -> Result<()> {
    stage
        .ask(&format!(
            "for i in $(seq {LEARNING}); do \
             kyozon status | grep -q ' text: [1-9]' && exit 0; \
             sleep 1; \
         done; \
         kyozon status >&2; exit 1"
        ))
        .context("the monitor did not finish its first pass over the kernel's code")?;
    let status = stage.status()?;
    let check = |name: &str| -> Result<Value> {
        let checks = status["checks"].as_array().context("checks in the status")?;
        checks.iter().find(|check| check["name"] == name).cloned().context("a check of that name")
    };
    let pages = check("text")?["items"].as_u64().unwrap_or(0);
    report.line(format_args!(
        "  learned  {:.1} MB of kernel code and read-only data; each process must be in every list it belongs to",
        pages as f64 * 4096.0 / 1e6
    ));
    Ok(())
}

/// The lines of one attack and of what followed.
fn print_attack(
    attack: &Attack,
    number: usize,
    deaf: bool,
    seen: &attack::Seen,
    report: &mut Report,
) {
    let when =
        if deaf { "and turns Linux's interrupts off for a second" } else { "while Linux works" };
    report.line(format_args!("  attack {number} {}, {when}", attack.does));
    match &seen.found {
        Some((after, line)) if !seen.is_in_time() => {
            report.line(format_args!("    FOUND TOO LATE, after {after:.2} s: {line}"));
        }
        Some((after, line)) => report.line(format_args!(
            "    found  after {:.2} s{}: {line}",
            after,
            deafness(deaf, *after)
        )),
        None => report.line(format_args!("    NOT FOUND")),
    }
    match (attack.undone, seen.undone, seen.is_undone) {
        (None, ..) => report.line(format_args!("    reported only")),
        (Some(undone), Some(after), true) => {
            report.line(format_args!("    undone after {after:.2} s: {undone}"));
        }
        _ => report.line(format_args!("    NOT UNDONE: {}", seen.left)),
    }
}

/// A module in Linux overwrites the code of the monitor's own kernel. Returns whether it ended as this mode promises.
fn attempt(stage: &mut Stage, mode: Mode, report: &mut Report) -> Result<bool> {
    report.line(format_args!(
        "  attempt  a module in Linux overwrites the code of the second kernel itself"
    ));
    stage.ask("echo 'root find' >/proc/kyozon-attacks; echo 'root break direct' >/proc/kyozon-attacks; sleep 1")?;
    let status = stage.ask("kyozon status --json || true")?;
    let status: Value = serde_json::from_str(&status)?;
    let events = stage.ask("kyozon events --json")?;
    let wall = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["kind"] == "wall")
        .filter_map(|event| Some(event["text"].as_str()?.to_owned()))
        .next_back();
    let lives = status["state"] == "running";
    match (&wall, lives) {
        (Some(line), true) => {
            report.line(format_args!("    stopped {line}"));
            report.line(format_args!("    nothing was changed: the monitor keeps running"));
        }
        (_, false) => report.line(format_args!(
            "    harmed  {}: without a wall Linux can do that",
            status["message"].as_str().unwrap_or("the monitor is gone")
        )),
        (None, true) => report.line(format_args!("    NOTHING WAS NOTICED")),
    }
    Ok(match mode {
        Mode::None => !lives,
        Mode::Vmm => lives && wall.is_some(),
    })
}

/// Whether an attack was found while Linux had its interrupts off.
fn deafness(deaf: bool, after: f64) -> &'static str {
    if deaf && after < 1.0 {
        ", while interrupts were off"
    } else {
        ""
    }
}

/// Unloads everything and checks that the machine is as before.
fn leave(mut stage: Stage, report: &mut Report) -> Result<()> {
    let unloaded = stage.ask("kyozon unload")?.replacen("unloaded: ", "unloaded ", 1);
    report.line(format_args!("  {unloaded}"));
    stage.ask("rmmod kyozon-attacks; cat /proc/kyozon_probe/state >/tmp/after && diff /tmp/before /tmp/after >&2")?;
    report.line(format_args!(
        "  compared interrupt controller, timers, descriptor tables and CPU registers: as before"
    ));
    let console = stage.guest.shutdown()?.console;
    let complaints = complaints(&console);
    ensure!(complaints.is_empty(), "the kernel complains: {}", complaints[0]);
    if console.is_empty() {
        bail!("the guest's console is empty");
    }
    Ok(())
}
