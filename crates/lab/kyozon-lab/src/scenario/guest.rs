//! A scenario's steps in a guest.

use super::description::{GuestPart, Isolation};
use super::{typed, Case, Variant};
use crate::booted::Booted;
use crate::emulator::{complaints, keep_console};
use crate::guest::{Ended, Guest, Output};
use crate::kernels::Kernel;
use crate::spec::{Program, Spec};
use crate::stale::StaleBreakpoint;
use crate::{batch, bochs, cache, module, process, product};
use anyhow::{bail, ensure, Context, Result};
use regex::Regex;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

impl Variant {
    /// The step's script with the variant's isolation, which `kyozon load` takes from its environment.
    fn script(&self, run: &str) -> String {
        match self.isolation {
            Isolation::None => run.to_owned(),
            Isolation::Vmm => format!("export KYOZON_ISOLATION=vmm\n{run}"),
        }
    }
}

impl Case {
    /// Boots the variant, runs the steps, then reads what the kernel and the cokernel printed.
    ///
    /// The error is a [`StaleBreakpoint`] if a guest shows one after its boot.
    pub(super) fn in_guest(&self, variant: &Variant, booted: Option<&Booted>) -> Result<()> {
        let part = self.description.guest.as_ref().expect("a variant has a guest");
        let spec = self.spec(part, variant)?;
        match (part.deterministic, part.emulator) {
            (true, emulator) => self.check(part, &self.twice(emulator, &spec, variant)?),
            (false, Program::Bochs) => {
                self.check(part, &self.once(Program::Bochs, &spec, variant)?.into())
            }
            (false, Program::Qemu) => self.live(part, &spec, variant, booted),
        }
    }

    /// Checks what the kernel and the cokernel printed.
    fn check(&self, part: &GuestPart, ended: &Ended) -> Result<()> {
        let Ended { console, cokernel } = ended;
        for pattern in &part.cokernel {
            let found = Regex::new(pattern)?.is_match(cokernel);
            ensure!(found, "the cokernel's serial output does not match {pattern:?}: {cokernel:?}");
        }
        let allowed = part.allow.iter().map(|p| Ok(Regex::new(p)?)).collect::<Result<Vec<_>>>()?;
        let mut complaints = complaints(console);
        complaints.retain(|line| !allowed.iter().any(|pattern| pattern.is_match(line)));
        if let Some(complaint) = complaints.first() {
            let path = keep_console(&self.name, console)?;
            bail!("the kernel complains: {complaint} (console: {})", path.display());
        }
        Ok(())
    }

    /// The guest with all its files.
    fn spec(&self, part: &GuestPart, variant: &Variant) -> Result<Spec> {
        /// Held while a kernel is fetched or a module is built.
        static CACHE: Mutex<()> = Mutex::new(());
        let _alone = CACHE.lock().unwrap_or_else(|held| held.into_inner());
        let kernel = Kernel::fetch(&variant.kernel, &part.flavour, false)?;
        let defaults = Spec::of(part.emulator, &kernel).smp(variant.cpus);
        let mut spec = Spec {
            mem: part.mem,
            machine: part.machine.clone().unwrap_or(defaults.machine),
            cpu: part.cpu.clone().unwrap_or(defaults.cpu),
            accel: part.accel.clone().unwrap_or(defaults.accel),
            append: part.append.clone(),
            devices: part.devices.clone(),
            modules: part.modules.clone(),
            boot_limit: part.boot_limit.map_or(defaults.boot_limit, Duration::from_secs),
            resets: part.resets,
            one_host_cpu: part.one_host_cpu
                && variant.cpus > 1
                && variant.isolation == Isolation::Vmm,
            ..defaults
        };
        if part.kyozon {
            spec = product::install(spec)?;
        }
        if !part.typed.is_empty() || !part.suite.is_empty() {
            spec = product::install_typed(spec)?;
        }
        for folder in &part.typed {
            for (name, contents) in typed::assemble(&cache::tree()?.join(folder))? {
                spec = spec.file(&format!("/m/typed/{name}"), 0o644, contents);
            }
        }
        for name in &part.wasi {
            let file = typed::compiled(name)?;
            spec = spec.file(&format!("/m/wasi/{name}.typed"), 0o644, file);
        }
        if !part.suite.is_empty() {
            for (name, file) in typed::suite(&part.suite)? {
                spec = spec.file(&format!("/m/suite/{name}"), 0o644, file);
            }
        }
        for source in &part.build {
            let built = module::build(&cache::tree()?.join(source), &kernel)?;
            ensure!(
                built.warnings.is_empty(),
                "{source} builds with a warning: {}",
                built.warnings[0]
            );
            let name =
                built.file.file_name().expect("a module has a name").to_string_lossy().into_owned();
            spec = spec.file(&format!("/m/{name}"), 0o644, fs::read(&built.file)?);
        }
        for source in &part.programs {
            let (name, contents) = compile(&self.folder.join(source))?;
            spec = spec.file(&format!("/bin/{name}"), 0o755, contents);
        }
        if part.crash_kernel {
            spec = spec.with_crash_kernel()?;
        }
        if part.kernel_image {
            spec = spec.with_kernel_image()?;
        }
        for (path, source) in &part.files {
            for (path, file) in files_at(path, &self.folder.join(source))? {
                let contents = fs::read(&file).with_context(|| file.display().to_string())?;
                spec = spec.file(&path, 0o755, contents);
            }
        }
        Ok(spec)
    }

