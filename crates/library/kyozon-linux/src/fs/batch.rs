//! Several operations by one kernel. Each line of a script is an operation, in the words of the command line. All lines
//! are read before the first is carried out, so that a mistake in one changes nothing.

use super::failure::warn;
use super::kernel::Boot;
use super::place::Image;
use super::session::Session;
use super::{output, within};
use crate::cli::{Batch, Line, Operation};
use crate::interrupt;
use anyhow::{anyhow, bail, ensure, Context, Error, Result};
use clap::error::ErrorKind;
use shlex::bytes::Shlex;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Maximum bytes of a line with those behind it that belong to it.
const MAX_LINE: usize = 1 << 16;

/// An operation of a script.
struct Step {
    /// The number of its line, from 1 on.
    line: usize,
    /// An error with it is no error of the batch.
    may_fail: bool,
    operation: Operation,
}

/// Carries out a script.
pub fn run(boot: &Boot, what: &Batch) -> Result<()> {
    let file = what.file.as_deref().filter(|file| *file != Path::new("-"));
    let mut script = Vec::new();
    match file {
        Some(name) => {
            script = std::fs::read(name).with_context(|| name.display().to_string())?;
        }
        None => {
            kyozon_standard::input().context("standard input")?;
            std::io::stdin().lock().read_to_end(&mut script).context("standard input")?;
        }
    }
    let steps = parse(&script, what.image.as_ref(), file.is_none())?;
    let places: Vec<_> = steps.iter().flat_map(|step| step.operation.uses()).collect();
    if places.is_empty() {
        return Ok(());
    }
    within(boot, &places, |session| {
        session.be_lazy();
        let done = steps.iter().try_for_each(|step| step.perform(session));
        // What was done before an error is kept.
        done.and(session.sync_all())
    })
}

impl Step {
    fn perform(&self, session: &Session) -> Result<()> {
        let done = self.operation.perform(session).and(output::flush());
        let Err(error) = done.with_context(|| format!("line {}", self.line)) else { return Ok(()) };
        let ends = interrupt::received() || output::is_closed(&error) || session.has_ended();
        if !self.may_fail || ends {
            return Err(error);
        }
        warn(&format!("{error:#}"));
        Ok(())
    }
}

/// The operations of a script. `input` tells that standard input is taken.
fn parse(script: &[u8], image: Option<&Image>, input: bool) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut lines = script.split(|&byte| byte == b'\n').zip(1..);
    while let Some((text, line)) = lines.next() {
        let mut text = text.trim_ascii().to_vec();
        let may_fail = text.first() == Some(&b'-');
        if may_fail {
            text.remove(0);
        }
        let step = || format!("line {line}");
        let words = loop {
            if let Some(words) = split(&text) {
                break words;
            }
            // A quote, or a backslash at the end, continues in the next line.
            loop {
                let (more, _) = lines.next().context("a quote does not end").with_context(step)?;
                let continues = text.last() == Some(&b'\\');
                text.push(b'\n');
                text.extend_from_slice(more);
                ensure!(text.len() <= MAX_LINE, "line {line}: a quote does not end");
                if continues || more.iter().any(|byte| b"'\"".contains(byte)) {
                    break;
                }
            }
        };
        if words.is_empty() {
            ensure!(!may_fail, "line {line}: an operation is missing behind the -");
            continue;
        }
        let operation = operation(words, image, input).with_context(step)?;
        steps.push(Step { line, may_fail, operation });
    }
    Ok(steps)
}

/// The words of a line, in the shell's notation; nothing if a quote does not end.
fn split(text: &[u8]) -> Option<Vec<OsString>> {
    let mut words = Shlex::new(text);
    let split = words.by_ref().map(OsString::from_vec).collect();
    (!words.had_error).then_some(split)
}

fn operation(words: Vec<OsString>, image: Option<&Image>, input: bool) -> Result<Operation> {
    let mut operation = Line::parse_words(words.into_iter()).map_err(explained)?;
    operation.complete(image)?;
    match &operation {
        Operation::Mount(_) | Operation::Batch(_) => bail!("it is no operation of a batch"),
        Operation::Tar { extract: true, file, .. } => {
            let file = file.as_deref().filter(|file| *file != Path::new("-"));
            ensure!(file.is_some() || !input, "standard input has the batch: use tar -x -f FILE");
        }
        _ => (),
    }
    operation.check()?;
    Ok(operation)
}

/// What of an error of the command line is one line.
fn explained(error: clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelp {
        return anyhow!("there is no help in a batch: see kyozon fs --help");
    }
    let text = error.to_string();
    let words = text.split("\n\n").next().unwrap_or_default().split_whitespace();
    let text = words.collect::<Vec<_>>().join(" ");
    anyhow!("{}", text.strip_prefix("error: ").unwrap_or(&text))
}

#[cfg(test)]
mod tests;
