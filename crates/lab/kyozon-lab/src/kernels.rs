//! Stock Debian kernels: the packages are downloaded and unpacked into the cache, never installed.

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
    /// "6.12", "6.1".
    pub series: String,
    /// "cloud" or "generic".
    pub flavour: String,
    /// Output of `uname -r`.
    pub release: String,
    /// The Debian package's version.
    pub version: String,
    /// Folder into which the packages were unpacked.
    pub root: PathBuf,
}

impl Kernel {
    /// The kernel that was fetched last, without the network.
    pub fn cached(series: &str, flavour: &str) -> Result<Self> {
        check_names(series, flavour)?;
        let record = record(series, flavour)?;
        let text = fs::read(&record).with_context(|| {
            format!(
                "kernel {series} ({flavour}) is not in the cache: \
                 run 'kyozon-lab fetch --kernel {series} --flavour {flavour}'"
            )
        })?;
        let kernel: Self = serde_json::from_slice(&text).with_context(|| {
            format!("{} is damaged: remove it and fetch again", record.display())
        })?;
        ensure!(
            kernel.image().is_file(),
            "{} is gone: remove {} and fetch again",
            kernel.image().display(),
            record.display()
        );
        Ok(kernel)
    }

    /// The kernel in the cache; downloads it if it is not there. With `update`, the newest point release.
    pub fn fetch(series: &str, flavour: &str, update: bool) -> Result<Self> {
        check_names(series, flavour)?;
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

    /// The headers' Makefile includes the common one by absolute path: sets that path.
    fn relocate_headers(&self) -> Result<()> {
        let source = self.root.join("usr/src");
        let common = fs::read_dir(&source)
            .with_context(|| format!("read {}", source.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.to_string_lossy().ends_with("-common"))
            .with_context(|| format!("no common headers in {}", source.display()))?;
        cache::write(
            &self.headers().join("Makefile"),
            format!("include {}/Makefile\n", common.display()).as_bytes(),
        )
    }
}

fn check_names(series: &str, flavour: &str) -> Result<()> {
    ensure!(
        SERIES.contains(&series),
        "kernel series {series:?} is not one of {}",
        SERIES.join(", ")
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_number() {
        assert_eq!(compare_numbers("6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64"), Ordering::Less);
        assert_eq!(
            compare_numbers("6.12.117+deb12-amd64", "6.12.9+deb12-amd64"),
            Ordering::Greater
        );
    }

    #[test]
    fn modules_come_in_loading_order() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel {
            series: "6.1".into(),
            flavour: "cloud".into(),
            release: "r".into(),
            version: "v".into(),
            root: folder.path().into(),
        };
        fs::create_dir_all(kernel.modules()).unwrap();
        let dep = "kernel/a/virtio.ko.xz:\nkernel/a/virtio-ring.ko: kernel/a/virtio.ko.xz\n\
                   kernel/b/con.ko: kernel/a/virtio-ring.ko kernel/a/virtio.ko.xz\n";
        fs::write(kernel.modules().join("modules.dep"), dep).unwrap();
        fs::write(kernel.modules().join("modules.builtin"), "kernel/c/serial_8250.ko\n").unwrap();
        let files = kernel.module_files(&["con", "virtio_ring", "serial-8250"]).unwrap();
        let names: Vec<_> =
            files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["virtio.ko.xz", "virtio-ring.ko", "con.ko"]);
        assert!(kernel.module_files(&["nope"]).unwrap_err().to_string().contains("no module nope"));
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(Kernel::cached("5.10", "cloud").unwrap_err().to_string().contains("6.12, 6.1"));
        assert!(Kernel::cached("6.1", "rt")
            .unwrap_err()
            .to_string()
            .contains("neither cloud nor generic"));
    }
}
