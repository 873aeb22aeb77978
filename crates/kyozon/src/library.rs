//! Commands on library Linux. They are a program of their own, because it contains code of Linux.

use anyhow::{anyhow, Error};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "kyozon-linux";

/// Becomes that program. Returns only an error.
pub fn run(command: &str, words: &[OsString]) -> Error {
    let own = env::current_exe().unwrap_or_default();
    let beside = |folder: &str| own.parent().map(|parent| parent.join(folder).join(PROGRAM));
    let found =
        [beside("../lib/kyozon"), beside(".")].into_iter().flatten().find(|path| path.is_file());
    let Some(program) = found else {
        return anyhow!("{PROGRAM} not found beside {}: run make install", own.display());
    };
    let mut start = Command::new(&program);
    // In a build tree, the kernel's image is beside the program.
    let image: PathBuf = program.with_file_name("linux.elf");
    if env::var_os("KYOZON_LINUX").is_none() {
        start.env("KYOZON_LINUX", image);
    }
    let error = start.arg(command).args(words).exec();
    anyhow!("{}: {error}", program.display())
}
