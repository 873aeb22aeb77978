//! A guest in Bochs: an interpreter with its own AMD-V and VT-x, written independently of QEMU's.
//!
//! Bochs supports neither a kernel on the command line nor virtio. The guest boots from a CD image made for the run,
//! and its whole input is fixed before it starts, as in [`batch`]: requests in the initramfs, answers over the second
//! serial line into a file. Every clock starts at a fixed date and follows the number of instructions: two runs on a
//! CPU model without RDRAND are equal to the instruction. RDRAND returns other numbers in each run.
//!
//! Debian's Bochs has two peculiarities. Its debugger is compiled in: a command file makes it continue, and its
//! standard input is empty, so Bochs ends where it would return to the prompt. It also needs a display: `term` uses a
//! terminal that Bochs creates for itself and that stays invisible; `rfb` would listen on every network address.

mod disc;

use crate::emulator::Emulator;
use crate::guest::Output;
use crate::{batch, cache, spec::Spec};
use anyhow::{bail, ensure, Result};
use disc::{config, make_cd, LOADER, ROMS};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

/// Default CPU model, which has AMD-V. `corei7_haswell_4770` has VT-x.
pub const CPU: &str = "trinity_apu";
/// Reason of a scenario that is skipped because Bochs is not installed.
pub const NEEDED: &str =
    "needs bochs: apt-get install bochs bochs-term bochsbios vgabios xorriso isolinux syslinux-common";

const DISPLAY: &str = "/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so";
/// Maximum memory in MiB: Bochs' BIOS reports no memory above 4 GiB, and the last of these has devices.
const MAX_MEMORY: u32 = 3072;
const NO_MODEL: &str = "no such CPU model; 'bochs --help cpu' lists them";
const POLL: Duration = Duration::from_millis(200);
/// Real time for the power-off, after the last answer.
const GRACE: Duration = Duration::from_secs(20);

/// Runs the scripts one after the other, for at most `limit` of real time altogether, and powers the guest off.
pub fn run(spec: &Spec, scripts: &[&str], limit: Duration) -> Result<batch::Finished> {
    check(spec)?;
    if let Some(what) = missing() {
        bail!("{what} not found: --emulator bochs {NEEDED}");
    }
    let folder = cache::scratch()?;
    make_cd(spec, scripts, folder.path())?;
    fs::write(folder.path().join("bochsrc"), config(spec))?;
    fs::write(folder.path().join("debugger"), "c\n")?;
    let mut command = Command::new(program());
    command.args(["-q", "-f", "bochsrc", "-rc", "debugger"]);
    // A screen of one character: no program reads that terminal, and it must not fill.
    command.env("TERM", "xterm").env("LINES", "1").env("COLUMNS", "1");
    let mut emulator = Emulator::start(command, folder, spec.name())?;
    let (booted_tsc, outputs) = follow(&mut emulator, scripts.len(), limit, GRACE)?;
    Ok(batch::Finished {
        booted_tsc,
        outputs,
        console: emulator.serial(0),
        cokernel: String::new(),
    })
}

/// The first part of Bochs, or of the programs that make its CD, that is not installed.
pub fn missing() -> Option<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    // `join` leaves an absolute name unchanged.
    let here = |name: &PathBuf| env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let files = ROMS.into_iter().chain([DISPLAY]).chain(LOADER).map(PathBuf::from);
    let mut all = [program().into(), "xorriso".into()].into_iter().chain(files);
    all.find(|name| !here(name)).map(|name| name.display().to_string())
}

/// Bochs, or the program that `KYOZON_BOCHS` names.
fn program() -> OsString {
    env::var_os("KYOZON_BOCHS").unwrap_or_else(|| "bochs".into())
}

/// Refuses options that only QEMU has.
fn check(spec: &Spec) -> Result<()> {
    for (option, value) in [("--machine", &spec.machine), ("--accel", &spec.accel)] {
        ensure!(value.is_empty(), "{option} {value}: Bochs has no such option: leave it out");
    }
    ensure!(
        spec.devices.is_empty(),
        "--qemu {}: Bochs does not take QEMU's arguments: leave it out",
        spec.devices[0]
    );
    ensure!(spec.smp == 1, "--smp {}: a guest in Bochs has one CPU", spec.smp);
    ensure!(
        spec.mem <= MAX_MEMORY,
        "--mem {}: a guest in Bochs sees at most {MAX_MEMORY} MiB",
        spec.mem
    );
    ensure!(
        spec.cpu.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        "--cpu {}: {NO_MODEL}",
        spec.cpu
    );
    Ok(())
}

/// Waits for `count` answers, then for the guest's end; a guest that does not end within `grace` is killed.
fn follow(
    emulator: &mut Emulator,
    count: usize,
    limit: Duration,
    grace: Duration,
) -> Result<(u64, Vec<Output>)> {
    let deadline = Instant::now() + limit;
    loop {
        let ended = emulator.wait(POLL)?.is_some();
        if let Ok(answers) = batch::answers(emulator, count) {
            emulator.wait(grace)?;
            return Ok(answers);
        }
        if ended {
            let file = |name| fs::read(emulator.folder().join(name)).unwrap_or_default();
            let logs = [file("log"), file("stderr")].concat();
            let why = reason(&String::from_utf8_lossy(&logs)).unwrap_or_default();
            // `fail` quotes the first line of standard error, and Bochs' first line is about plugins.
            fs::write(emulator.folder().join("stderr"), why)?;
            return Err(emulator.fail("it ended before its work was done"));
        }
        if Instant::now() >= deadline {
            return Err(emulator.fail(&format!("it did not end within {} s", limit.as_secs())));
        }
    }
}

