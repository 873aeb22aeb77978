//! What is tested: the module, the images and the command, as they are installed, put into a guest.

use crate::{cache, kernels::Kernel, module, process, spec::Spec};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// Folder of the images and of the static command. Make builds them; `KYOZON_PRODUCT` names another.
pub fn folder() -> Result<PathBuf> {
    Ok(match env::var_os("KYOZON_PRODUCT") {
        Some(path) => path.into(),
        None => cache::root()?.join("product"),
    })
}

/// One file of the product, by name.
pub fn file(name: &str) -> Result<PathBuf> {
    let path = folder()?.join(name);
    anyhow::ensure!(path.is_file(), "{}: run through make, which builds it", path.display());
    Ok(path)
}

/// Every flat image, by name, in the order of names.
fn images() -> Result<Vec<PathBuf>> {
    let folder = folder()?;
    let read = fs::read_dir(&folder).with_context(|| {
        format!("{}: run through make, which builds the images", folder.display())
    })?;
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "bin"));
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

/// Adds the module that looks at Linux from inside, for figures that only Linux can give: `/m/kyozon_probe.ko`.
pub fn with_probe(spec: Spec) -> Result<Spec> {
    let built = module::build(&cache::tree()?.join("tests/colocation/probe"), &spec.kernel)?;
    Ok(spec.file("/m/kyozon_probe.ko", 0o644, fs::read(built.file)?))
}

/// Adds the module that tampers with Linux: `/m/kyozon-attacks.ko`.
pub fn with_attacks(spec: Spec) -> Result<Spec> {
    let built = module::build(&cache::tree()?.join("linux/attacks"), &spec.kernel)?;
    Ok(spec.file("/m/kyozon-attacks.ko", 0o644, fs::read(built.file)?))
}

/// Puts module, images and command where an installation has them.
pub fn install(spec: Spec) -> Result<Spec> {
    let built = module(&spec.kernel)?;
    if let Some(warning) = built.warnings.first() {
        anyhow::bail!("linux/module builds with a warning for {}: {warning}", spec.kernel.release);
    }
    let place = format!("/lib/modules/{}/extra/kyozon.ko", spec.kernel.release);
    let mut spec = spec.file(&place, 0o644, fs::read(&built.file)?);
    for path in images()? {
        let name = path.file_name().expect("an image has a name").to_string_lossy().into_owned();
        spec = spec.file(&format!("/usr/lib/kyozon/{name}"), 0o644, fs::read(&path)?);
    }
    Ok(spec.file("/bin/kyozon", 0o755, fs::read(file("kyozon")?)?))
}
