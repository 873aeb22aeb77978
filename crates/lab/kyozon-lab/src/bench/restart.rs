//! Table `restart`: from a finding whose policy is a restart to a crash kernel that runs programs.

use super::cokernel::MODES;
use super::{described, qemu_version};
use crate::kernels::{Kernel, SERIES};
use crate::{batch, cache, module, product, spec::Spec};
use anyhow::{Context, Result};
use kyozon_results::Row;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const BOOTS: u32 = 3;
/// Milliseconds between the moments at which the boots of a row tamper: more than a pass of the hooks takes.
const APART_MS: u32 = 230;
const LIMIT: Duration = Duration::from_secs(1200);
/// Megabytes of memory, of which the crash kernel gets 192.
const MEMORY: u32 = 768;
/// Where the crash kernel's requests and the command are put into its initramfs.
const REQUESTS: &str = "/after/kyozon/batch";

/// Loads a crash kernel, and the monitor with `$load`.
const PREPARE: &str = "mkdir -p /after/bin && cp $(which kyozon) /after/bin || exit 1
{ cat /boot/initrd; cd /after; find . | cpio -o -H newc 2>/dev/null; } >/tmp/initrd
/init crash-kernel /boot/vmlinuz /tmp/initrd 'console=ttyS0 panic=-1 quiet nr_cpus=1 reset_devices' || exit 1
insmod /m/kyozon-attacks.ko 2>/dev/null
echo '\"hook.hidden\" = \"restart\"' >/tmp/policy
kyozon load $load --policy /tmp/policy >/dev/null || exit 1
until kyozon events | grep -q 'monitoring Linux'; do sleep 1; done";

/// Hides a hook, after `$rest` seconds.
const END: &str = "sleep $rest
echo hook-netfilter >/proc/kyozon-attacks
echo hide-module >/proc/kyozon-attacks
sleep 100";

/// The evidence, in the crash kernel.
const AFTER: &str = "kyozon events --image /proc/vmcore --json";

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "restart")?.version("qemu", &qemu_version()?);
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let built = module::build(&cache::tree()?.join("linux/attacks"), &kernel)?;
        let mut spec = Spec::new(&kernel);
        spec.mem = MEMORY;
        let spec = product::install(spec.with_crash_kernel()?)?
            .file("/m/kyozon-attacks.ko", 0o644, std::fs::read(&built.file)?)
            .file(REQUESTS, 0o644, batch::requests(&[AFTER])?);
        table = table.version(&format!("linux {series}"), &kernel.version);
        for mode in MODES {
            let mut seconds = Vec::new();
            for boot in 0..BOOTS {
                let prepare = format!("load='--isolation {mode}'\n{PREPARE}");
                let end = format!("rest=0.{:03}\n{END}", APART_MS * boot);
                let (began, output) = batch::run_into_restart(&spec, &prepare, &end, LIMIT)?;
                let decided = decision(&output.expect_success()?)?;
                seconds.push(began.saturating_sub(decided) as f64 / 1e9);
            }
            table =
                table.row(Row::from_samples(series, "s", &seconds)?.counting("boots").group(mode));
            eprintln!("  {mode} {series}");
        }
    }
    table.write(results)?;
    Ok(())
}

/// The time-stamp counter at which the monitor decided on a restart, from the events.
fn decision(events: &str) -> Result<u64> {
    for line in events.lines().filter(|line| line.starts_with('{')) {
        let event: Value = serde_json::from_str(line)?;
        if event["kind"] == "restart" {
            return event["tsc"].as_u64().context("an event without a time");
        }
    }
    anyhow::bail!("no event says that Linux was restarted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decision_is_the_event_of_that_kind() {
        let events = "{\"kind\":\"finding\",\"tsc\":1}\n{\"kind\":\"restart\",\"tsc\":2}\n";
        assert_eq!(decision(events).unwrap(), 2);
        assert!(decision("{\"kind\":\"finding\",\"tsc\":1}\n").is_err());
    }
}
