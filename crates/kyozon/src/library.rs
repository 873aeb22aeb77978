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

/// Becomes `kyozon-cc`, or `kyozon-c++`, the compiler for programs that run on library Linux. Returns only an error.
pub fn compiler(name: &str, words: &[OsString]) -> Error {
    let program = match find(name) {
        Ok(program) => program,
        Err(error) => return error,
    };
    let error = Command::new(&program).args(words).exec();
    anyhow!("{}: {error}", program.display())
}

/// A program beside this one, or in the folder of an installation.
fn find(name: &str) -> Result<PathBuf, Error> {
    let own = env::current_exe().unwrap_or_default();
    let beside = |folder: &str| own.parent().map(|parent| parent.join(folder).join(name));
    [beside("../lib/kyozon"), beside(".")]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| anyhow!("{name} not found beside {}: run make install", own.display()))
}

fn start<const N: usize>(
    name: &str,
    first: impl FnOnce(OsString) -> [OsString; N],
    words: &[OsString],
) -> Error {
    let program = match find(name) {
        Ok(program) => program,
        Err(error) => return error,
    };
    let image: PathBuf = match env::var_os("KYOZON_LINUX") {
        Some(image) => image.into(),
        None => program.with_file_name(IMAGE),
    };
    let first = first(image.into_os_string());
    let error = Command::new(&program).args(first.iter().map(OsStr::new)).args(words).exec();
    anyhow!("{}: {error}", program.display())
}
