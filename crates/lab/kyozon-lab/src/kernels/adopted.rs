//! Kernels of other distributions: somebody unpacks the packages, and the cache records where.

use super::{record, Kernel, LIMIT, SERIES};
use crate::{cache, process};
use anyhow::{bail, ensure, Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flavour in the record of an adopted kernel: distributions name theirs as they like.
const FLAVOUR: &str = "adopted";
/// Programs that the build of a module starts, in the folder of headers.
const TOOLS: [&str; 3] = ["scripts/basic/fixdep", "scripts/mod/modpost", "tools/objtool/objtool"];
/// The program that completes a module's type information, if the headers have that of the kernel.
const RESOLVER: &str = "tools/bpf/resolve_btfids/resolve_btfids";

impl Kernel {
    /// Records the kernel whose packages are unpacked in `root`, after a look at its parts.
    ///
    /// It stays where it is; `depmod` writes the modules' dependencies there.
    pub fn adopt(series: &str, root: &Path) -> Result<Self> {
        let kernel = Self::unpacked(series, root)?;
        let mut depmod = Command::new("/sbin/depmod");
        process::run_ok(depmod.arg("-b").arg(&kernel.root).arg(&kernel.release), LIMIT)?;
        cache::folder("kernels")?;
        cache::write(&record(series, FLAVOUR)?, &serde_json::to_vec_pretty(&kernel)?)?;
        Ok(kernel)
    }

    /// The kernel below `root`, if it has all that a guest and the build of a module need.
    pub(super) fn unpacked(series: &str, root: &Path) -> Result<Self> {
        ensure!(is_series(series), "{series:?} is not a kernel series: one is 6.8");
        ensure!(
            !SERIES.contains(&series),
            "kernel {series} is fetched, not adopted: run 'kyozon-lab fetch --kernel {series}'"
        );
        let root = fs::canonicalize(root).with_context(|| root.display().to_string())?;
        let kernel = Self {
            series: series.into(),
            flavour: FLAVOUR.into(),
            release: only_release(&root)?,
            version: String::new(),
            root,
        };
        let kernel = Self { version: kernel.check_image()?, ..kernel };
        kernel.check_modules()?;
        kernel.check_headers()?;
        Ok(kernel)
    }

    /// The kernel of this series that was adopted.
    pub(super) fn adopted(series: &str) -> Result<Self> {
        ensure!(
            is_series(series) && record(series, FLAVOUR)?.is_file(),
            "kernel series {series:?} is not one of {}, and none was adopted: \
             unpack its packages and run 'kyozon-lab adopt --series {series} FOLDER'",
            SERIES.join(", ")
        );
        Self::recorded(series, FLAVOUR, &format!("run 'kyozon-lab adopt --series {series} FOLDER'"))
    }

    /// Checks the image by the banner in its header (Documentation/arch/x86/boot.rst, kernel_version), and returns the
    /// build that the banner names.
    fn check_image(&self) -> Result<String> {
        let path = self.image();
        let image = fs::read(&path).with_context(|| path.display().to_string())?;
        let banner = banner(&image)
            .with_context(|| format!("{} is not a bzImage for x86", path.display()))?;
        let (release, rest) = banner.split_once(' ').unwrap_or((&banner, ""));
        ensure!(release == self.release, "{} is an image of Linux {release}", path.display());
        let numbers = release.strip_prefix(&self.series);
        ensure!(
            numbers.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())),
            "Linux {release} is not of series {}",
            self.series
        );
        Ok(rest.find('#').map_or(release, |at| &rest[at..]).to_owned())
    }

    fn check_modules(&self) -> Result<()> {
        for name in ["modules.builtin", "modules.order", "kernel"] {
            let path = self.modules().join(name);
            ensure!(path.exists(), "{} not found: unpack the package of modules", path.display());
        }
        Ok(())
    }

    /// Checks the headers, and that their programs run here.
    fn check_headers(&self) -> Result<()> {
        let missing = |path: &Path| {
            format!(
                "{} not found: unpack the packages of headers, those for all flavours too",
                path.display()
            )
        };
        let needed =
            ["include/config/auto.conf", "include/generated/utsrelease.h", "Module.symvers"];
        for name in needed {
            let path = self.headers().join(name);
            ensure!(path.is_file(), missing(&path));
        }
        let makefile = self.headers().join("Makefile");
        ensure!(makefile.is_file(), missing(&makefile));
        self.relocate_headers()?;
        for name in TOOLS {
            let path = self.headers().join(name);
            ensure!(path.is_file(), missing(&path));
            variants(&path)?.iter().try_for_each(|path| runs_here(path))?;
        }
        let resolver = self.headers().join(RESOLVER);
        if self.headers().join("vmlinux").is_file() && resolver.is_file() {
            runs_here(&resolver)?;
        }
        Ok(())
    }
}