    /// The steps one by one, in a guest that answers.
    fn live(
        &self,
        part: &GuestPart,
        spec: &Spec,
        variant: &Variant,
        booted: Option<&Booted>,
    ) -> Result<()> {
        let guest = booted.map_or_else(|| Guest::boot(spec), |booted| booted.guest(spec))?;
        let mut file = guest.console()?;
        let outcome = self.steps(guest, variant).and_then(|ended| self.check(part, &ended));
        outcome.or_else(|error| {
            let mut console = Vec::new();
            file.read_to_end(&mut console).context("read the console")?;
            let console = String::from_utf8_lossy(&console).replace('\r', "");
            // One CPU always executes what it has written itself.
            if spec.smp == 1 || !StaleBreakpoint::is_in(&console) {
                return Err(error);
            }
            keep_console(&format!("{} stale", self.name), &console)?;
            Err(error.context(StaleBreakpoint))
        })
    }

    fn steps(&self, mut guest: Guest, variant: &Variant) -> Result<Ended> {
        for step in &self.description.step {
            let limit = Duration::from_secs(step.expect.limit);
            let script = variant.script(&step.run);
            if step.restarts {
                guest.run_into_restart(&script, limit)?;
                continue;
            }
            let output = guest
                .run_with(&script, limit, &step.monitor)
                .with_context(|| format!("step {:?}", step.run.lines().next().unwrap_or("")))?;
            step.expect.check(&step.run, &output)?;
        }
        guest.shutdown()
    }

    /// All steps in one run of a guest whose whole input is fixed before it starts.
    fn once(&self, emulator: Program, spec: &Spec, variant: &Variant) -> Result<batch::Finished> {
        let steps = &self.description.step;
        let scripts: Vec<String> = steps.iter().map(|step| variant.script(&step.run)).collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let limit =
            spec.boot_limit + Duration::from_secs(steps.iter().map(|s| s.expect.limit).sum());
        let finished = match emulator {
            Program::Qemu => batch::run(spec, &scripts, limit)?,
            Program::Bochs => bochs::run(spec, &scripts, limit)?,
        };
        for (step, output) in steps.iter().zip(&finished.outputs) {
            step.expect.check(&step.run, output)?;
        }
        Ok(finished)
    }

    /// Two runs must be equal in everything. On a loaded machine QEMU's timers now and then expire at another
    /// instruction; then a third run must equal one of the two.
    fn twice(&self, emulator: Program, spec: &Spec, variant: &Variant) -> Result<Ended> {
        let first = self.once(emulator, spec, variant)?;
        let second = self.once(emulator, spec, variant)?;
        if first == second {
            return Ok(first.into());
        }
        eprintln!("{}: two runs differ, a third decides", self.name);
        let third = self.once(emulator, spec, variant)?;
        let counts = |run: &batch::Finished| -> Vec<u64> {
            std::iter::once(run.booted_tsc).chain(run.outputs.iter().map(Output::ticks)).collect()
        };
        ensure!(
            third == first || third == second,
            "three runs differ; instruction counts are {:?}, {:?}, {:?}",
            counts(&first),
            counts(&second),
            counts(&third)
        );
        Ok(third.into())
    }
}

/// The file `source` with its `path` in the guest; if it is a folder, every file in it.
fn files_at(path: &str, source: &Path) -> Result<Vec<(String, PathBuf)>> {
    if !source.is_dir() {
        return Ok(vec![(path.to_owned(), source.to_owned())]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        files.push((format!("{path}/{}", entry.file_name().to_string_lossy()), entry.path()));
    }
    files.sort();
    Ok(files)
}

/// Name and contents of the static executable of a C program.
pub fn compile(source: &Path) -> Result<(String, Vec<u8>)> {
    let scratch = cache::scratch()?;
    let out = scratch.path().join("program");
    let mut cc = Command::new("gcc");
    cc.args(["-static", "-O1", "-Wall", "-Werror", "-o"]).arg(&out).arg(source);
    process::run_ok(&mut cc, Duration::from_secs(60))?;
    let name = source.file_stem().context("a program has a name")?.to_string_lossy();
    Ok((name.into_owned(), fs::read(&out)?))
}
