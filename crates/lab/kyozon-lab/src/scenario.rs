//! A folder with a `test.toml` is a test.
//!
//! ```toml
//! about = "one line: what it shows"
//! cpus = 1                         # that host steps take; without it all, and nothing runs beside them
//! needs = ["root"]                 # root, kvm, tun, bochs, redis, nightly: skipped, visibly, where that is missing
//!
//! [guest]                          # one run for each kernel and each number of CPUs
//! kernels = ["6.12", "6.1"]
//! nightly-kernels = ["6.1"]         # of these, the ones that are for the nightly run
//! smp = [1, 2]
//! isolation = ["none", "vmm"]       # with kyozon: what `kyozon load` does where nothing else is said. Where the key is
//!                                  # missing it is both, and vmm nightly only
//! build = ["tests/lab/hello"]      # modules of this tree, in the guest as /m/NAME.ko
//! deterministic = true             # run twice; everything must be the same to the instruction
//!
//! [[step]]                         # in the guest
//! run = "insmod /m/hello.ko"
//! stdout = "regular expression"
//!
//! [[host]]                         # on this machine, in the scenario's folder, its bin/ first in PATH, then the product's
//!                                  # folder, which is $KYOZON_PRODUCT; the groups of `kyozon run` are in $SCRATCH/run
//! run = "kyozon-lab run --smp 0 true"
//! status = 2
//! stderr = "regular expression"
//! ```
//!
//! A guest whose kernel complains on its console has failed, whatever its steps said. After host steps no process
//! and no temporary file of theirs may be left.

use crate::emulator::{complaints, keep_console};
use crate::guest::{Ended, Guest, Output};
use crate::kernels::{Kernel, SERIES};
use crate::spec::{Program, Spec};
use crate::{batch, bochs, cache, module, process, product};
use anyhow::{bail, ensure, Context, Result};
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs};

