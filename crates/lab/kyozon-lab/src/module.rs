//! Modules of this project, built out of tree against an unpacked kernel's headers.

use crate::{cache, kernels::Kernel, process};
use anyhow::{bail, Context, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A built module.
#[derive(Debug)]
pub struct Module {
    /// The `.ko` file, in the cache.
    pub file: PathBuf,
    /// Warnings of the compiler, objtool and modpost, one line each.
    pub warnings: Vec<String>,
}

/// Builds the module in folder `source` (with a `Kbuild` that names one module) against `kernel`.
///
/// The build runs in a copy in the cache: the tree stays clean, and kernels do not mix.
pub fn build(source: &Path, kernel: &Kernel) -> Result<Module> {
    build_with(source, kernel, &[])
}

/// As [`build`], with generated files (name and contents) beside the sources. Others that build the same module wait
/// meanwhile.
pub fn build_with(source: &Path, kernel: &Kernel, generated: &[(&str, &[u8])]) -> Result<Module> {
    let name = source.file_name().context("a module's folder has a name")?.to_string_lossy();
    let work = cache::folder(&format!("modules/{}/{name}", kernel.release))?;
    let lock = File::create(work.join("lock")).context("create a lock")?;
    lock.lock().context("lock a module's folder")?;
    copy_changed(source, &work, generated)?;
    let mut make = Command::new("make");
    make.arg("-C").arg(kernel.headers()).arg(format!("M={}", work.display()));
    make.arg(format!(
        "KYOZON_INCLUDE={}",
        cache::tree()?.join("crates/base/abi/include").display()
    ))
    .arg("modules");
    make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
    let finished = process::run(&mut make, Duration::from_secs(600))?;
    if !finished.status.success() {
        let why = finished
            .stderr
            .lines()
            .find(|line| line.contains("rror"))
            .unwrap_or("make gave no reason");
        bail!("module {name} does not build for {}: {why}", kernel.release);
    }
    let warnings = warnings(&finished.stderr);
    let file = fs::read_dir(&work)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "ko"))
        .with_context(|| format!("{} builds no module", source.display()))?;
    Ok(Module { file, warnings })
}

/// The warnings in the output of make. That the kernel was built by another compiler, which is so for most adopted
/// kernels, is none of a module's.
fn warnings(stderr: &str) -> Vec<String> {
    stderr
        .lines()
        .filter(|line| line.to_lowercase().contains("warning"))
        .filter(|line| {
            !line.starts_with("warning: the compiler differs from the one used to build")
        })
        .map(str::to_owned)
        .collect()
}

/// Writes only sources and generated files whose contents differ, so that make rebuilds only these, and removes
/// sources that no longer exist.
fn copy_changed(from: &Path, to: &Path, generated: &[(&str, &[u8])]) -> Result<()> {
    let names = |folder: &Path| -> Result<Vec<OsString>> {
        let read = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
        let paths =
            read.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_source(path));
        Ok(paths.filter_map(|path| Some(path.file_name()?.to_owned())).collect())
    };
    let mut wanted: Vec<OsString> = generated.iter().map(|(name, _)| name.into()).collect();
    for (name, contents) in generated {
        write_changed(&to.join(name), contents)?;
    }
    for name in names(from)?.into_iter().filter(|name| !wanted.contains(name)).collect::<Vec<_>>() {
        write_changed(&to.join(&name), &fs::read(from.join(&name))?)?;
        wanted.push(name);
    }
    for name in names(to)?.iter().filter(|name| !wanted.contains(name)) {
        fs::remove_file(to.join(name))?;
    }
    Ok(())
}

fn write_changed(path: &Path, contents: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    fs::write(path, contents).with_context(|| format!("write {}", path.display()))
}

/// Whether a file is a source, by its name: kbuild leaves generated C files (`*.mod.c`) beside the sources.
fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kind = path.extension().unwrap_or_default();
    path.is_file()
        && !name.ends_with(".mod.c")
        && (name == "Kbuild" || ["c", "h", "S", "bin", "ld"].iter().any(|k| kind == *k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_compiler_is_no_warning_of_the_module() {
        let stderr = "warning: the compiler differs from the one used to build the kernel\n  \
                      The kernel was built by: gcc-13\n  You are using: gcc-12\n\
                      a.c:1: warning: unused variable\nb.o: Warning: objtool: no frame\n";
        let want = ["a.c:1: warning: unused variable", "b.o: Warning: objtool: no frame"];
        assert_eq!(warnings(stderr), want);
    }

    #[test]
    fn only_changed_sources_are_copied() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("Kbuild"), "obj-m := a.o\n").unwrap();
        fs::write(from.path().join("a.c"), "int a;\n").unwrap();
        fs::write(to.path().join("old.c"), "gone\n").unwrap();
        fs::write(to.path().join("a.mod.c"), "generated\n").unwrap();
        copy_changed(from.path(), to.path(), &[("h.h", b"x")]).unwrap();
        let before = fs::metadata(to.path().join("a.c")).unwrap().modified().unwrap();
        copy_changed(from.path(), to.path(), &[("h.h", b"x")]).unwrap();
        assert_eq!(before, fs::metadata(to.path().join("a.c")).unwrap().modified().unwrap());
        assert!(to.path().join("Kbuild").exists() && to.path().join("a.mod.c").exists());
        assert!(!to.path().join("old.c").exists());
        assert_eq!(fs::read(to.path().join("h.h")).unwrap(), b"x");
    }
}
