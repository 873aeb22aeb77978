//! Table `interrupt-delay`: the delay of Linux's own timer interrupts while a cokernel is loaded.

use super::{described, qemu_version};
use crate::kernels::{Kernel, SERIES};
use crate::{batch, product, spec::Spec};
use anyhow::{Context, Result};
use kyozon_results::Row;
use std::path::Path;
use std::time::Duration;

/// Name of the row, and the options of `kyozon load`, if any. The rate is not a multiple of the timer's, so that ticks
/// occur in every phase of it.
const CASES: [(&str, Option<&str>); 3] = [
    ("without", None),
    ("cokernel at rest", Some("--hz 997 --parameter 0")),
    ("cokernel busy, budget 200 us", Some("--hz 997 --parameter 3 --budget 200")),
];

/// A script that prints the delays of a 1 kHz timer over a fixed piece of work.
fn script(load: Option<&str>) -> String {
    let load = load.map_or(String::new(), |options| {
        format!("kyozon load --cokernel /usr/lib/kyozon/cokernel-test.bin {options} >/dev/null || exit 1\n")
    });
    let unload = if load.is_empty() { "" } else { "kyozon unload >/dev/null || exit 1\n" };
    format!(
        "{load}echo 1 >/proc/kyozon_probe/delay
         for i in 1 2 3 4; do
             sha256sum /bin/busybox
             dd if=/dev/zero of=/tmp/x bs=4k count=500
             (true); (true); (true)
             sleep 0.2
         done >/dev/null 2>&1
         echo 0 >/proc/kyozon_probe/delay
         {unload}tail -n +2 /proc/kyozon_probe/delay"
    )
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "interrupt-delay")?.version("qemu", &qemu_version()?);
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let spec = product::with_probe(product::install(Spec::new(&kernel))?)?;
        let scripts: Vec<String> = CASES.iter().map(|(_, load)| script(*load)).collect();
        // The first work after boot differs from later work, so it is done once and not counted.
        let warm_up = format!("insmod /m/kyozon_probe.ko; {}", script(None));
        let all: Vec<&str> = [&warm_up].into_iter().chain(&scripts).map(String::as_str).collect();
        let run = batch::run(&spec, &all, Duration::from_secs(1200))?;
        for ((name, _), output) in CASES.iter().zip(&run.outputs[1..]) {
            let text = output.expect_success().with_context(|| format!("{name} on {series}"))?;
            let samples =
                text.lines().map(|line| Ok(line.trim().parse()?)).collect::<Result<Vec<u64>>>()?;
            let row = Row::from_samples(name, "instructions", &samples)?.group(series);
            table = table.row(row.distribution(&samples)?);
        }
        table = table.version(&format!("linux {series}"), &kernel.version);
    }
    table.write(results)?;
    Ok(())
}
