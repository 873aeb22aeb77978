//! `kyozon typed run`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail, Context, Result};
use clap::Args;
use kyozon_abi::typed::TYPED_RESERVED;
use kyozon_tender::console;
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_runner::{Directory, Ended, Start};
use kyozon_typed_wasi::types::Rights;

use super::cache::Place;
use super::compile::compile;
use super::{host, read};

/// Exit status after a trap, and after the limit of time.
const TRAPPED: u8 = 120;
const TIME_OUT: u8 = 124;

/// Options of `kyozon typed run`.
#[derive(Debug, Args)]
pub struct Options {
    /// The program
    pub program: PathBuf,
    /// Give the program a directory, by its own name or as GUEST; may be repeated
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<OsString>,
    /// Give the program a directory that it can only read; may be repeated
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir_ro: Vec<OsString>,
    /// Set a variable of the program's environment, which is empty otherwise; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// End the program after so many seconds, with exit status 124
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub time_limit: Option<u64>,
    /// The C compiler: a gcc
    #[arg(long, value_name = "PROGRAM", default_value = "gcc")]
    pub cc: String,
    /// The program's arguments
    #[arg(last = true)]
    pub arguments: Vec<OsString>,
}

/// Runs a program: its exit status.
///
/// # Errors
///
/// The program cannot be read, compiled or loaded, the checker refuses it, or a directory cannot be opened.
pub fn run(options: &Options) -> Result<ExitCode> {
    let program = &options.program;
    let name = || program.display().to_string();
    let start = start(options)?;
    let bytes = read(program)?;
    let file = if bytes.starts_with(b"\0asm") {
        compiled(&bytes, &options.cc).with_context(name)?
    } else {
        bytes
    };
    let limit = Duration::from_secs(options.time_limit.unwrap_or(0));
    let ended = kyozon_typed_runner::run(&file, TYPED_RESERVED, start, limit)
        .map_err(|message| anyhow!("{}: {message}", name()))?;
    Ok(match ended {
        // As for any program of Linux, the lowest eight bits.
        Ended::Exit(code) => ExitCode::from(code as u8),
        Ended::Trap(trap, offset) => {
            console::message(&format!("kyozon: {}: trap at {offset:#x}: {trap}", name()));
            ExitCode::from(TRAPPED)
        }
        Ended::TimeOut => {
            console::message(&format!("kyozon: {}: the time limit was reached", name()));
            ExitCode::from(TIME_OUT)
        }
    })
}

/// What is kept of an earlier run if the checker accepts it, or a new file.
fn compiled(wasm: &[u8], cc: &str) -> Result<Vec<u8>> {
    let place = Place::new(wasm, cc);
    let kept = place.as_ref().and_then(Place::read);
    if let Some(file) = kept.filter(|file| verify(file, host(file), &mut Arena::default()).is_ok())
    {
        return Ok(file);
    }
    let file = compile(wasm, cc)?;
    if let Some(place) = place {
        place.write(&file);
    }
    Ok(file)
}

fn start(options: &Options) -> Result<Start> {
    let mut start = Start::with_own_standard().context("standard input, output and error")?;
    let name = options.program.file_name().unwrap_or_default();
    start.arguments.push(name.as_bytes().to_vec());
    start.arguments.extend(options.arguments.iter().map(|a| a.as_bytes().to_vec()));
    for variable in &options.env {
        if !variable.as_bytes().contains(&b'=') {
            bail!("--env {}: say NAME=VALUE", variable.display());
        }
        start.environment.push(variable.as_bytes().to_vec());
    }
    for (list, rights) in [(&options.dir, Rights::ALL), (&options.dir_ro, Rights::READ_ONLY)] {
        for word in list {
            let (host, name) = split(word);
            let directory = File::open(host)
                .and_then(|file| Ok((file.metadata()?.is_dir(), file)))
                .with_context(|| host.display().to_string())?;
            let (true, file) = directory else { bail!("{} is not a directory", host.display()) };
            start.directories.push(Directory { name, handle: file.into(), rights });
        }
    }
    Ok(start)
}

/// The two names of a directory: `HOST` or `HOST::GUEST`.
fn split(word: &OsStr) -> (&Path, Vec<u8>) {
    let bytes = word.as_bytes();
    match bytes.windows(2).rposition(|pair| pair == b"::") {
        Some(at) => (Path::new(OsStr::from_bytes(&bytes[..at])), bytes[at + 2..].to_vec()),
        None => (Path::new(word), word.to_owned().into_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_its_own_name_or_another() {
        for (word, host, guest) in
            [("/tmp", "/tmp", "/tmp"), (".::/", ".", "/"), ("a::b::c", "a::b", "c")]
        {
            let expected = (Path::new(host), guest.as_bytes().to_vec());
            assert_eq!(split(OsStr::new(word)), expected);
        }
    }
}
