//! A scenario: a folder with a `test.toml` is a test.
//!
//! ```toml
//! about = "one line: what it shows"
//! timing = true                    # it measures time, or claims some: no other test runs beside it
//! seconds = 60                     # about how long one run takes: tests that take long start first
//! needs = ["root"]  # root, kvm, tun, fuse, bochs, redis, redis-server, rust-musl, rust-wasi, wasi, nightly
//!
//! [guest]                          # runs in which each kernel, number of CPUs and isolation occurs; if there are
//!                                  # several of all three, each pair; every combination in the nightly run
//! kernels = ["6.12", "6.1"]        # "adopted" stands for every kernel that was adopted; skipped if there is none
//! nightly-kernels = ["6.1"]        # those of the kernels that only the nightly run takes
//! smp = [1, 2]
//! isolation = ["none", "vmm"]      # with kyozon: the default of `kyozon load` in this run; without the key both,
//!                                  # vmm in the nightly run only
//! build = ["tests/lab/hello"]      # modules of this tree, in the guest as /m/NAME.ko
//! typed = ["tests/typed/programs"] # folders of typed assembly, in the guest as /m/typed/FOLDER/NAME.typed
//! wasi = ["files"]                 # programs of tests/typed/wasi/programs, in the guest as /m/wasi/NAME.typed
//! suite = ["i32"]                  # scripts of WebAssembly's official test suite, in the guest as
//!                                  # /m/suite/SCRIPT-LINE.typed, with a list of these and their assertions
//! deterministic = true             # run twice; both runs must be equal to the instruction
//!
//! [[step]]                         # in the guest
//! run = "insmod /m/hello.ko"
//! stdout = "regular expression"
//!
//! [[host]]                         # on this machine, in the scenario's folder; PATH starts with its bin/ and the
//! run = "kyozon-lab run --smp 0 x" # product's folder ($KYOZON_PRODUCT); `kyozon run` keeps groups in $SCRATCH/run
//! status = 2
//! stderr = "regular expression"
//! ```
//!
//! If the guest's kernel complains on its console, the test fails, whatever its steps printed. A host step fails if it
//! leaves a process or a temporary file.

mod description;
mod guest;
mod host;
pub mod typed;

pub use guest::compile;

use crate::booted::Booted;
use crate::kernels::adopted_series;
use crate::{bochs, process, spec::started_cpus};
use anyhow::{Context, Result};
use description::{Description, GuestPart, Isolation, Need};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

/// One test: a scenario, or one variant of a scenario with a guest.
#[derive(Debug)]
pub struct Case {
    /// Folder and variant: "lab/module [6.12, 2 CPUs]".
    pub name: String,
    /// What it shows.
    pub about: String,
    folder: PathBuf,
    description: Arc<Description>,
    variant: Option<Variant>,
}

/// One run of a scenario with a guest.
#[derive(Debug)]
struct Variant {
    kernel: String,
    cpus: u32,
    isolation: Isolation,
    nightly_only: bool,
}

/// The entry of `kernels` that stands for all adopted kernels.
const ADOPTED: &str = "adopted";

impl Variant {
    /// Each kernel with each number of CPUs and each isolation. If there are several of two of these, only the nightly
    /// run has all combinations. The other run has half of them, in which each one occurs, and each pair if there are
    /// several of all three.
    fn all(guest: &GuestPart, adopted: &[String]) -> Vec<Self> {
        let isolations = guest.isolations();
        let kernels = named(&guest.kernels, adopted);
        let daily_kernels = kernels.iter().filter(|kernel| !guest.nightly_kernels.contains(kernel));
        let daily_isolations = isolations.iter().filter(|(_, nightly_only)| !nightly_only);
        let lengths = [daily_kernels.count(), guest.smp.len(), daily_isolations.count()];
        let full = lengths.iter().filter(|&&length| length > 1).count() < 2;
        let mut all = Vec::new();
        for (i, kernel) in kernels.iter().enumerate() {
            for (j, cpus) in guest.smp.iter().enumerate() {
                let cpus = started_cpus(kernel, *cpus, &guest.devices);
                for (k, (isolation, nightly_only)) in isolations.iter().enumerate() {
                    let in_half = full || (i + j + k).is_multiple_of(2);
                    let nightly_only =
                        *nightly_only || guest.nightly_kernels.contains(kernel) || !in_half;
                    let (kernel, isolation) = (kernel.clone(), *isolation);
                    all.push(Self { kernel, cpus, isolation, nightly_only });
                }
            }
        }
        all
    }

    fn name(&self) -> String {
        let Self { kernel, cpus, .. } = self;
        let plural = if *cpus == 1 { "" } else { "s" };
        let isolation = if self.isolation == Isolation::Vmm { ", vmm" } else { "" };
        format!("[{kernel}, {cpus} CPU{plural}{isolation}]")
    }
}

/// `kernels` with the series of all `adopted` kernels in place of [`ADOPTED`], which stays if there is none.
fn named(kernels: &[String], adopted: &[String]) -> Vec<String> {
    let of = |kernel: &String| match kernel == ADOPTED && !adopted.is_empty() {
        true => adopted.to_vec(),
        false => vec![kernel.clone()],
    };
    kernels.iter().flat_map(of).collect()
}

