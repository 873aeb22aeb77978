//! The cache of downloads and builds, outside the tree.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

/// `${KYOZON_CACHE:-~/.cache/kyozon}`.
pub fn root() -> Result<PathBuf> {
    if let Some(path) = env::var_os("KYOZON_CACHE").filter(|path| !path.is_empty()) {
        return std::path::absolute(&path).context("KYOZON_CACHE");
    }
    let home = env::var_os("HOME")
        .context("neither KYOZON_CACHE nor HOME is set: set KYOZON_CACHE to the cache's folder")?;
    Ok(Path::new(&home).join(".cache/kyozon"))
}

/// A folder in the cache, created if it is absent.
pub fn folder(name: &str) -> Result<PathBuf> {
    let path = root()?.join(name);
    fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
    Ok(path)
}

/// The project's source tree: the nearest folder above the working directory, or above this program's source, that
/// contains the laboratory.
pub fn tree() -> Result<PathBuf> {
    let here = env::current_dir()?;
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .chain(compiled.ancestors())
        .find(|folder| folder.join("crates/lab/kyozon-lab/Cargo.toml").is_file())
        .map(Path::to_owned)
        .with_context(|| format!("{} is not inside the project's source tree", here.display()))
}

/// Temporary folders that this program made; [`remove_scratch`] removes all of them.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary folder for one run. Dropping the handle removes it.
pub fn scratch() -> Result<tempfile::TempDir> {
    scratch_in(&env::temp_dir())
}

/// A temporary folder for one run, in `folder`. Dropping the handle removes it.
pub fn scratch_in(folder: &Path) -> Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("kyozon-").tempdir_in(folder);
    let made =
        made.with_context(|| format!("create a temporary directory in {}", folder.display()))?;
    SCRATCH.lock().expect("no panic while it is held").push(made.path().to_owned());
    Ok(made)
}

/// Removes the temporary folders of all runs, before this program exits.
pub fn remove_scratch() {
    // A program that was just killed may still write there for a moment.
    for path in SCRATCH.lock().unwrap_or_else(|held| held.into_inner()).iter() {
        for _ in 0..100 {
            if fs::remove_dir_all(path).is_ok() || !path.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Writes a file completely or not at all, also for concurrent readers and on a full disk.
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    let temporary = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("write in {}", folder.display()))?;
    fs::write(temporary.path(), contents).with_context(|| format!("write {}", path.display()))?;
    temporary.persist(path).with_context(|| format!("write {}", path.display()))?;
    Ok(())
}