/// A program, and those beside it that it starts: Debian's modpost and objtool are wrappers of `modpost.real-*` and
/// `objtool.real-*`.
fn variants(program: &Path) -> Result<Vec<PathBuf>> {
    let name = program.file_name().context("a program has a name")?.to_string_lossy();
    let real = format!("{name}.real-");
    let folder = program.parent().context("a program has a folder")?;
    let beside = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let beside = beside.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&real))
    });
    Ok([program.to_owned()].into_iter().chain(beside).collect())
}

/// Checks that the loader of this machine starts `program`. Without arguments each program of the headers fails, so
/// that its status tells nothing.
fn runs_here(program: &Path) -> Result<()> {
    let ended = process::run(&mut Command::new(program), LIMIT)
        .with_context(|| program.display().to_string())?;
    let complaint = ended.stderr.lines().find(|line| {
        line.contains("not found (required by") || line.contains("loading shared libraries")
    });
    if let Some(complaint) = complaint {
        let name = format!("{}: ", program.display());
        let complaint = complaint.strip_prefix(&name).unwrap_or(complaint);
        bail!(
            "{} does not run here ({complaint}): replace it with one that was built for this machine",
            program.display()
        );
    }
    Ok(())
}

/// The series of all adopted kernels, oldest first.
pub fn adopted_series() -> Result<Vec<String>> {
    let Ok(folder) = fs::read_dir(cache::root()?.join("kernels")) else { return Ok(Vec::new()) };
    let suffix = format!("-{FLAVOUR}.json");
    let mut all: Vec<String> = folder
        .filter_map(|entry| {
            Some(entry.ok()?.file_name().to_str()?.strip_suffix(&suffix)?.to_owned())
        })
        .filter(|series| is_series(series))
        .collect();
    all.sort_by(|a, b| super::compare_numbers(a, b));
    Ok(all)
}

/// Whether `text` is two numbers with a dot: it becomes part of a file's name.
fn is_series(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor))
}

/// The release of the one kernel image below `root`.
fn only_release(root: &Path) -> Result<String> {
    let boot = root.join("boot");
    let mut all: Vec<String> = fs::read_dir(&boot)
        .with_context(|| format!("{}: unpack the package of the image", boot.display()))?
        .filter_map(|entry| {
            Some(entry.ok()?.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned())
        })
        .collect();
    all.sort();
    ensure!(
        all.len() == 1,
        "{} has {} files vmlinuz-RELEASE, not one: unpack one package of an image",
        boot.display(),
        all.len()
    );
    Ok(all.remove(0))
}

/// The text that begins with the release, from a bzImage's setup header.
fn banner(image: &[u8]) -> Option<String> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = usize::from(u16::from_le_bytes(image.get(0x20e..0x210)?.try_into().ok()?)) + 0x200;
    let text = image.get(at..)?.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8(text.get(..text.len().min(256))?.to_vec()).ok()?;
    (!text.is_empty()).then_some(text)
}
