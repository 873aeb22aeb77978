//! Typed code: programs in kernel mode, which the running kernel has checked.

use crate::emulator::complaints;
use crate::guest::Guest;
use crate::kernels::Kernel;
use crate::scenario::typed;
use crate::{cache, product, spec::Spec};
use anyhow::{ensure, Context, Result};
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

/// Shows them beside a kernel of a series.
pub fn show(series: &str) -> Result<()> {
    println!("\nTyped code on Linux {series}: programs run in kernel mode, once the kernel has checked them");
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let mut spec = product::install_typed(Spec::new(&kernel))?;
    for (name, file) in typed::assemble(&cache::tree()?.join("tests/typed/programs"))? {
        spec = spec.file(&format!("/m/typed/{name}"), 0o644, file);
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
    let taint = ask("rmmod kyozon-typed && cat /proc/sys/kernel/tainted")?;
    ensure!(taint.trim() == TAINT, "the kernel is tainted: {}", taint.trim());
    let console = guest.shutdown()?.console;
    let complaints = complaints(&console);
    ensure!(complaints.is_empty(), "the kernel complains: {}", complaints[0]);
    println!("  removed  the module; Linux had nothing to report");
    Ok(())
}
