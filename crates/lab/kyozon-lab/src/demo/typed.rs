//! Typed code: programs in kernel mode, which the running kernel has checked.

use crate::emulator::complaints;
use crate::guest::Guest;
use crate::kernels::Kernel;
use crate::scenario::{typed, wasi_missing};
use crate::{
    cache, process, product,
    spec::{Program, Spec},
};
use anyhow::{ensure, Context, Result};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Time limit of a step.
const LIMIT: Duration = Duration::from_secs(60);
/// Where the programs are in the guest.
const PROGRAMS: &str = "/m/typed/programs";
/// The kernel's taint: an unsigned module of another tree was loaded.
const TAINT: &str = "12288";

/// What a program does, the script that runs it, and what the output must contain. Its first line is shown if `shows`.
struct Step {
    title: &'static str,
    run: &'static str,
    says: &'static [&'static str],
    shows: bool,
}

const STEPS: [Step; 5] = [
    Step {
        title: "ran      a program whose calls of the kernel are function calls; it says",
        run: "run hello",
        says: &["hello\n", "status 6"],
        shows: true,
    },
    Step {
        title: "killed   an endless loop; another program ran meanwhile",
        run: "run loop & sleep 1; run hello; killall -9 kyozon; wait",
        says: &["status 6", "status 137"],
        shows: false,
    },
    Step {
        title: "stopped  a program that takes 16 MiB, at its group's limit of 8",
        run: "mkdir /tmp/groups; mount -t cgroup2 none /tmp/groups; echo +memory >/tmp/groups/cgroup.subtree_control
            mkdir /tmp/groups/small; echo 8M >/tmp/groups/small/memory.max
            run pages; (echo 0 >/tmp/groups/small/cgroup.procs; run pages)",
        says: &["status 17", "status 137"],
        shows: false,
    },
    Step {
        title: "ended    a store outside of its memory",
        run: "run guard",
        says: &["an access of the region where there is no memory", "status 120"],
        shows: true,
    },
    Step {
        title: "refused  a store anywhere, whose annotation says that it stays below 4096",
        run: "run forged",
        says: &["expected [0x0, 0xfff], found [0x1, 0x1000]", "status 1"],
        shows: true,
    },
];

/// SQLite's directory and arguments. It prints its version, what it finds in the database, and a check of all of it.
const SQLITE: &str = "data::data --env TMPDIR=data -- data/database";
/// The last line of a run that went well.
const WHOLE: &str = "integrity_check ok";

/// Shows them beside a kernel of a series.
pub fn show(series: &str) -> Result<()> {
    println!("\nTyped code on Linux {series}: programs run in kernel mode, once the kernel has checked them");
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let mut spec = product::install_typed(Spec::of(Program::Qemu, &kernel))?;
    for (name, file) in typed::assemble(&cache::tree()?.join("tests/typed/programs"))? {
        spec = spec.file(&format!("/m/typed/{name}"), 0o644, file);
    }
    let database = match wasi_missing() {
        None => Some(typed::compiled("sqlite").context("SQLite")?),
        Some(_) => None,
    };
    if let Some(file) = &database {
        spec = spec.file("/m/sqlite.typed", 0o644, file.clone());
    }
    let mut guest = Guest::boot(&spec)?;
    let mut ask = |script: &str| -> Result<String> {
        let output = guest.run_for(script, LIMIT)?;
        output.expect_success().with_context(|| script.to_owned())
    };
    ask("insmod /lib/modules/*/extra/kyozon-typed.ko")?;
    for step in &STEPS {
        let script = format!(
            "run() {{ kyozon typed run --kernel {PROGRAMS}/$1.typed; echo status $?; }}\nexec 2>&1\n{}\ntrue",
            step.run
        );
        let output = ask(&script)?;
        let missing = step.says.iter().find(|part| !output.contains(**part));
        ensure!(missing.is_none(), "{}: not found: {missing:?} in {output:?}", step.run);
        let line = output.lines().next().filter(|_| step.shows);
        let line = line.map(|line| line.split_once(".typed: ").map_or(line, |(_, line)| line));
        println!("  {}{}", step.title, line.map(|line| format!(": {line}")).unwrap_or_default());
    }
    match &database {
        Some(file) => {
            let run = format!("kyozon typed run --kernel /m/sqlite.typed --dir {SQLITE}");
            let said = ask(&format!("mkdir -p /tmp/work/data; cd /tmp/work; {run}"))?;
            show_sqlite(file, &said)?;
        }
        None => println!("  skipped  SQLite: {}", wasi_missing().unwrap_or_default()),
    }
    let taint = ask("rmmod kyozon-typed && cat /proc/sys/kernel/tainted")?;
    ensure!(taint.trim() == TAINT, "the kernel is tainted: {}", taint.trim());
    let console = guest.shutdown()?.console;
    let complaints = complaints(&console);
    ensure!(complaints.is_empty(), "the kernel complains: {}", complaints[0]);
    println!("  removed  the module; Linux had nothing to report");
    Ok(())
}

/// Shows what SQLite said in kernel mode, and that it says the same on a file in an image.
fn show_sqlite(file: &[u8], said: &str) -> Result<()> {
    let version = said.lines().next().unwrap_or_default();
    ensure!(said.trim_end().ends_with(WHOLE), "SQLite in kernel mode: {said:?}");
    println!(
        "  ran      {version}, from unmodified source by way of WebAssembly, on a file: {WHOLE}"
    );
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("sqlite.typed"), file)?;
    let script = format!(
        "PATH=$PATH:/usr/sbin:/sbin; truncate -s 64M disk.img && mkfs.ext4 -q disk.img &&
        \"$0\" fs mkdir disk.img:/data && \"$0\" typed run --in-process sqlite.typed --dir disk.img:/{SQLITE}"
    );
    let mut command = Command::new("sh");
    command.arg("-euc").arg(script).arg(product::file("kyozon")?).current_dir(folder.path());
    let other = process::run_ok(&mut command, LIMIT)?;
    ensure!(other == said, "SQLite over library Linux says something else: {other:?}");
    println!("  ran      the same program over library Linux, on a file in an image of ext4: it says the same");
    Ok(())
}