/// The outcome of a test that did not fail.
#[derive(Debug, PartialEq)]
pub enum Ending {
    /// As expected.
    Passed,
    /// It cannot run here, for this reason.
    Skipped(&'static str),
}

/// Every case below the folder `tests`, in the order of their names. An invalid `test.toml` is an error.
pub fn cases(tests: &Path) -> Result<Vec<Case>> {
    let mut folders = Vec::new();
    find_folders(tests, &mut folders)?;
    folders.sort();
    let adopted = adopted_series()?;
    let mut all = Vec::new();
    for folder in folders {
        let name = folder.strip_prefix(tests)?.display().to_string();
        let path = folder.join("test.toml");
        let description = Arc::new(Description::read(&path)?);
        let case = |name, variant| Case {
            name,
            about: description.about.clone(),
            folder: folder.clone(),
            description: description.clone(),
            variant,
        };
        let variants = description.guest.iter().flat_map(|guest| Variant::all(guest, &adopted));
        for variant in variants {
            all.push(case(format!("{name} {}", variant.name()), Some(variant)));
        }
        if !description.host.is_empty() {
            all.push(case(name, None));
        }
    }
    Ok(all)
}

/// Adds `folder` to `found` if it is a scenario, or else the scenarios below it.
fn find_folders(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join("test.toml").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find_folders(&path, found)?;
        }
    }
    Ok(())
}

impl Case {
    /// Whether only the nightly run takes this variant.
    pub fn is_nightly_only(&self) -> bool {
        self.variant.as_ref().is_some_and(|variant| variant.nightly_only)
    }

    /// CPUs of this machine that it takes: one, although a guest may have more, or all if time matters to it.
    pub fn cpus(&self) -> usize {
        if self.description.timing {
            usize::MAX
        } else {
            1
        }
    }

    /// Whether it runs library Linux on this machine.
    pub fn needs_library(&self) -> bool {
        self.name.starts_with("library/")
            || self.description.host.iter().any(|step| step.run.contains("scripts/library.sh"))
    }

    /// About how many seconds it takes.
    pub fn seconds(&self) -> u32 {
        self.description.seconds
    }

    /// Whether it reads `file`, a path from the source tree's root, or a file beside it or above its folder.
    pub fn reads(&self, tree: &Path, file: &Path) -> bool {
        let file = tree.join(file);
        let files = self.description.guest.iter().flat_map(|guest| guest.files.values());
        self.folder
            .ancestors()
            .take_while(|folder| *folder != tree)
            .any(|folder| file.parent() == Some(folder))
            || file.starts_with(&self.folder)
            || files.map(|path| self.folder.join(path)).any(|path| file.starts_with(normal(&path)))
    }

    /// Runs it. `nightly` also runs scenarios that need `nightly`. Without `booted`, each guest boots itself.
    pub fn run(&self, nightly: bool, booted: Option<&Booted>) -> Result<Ending> {
        for need in &self.description.needs {
            let missing = match need {
                Need::Root => (!rustix::process::geteuid().is_root()).then_some("needs root"),
                Need::Tun => (!Path::new("/dev/net/tun").exists()).then_some("needs /dev/net/tun"),
                Need::Kvm => (!Path::new("/dev/kvm").exists()).then_some("needs /dev/kvm"),
                Need::Fuse => fuse_missing(),
                Need::Bochs => bochs::missing().map(|_| bochs::NEEDED),
                Need::Redis => (!answers("redis-benchmark")).then_some("needs redis-tools"),
                Need::RedisServer => (!answers("redis-server")).then_some("needs redis-server"),
                Need::RustMusl => rust_std_missing("x86_64-unknown-linux-musl")
                    .then_some("needs Rust's x86_64-unknown-linux-musl"),
                Need::RustWasi => {
                    rust_std_missing("wasm32-wasip1").then_some("needs Rust's wasm32-wasip1")
                }
                Need::Wasi => wasi_missing(),
                Need::Nightly => (!nightly).then_some("nightly only: 'make soak'"),
            };
            if let Some(why) = missing {
                return Ok(Ending::Skipped(why));
            }
        }
        match &self.variant {
            Some(variant) if variant.kernel == ADOPTED => {
                return Ok(Ending::Skipped("needs an adopted kernel: 'kyozon-lab adopt'"));
            }
            Some(variant) => self.in_guest(variant, booted)?,
            None => self.on_host()?,
        }
        Ok(Ending::Passed)
    }
}

/// Whether `program` says its version.
fn answers(program: &str) -> bool {
    process::run(Command::new(program).arg("--version"), Duration::from_secs(20)).is_ok()
}

/// What FUSE lacks here.
fn fuse_missing() -> Option<&'static str> {
    if !Path::new("/dev/fuse").exists() {
        Some("needs /dev/fuse")
    } else {
        (!answers("fusermount3")).then_some("needs fuse3")
    }
}

/// What is missing to compile C for WASI.
pub fn wasi_missing() -> Option<&'static str> {
    if !Path::new("/usr/lib/wasm32-wasi/libc.a").exists() {
        Some("needs wasi-libc")
    } else if !Path::new("/usr/lib/llvm-14/lib/clang/14.0.6/lib/wasi").exists() {
        Some("needs libclang-rt-14-dev-wasm32")
    } else {
        (!(answers("clang-14") && answers("wasm-ld-14"))).then_some("needs clang-14 and lld-14")
    }
}

/// Whether rustc has no standard library for `target`.
fn rust_std_missing(target: &str) -> bool {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "target-libdir", "--target", target]);
    let answer = process::run_ok(&mut rustc, Duration::from_secs(20));
    !answer.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// `path` without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests;
