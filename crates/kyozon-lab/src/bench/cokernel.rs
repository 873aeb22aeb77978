//! The test cokernel and others, beside Linux and alone, for tables.

use crate::kernels::Kernel;
use crate::{batch, cache, emulator, emulator::Emulator, product, spec::Spec};
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A timer that sends messages, and one more as guard: nothing of the timer is touched on the way to the handler.
pub const HPET: [&str; 4] = ["-global", "hpet.msi=on", "-global", "hpet.timers=4"];
/// Real time that one run may take.
pub const LIMIT: Duration = Duration::from_secs(1500);

/// A guest with the product and the probe's module in it, and the timer of [`HPET`].
pub fn guest(kernel: &Kernel, append: &str) -> Result<Spec> {
    let spec = product::with_probe(product::install(Spec::new(kernel).append(append))?)?;
    Ok(Spec { devices: HPET.map(String::from).into(), ..spec })
}

/// Linux works in user mode, in the kernel, with interrupts off, and is idle, in turns, until `ticks` ticks have come
/// to the cokernel that was loaded with `load`; then until `end` have, and it is unloaded.
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

/// QEMU for the test cokernel without Linux, in repeatable mode.
pub fn alone(options: &str) -> Result<Command> {
    alone_with(&product::file("cokernel-test.bin")?, options)
}

/// The same for any cokernel, with its tasks behind it.
pub fn alone_with(image: &Path, options: &str) -> Result<Command> {
    let mut command = emulator::qemu();
    command.args(
        "-nodefaults -no-user-config -no-reboot -display none -accel tcg -machine q35 -m 128"
            .split(' '),
    );
    command
        .args(["-cpu", &format!("max{}", batch::CPU_WITHOUT_CHANCE)])
        .args(batch::FIXED_CLOCK)
        .args(HPET)
        .arg("-kernel")
        .arg(product::file("alone.elf")?)
        .arg("-initrd")
        .arg(image)
        .args(["-append", options, "-serial", "file:ttyS0"]);
    Ok(command)
}

/// What the cokernel alone told over its serial line.
pub fn run_alone(command: Command) -> Result<String> {
    let mut emulator = Emulator::start(command, cache::scratch()?, "the cokernel alone".into())?;
    if emulator.wait(LIMIT)?.is_none() {
        return Err(emulator.fail("it did not end in time"));
    }
    Ok(emulator.serial(0))
}
