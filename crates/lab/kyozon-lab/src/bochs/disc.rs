//! The files that Bochs reads: a CD image to boot from, and its own configuration.

use crate::{batch, process, spec::Spec};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Files of Debian's packages that the configuration names.
pub const ROMS: [&str; 2] =
    ["/usr/share/bochs/BIOS-bochs-latest", "/usr/share/bochs/VGABIOS-lgpl-latest"];
/// Files of Debian's packages that go onto the CD.
pub const LOADER: [&str; 2] =
    ["/usr/lib/ISOLINUX/isolinux.bin", "/usr/lib/syslinux/modules/bios/ldlinux.c32"];
/// Instructions that Bochs counts as one second.
const INSTRUCTIONS_PER_SECOND: u32 = 50_000_000;
/// 2026-01-01, as in a repeatable run of QEMU.
const START_OF_CLOCK: u32 = 1_767_225_600;
/// Maximum guest memory in MiB that Bochs keeps in the host's memory; the rest of a larger guest is in a file.
const MAX_HOST_MEMORY: u32 = 2048;

/// Makes a CD image with the kernel, the initramfs and a loader without a prompt.
pub fn make_cd(spec: &Spec, scripts: &[&str], folder: &Path) -> Result<()> {
    let cd = folder.join("cd");
    fs::create_dir(&cd)?;
    let mut archive = spec.initramfs(&[])?;
    archive.file("kyozon/batch", 0o644, batch::requests(scripts)?)?;
    fs::write(cd.join("initrd"), archive.pack()).context("write the initramfs")?;
    fs::write(cd.join("isolinux.cfg"), loader_config(spec))?;
    for file in LOADER {
        let name = Path::new(file).file_name().expect("a file has a name");
        fs::copy(file, cd.join(name)).with_context(|| format!("copy {file}"))?;
    }
    fs::copy(spec.kernel.image(), cd.join("vmlinuz")).context("copy the kernel")?;
    let mut command = Command::new("xorriso");
    command.args("-no_rc -as mkisofs -quiet -o cd.iso -b isolinux.bin -c boot.cat".split(' '));
    command.args("-no-emul-boot -boot-load-size 4 -boot-info-table cd".split(' '));
    command.current_dir(folder).env("SOURCE_DATE_EPOCH", START_OF_CLOCK.to_string());
    process::run_ok(&mut command, Duration::from_secs(120)).context("make the CD image")?;
    fs::remove_dir_all(&cd)?;
    Ok(())
}

/// isolinux's configuration.
fn loader_config(spec: &Spec) -> String {
    // "reboot=t": a restart is a triple fault, which ends Bochs.
    let words = "tsc=reliable random.trust_cpu=off reboot=t";
    let line = spec.command_line(words);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "DEFAULT guest\nPROMPT 0\nLABEL guest\n LINUX /vmlinuz\n INITRD /initrd\n APPEND {line}\n"
    )
}

/// Bochs' own configuration. Paths are below its working directory. "sync=none" and "realtime=0": time of the CPU
/// and of the display's retrace is a number of instructions; by default the latter follows the host's clock.
pub fn config(spec: &Spec) -> String {
    let Spec { cpu, mem, .. } = spec;
    let [bios, vga] = ROMS;
    let host = (*mem).min(MAX_HOST_MEMORY);
    format!(
        "display_library: term
sound: driver=dummy
romimage: file={bios}
vgaromimage: file={vga}
cpu: model={cpu}, count=1, ips={INSTRUCTIONS_PER_SECOND}, reset_on_triple_fault=0
memory: guest={mem}, host={host}
clock: sync=none, time0={START_OF_CLOCK}
vga: realtime=0
boot: cdrom
ata0-master: type=cdrom, path=cd.iso, status=inserted
com1: enabled=1, mode=file, dev=ttyS0
com2: enabled=1, mode=file, dev=ttyS1
log: log
panic: action=fatal
error: action=ignore
info: action=ignore
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bochs::tests::spec;

    #[test]
    fn the_configuration_follows_the_spec() {
        let text = config(&Spec { cpu: "ryzen".into(), mem: 3072, ..spec() });
        assert!(text.contains("\ncpu: model=ryzen, count=1, "), "{text}");
        assert!(text.contains("\nmemory: guest=3072, host=2048\n"), "{text}");
        assert!(config(&spec()).contains("model=trinity_apu"));
        // A line break in the kernel's words would start another line of the loader's configuration.
        let text = loader_config(&spec().append("a=1\nb=2"));
        assert!(text.ends_with(" reboot=t a=1 b=2\n"), "{text}");
    }
}
