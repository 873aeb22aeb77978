//! Stock kernels: Debian's packages are downloaded and unpacked into the cache, never installed; packages of others are
//! unpacked by hand and [adopted](Kernel::adopt).

mod adopted;
#[cfg(test)]
mod tests;

pub use adopted::adopted_series;

use crate::{cache, process};
use anyhow::{bail, ensure, Context, Result};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// The series that the project is tested on, newest first.
pub const SERIES: [&str; 2] = ["6.12", "6.1"];
const LIMIT: Duration = Duration::from_secs(600);

/// One unpacked kernel: image, modules and headers under one root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// "6.12", "6.1", or of an adopted kernel.
    pub series: String,
    /// "cloud", "generic" or "adopted".
    pub flavour: String,
    /// Output of `uname -r`.
    pub release: String,
    /// The Debian package's version, or an adopted kernel's build ("#31-Ubuntu SMP ...").
    pub version: String,
    /// Folder into which the packages were unpacked.
    pub root: PathBuf,
}

impl Kernel {
    /// The kernel that was fetched or adopted last, without the network. A series beyond [`SERIES`] is an adopted one,
    /// whatever the flavour.
    pub fn cached(series: &str, flavour: &str) -> Result<Self> {
        check_flavour(flavour)?;
        if !SERIES.contains(&series) {
            return Self::adopted(series);
        }
        let remedy = format!("run 'kyozon-lab fetch --kernel {series} --flavour {flavour}'");
        Self::recorded(series, flavour, &remedy)
    }

    /// The kernel of a record in the cache. `remedy` makes a new record.
    fn recorded(series: &str, flavour: &str, remedy: &str) -> Result<Self> {
        let record = record(series, flavour)?;
        let text = fs::read(&record).with_context(|| {
            format!("kernel {series} ({flavour}) is not in the cache: {remedy}")
        })?;
        let kernel: Self = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged: remove it and {remedy}", record.display()))?;
        ensure!(
            kernel.image().is_file(),
            "{} is gone: remove {} and {remedy}",
            kernel.image().display(),
            record.display()
        );
        Ok(kernel)
    }

    /// The kernel in the cache; downloads it if it is not there. With `update`, the newest point release.
    pub fn fetch(series: &str, flavour: &str, update: bool) -> Result<Self> {
        check_flavour(flavour)?;
        if !SERIES.contains(&series) {
            let kernel = Self::adopted(series)?;
            ensure!(!update, "kernel {series} was adopted: unpack a newer one and adopt that");
            return Ok(kernel);
        }
        if !update {
            if let Ok(kernel) = Self::cached(series, flavour) {
                return Ok(kernel);
            }
        }
        let release = newest_release(series, flavour)?;
        let packages = packages(&release)?;
        let version =
            field(&show(&packages[0])?, "Version").context("a package has a version")?.to_owned();
        let folder = cache::folder(&format!("kernels/{series}-{flavour}"))?;
        let kernel = Self {
            series: series.into(),
            flavour: flavour.into(),
            root: folder.join(&version),
            release,
            version,
        };
        if !kernel.image().is_file() {
            unpack(&kernel, &packages, &folder)?;
        }
        kernel.relocate_headers()?;
        cache::write(&record(series, flavour)?, &serde_json::to_vec_pretty(&kernel)?)?;
        Ok(kernel)
    }

    /// The compressed kernel image.
    pub fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.release))
    }

    /// `/lib/modules/RELEASE` of the package.
    pub fn modules(&self) -> PathBuf {
        self.root.join("lib/modules").join(&self.release)
    }

    /// The folder to give to `make -C`.
    pub fn headers(&self) -> PathBuf {
        self.root.join("usr/src").join(format!("linux-headers-{}", self.release))
    }

    /// Files of the named modules and of their dependencies, in the order of loading. Built-in modules have no file.
    pub fn module_files(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let dep = fs::read_to_string(self.modules().join("modules.dep")).context("modules.dep")?;
        let builtin =
            fs::read_to_string(self.modules().join("modules.builtin")).unwrap_or_default();
        let mut files: Vec<&str> = Vec::new();
        for name in names {
            let line = dep
                .lines()
                .find(|line| module_name(line.split(':').next().unwrap_or(line)) == normal(name));
            let Some((module, needs)) = line.and_then(|line| line.split_once(':')) else {
                ensure!(
                    builtin.lines().any(|line| module_name(line) == normal(name)),
                    "kernel {} has no module {name}",
                    self.release
                );
                continue;
            };
            // depmod lists the module that is loaded first at the end.
            for file in needs.split_whitespace().rev().chain([module]) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        Ok(files.into_iter().map(|file| self.modules().join(file)).collect())
    }

    /// The Makefile of Debian's headers has absolute paths of folders of headers: sets those below [`Self::root`].
    fn relocate_headers(&self) -> Result<()> {
        let path = self.headers().join("Makefile");
        let old = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let source = self.root.join("usr/src/linux-headers-").display().to_string();
        let new = Regex::new(r"[^\s=]*/usr/src/linux-headers-")?
            .replace_all(&old, regex::NoExpand(&source));
        if new != old {
            cache::write(&path, new.as_bytes())?;
        }
        Ok(())
    }
}

