//! Commands on library Linux. They are programs of their own, because they contain code of Linux.

use anyhow::{anyhow, Error};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The kernel's image, beside the programs.
const IMAGE: &str = "linux.elf";
/// The environment variable that names another one.
const VARIABLE: &str = "KYOZON_LINUX";

/// Becomes `kyozon-linux fs`. Returns only an error.
pub fn fs(words: &[OsString]) -> Error {
    let (program, image) = match image("kyozon-linux") {
        Ok(found) => found,
        Err(error) => return error,
    };
    // As a word it would be in every line of usage.
    become_it(Command::new(&program).arg("fs").args(words).env(VARIABLE, image))
}

/// Becomes `kyozon-linux typed-run`. Returns only an error.
pub fn typed(words: &[OsString]) -> Error {
    let (program, image) = match image("kyozon-linux") {
        Ok(found) => found,
        Err(error) => return error,
    };
    become_it(Command::new(&program).arg("typed-run").args(words).env(VARIABLE, image))
}

/// Becomes `kyozon-linux-exec`. Returns only an error.
pub fn exec(words: &[OsString]) -> Error {
    let (program, image) = match image("kyozon-linux-exec") {
        Ok(found) => found,
        Err(error) => return error,
    };
    become_it(Command::new(&program).arg("--kernel").arg(image).args(words))
}

/// Becomes `kyozon-cc`, or `kyozon-c++`, the compiler for programs that run on library Linux. Returns only an error.
pub fn compiler(name: &str, words: &[OsString]) -> Error {
    let program = match find(name) {
        Ok(program) => program,
        Err(error) => return error,
    };
    become_it(Command::new(&program).args(words))
}

/// A program beside this one, or in the folder of an installation.
pub fn find(name: &str) -> Result<PathBuf, Error> {
    let own = env::current_exe().unwrap_or_default();
    let beside = |folder: &str| own.parent().map(|parent| parent.join(folder).join(name));
    [beside("../lib/kyozon"), beside(".")]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or_else(|| anyhow!("{name} not found beside {}: run make install", own.display()))
}

/// A program, and the kernel's image: beside it, unless the environment names another one.
fn image(name: &str) -> Result<(PathBuf, PathBuf), Error> {
    let program = find(name)?;
    let beside = program.with_file_name(IMAGE);
    Ok((program, env::var_os(VARIABLE).map_or(beside, PathBuf::from)))
}

fn become_it(command: &mut Command) -> Error {
    kyozon_standard::close_again();
    let error = command.exec();
    anyhow!("{}: {error}", command.get_program().to_string_lossy())
}
