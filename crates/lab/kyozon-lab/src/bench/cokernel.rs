//! The test cokernel beside Linux, for tables.

use super::alone::HPET;
use crate::kernels::Kernel;
use crate::{product, spec::Spec};
use anyhow::Result;
use std::time::Duration;

/// The modes beside Linux, as `kyozon load --isolation` and the rows name them.
pub const MODES: [&str; 2] = ["none", "vmm"];

/// The kernels beside which a cokernel is measured: series, words added to the command line, and the group's name.
pub const LINUXES: [(&str, &str, &str); 3] = [
    ("6.12", "", "default"),
    ("6.12", "mitigations=off", "mitigations=off"),
    ("6.1", "", "default"),
];

/// Time limit of one run, in real time.
pub const LIMIT: Duration = Duration::from_secs(1500);

/// A script that loads the monitor with the options `$load` and waits until it has learned Linux.
pub const WATCHED: &str = "kyozon load $load >/dev/null || exit 1
for turn in $(seq 600); do
	kyozon events | grep -q 'monitoring Linux' && exit 0
	sleep 0.1
done
kyozon status >&2
exit 1";

/// A guest with the product, the probe module and the timer of [`HPET`].
pub fn guest(kernel: &Kernel, append: &str) -> Result<Spec> {
    let spec = product::with_probe(product::install(Spec::new(kernel).append(append))?)?;
    Ok(Spec { devices: HPET.map(String::from).into(), ..spec })
}

/// A script that loads the cokernel with the options `load`. Linux then works in user mode, in the kernel and with
/// interrupts off, and is idle, in turns, until the cokernel has had `ticks` ticks. It is unloaded after `end` ticks.
pub fn workload(load: &str, ticks: usize, end: usize) -> String {
    format!(
        "kyozon load --cokernel /usr/lib/kyozon/cokernel-test.bin {load} >/dev/null || exit 1
         ticks() {{ kyozon status --json | sed -n 's/.*\"ticks\": \\([0-9]*\\).*/\\1/p'; }}
         insmod /m/kyozon_probe.ko
         while [ \"$(ticks)\" -lt {ticks} ]; do
             sha256sum /bin/busybox
             dd if=/dev/zero of=/tmp/x bs=4k count=500
             echo 100 >/proc/kyozon_probe/spin
             sleep 0.3
         done >/dev/null 2>&1
         while [ \"$(ticks)\" -lt {end} ]; do sleep 0.5; done
         kyozon status
         kyozon unload"
    )
}
