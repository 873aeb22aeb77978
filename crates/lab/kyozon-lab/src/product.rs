//! The project's module, images and command, put into a guest where an installation has them.

use crate::{cache, kernels::Kernel, module, process, spec::Spec};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// Folder of the images and of the static command, which make builds; `KYOZON_PRODUCT` overrides it.
pub fn folder() -> Result<PathBuf> {
    Ok(match env::var_os("KYOZON_PRODUCT") {
        Some(path) => path.into(),
        None => cache::root()?.join("product"),
    })
}

/// One file of the product, by name.
pub fn file(name: &str) -> Result<PathBuf> {
    let path = folder()?.join(name);
    anyhow::ensure!(
        path.is_file(),
        "{}: not found: run make build, which builds it",
        path.display()
    );
    Ok(path)
}

/// Every flat image, sorted by name.
fn images() -> Result<Vec<PathBuf>> {
    files("bin")
}

/// Every file with this extension, sorted by name.
fn files(extension: &str) -> Result<Vec<PathBuf>> {
    let folder = folder()?;
    let read = fs::read_dir(&folder).with_context(|| {
        format!("{}: not found: run make build, which builds the images", folder.display())
    })?;
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == extension));
    paths.sort();
    Ok(paths)
}

/// Builds `kyozon.ko` for `kernel`, with the hashes of every image.
pub fn module(kernel: &Kernel) -> Result<module::Module> {
    let source = cache::tree()?.join("linux/module");
    let mut hashes = Command::new(source.join("image-hashes.sh"));
    let hashes = process::run_ok(hashes.args(images()?), Duration::from_secs(60))?;
    module::build_with(&source, kernel, &[("image_hashes.h", hashes.as_bytes())])
}

/// Adds `/m/kyozon_probe.ko`, a module that measures inside Linux.
pub fn with_probe(spec: Spec) -> Result<Spec> {
    let built = module::build(&cache::tree()?.join("tests/colocation/probe"), &spec.kernel)?;
    Ok(spec.file("/m/kyozon_probe.ko", 0o644, fs::read(built.file)?))
}

/// Adds `/m/kyozon-attacks.ko`, the module that tampers with Linux.
pub fn with_attacks(spec: Spec) -> Result<Spec> {
    let built = module::build(&cache::tree()?.join("linux/attacks"), &spec.kernel)?;
    Ok(spec.file("/m/kyozon-attacks.ko", 0o644, fs::read(built.file)?))
}

/// Builds `kyozon-typed.ko` for `kernel`, with the checker.
fn typed_module(kernel: &Kernel) -> Result<module::Module> {
    let checker = fs::read(file("checker.S")?)?;
    module::build_with(&cache::tree()?.join("linux/typed"), kernel, &[("checker.S", &checker)])
}

/// Adds the module of typed code and the command at the paths of an installation.
pub fn install_typed(spec: Spec) -> Result<Spec> {
    let built = typed_module(&spec.kernel)?;
    if let Some(warning) = built.warnings.first() {
        anyhow::bail!("linux/typed builds with a warning for {}: {warning}", spec.kernel.release);
    }
    let place = format!("/lib/modules/{}/extra/kyozon-typed.ko", spec.kernel.release);
    let spec = spec.file(&place, 0o644, fs::read(&built.file)?);
    Ok(spec.file("/bin/kyozon", 0o755, fs::read(file("kyozon")?)?))
}

/// Adds module, images and command at the paths of an installation.
pub fn install(spec: Spec) -> Result<Spec> {
    let built = module(&spec.kernel)?;
    if let Some(warning) = built.warnings.first() {
        anyhow::bail!("linux/module builds with a warning for {}: {warning}", spec.kernel.release);
    }
    let place = format!("/lib/modules/{}/extra/kyozon.ko", spec.kernel.release);
    let mut spec = spec.file(&place, 0o644, fs::read(&built.file)?);
    for path in images()?.into_iter().chain(files("typed")?) {
        let name = path.file_name().expect("an image has a name").to_string_lossy().into_owned();
        spec = spec.file(&format!("/usr/lib/kyozon/{name}"), 0o644, fs::read(&path)?);
    }
    Ok(spec.file("/bin/kyozon", 0o755, fs::read(file("kyozon")?)?))
}
