//! `kyozon typed cc`: clang for WASI, then the compiler for typed code.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{bail, Context, Result};
use kyozon_typed_compiler::BackEnd;

use super::compile::compile;
use super::{read, write};

/// The names of clang, in the order in which they are tried.
const CLANGS: [&str; 8] =
    ["clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20"];
/// What a program is compiled for, unless an argument says otherwise.
const TARGET: [&str; 2] = ["--target=wasm32-wasi", "-msimd128"];
/// Arguments with which clang links nothing.
const PARTIAL: [&str; 10] =
    ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "--help", "-v", "-###"];
/// The output, if no argument names one.
const OUTPUT: &str = "a.out";

/// Runs clang, and makes typed code of the program if it links one. Returns clang's exit status.
///
/// # Errors
///
/// There is no clang for WASI, or the program cannot be compiled to typed code.
pub fn run(words: &[OsString]) -> Result<ExitCode> {
    if words.iter().any(|word| PARTIAL.iter().any(|partial| word == partial)) {
        return clang(words);
    }
    let (mut words, output) = without_output(words)?;
    let folder = Folder::new().context("a folder for the program in WebAssembly")?;
    let linked = folder.0.join("program.wasm");
    words.extend(["-o".into(), linked.clone().into()]);
    let status = clang(&words)?;
    // With a print option, or by its failure, there is no output.
    if status != ExitCode::SUCCESS || !linked.exists() {
        return Ok(status);
    }
    let file = compile(&read(&linked)?, BackEnd::C("gcc"))
        .with_context(|| output.display().to_string())?;
    write(&output, &file)?;
    let executable = fs::Permissions::from_mode(0o777 & !umask());
    fs::set_permissions(&output, executable).with_context(|| output.display().to_string())?;
    Ok(status)
}

/// A folder for a program in WebAssembly. It is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("kyozon-typed-cc-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The mask of new files' modes.
fn umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.bits()
}

/// The words without the one that names the output, and the output.
fn without_output(words: &[OsString]) -> Result<(Vec<OsString>, PathBuf)> {
    let mut rest = Vec::new();
    let mut output = PathBuf::from(OUTPUT);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_bytes().strip_prefix(b"-o") {
            Some(b"") => match words.next() {
                Some(name) => output = name.into(),
                None => bail!("-o: say which file to write"),
            },
            Some(name) => output = Path::new(OsStr::from_bytes(name)).into(),
            None => rest.push(word.clone()),
        }
    }
    Ok((rest, output))
}

/// Runs the first clang that there is.
fn clang(words: &[OsString]) -> Result<ExitCode> {
    for name in CLANGS {
        match Command::new(name).args(TARGET).args(words).status() {
            // A signal has no code.
            Ok(status) => return Ok(status.code().map_or(1, |code| code as u8).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(name),
        }
    }
    bail!(
        "clang not found: install it, lld, and a C library for WASI (Debian: clang lld wasi-libc \
         libclang-rt-14-dev-wasm32)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_found_among_the_words() {
        let plan = |words: &str| {
            let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
            without_output(&words).map(|(rest, output)| {
                let rest: Vec<_> = rest.iter().map(|word| word.to_str().unwrap()).collect();
                (rest.join(" "), output.display().to_string())
            })
        };
        for (words, rest, output) in [
            ("a.c -O2", "a.c -O2", "a.out"),
            ("a.c -o b -O2", "a.c -O2", "b"),
            ("-ob a.c -o c", "a.c", "c"),
        ] {
            assert_eq!(plan(words).unwrap(), (rest.to_owned(), output.to_owned()));
        }
        assert!(plan("a.c -o").is_err());
    }
}
