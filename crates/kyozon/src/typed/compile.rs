//! `kyozon typed compile`.

use std::path::Path;

use anyhow::{bail, Context, Result};
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_compiler::{link, Part};

use super::{accepted, accepted_line, read, small_arena, write};

/// Compiles a program: the file, which the checker accepts.
pub(super) fn compile(wasm: &[u8], cc: &str) -> Result<Vec<u8>> {
    let linked = link(&[Part { wasm, from: Vec::new() }])?;
    let mut arena = Arena::default();
    let file = linked.assemble(cc, &mut arena)?.to_bytes();
    verify(&file, linked.host(), &mut arena)?;
    Ok(file)
}

pub(super) fn run(program: &Path, output: Option<&Path>, cc: &str) -> Result<String> {
    let wasm = read(program)?;
    let output = match output {
        Some(path) => path.to_owned(),
        None => program.with_extension("typed"),
    };
    if output == program {
        bail!("{} would be replaced by its own code: use --output", program.display());
    }
    let file = compile(&wasm, cc).with_context(|| program.display().to_string())?;
    write(&output, &file)?;
    let host = super::host(&file);
    let contents = accepted(&file, host, &mut small_arena())?;
    Ok(format!("{}: {}", output.display(), accepted_line(contents)))
}