fn check_flavour(flavour: &str) -> Result<()> {
    ensure!(
        matches!(flavour, "cloud" | "generic"),
        "kernel flavour {flavour:?} is neither cloud nor generic"
    );
    Ok(())
}

fn record(series: &str, flavour: &str) -> Result<PathBuf> {
    Ok(cache::root()?.join(format!("kernels/{series}-{flavour}.json")))
}

/// One of apt's tools, from the folder `KYOZON_APT_PREFIX` if that is set.
fn apt(tool: &str) -> Command {
    match env::var_os("KYOZON_APT_PREFIX") {
        Some(folder) => Command::new(Path::new(&folder).join(tool)),
        None => Command::new(tool),
    }
}

fn newest_release(series: &str, flavour: &str) -> Result<String> {
    let suffix = if flavour == "cloud" { "-cloud-amd64" } else { "-amd64" };
    let pattern =
        format!(r"^linux-image-({}\.[0-9]+(-[0-9]+|\+deb[0-9]+){suffix})$", regex::escape(series));
    let pattern = Regex::new(&pattern)?;
    let list = process::run_ok(
        apt("apt-cache").args(["pkgnames", &format!("linux-image-{series}.")]),
        LIMIT,
    )
    .context("ask apt for kernel packages")?;
    list.lines()
        .filter_map(|line| Some(pattern.captures(line.trim())?[1].to_owned()))
        .max_by(|a, b| compare_numbers(a, b))
        .with_context(|| {
            format!(
                "apt knows no linux-image-{series}.*{suffix}: \
                 run 'apt-get update' with a Debian 12 source and try again"
            )
        })
}

/// Orders "6.1.0-9" before "6.1.0-56".
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b))
}

fn show(package: &str) -> Result<String> {
    process::run_ok(apt("apt-cache").args(["show", "--no-all-versions", package]), LIMIT)
        .with_context(|| format!("ask apt about {package}"))
}

fn field<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The image package first, then the packages that are needed to build modules against it.
fn packages(release: &str) -> Result<Vec<String>> {
    let headers = format!("linux-headers-{release}");
    let stanza = show(&headers)?;
    let depends = field(&stanza, "Depends").context("the headers depend on their common part")?;
    let needed =
        depends.split(", ").filter_map(|entry| entry.split_whitespace().next()).filter(|name| {
            name.starts_with("linux-kbuild-")
                || (name.starts_with("linux-headers-") && name.ends_with("-common"))
        });
    let all: Vec<String> = [format!("linux-image-{release}"), headers.clone()]
        .into_iter()
        .chain(needed.map(str::to_owned))
        .collect();
    ensure!(
        all.len() == 4,
        "{headers} names {} packages to build with, not a common part and kbuild",
        all.len() - 2
    );
    Ok(all)
}

fn unpack(kernel: &Kernel, packages: &[String], folder: &Path) -> Result<()> {
    eprintln!("fetching Linux {} ({}) ...", kernel.release, kernel.version);
    // Unpacked beside its final place and then renamed, so that a full disk or an interrupt leaves no partial kernel.
    let work = cache::scratch_in(folder)?;
    let debs = work.path().join("debs");
    let root = work.path().join("root");
    fs::create_dir(&debs)?;
    fs::create_dir(&root)?;
    let mut download = apt("apt-get");
    download
        .args(["-q", "-o", "APT::Sandbox::User=", "download"])
        .args(packages)
        .current_dir(&debs);
    let finished = process::run(&mut download, LIMIT)?;
    if !finished.status.success() {
        let why = finished
            .stderr
            .lines()
            .rfind(|line| line.starts_with("E: "))
            .unwrap_or("apt-get gave no reason");
        bail!(
            "download Linux {}: {why}: is there a network, and room on the disk?",
            kernel.release
        );
    }
    for entry in fs::read_dir(&debs)? {
        process::run_ok(Command::new("dpkg-deb").arg("-x").arg(entry?.path()).arg(&root), LIMIT)
            .context("unpack a kernel package")?;
    }
    process::run_ok(Command::new("/sbin/depmod").arg("-b").arg(&root).arg(&kernel.release), LIMIT)?;
    let moved = fs::rename(&root, &kernel.root);
    // Another kyozon-lab may have been faster.
    if moved.is_err() && kernel.image().is_file() {
        return Ok(());
    }
    moved.with_context(|| format!("move the kernel to {}", kernel.root.display()))
}

fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    normal(file.split(".ko").next().unwrap_or(file))
}

/// In module names, '-' and '_' are equivalent.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}
