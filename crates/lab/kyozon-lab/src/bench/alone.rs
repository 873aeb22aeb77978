//! A cokernel without Linux, booted by PVH, on the instruction clock.

use crate::{batch, cache, emulator, emulator::Emulator, product};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// A timer that sends messages and one more as guard, so that no register of the timer is accessed before the handler.
pub const HPET: [&str; 4] = ["-global", "hpet.msi=on", "-global", "hpet.timers=4"];
/// Timers that interrupt through the IO-APIC only, as most HPETs of AMD's chipsets do.
pub const HPET_PIN: [&str; 2] = ["-global", "hpet.msi=off"];

/// Boots `image`, a cokernel followed by its tasks, with the command line `append` and `extra` arguments for the
/// emulator. Returns its serial output when it has powered the machine off; it must do so within `limit`.
pub fn run(image: &[u8], append: &str, extra: &[String], limit: Duration) -> Result<String> {
    run_with(&HPET, image, append, extra, limit)
}

/// As [`run`], with the timers of `hpet`.
pub fn run_with(
    hpet: &[&str],
    image: &[u8],
    append: &str,
    extra: &[String],
    limit: Duration,
) -> Result<String> {
    let folder = cache::scratch()?;
    let initrd = folder.path().join("initrd");
    fs::write(&initrd, image).context("write the cokernel's image")?;
    let mut command = emulator::qemu();
    command.args(
        "-nodefaults -no-user-config -no-reboot -display none -accel tcg -machine q35 -m 128"
            .split(' '),
    );
    command
        .args(["-cpu", &format!("max{}", batch::WITHOUT_RANDOM)])
        .args(batch::FIXED_CLOCK)
        .args(hpet);
    command.arg("-kernel").arg(product::file("alone.elf")?).arg("-initrd").arg(initrd);
    command.args(["-append", append]);
    command.args(["-serial", "file:ttyS0"]).args(extra);
    let mut emulator = Emulator::start(command, folder, "the cokernel alone".into())?;
    if emulator.wait(limit)?.is_none() {
        return Err(emulator.fail(&format!("it did not end within {} s", limit.as_secs())));
    }
    Ok(emulator.serial(0))
}
