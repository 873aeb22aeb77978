//! `make demo`: what the project does, on real kernels.

mod attack;
mod unikernels;

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
const LEARNING: u32 = 1200;

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    attacks: usize,
    detected: usize,
    repaired: usize,
    /// Attempts on the monitor itself that came to what they should, with and without a wall.
    attempts: usize,
}

/// What stands between the monitor and Linux.
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

/// Shows each stock kernel with a monitor beside it, with and without a wall, then unikernels. The last line is the verdict.
pub fn run() -> Result<ExitCode> {
    println!("Kyozon puts a second kernel beside a running Linux kernel, on the same CPU. On it runs a monitor: it looks at");
    println!("Linux's memory from outside, a fifth of a millisecond at a time, 100 times a second, whatever Linux does.");
    println!("Each Debian kernel below is booted in an emulator, unmodified, and the monitor is loaded into it while it runs.");
    println!("Then the kernel is attacked as malware does it: while it works, and while it has its interrupts off, when");
    println!("nothing inside it can react. Each attack has to be found, told, and undone. At last the monitor itself is");
    println!("attacked from inside Linux: with nothing in between it is lost, with a wall in between it is not.");
    let mut score = Score::default();
    let mut good = true;
    for series in SERIES {
        let spec = match prepare(series) {
            Ok(spec) => spec,
            Err(error) => {
                println!("\nLinux {series}\n  FAILED   {error:#}");
                good = false;
                continue;
            }
        };
        // Both at once: the first speaks as it goes, the second when the first is done.
        std::thread::scope(|scope| {
            let shows = MODES.map(|mode| {
                let (spec, live) = (&spec, mode == MODES[0]);
                scope.spawn(move || present(series, spec, mode, live))
            });
            for show in shows {
                let (told, part) = show.join().expect("a show does not panic");
                print!("{told}");
                good &= part.is_some();
                let part = part.unwrap_or_default();
                score.attacks += part.attacks;
                score.detected += part.detected;
                score.repaired += part.repaired;
                score.attempts += part.attempts;
            }
        });
    }
    let Score { attacks, detected, repaired, attempts } = score;
    let shows = SERIES.len() * MODES.len();
    good &= attacks == 2 * ATTACKS.len() * shows && detected == attacks && repaired == attacks;
    good &= attempts == shows;
    println!("\nAgainst devices that write to memory by themselves the wall needs an IOMMU, which this machine does not have.");
    let unikernels = unikernels::show();
    if let Err(error) = &unikernels {
        println!("  FAILED   {error:#}");
    }
    good &= unikernels.is_ok();
    println!(
        "\nverdict: {}: detected {detected}/{attacks}, repaired {repaired}/{attacks}",
        if good {
            "every attack on stock kernels was found and undone, the walls held, and unikernels ran"
        } else {
            "FAILED"
        }
    );
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One kernel in one mode: what was told where it did not speak at once, and the score where nothing went wrong.
fn present(series: &str, spec: &Spec, mode: Mode, live: bool) -> (String, Option<Score>) {
    let mut voice = Voice { live, told: String::new() };
    voice.say(format_args!("\nLinux {series}, {}", mode.title()));
    let before = Instant::now();
    let mut score = Score::default();
    let outcome = show(spec, mode, &mut score, &mut voice);
    if let Err(error) = &outcome {
        voice.say(format_args!("  FAILED   {error:#}"));
    }
    voice.say(format_args!("  ({:.0} s)", before.elapsed().as_secs_f64()));
    (voice.told, outcome.is_ok().then_some(score))
}

/// Where the lines go.
struct Voice {
    live: bool,
    told: String,
}

impl Voice {
    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        if self.live {
            println!("{line}");
        } else {
            self.told += &format!("{line}\n");
        }
    }
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

/// A guest with everything that is shown in it.
fn prepare(series: &str) -> Result<Spec> {
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let mut spec =
        product::with_attacks(product::with_probe(product::install(Spec::new(&kernel))?)?)?;
    // The guest's clock counts instructions, so that a busy machine shows the same as an idle one.
    spec.devices.extend(batch::FIXED_CLOCK.map(String::from));
    spec.append("tsc=reliable").with_kernel_image()
}

fn show(spec: &Spec, mode: Mode, score: &mut Score, voice: &mut Voice) -> Result<()> {
    let mut stage = Stage { guest: Guest::boot(spec)? };
    let kernel = &spec.kernel;
    voice.say(format_args!("  booted   Debian's {} ({})", kernel.release, kernel.version));
    stage.ask("insmod /m/kyozon_probe.ko; insmod /m/kyozon-attacks.ko; cat /proc/kyozon_probe/state >/tmp/before")?;
    let load = format!("kyozon load --isolation {}", mode.word());
    for line in stage.ask(&load)?.replacen("loaded: ", "", 1).lines() {
        voice.say(format_args!("  loaded   {line}"));
    }
    learn(&mut stage, voice)?;
    stage.ask("while :; do dd if=/dev/zero bs=64k count=20 | sha256sum; (true); sleep 0.05; done >/dev/null 2>&1 & echo $! >/tmp/work")?;
    for (number, attack) in ATTACKS.iter().enumerate() {
        for deaf in [false, true] {
            score.attacks += 1;
            let seen = attack.run(&mut stage, deaf)?;
            tell(attack, 2 * number + usize::from(deaf) + 1, deaf, &seen, voice);
            score.detected += usize::from(seen.is_in_time());
            score.repaired += usize::from(seen.is_undone);
        }
    }
    stage.ask("kill $(cat /tmp/work)")?;
    for line in stage.ask("kyozon status")?.lines() {
        voice.say(format_args!("  status   {line}"));
    }
    score.attempts += usize::from(attempt(&mut stage, mode, voice)?);
    leave(stage, voice)
}

/// Until the monitor knows what the kernel's code is.
fn learn(stage: &mut Stage, voice: &mut Voice) -> Result<()> {
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
    voice.say(format_args!(
        "  learned  {:.1} MB of kernel code and read-only data; every process is looked for in every list it should be in",
        pages as f64 * 4096.0 / 1e6
    ));
    Ok(())
}

fn tell(attack: &Attack, number: usize, deaf: bool, seen: &attack::Seen, voice: &mut Voice) {
    let when =
        if deaf { "and switches Linux's interrupts off for a second" } else { "while Linux works" };
    voice.say(format_args!("  attack {number} {}, {when}", attack.does));
    match &seen.found {
        Some((after, line)) if !seen.is_in_time() => {
            voice.say(format_args!("    FOUND TOO LATE, after {after:.2} s: {line}"));
        }
        Some((after, line)) => voice.say(format_args!(
            "    found  after {:.2} s{}: {line}",
            after,
            deafness(deaf, *after)
        )),
        None => voice.say(format_args!("    NOT FOUND")),
    }
    match (seen.undone, seen.is_undone) {
        (Some(after), true) => {
            voice.say(format_args!("    undone after {:.2} s: {}", after, attack.undone));
        }
        _ => voice.say(format_args!("    NOT UNDONE: {}", seen.left)),
    }
}

/// A module in Linux overwrites the code of the monitor's own kernel. Whether that came to what it should in this mode.
fn attempt(stage: &mut Stage, mode: Mode, voice: &mut Voice) -> Result<bool> {
    voice.say(format_args!(
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
            voice.say(format_args!("    stopped {line}"));
            voice.say(format_args!("    nothing was changed: the monitor goes on"));
        }
        (_, false) => voice.say(format_args!(
            "    harmed  {}: nothing in between means that Linux can do that",
            status["message"].as_str().unwrap_or("the monitor is gone")
        )),
        (None, true) => voice.say(format_args!("    NOTHING WAS SEEN OF IT")),
    }
    Ok(match mode {
        Mode::None => !lives,
        Mode::Vmm => lives && wall.is_some(),
    })
}

fn deafness(deaf: bool, after: f64) -> &'static str {
    if deaf && after < 1.0 {
        ", while it was deaf"
    } else {
        ""
    }
}

/// What was loaded goes, and nothing stays behind.
fn leave(mut stage: Stage, voice: &mut Voice) -> Result<()> {
    let unloaded = stage.ask("kyozon unload")?.replacen("unloaded: ", "unloaded ", 1);
    voice.say(format_args!("  {unloaded}"));
    stage.ask("rmmod kyozon-attacks; cat /proc/kyozon_probe/state >/tmp/after && diff /tmp/before /tmp/after")?;
    voice.say(format_args!(
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
