//! Commands on library Linux. They are programs of their own, because they contain code of Linux.

use anyhow::{anyhow, Error};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The kernel's image, beside the programs.
const IMAGE: &str = "linux.elf";

/// Becomes `kyozon-linux fs`. Returns only an error.
pub fn fs(words: &[OsString]) -> Error {
    start("kyozon-linux", |image| ["fs".into(), "--linux".into(), image], words)
}

/// Becomes `kyozon-linux-exec`. Returns only an error.
pub fn exec(words: &[OsString]) -> Error {
    start("kyozon-linux-exec", |image| ["--kernel".into(), image], words)
}

fn start<const N: usize>(
    name: &str,
    first: impl FnOnce(OsString) -> [OsString; N],
    words: &[OsString],
) -> Error {
    let own = env::current_exe().unwrap_or_default();
    let beside = |folder: &str| own.parent().map(|parent| parent.join(folder).join(name));
    let found =
        [beside("../lib/kyozon"), beside(".")].into_iter().flatten().find(|path| path.is_file());
    let Some(program) = found else {
        return anyhow!("{name} not found beside {}: run make install", own.display());
    };
    let image: PathBuf = match env::var_os("KYOZON_LINUX") {
        Some(image) => image.into(),
        None => program.with_file_name(IMAGE),
    };
    let first = first(image.into_os_string());
    let error = Command::new(&program).args(first.iter().map(OsStr::new)).args(words).exec();
    anyhow!("{}: {error}", program.display())
}