/// Why Bochs ended: its panic message, or else the first line that is not in every log.
fn reason(logs: &str) -> Option<String> {
    let panic = logs.lines().find_map(|line| Some(line.split_once(">>PANIC<< ")?.1));
    let usual = |line: &str| {
        let sign = line.chars().next().is_none_or(|c| !c.is_alphabetic());
        sign || ["Next at", "Bochs "].iter().any(|start| line.starts_with(start))
    };
    let why = panic.or_else(|| logs.lines().find(|line| !usual(line)))?.trim();
    Some(if why.ends_with("cpu directive malformed.") { NO_MODEL } else { why }.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::kernels::Kernel;
    use crate::protocol::{send, Reply, PREAMBLE, VERSION};

    pub fn spec() -> Spec {
        let kernel = ["6.12", "cloud", "6.12.0", "6.12.0-1"].map(String::from);
        let [series, flavour, release, version] = kernel;
        Spec::bochs(&Kernel { series, flavour, release, version, root: "/nowhere".into() })
    }

    /// A script in place of Bochs, with `said` on the second serial line.
    fn fake(script: &str, said: &[u8]) -> Emulator {
        let folder = cache::scratch().unwrap();
        fs::write(folder.path().join("ttyS1"), said).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Emulator::start(command, folder, "guest of a test".into()).unwrap()
    }

    fn followed(script: &str, said: &[u8]) -> Result<(u64, Vec<Output>)> {
        let (limit, grace) = (Duration::from_secs(2), Duration::from_millis(100));
        follow(&mut fake(script, said), 1, limit, grace)
    }

    fn all_answers() -> Vec<u8> {
        let mut said = PREAMBLE.to_vec();
        let hello = Reply::Hello { version: VERSION, release: "6.12.0".into(), tsc: 7 };
        send(&mut said, &hello, b"").unwrap();
        send(&mut said, &Reply::Output { stream: 1 }, b"out").unwrap();
        let done = Reply::Done { status: 3, timed_out: false, tsc_start: 8, tsc_end: 9 };
        send(&mut said, &done, b"").unwrap();
        said
    }

    #[test]
    fn options_of_qemu_are_refused() {
        check(&spec()).unwrap();
        for (wrong, sign) in [
            (spec().smp(2), "--smp 2: "),
            (Spec { mem: 3073, ..spec() }, "--mem 3073: "),
            (Spec { machine: "q35".into(), ..spec() }, "--machine q35: "),
            (Spec { accel: "kvm".into(), ..spec() }, "--accel kvm: "),
            (Spec { devices: vec!["-nic".into()], ..spec() }, "--qemu -nic: "),
            (Spec { cpu: "max, count=2".into(), ..spec() }, "--cpu max, count=2: no such CPU"),
        ] {
            let error = check(&wrong).unwrap_err().to_string();
            assert!(error.starts_with(sign), "{error}");
        }
    }

    #[test]
    fn the_reason_is_found_in_the_logs() {
        let usual = "00000000000i[PLUGIN] loaded\n=====\n   Bochs x86 Emulator 2.7\n\
                     Next at t=0\n(0) [0] jmpf\n";
        assert_eq!(reason(usual), None);
        let found = |line: &str| reason(&format!("{usual}{line}\n{usual}"));
        let panic =
            "02492039520p[CPU0  ] >>PANIC<< exception(): 3rd (14) exception with no resolution";
        assert_eq!(found(panic).unwrap(), "exception(): 3rd (14) exception with no resolution");
        let malformed = "00000000000p[      ] >>PANIC<< bochsrc:5: cpu directive malformed.";
        assert_eq!(found(malformed).unwrap(), NO_MODEL);
        let terminal = "Error opening terminal: unknown.";
        assert_eq!(found(terminal).unwrap(), terminal);
    }

    #[test]
    fn guests_may_stay_after_their_last_answer() {
        let before = Instant::now();
        let (booted, outputs) = followed("sleep 60", &all_answers()).unwrap();
        assert!(before.elapsed() < Duration::from_secs(10));
        assert_eq!((booted, outputs[0].status, outputs[0].stdout.as_slice()), (7, 3, &b"out"[..]));
        followed("exit 1", &all_answers()).unwrap();
    }

    #[test]
    fn missing_answers_are_errors() {
        let said = all_answers();
        let torn = &said[..said.len() - 1];
        let error = followed("echo '01p[CPU0] >>PANIC<< triple' > log; exit 1", torn).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("before its work was done"), "{error}");
        assert!(error.contains("(exit status: 1): triple"), "{error}");
        let error = followed("sleep 60", torn).unwrap_err().to_string();
        assert!(error.contains("it did not end within 2 s"), "{error}");
    }
}
