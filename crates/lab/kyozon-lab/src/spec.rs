//! The description of a guest.

use crate::{bochs, guest::CHANNEL, initramfs::Initramfs, kernels::Kernel};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::time::Duration;

/// The emulator that runs a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Fast, any number of CPUs, commands while the guest runs
    #[default]
    Qemu,
    /// AMD-V and VT-x, one CPU; the guest's whole input is fixed before it starts
    Bochs,
}

/// A guest before its start. Defaults: one CPU, 512 MiB, q35, every CPU feature that the emulator has.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The kernel that it boots.
    pub kernel: Kernel,
    /// CPUs.
    pub smp: u32,
    /// Memory in MiB.
    pub mem: u32,
    /// QEMU's `-machine`; empty for Bochs.
    pub machine: String,
    /// QEMU's `-cpu`, or a CPU model of Bochs.
    pub cpu: String,
    /// QEMU's `-accel`; empty for Bochs.
    pub accel: String,
    /// Added to the kernel command line.
    pub append: String,
    /// Added to QEMU's arguments.
    pub devices: Vec<String>,
    /// Modules of the kernel package that are loaded at start.
    pub modules: Vec<String>,
    /// Path, permission bits and contents.
    pub files: Vec<(String, u32, Vec<u8>)>,
    /// Time limit from the start to the agent's first frame.
    pub boot_limit: Duration,
    /// Whether its emulator runs on one CPU of the host, see [`crate::process::on_one_cpu`].
    pub one_host_cpu: bool,
    /// Whether QEMU boots again after a reset, instead of ending.
    pub resets: bool,
    /// Whether each process of the guest has addresses of its own (ASLR).
    pub aslr: bool,
}

/// QEMU's `-cpu` of a test: TCG stores and copies byte by byte if Linux uses `rep stosb` and `rep movsb`.
const CPU_OF_A_TEST: &str = "max,erms=off,fsrm=off";

/// How many of its `cpus` a kernel of `series` starts with these arguments for QEMU: docs/emulators.md.
pub(crate) fn started_cpus(series: &str, cpus: u32, devices: &[String]) -> u32 {
    let by_instructions = devices.iter().any(|argument| argument == "-icount");
    let version = series
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    if by_instructions && version.is_some_and(|version| version < (6, 5)) {
        1
    } else {
        cpus
    }
}

impl Spec {
    /// A guest of a test or of the demo in `program`, with what QEMU takes longest for turned off. A measurement has
    /// [`Spec::new`].
    pub fn of(program: Program, kernel: &Kernel) -> Self {
        match program {
            // TCG translates a program again for each address at which it is mapped.
            Program::Qemu => Self { cpu: CPU_OF_A_TEST.into(), aslr: false, ..Self::new(kernel) },
            Program::Bochs => Self::bochs(kernel),
        }
    }

    /// A guest with the defaults for Bochs: [`bochs::CPU`], ten minutes to boot.
    pub fn bochs(kernel: &Kernel) -> Self {
        Self {
            machine: String::new(),
            cpu: bochs::CPU.into(),
            accel: String::new(),
            boot_limit: Duration::from_secs(600),
            ..Self::new(kernel)
        }
    }

    /// A guest with the defaults for QEMU.
    pub fn new(kernel: &Kernel) -> Self {
        Self {
            kernel: kernel.clone(),
            smp: 1,
            mem: 512,
            machine: "q35".into(),
            cpu: "max".into(),
            accel: "tcg".into(),
            append: String::new(),
            devices: Vec::new(),
            modules: Vec::new(),
            files: Vec::new(),
            boot_limit: Duration::from_secs(180),
            one_host_cpu: false,
            resets: false,
            aslr: true,
        }
    }

    /// Whether many tests have guests like this one, apart from its files.
    pub(crate) fn is_common(&self) -> bool {
        let Self { append, devices, modules, .. } = self;
        append.trim().is_empty() && devices.is_empty() && modules.is_empty() && !self.resets
    }

    /// Sets the number of CPUs.
    pub fn smp(mut self, cpus: u32) -> Self {
        self.smp = cpus;
        self
    }

    /// Adds words to the kernel command line.
    pub fn append(mut self, words: &str) -> Self {
        self.append = format!("{} {words}", self.append).trim().into();
        self
    }

    /// Adds a file.
    pub fn file(mut self, path: &str, mode: u32, contents: Vec<u8>) -> Self {
        self.files.push((path.into(), mode, contents));
        self
    }

    /// Adds the kernel's own image at the path that its package uses.
    pub fn with_kernel_image(self) -> Result<Self> {
        let image = self.kernel.image();
        let contents = fs::read(&image).with_context(|| image.display().to_string())?;
        let path = format!("/boot/vmlinuz-{}", self.kernel.release);
        Ok(self.file(&path, 0o644, contents))
    }

    /// Reserves memory for a crash kernel, and puts the same kernel and a small initramfs into the guest as
    /// `/boot/vmlinuz` and `/boot/initrd`: `/init crash-kernel` loads them.
    pub fn with_crash_kernel(self) -> Result<Self> {
        let bare = Self { files: Vec::new(), modules: Vec::new(), ..self.clone() };
        let initrd = bare.initramfs(&CHANNEL)?.pack();
        let image = self.kernel.image();
        let kernel = fs::read(&image).with_context(|| image.display().to_string())?;
        Ok(self.append("crashkernel=192M").file("/boot/vmlinuz", 0o644, kernel).file(
            "/boot/initrd",
            0o644,
            initrd,
        ))
    }

    /// The guest's name in messages.
    pub fn name(&self) -> String {
        format!("guest {}", self.kernel.release)
    }

    /// The kernel command line, with `extra` words of the caller.
    pub fn command_line(&self, extra: &str) -> String {
        // "panic=-1": a panic restarts at once, and with -no-reboot QEMU then ends. The magic keys serve
        // to ask a guest that does not answer what it does.
        let aslr = if self.aslr { "" } else { "norandmaps " };
        format!("console=ttyS0 panic=-1 sysrq_always_enabled quiet {aslr}{extra} {}", self.append)
            .trim_end()
            .into()
    }

    /// Its initramfs; `channel` are the modules that the channel to the agent needs.
    pub fn initramfs(&self, channel: &[&str]) -> Result<Initramfs> {
        let modules: Vec<&str> =
            channel.iter().copied().chain(self.modules.iter().map(String::as_str)).collect();
        let mut archive = Initramfs::new(&self.kernel, &modules)?;
        for (path, mode, contents) in &self.files {
            archive.file(path, *mode, contents.clone())?;
        }
        Ok(archive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_has_one_cpu_by_the_instruction_clock() {
        let clock = ["-icount".to_owned(), "shift=0".to_owned()];
        let started = |series, devices| started_cpus(series, 2, devices);
        assert_eq!((started("6.1", &clock), started("6.1", &[])), (1, 2));
        assert_eq!(
            (started("6.12", &clock), started("6.5", &clock), started("7.0", &clock)),
            (2, 2, 2)
        );
        assert_eq!(started("adopted", &clock), 2);
    }
}