/// Environment variable by which processes of one scenario are recognised.
const MARK: &str = "KYOZON_SCENARIO";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Description {
    about: String,
    #[serde(default)]
    needs: Vec<Need>,
    cpus: Option<usize>,
    guest: Option<GuestPart>,
    #[serde(default)]
    step: Vec<Step>,
    #[serde(default)]
    host: Vec<HostStep>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Need {
    Root,
    Kvm,
    Tun,
    Bochs,
    Redis,
    Nightly,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct GuestPart {
    emulator: Program,
    kernels: Vec<String>,
    nightly_kernels: Vec<String>,
    flavour: String,
    smp: Vec<u32>,
    mem: u32,
    machine: Option<String>,
    cpu: Option<String>,
    accel: Option<String>,
    append: String,
    devices: Vec<String>,
    modules: Vec<String>,
    build: Vec<String>,
    programs: Vec<PathBuf>,
    kyozon: bool,
    isolation: Option<Vec<Isolation>>,
    crash_kernel: bool,
    kernel_image: bool,
    files: BTreeMap<String, PathBuf>,
    allow: Vec<String>,
    cokernel: Vec<String>,
    deterministic: bool,
    one_host_cpu: bool,
    boot_limit: Option<u64>,
}

/// What stands between the cokernel and Linux.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Isolation {
    None,
    Vmm,
}

impl GuestPart {
    /// Each isolation, and whether it is for the nightly run only.
    fn isolations(&self) -> Vec<(Isolation, bool)> {
        match &self.isolation {
            Some(list) => list.iter().map(|isolation| (*isolation, false)).collect(),
            None if self.kyozon => vec![(Isolation::None, false), (Isolation::Vmm, true)],
            None => vec![(Isolation::None, false)],
        }
    }
}

impl Default for GuestPart {
    fn default() -> Self {
        Self {
            emulator: Program::Qemu,
            kernels: SERIES.map(String::from).into(),
            nightly_kernels: Vec::new(),
            flavour: "cloud".into(),
            smp: vec![1],
            mem: 512,
            machine: None,
            cpu: None,
            accel: None,
            append: String::new(),
            devices: Vec::new(),
            modules: Vec::new(),
            build: Vec::new(),
            programs: Vec::new(),
            kyozon: false,
            isolation: None,
            crash_kernel: false,
            kernel_image: false,
            files: BTreeMap::new(),
            allow: Vec::new(),
            cokernel: Vec::new(),
            deterministic: false,
            one_host_cpu: false,
            boot_limit: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    run: String,
    /// Commands for QEMU's monitor, given one second after the script has started.
    #[serde(default)]
    monitor: Vec<String>,
    /// The script does not end: another kernel takes over, and its agent reports.
    #[serde(default)]
    restarts: bool,
    #[serde(flatten)]
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostStep {
    run: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(flatten)]
    expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Expect {
    #[serde(default)]
    status: i32,
    stdout: Option<String>,
    stderr: Option<String>,
    /// Standard error has this many lines.
    stderr_lines: Option<usize>,
    #[serde(default = "default_limit")]
    limit: u64,
}

fn default_limit() -> u64 {
    60
}

/// One test: a folder, and for guests the kernel and the number of CPUs.
#[derive(Debug)]
pub struct Case {
    /// "lab/module [6.12, 2 CPUs]".
    pub name: String,
    /// What it shows.
    pub about: String,
    folder: PathBuf,
    description: Arc<Description>,
    variant: Option<Variant>,
}

/// One run of a guest's scenario.
#[derive(Debug)]
struct Variant {
    kernel: String,
    cpus: u32,
    isolation: Isolation,
    nightly: bool,
}

impl Variant {
    fn name(&self) -> String {
        let Self { kernel, cpus, .. } = self;
        let many = if *cpus == 1 { "" } else { "s" };
        let isolation = if self.isolation == Isolation::Vmm { ", vmm" } else { "" };
        format!("[{kernel}, {cpus} CPU{many}{isolation}]")
    }
}

/// How a test ended, where it did not fail.
#[derive(Debug, PartialEq)]
pub enum Ending {
    /// As expected.
    Passed,
    /// It could not run here, and why.
    Skipped(&'static str),
}

/// `source`, which is to be at `path` in the guest; of a folder, every file in it.
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

/// Every case below `tests`, in the order of names. A `test.toml` that cannot be understood is an error.
pub fn cases(tests: &Path) -> Result<Vec<Case>> {
    let mut folders = Vec::new();
    find(tests, &mut folders)?;
    folders.sort();
    let mut all = Vec::new();
    for folder in folders {
        let name = folder.strip_prefix(tests)?.display().to_string();
        let path = folder.join("test.toml");
        let text = fs::read_to_string(&path)?;
        let description: Description =
            toml::from_str(&text).with_context(|| path.display().to_string())?;
        ensure!(
            description.guest.is_some() || description.step.is_empty(),
            "{}: steps need a [guest]",
            path.display()
        );
        let guest = description.guest.as_ref();
        ensure!(
            guest.is_none_or(|guest| !guest.kernels.is_empty() && !guest.smp.is_empty()),
            "{}: no kernel, or no number of CPUs",
            path.display()
        );
        let live_only = |step: &Step| step.restarts || !step.monitor.is_empty();
        ensure!(
            !guest.is_some_and(|guest| guest.deterministic)
                || !description.step.iter().any(live_only),
            "{}: a repeatable run has no monitor and no restart",
            path.display()
        );
        ensure!(
            !description.step.is_empty() || !description.host.is_empty(),
            "{}: nothing is tested",
            path.display()
        );
        let description = Arc::new(description);
        let case = |name, variant| Case {
            name,
            about: description.about.clone(),
            folder: folder.clone(),
            description: description.clone(),
            variant,
        };
        if let Some(guest) = &description.guest {
            for kernel in &guest.kernels {
                for (cpus, (isolation, nightly)) in guest
                    .smp
                    .iter()
                    .flat_map(|n| guest.isolations().into_iter().map(move |i| (*n, i)))
                {
                    let nightly = nightly || guest.nightly_kernels.contains(kernel);
                    let variant = Variant { kernel: kernel.clone(), cpus, isolation, nightly };
                    all.push(case(format!("{name} {}", variant.name()), Some(variant)));
                }
            }
        }
        if !description.host.is_empty() {
            all.push(case(name, None));
        }
    }
    Ok(all)
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join("test.toml").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        }
    }
    Ok(())
}

impl Case {
    /// Whether it is for the nightly run only, and nothing else of its scenario is.
    pub fn is_nightly_only(&self) -> bool {
        self.variant.as_ref().is_some_and(|variant| variant.nightly)
    }

    /// CPUs of this machine that it takes: a guest's are threads of its emulator, and a step on this machine may be
    /// about time, where it does not say that it takes no more than so many.
    pub fn cpus(&self) -> usize {
        let guests = self.variant.as_ref().map(|variant| variant.cpus as usize);
        guests.or(self.description.cpus).unwrap_or(usize::MAX).max(1)
    }

    /// Runs it. `nightly` also runs what takes long.
    pub fn run(&self, nightly: bool) -> Result<Ending> {
        for need in &self.description.needs {
            let missing = match need {
                Need::Root => (!rustix::process::geteuid().is_root()).then_some("needs root"),
                Need::Tun => (!Path::new("/dev/net/tun").exists()).then_some("needs /dev/net/tun"),
                Need::Kvm => (!Path::new("/dev/kvm").exists()).then_some("needs /dev/kvm"),
                Need::Bochs => bochs::missing().map(|_| bochs::NEEDED),
                Need::Redis => {
                    let mut client = Command::new("redis-benchmark");
                    let found = process::run(client.arg("--version"), Duration::from_secs(20));
                    found.err().map(|_| "needs redis-tools")
                }
                Need::Nightly => (!nightly).then_some("nightly only: 'make soak'"),
            };
            if let Some(why) = missing {
                return Ok(Ending::Skipped(why));
            }
        }
        match &self.variant {
            Some(variant) => self.in_guest(variant)?,
            None => self.on_host()?,
        }
        Ok(Ending::Passed)
    }

    fn in_guest(&self, variant: &Variant) -> Result<()> {
        let part = self.description.guest.as_ref().expect("a variant has a guest");
        let spec = self.spec(part, variant)?;
        let Ended { console, cokernel } = match (part.deterministic, part.emulator) {
            (true, emulator) => self.twice(emulator, &spec)?,
            (false, Program::Bochs) => self.once(Program::Bochs, &spec)?.into(),
            (false, Program::Qemu) => self.live(&spec)?,
        };
        for pattern in &part.cokernel {
            let found = Regex::new(pattern)?.is_match(&cokernel);
            ensure!(found, "the cokernel's serial line has no match for {pattern:?}: {cokernel:?}");
        }
        let allowed = part.allow.iter().map(|p| Ok(Regex::new(p)?)).collect::<Result<Vec<_>>>()?;
        let mut complaints = complaints(&console);
        complaints.retain(|line| !allowed.iter().any(|pattern| pattern.is_match(line)));
        if let Some(complaint) = complaints.first() {
            let path = keep_console(&self.name, &console)?;
            bail!("the kernel complains: {complaint} (console: {})", path.display());
        }
        Ok(())
    }

    /// The guest, with all that goes into it.
    fn spec(&self, part: &GuestPart, variant: &Variant) -> Result<Spec> {
        /// Held by who fetches a kernel or builds a module.
        static CACHE: Mutex<()> = Mutex::new(());
        let _alone = CACHE.lock().unwrap_or_else(|held| held.into_inner());
        let kernel = Kernel::fetch(&variant.kernel, &part.flavour, false)?;
        let defaults = Spec::of(part.emulator, &kernel).smp(variant.cpus);
        let mut spec = Spec {
            mem: part.mem,
            machine: part.machine.clone().unwrap_or(defaults.machine),
            cpu: part.cpu.clone().unwrap_or(defaults.cpu),
            accel: part.accel.clone().unwrap_or(defaults.accel),
            append: match variant.isolation {
                Isolation::None => part.append.clone(),
                // The kernel hands on what it does not know as environment, and the command reads it there.
                Isolation::Vmm => format!("{} KYOZON_ISOLATION=vmm", part.append),
            },
            devices: part.devices.clone(),
            modules: part.modules.clone(),
            boot_limit: part.boot_limit.map_or(defaults.boot_limit, Duration::from_secs),
            one_host_cpu: part.one_host_cpu
                && variant.cpus > 1
                && variant.isolation == Isolation::Vmm,
            ..defaults
        };
        if part.kyozon {
            spec = crate::product::install(spec)?;
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

    fn live(&self, spec: &Spec) -> Result<Ended> {
        let mut guest = Guest::boot(spec)?;
        for step in &self.description.step {
            let limit = Duration::from_secs(step.expect.limit);
            if step.restarts {
                guest.run_into_restart(&step.run, limit)?;
                continue;
            }
            let output = guest.run_with(&step.run, limit, &step.monitor)?;
            step.expect.check(&step.run, &output)?;
        }
        guest.shutdown()
    }

    /// All steps at a stretch, in a guest whose whole input is fixed.
    fn once(&self, emulator: Program, spec: &Spec) -> Result<batch::Finished> {
        let steps = &self.description.step;
        let scripts: Vec<&str> = steps.iter().map(|step| step.run.as_str()).collect();
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

    /// Two runs must be the same in everything. On a loaded machine QEMU's timers now and then fall on another
    /// instruction; then a third run must be the same as one of the two.
    fn twice(&self, emulator: Program, spec: &Spec) -> Result<Ended> {
        let first = self.once(emulator, spec)?;
        let second = self.once(emulator, spec)?;
        if first == second {
            return Ok(first.into());
        }
        eprintln!("{}: two runs differ, a third decides", self.name);
        let third = self.once(emulator, spec)?;
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

    fn on_host(&self) -> Result<()> {
        let scratch = cache::scratch()?;
        // The scratch folder's name is nobody else's.
        let mark = scratch.path().display().to_string();
        let temporary = scratch.path().join("tmp");
        fs::create_dir(&temporary)?;
        let runtime = scratch.path().join("run");
        fs::DirBuilder::new().mode(0o700).create(&runtime)?;
        let product = product::folder()?;
        let exe = env::current_exe()?;
        let own = exe.parent().context("a program has a folder")?.to_owned();
        let path = [self.folder.join("bin"), product.clone(), own];
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(path.into_iter().chain(env::split_paths(&inherited)))?;
        for step in &self.description.host {
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", &step.run])
                // The flags of a make that runs the suite are not for one that a step runs.
                .env_remove("MAKEFLAGS")
                .env_remove("MFLAGS")
                .current_dir(&self.folder)
                .env("PATH", &path)
                .env(MARK, &mark);
            command
                .env("TREE", cache::tree()?)
                .env("SCRATCH", scratch.path())
                .env("TMPDIR", &temporary)
                .env("XDG_RUNTIME_DIR", &runtime)
                .env("KYOZON_PRODUCT", &product)
                .envs(&step.env);
            let finished = process::run(&mut command, Duration::from_secs(step.expect.limit))?;
            let output = Output {
                status: finished.status.code().unwrap_or(-1),
                stdout: finished.stdout.into(),
                stderr: finished.stderr.into(),
                ..Output::default()
            };
            step.expect.check(&step.run, &output)?;
            let left = marked(&mark)?;
            ensure!(left.is_empty(), "{:?} left processes running: {}", step.run, left.join(", "));
            let files: Vec<_> =
                fs::read_dir(&temporary)?.filter_map(|e| Some(e.ok()?.file_name())).collect();
            ensure!(files.is_empty(), "{:?} left temporary files: {files:?}", step.run);
        }
        Ok(())
    }
}

/// A C program as a static executable, and its name.
fn compile(source: &Path) -> Result<(String, Vec<u8>)> {
    let scratch = cache::scratch()?;
    let out = scratch.path().join("program");
    let mut cc = Command::new("gcc");
    cc.args(["-static", "-O1", "-Wall", "-Werror", "-o"]).arg(&out).arg(source);
    process::run_ok(&mut cc, Duration::from_secs(60))?;
    let name = source.file_stem().context("a program has a name")?.to_string_lossy();
    Ok((name.into_owned(), fs::read(&out)?))
}

/// Names of the running processes that carry the scenario's mark.
fn marked(mark: &str) -> Result<Vec<String>> {
    let needle = format!("{MARK}={mark}\0");
    let mut names = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(needle.len()).any(|bytes| bytes == needle.as_bytes()) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            names.push(format!("{} ({})", name.trim(), entry.file_name().to_string_lossy()));
        }
    }
    Ok(names)
}

impl Expect {
    fn check(&self, what: &str, output: &Output) -> Result<()> {
        let what = what.lines().next().unwrap_or_default();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.timed_out {
            bail!("{what:?} did not end within {} s", self.limit);
        }
        let said = || {
            process::last_line(&stderr)
                .or(process::last_line(&stdout))
                .unwrap_or("nothing")
                .to_owned()
        };
        ensure!(
            output.status == self.status,
            "{what:?} ended with {}, not {}; it said: {}",
            output.status,
            self.status,
            said()
        );
        for (name, pattern, text) in
            [("stdout", &self.stdout, &stdout), ("stderr", &self.stderr, &stderr)]
        {
            if let Some(pattern) = pattern {
                let found = Regex::new(pattern)
                    .with_context(|| format!("{name} = {pattern:?}"))?
                    .is_match(text);
                ensure!(found, "{what:?}: {name} has no match for {pattern:?}: {text:?}");
            }
        }
        if let Some(lines) = self.stderr_lines {
            ensure!(
                stderr.lines().count() == lines,
                "{what:?}: {} lines on stderr, not {lines}: {stderr:?}",
                stderr.lines().count()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_case(toml: &str) -> (tempfile::TempDir, Vec<Case>) {
        let tests = tempfile::tempdir().unwrap();
        fs::create_dir_all(tests.path().join("group/one")).unwrap();
        fs::write(tests.path().join("group/one/test.toml"), toml).unwrap();
        let cases = cases(tests.path()).unwrap();
        (tests, cases)
    }

    fn outcome(toml: &str) -> String {
        let (_tests, cases) = host_case(toml);
        match cases[0].run(false) {
            Ok(ending) => format!("{ending:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_folder_is_a_test() {
        let (_tests, cases) = host_case(
            "about = 'x'\n[guest]\nsmp = [1, 2]\n[[step]]\nrun = 'true'\n[[host]]\nrun = 'true'\n",
        );
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let want = [
            "group/one [6.12, 1 CPU]",
            "group/one [6.12, 2 CPUs]",
            "group/one [6.1, 1 CPU]",
            "group/one [6.1, 2 CPUs]",
            "group/one",
        ];
        assert_eq!(names, want);
    }

    #[test]
    fn a_case_takes_the_cpus_of_its_guest_or_all() {
        let cpus = |toml: &str| host_case(toml).1.iter().map(Case::cpus).collect::<Vec<_>>();
        let host = "[[host]]\nrun = 'true'\n";
        assert_eq!(cpus(&format!("about = 'x'\n{host}")), [usize::MAX]);
        let both = "[guest]\nkernels = ['6.1']\nsmp = [1, 2]\n[[step]]\nrun = 'true'\n";
        assert_eq!(cpus(&format!("about = 'x'\ncpus = 3\n{both}{host}")), [1, 2, 3]);
    }

    #[test]
    fn isolation_is_for_the_nightly_run_where_nothing_else_is_said() {
        let runs = |isolation: &str| {
            let (_tests, cases) = host_case(&format!(
                "about = 'x'\n[guest]\nkernels = ['6.1']\nkyozon = true\n{isolation}\n[[step]]\nrun = 'true'\n"
            ));
            cases.iter().map(|case| (case.name.clone(), case.is_nightly_only())).collect::<Vec<_>>()
        };
        let name = |rest: &str, extra| (format!("group/one [6.1, 1 CPU{rest}]"), extra);
        assert_eq!(runs(""), [name("", false), name(", vmm", true)]);
        assert_eq!(runs("isolation = ['none']"), [name("", false)]);
        assert_eq!(runs("isolation = ['vmm']"), [name(", vmm", false)]);
        let nightly = "isolation = ['vmm']\nnightly-kernels = ['6.1']";
        assert_eq!(runs(nightly), [name(", vmm", true)]);
    }

    #[test]
    fn host_steps_are_held_to_what_they_promise() {
        assert_eq!(
            outcome("about = 'x'\n[[host]]\nrun = 'printf a; exit 2'\nstatus = 2\nstdout = '^a$'"),
            "Passed"
        );
        assert!(outcome("about = 'x'\n[[host]]\nrun = 'exit 1'").contains("ended with 1, not 0"));
        assert!(outcome("about = 'x'\n[[host]]\nrun = 'echo a'\nstdout = 'b'").contains("no match"));
        assert!(outcome("about = 'x'\n[[host]]\nrun = 'echo a >&2; echo b >&2'\nstderr-lines = 1")
            .contains("2 lines"));
        assert!(outcome("about = 'x'\n[[host]]\nrun = 'sleep 9'\nlimit = 1")
            .contains("did not end within 1 s"));
    }

    #[test]
    fn what_is_left_behind_is_a_failure() {
        assert!(outcome("about = 'x'\n[[host]]\nrun = 'touch $TMPDIR/left'")
            .contains("left temporary files"));
        let escaped =
            outcome("about = 'x'\n[[host]]\nrun = 'setsid sleep 3 >/dev/null 2>&1 & sleep 0.1'");
        assert!(escaped.contains("left processes running: sleep"), "{escaped}");
    }

    #[test]
    fn a_test_that_tests_nothing_is_refused() {
        let tests = tempfile::tempdir().unwrap();
        let file = tests.path().join("test.toml");
        for text in ["about = 'x'", "about = 'x'\nhots = 1", "about = 'x'\n[[step]]\nrun = 'true'"]
        {
            fs::write(&file, text).unwrap();
            assert!(cases(tests.path()).is_err(), "{text}");
        }
    }
}
